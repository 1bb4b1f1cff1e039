from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from report_samples import (
    CRASHED,
    TRAIN,
    UNPARSABLE,
    UNREADABLE,
    finding,
    options,
    report,
    rewrite,
    sample,
    span,
)

from torchlint.finding import Applicability, Frequency
from torchlint.report import FORMATS, ReportOptions, render


def test_a_line_per_finding_and_the_total() -> None:
    assert render("concise", (sample(), sample(Applicability.SAFE)), options()) == (
        """\
train.py:7:18: TL391 `loss.item()` makes the host wait for the device
train.py:7:18: TL391 [*] `loss.item()` makes the host wait for the device
Found 2 findings.
[*] 1 fixable with `--fix` (1 more with `--unsafe-fixes`).
"""
    )


def test_columns_count_code_points() -> None:
    text = "é = '日本😀'; x.item()"
    written = render("concise", (report(text, finding(span(text, "x.item()"))),), options(footer=False))
    assert written.startswith("train.py:1:12: TL391 ")


def test_diagnostics_have_a_place_too() -> None:
    assert render("concise", (UNREADABLE, UNPARSABLE, CRASHED), options(footer=False)) == (
        """\
gone.py:1:1: E902 No such file or directory
broken.py:1:7: E999 expected a parameter
fine.py:1:1: E000 sample-item-in-loop: division by zero at line 3
"""
    )


def test_a_finding_is_one_line_whatever_is_in_it() -> None:
    written = render(
        "concise", (report(TRAIN, finding(span(TRAIN, "loss"), message="a\r\n b\x1b[0m"), path="a\nb.py"),), options()
    )
    assert written.startswith("a␊b.py:6:9: TL391 a b␛[0m\nFound 1 finding.\n")


def test_colour() -> None:
    assert render("concise", (sample(Applicability.SAFE),), options(color=True, footer=False)) == (
        "\x1b[1mtrain.py\x1b[0m:7:18: \x1b[1;91mTL391\x1b[0m [\x1b[1;96m*\x1b[0m] "
        "`loss.item()` makes the host wait for the device\n"
    )


def test_a_run_without_findings() -> None:
    assert render("concise", (), options()) == "All checks passed!\n"
    assert render("concise", (), options(footer=False)) == ""


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match=rf"^unknown output format `xml`; one of {', '.join(FORMATS)}$"):
        render("xml", (), options())


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_ends_its_last_line_and_shows_every_code(output_format: str) -> None:
    place = span(TRAIN, "loss.item()")
    reports = (report(TRAIN, finding(place, fix=rewrite(place, "loss"))), UNREADABLE, UNPARSABLE, CRASHED)
    written = render(output_format, reports, options())
    assert written.endswith("\n")
    assert not written.endswith("\n\n")
    assert all(code in written for code in ("TL391", "E902", "E999", "E000"))
    assert render(output_format, reports, options()) == written


def test_the_rules_default_to_all_there_are() -> None:
    from torchlint.registry import all_rules

    assert ReportOptions().rules == all_rules()


@pytest.mark.parametrize("output_format", ["full", "concise"])
def test_writing_loads_nothing_that_takes_long(output_format: str) -> None:
    script = (
        "import sys, report_samples as s; from torchlint.report import render; before = set(sys.modules);"
        f"render({output_format!r}, (s.sample(), s.UNPARSABLE), s.options(color=True));"
        "print(*(set(sys.modules) - before), 'libcst' in before and 'libcst._nodes' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=__file__.rpartition("/")[0]
    )
    *loaded, libcst = ran.stdout.split()
    assert {name for name in loaded if not name.startswith("torchlint.report")} == set()
    assert libcst == "False"


@pytest.mark.parametrize(
    ("frequency", "words"),
    [(Frequency.BATCH, "(called per batch from main.py:9)"), (Frequency.CALL, "(called from main.py:9)")],
)
def test_who_calls_and_how_often_as_far_as_that_is_known(frequency: Frequency, words: str) -> None:
    found = replace(finding(span(TRAIN, "loss.item()"), frequency), origin="main.py:9")
    assert words in render("concise", (report(TRAIN, found),), options())
