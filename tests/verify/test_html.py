"""The page of a run: complete, well-formed, self-contained, and nothing in it acts on what it quotes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from runs import DIFF, REPORT, ratio

from torchlint.evidence import Overall
from torchlint.verify.html import to_html
from torchlint.verify.report_model import Change, Control, Report, Row, Site, Together, to_json

HTML = "{http://www.w3.org/1999/xhtml}"
EVIL = "<script>alert('&\"1\"')</script>\x00\x1b[31m\u202e\ud800"
BARE = Report(title="t", command="c", device="d", entry="e")


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)  # noqa: S314 - made a line above


def text(page: str) -> str:
    return " ".join("".join(parsed(page).itertext()).split())


def test_everything_is_on_the_page() -> None:
    shown = text(to_html(REPORT))
    for row in REPORT.rows:
        for part in (row.code, row.rule, f"{row.path}:{row.line}", row.title, row.numerics, row.why):
            assert part in shown
    for site in REPORT.sites:
        assert f"{site.path}:{site.line}" in shown
    for control in REPORT.controls:
        assert control.words in shown
    for line in (REPORT.command, REPORT.device, REPORT.entry, REPORT.written, *REPORT.warnings):
        assert line in shown
    assert "The 2 kept fixes together" in shown
    assert "3.4" in shown
    assert "KEEP faster (unsafe)" in shown
    assert "no measurable difference" in shown
    assert "0123abc" in shown


def test_replicates_are_drawn_for_each_fix_that_was_measured() -> None:
    drawn = re.findall(r'<svg [^>]*aria-label="([^"]*)"', to_html(REPORT))
    assert len([name for name in drawn if "in the order of the run" in name]) == 4
    assert len([name for name in drawn if name.startswith("Distribution")]) == 4
    assert len([name for name in drawn if name.startswith("Speed-up of each fix")]) == 1


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    page = to_html(REPORT)
    root = parsed(page)
    tags = {found.tag.removeprefix(HTML) for found in root.iter()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    attributes = {name for found in root.iter() for name in found.attrib}
    assert not {name for name in attributes if name.startswith("on") or name in ("src", "href", "style")}
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/)", page)
    assert "default-src 'none'" in page


def test_it_is_readable_in_the_dark_and_in_any_width() -> None:
    page = to_html(REPORT)
    assert page.count("prefers-color-scheme:dark") == 2
    assert 'name="viewport"' in page
    for name in set(re.findall(r"var\(--(\w+)\)", page)) - {"c"}:
        assert page.count(f"--{name}:") >= 2, name


def test_what_is_quoted_does_nothing() -> None:
    row = Row(EVIL, EVIL, EVIL, 1, EVIL, EVIL, "faster", "keep", EVIL, ratio(1.1), ratio(0.9), numerics=EVIL, diff=EVIL)
    report = Report(
        title=EVIL,
        command=EVIL,
        device=EVIL,
        entry=EVIL,
        summary=EVIL,
        unit=EVIL,
        controls=(Control(EVIL, EVIL, passed=True, speedup=ratio(1.0), unchanged=True),),
        rows=(row,),
        sites=(Site(EVIL, 1, EVIL, 1, EVIL),),
        together=Together(1, "faster", ratio(1.1), Change(1, 0), words=EVIL),
        warnings=(EVIL,),
        written=EVIL,
        provenance=((EVIL, EVIL),),
    )
    page = to_html(report)
    page.encode()
    assert "<script" not in page
    assert not {"\x00", "\x1b", "\u202e"} & set(page)
    assert text(page).count("<script>alert") > 20


def test_a_diff_keeps_its_lines() -> None:
    root = parsed(to_html(REPORT))
    (shown,) = root.iter(f"{HTML}pre")
    assert ["".join(line.itertext()) for line in shown] == DIFF.splitlines()
    assert [line.tag.removeprefix(HTML) for line in shown] == ["span"] * 4 + ["del", "ins", "span"]


@pytest.mark.parametrize("verdict", get_args(Overall))
def test_every_verdict_has_words(verdict: Overall) -> None:
    row = replace(REPORT.rows[0], verdict=verdict, action=None)
    page = to_html(replace(REPORT, rows=(row,), together=Together(0, verdict)))
    assert "KEEP" not in page
    parsed(page)


def test_a_run_without_results_is_a_page() -> None:
    shown = text(to_html(BARE))
    assert shown.endswith("} tc de")


def test_a_failed_control_stands_out() -> None:
    failed = Control("planted handicap of 5 %", "not seen", passed=False)
    page = to_html(replace(BARE, controls=(failed, Control("numerics can fail", "skipped"))))
    assert '<span class="bad">failed</span>' in page
    assert "numerics can fail: skipped" in text(page)


def test_json_holds_the_report() -> None:
    whole = json.loads(to_json(REPORT, BARE))
    assert whole["schema"] == "torchlint.verify/1"
    found, bare = whole["reports"]
    assert bare["rows"] == []
    assert found["rows"][0]["alone"]["n"] == 16
    assert found["rows"][4]["alone"] is None
    assert found["provenance"] == {"commit": "0123abc", "created": "2026-03-02T11:00:00Z", "seed": "7"}
    assert found["together"]["syncs"] == {"before": 3, "after": 1}
    assert len(found["sites"]) == 3


def test_code_in_words_and_columns_that_say_nothing() -> None:
    row = replace(REPORT.rows[0], alone=None, without=None, title="Keep `loss < 1` on the device")
    page = to_html(replace(BARE, rows=(row,)))
    assert "Keep <code>loss &lt; 1</code> on the device" in page
    assert "<th>alone</th>" not in page
    assert "<th>syncs per step</th>" in page
    assert "3 → 2" in page


def test_several_reports_are_one_page() -> None:
    page = to_html(REPORT, replace(BARE, title="another"))
    parsed(page)
    assert page.count("<h1>") == 2
    assert page.count("<title>") == 1
