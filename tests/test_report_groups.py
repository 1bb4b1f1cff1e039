from __future__ import annotations

from dataclasses import replace

import pytest
from report_samples import CRASHED, TRAIN, UNPARSABLE, finding, options, report, span

from torchlint.finding import Doubt, Finding, Frequency, Severity
from torchlint.report import FileReport, ReportOptions, render
from torchlint.report.text import width, wrapped

LOOP = replace(finding(span(TRAIN, "loss.item()")), cause=span(TRAIN, "loader", 2))
CALL = replace(finding(span(TRAIN, "model(batch)")), cause=span(TRAIN, "model(batch)"))
ALONE = Finding("other-rule", "TL101", span(TRAIN, "total = 0"), "once", Frequency.ONCE)
NOTE = replace(ALONE, severity=Severity.NOTE, frequency=Frequency.SAMPLE, span=span(TRAIN, "return total"))
REPORTS = (report(TRAIN, ALONE, CALL, LOOP, NOTE, path="b.py"), report(TRAIN, LOOP, path="a.py"))


def titles(by: str, *reports: FileReport, output_format: str = "concise", sort: str = "place") -> list[str]:
    given = replace(options(footer=False), group_by=by, sort=sort)
    blocks = render(output_format, reports, given).split("\n\n") if output_format == "concise" else []
    return [block.splitlines()[0] for block in blocks if block]


def test_by_rule() -> None:
    assert titles("rule", *REPORTS) == ["TL101 other-rule (2 findings)", "TL391 sample-item-in-loop (3 findings)"]


def test_by_file() -> None:
    text = render("concise", REPORTS, replace(options(), group_by="file"))
    assert text.startswith("b.py (4 findings)\n  4:5: TL101 once\n  6:16: TL391 ")
    assert "\n\na.py (1 finding)\n  7:18: TL391 " in text
    assert text.endswith("\n\nFound 5 findings, 1 of them a note.\n")


def test_by_the_loop_around_what_makes_it_hot_the_worst_first() -> None:
    assert titles("loop", *REPORTS) == [
        "b.py:5: for batch in loader (per batch, 2 findings)",
        "a.py:5: for batch in loader (per batch, 1 finding)",
        "in no loop (per sample, 2 findings)",
    ]


@pytest.mark.parametrize(
    ("text", "cause", "title"),
    [
        ("def f():\n    x = g()\n", "g()", "t.py:2: x = g()"),
        ("while True:\n    # c\n\n    def f():\n        g()\n", "g()", "t.py:5: g()"),
        ("while True:\n    if a:\n        b\n    with c:\n        g()\n", "g()", "t.py:1: while True"),
        ("for a in b:\n    x\ng()\n", "g()", "t.py:3: g()"),
        ("async for a in b:\n\tg()\n", "g()", "t.py:1: async for a in b"),
    ],
)
def test_which_loop_a_row_is_in(text: str, cause: str, title: str) -> None:
    found = replace(finding(span(text, "g()")), cause=span(text, cause))
    assert titles("loop", report(text, found, path="t.py")) == [f"{title} (per batch, 1 finding)"]


def test_a_caller_elsewhere_is_named() -> None:
    found = replace(finding(span(TRAIN, "loss.item()")), origin="main.py:9")
    assert titles("loop", report(TRAIN, found)) == ["train.py, called from main.py:9 (per batch, 1 finding)"]


def test_full_has_the_same_groups_with_everything_in_them() -> None:
    text = render("full", REPORTS, replace(options(), group_by="rule"))
    assert text.index("## TL101 other-rule (2 findings)") < text.index("notes:") < text.index("## TL391")
    assert text.count(" --> ") == 4


@pytest.mark.parametrize("output_format", ["json", "github", "junit"])
def test_what_programs_read_has_no_groups(output_format: str) -> None:
    with pytest.raises(ValueError, match=rf"^`--group-by` writes full or concise, not {output_format}$"):
        render(output_format, (), ReportOptions(group_by="rule"))


def test_by_impact_errors_come_first_then_warnings_then_what_runs_most_often() -> None:
    reports = (*REPORTS, UNPARSABLE, CRASHED)
    lines = render("concise", reports, replace(options(footer=False), sort="impact")).splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "broken.py:1:7",
        "fine.py:1:1",
        "b.py:6:16",
        "b.py:7:18",
        "a.py:7:18",
        "b.py:4:5",
        "b.py:8:5",
    ]
    assert render("junit", reports, replace(options(), sort="impact")).count("<testsuite name=") == 4


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three", ["one two", "  three"]),
        ("一二三四 五六", ["一二三四", "  五六"]),
        ("averylongword that", ["averylongword", "  that"]),
    ],
)
def test_wrapping(text: str, lines: list[str]) -> None:
    assert wrapped(text, 10, 2, 1).split("\n") == lines


def test_no_line_of_words_is_wider_than_the_terminal() -> None:
    long = replace(finding(span(TRAIN, "loss.item()"), message="a message of words " * 8), help="do this and that " * 9)
    note = replace(NOTE, message="a note of words " * 9, doubts=(Doubt.RUNS_ONCE, Doubt.VALUE_DECIDES))
    reports = (report(TRAIN, long, note),)
    narrow = replace(options(width=50, footer=False), wraps=True)
    assert all(width(line) <= 50 for line in render("full", reports, narrow).splitlines())
    assert " ".join(render("full", reports, narrow).split()) == " ".join(
        render("full", reports, replace(narrow, wraps=False)).split()
    )
    assert any(width(line) > 50 for line in render("full", reports, replace(narrow, wraps=False)).splitlines())
    coloured = render("full", reports, replace(narrow, color=True))
    assert all(line.count("\x1b[0m") * 2 == line.count("\x1b[") for line in coloured.splitlines())
