"""The drawings show every replicate where it lies, parse as XML and let no text out of its place."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from case_study import standalone
from runs import ratio

from torchlint.evidence import Ratio
from torchlint.verify.plots import STYLE, Line, ecdf, forest, run_order
from torchlint.verify.words import interval

SVG = "{http://www.w3.org/2000/svg}"
LINES = (
    Line("unchanged code", "control", ratio(1.0), "flat"),
    Line("TL301 train.py:41", "alone", ratio(1.04), "gain"),
    Line("TL101 data.py:18", "alone", ratio(40.0, 0.05), "gain"),
    Line("TL201 model.py:2", "alone", ratio(0.1, 0.05), "loss"),
)


def parsed(drawing: str) -> ET.Element:
    return ET.fromstring(drawing)  # noqa: S314 - made a line above


def places(drawing: str, kind: str, key: str) -> list[float]:
    return [float(found.attrib[key]) for found in parsed(drawing).iter() if found.get("class") == kind]


def texts(drawing: str) -> list[str]:
    return [found.text or "" for found in parsed(drawing).iter(f"{SVG}text")]


def test_a_forest_has_a_row_per_line_and_a_dot_per_replicate() -> None:
    drawing = forest(LINES)
    assert len(places(drawing, "dot", "cx")) == sum(line.speedup.n for line in LINES)
    means = places(drawing, "mean", "cx")
    none, some, much, less = means
    assert less < none < some < much
    starts, ends = places(drawing, "bar", "x1"), places(drawing, "bar", "x2")
    assert all(start < mean < end for start, mean, end in zip(starts, means, ends, strict=True))
    assert {interval(line.speedup) for line in LINES} <= set(texts(drawing))
    assert [found.get("class") for found in parsed(drawing).iter(f"{SVG}g")] == ["flat", "gain", "gain", "loss"]


def test_equal_effects_up_and_down_lie_equally_far_from_none() -> None:
    def flat(value: float) -> Ratio:
        return Ratio(ratio=value, lo=value, hi=value, level=0.99, n=0, log_ratios=())

    lines = [Line("", "", flat(value), "flat") for value in (0.25, 1 / 1.01, 1.0, 1.01, 4.0)]
    far_down, down, none, up, far_up = places(forest(lines), "mean", "cx")
    assert up - none == pytest.approx(none - down, abs=0.2)
    assert far_up - none == pytest.approx(none - far_down, abs=0.2)
    (band,) = [found for found in parsed(forest(lines)) if found.get("class") == "band"]
    assert float(band.attrib["x"]) == pytest.approx(down, abs=0.1)
    assert float(band.attrib["x"]) + float(band.attrib["width"]) == pytest.approx(up, abs=0.2)


@pytest.mark.parametrize("value", [1e-5, 0.01, 0.5, 0.97, 1.0, 1.004, 1.3, 7.0, 5e3, 1e9])
def test_nothing_is_drawn_outside_and_no_tick_over_another(value: float) -> None:
    found = ratio(value, 0.01)
    for drawing in (forest([Line("x", "y", found, "flat")]), run_order(found, "flat"), ecdf(found, ratio(1.0), "flat")):
        root = parsed(drawing)
        _, _, columns, rows = map(float, root.attrib["viewBox"].split())
        for each in root.iter():
            for key, end in (
                ("x", columns),
                ("cx", columns),
                ("x1", columns),
                ("x2", columns),
                ("y", rows),
                ("cy", rows),
            ):
                assert 0 <= float(each.get(key, 0)) <= end
        ticks = [float(each.attrib["x"]) for each in root.iter(f"{SVG}text") if each.get("text-anchor") == "middle"]
        assert all(right - left >= 40 for left, right in itertools.pairwise(ticks))


def test_replicates_stand_in_the_order_of_the_run() -> None:
    rising = Ratio(ratio=1.05, lo=1.02, hi=1.08, level=0.99, n=4, log_ratios=(0.01, 0.03, 0.06, 0.09))
    drawing = run_order(rising, "gain")
    heights = places(drawing, "dot", "cy")
    assert heights == sorted(heights, reverse=True)
    assert places(drawing, "dot", "cx") == sorted(places(drawing, "dot", "cx"))
    assert "replicates 1 to 4 in the order of the run" in texts(drawing)


def test_a_distribution_climbs_from_none_to_all() -> None:
    drawing = ecdf(ratio(1.04, n=5), ratio(1.0), "gain")
    (path,) = [found.attrib["d"] for found in parsed(drawing).iter() if found.get("class") == "step"]
    heights = [float(height) for height in re.findall(r"V([\d.]+)", path)]
    assert len(heights) == 5
    assert heights == sorted(heights, reverse=True)
    assert len([found for found in parsed(drawing).iter() if found.get("class") == "null"]) == 1
    assert "dashed" not in ecdf(ratio(1.04), None, "gain")


@pytest.mark.parametrize("n", [0, 1])
def test_few_replicates_are_drawn_too(n: int) -> None:
    found = Ratio(ratio=1.0, lo=1.0, hi=1.0, level=0.99, n=n, log_ratios=(0.0,) * n)
    for drawing in (forest([Line("x", "", found, "flat")]), run_order(found, "flat"), ecdf(found, None, "flat")):
        assert len(places(drawing, "dot", "cx")) in (0, n)
    assert parsed(forest([])) is not None


def test_text_is_text() -> None:
    drawing = forest([Line("<script>&\x00\x1b", "</svg>\"'", ratio(1.0), "flat")])
    assert "<script" not in drawing
    assert any("<script>&" in text for text in texts(drawing))
    assert any("</svg>" in text for text in texts(drawing))


def test_a_drawing_stands_alone() -> None:
    drawing = standalone(forest(LINES))
    assert drawing.startswith("<?xml")
    assert STYLE in drawing
    assert parsed(drawing.partition("\n")[2]).tag == f"{SVG}svg"


def test_drawings_are_the_same_each_time() -> None:
    assert forest(LINES) == forest(LINES)
