from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import STEADY

from torchlint.finding import Applicability, Diagnostic, Finding, Fix, Frequency, Result, Span
from torchlint.report import FORMATS, FileReport, ReportOptions, render
from torchlint.report.text import crop, visible, width
from torchlint.source import SourceFile


@pytest.mark.parametrize(
    ("text", "shown", "columns"),
    [
        ("", "", 0),
        ("a b", "a b", 3),
        ("\ta", "    a", 5),
        ("\x00\x1b\x0c\x7f", "␀␛␌␡", 4),
        ("\x85\x9b\u2028\u202e\u2066\udcff", "������", 6),
        ("é", "é", 1),
        ("e\u0301", "e\u0301", 1),
        ("a\u200bb", "a\u200bb", 2),
        ("a\u00adb", "a\u00adb", 3),
        ("名ａ😀", "名ａ😀", 6),
        ("\u1100\u1161", "\u1100\u1161", 2),
    ],
)
def test_what_a_terminal_shows_and_how_wide_it_is(text: str, shown: str, columns: int) -> None:
    assert visible(text) == shown
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "start", "end", "shown"),
    [
        ("abcdef", 0, 6, "abcdef"),
        ("abcdef", 0, 5, "abcd…"),
        ("abcdef", 2, 9, "…def"),
        ("abcdef", 1, 5, "…cd…"),
        ("ab", 4, 9, "…"),
        ("  ", 4, 9, ""),
        ("a名b", 0, 3, "a …"),
        ("a名b", 2, 9, "…b"),
        ("a名bc", 1, 9, "… bc"),
        ("\tabc", 2, 9, "… abc"),
        ("名名", 0, 2, " …"),
    ],
)
def test_cropping(text: str, start: int, end: int, shown: str) -> None:
    assert crop(text, start, end) == shown


@STEADY
@given(st.text(), st.integers(0, 40), st.integers(2, 40))
def test_what_is_cropped_never_fills_more_than_its_columns(text: str, start: int, columns: int) -> None:
    shown = crop(text, start, start + columns)
    assert width(shown) <= columns
    assert {"Cc", "Cs", "Zl", "Zp"}.isdisjoint(map(unicodedata.category, shown))
    if start == 0 and width(text) <= columns:
        assert shown == visible(text)


@STEADY
@given(st.text())
def test_showing_what_is_shown_changes_nothing(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert width(visible(text)) == width(text)


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("statistics", [False, True])
def test_nothing_that_a_result_says_steers_a_terminal_or_a_log(output_format: str, *, statistics: bool) -> None:
    """Whatever a code, a name or a line of code is: no escape, and no command to the runner of GitHub or Azure."""
    evil = "\x1b[2J\r\n::warning::owned ##[error]owned ##VSO[task.setvariable variable=x]owned\u202e"
    fix = Fix(evil, (), Applicability.UNSAFE)
    finding = Finding(evil, evil, Span(0, 1), evil, Frequency.BATCH, fix, origin=evil)
    report = FileReport(SourceFile(evil, f"x = 1  # {evil}\n"), Result((finding,), (Diagnostic(evil, evil, evil),)))
    if statistics and output_format not in ("full", "concise", "json"):
        return
    shown = render(output_format, [report], ReportOptions(statistics=statistics, color=False))
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert "\u202e" not in shown
    assert "##[" not in shown
    ours = "##vso[task.logissue " if output_format == "azure" else ""
    assert not any("##vso[" in line.removeprefix(ours).lower() for line in shown.splitlines())
    assert not any(line.startswith("::warning::") for line in shown.splitlines())
    assert "owned" in shown
