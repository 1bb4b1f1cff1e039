from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import (
    CRASHED,
    RULE,
    STEADY,
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

from torchlint.finding import Applicability, Edit, Fix, Frequency, Span
from torchlint.report import FileReport, ReportOptions, render
from torchlint.report.frame import change, frame
from torchlint.report.style import PLAIN, Style
from torchlint.report.text import width
from torchlint.source import SourceFile

ANSI = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")


def full(*reports: FileReport, given: ReportOptions | None = None) -> str:
    return render("full", reports, given or options(footer=False))


def framed(text: str, place: Span, columns: int = 100) -> str:
    return "\n".join(frame(SourceFile("x.py", text), place, PLAIN, columns))


def test_a_finding_shows_its_source_how_often_it_runs_why_it_matters_and_its_fix() -> None:
    assert full(sample(), given=options()) == (
        """\
TL391 `loss.item()` makes the host wait for the device
 --> train.py:7:18
  |
5 |     for batch in loader:
6 |         loss = model(batch)
7 |         total += loss.item()
  |                  ^^^^^^^^^^^
8 |     return total
  |
  = runs per batch
  = sample-item-in-loop: `.item()` in a training loop makes the host wait for the device in every step.
help: Add up on the device
  |
7 -         total += loss.item()
7 +         total += loss.detach()
  |
unsafe: sums round in another place

Found 1 finding.
1 fixable with `--fix --unsafe-fixes`.
"""
    )


def test_a_clean_run_says_so_and_nothing_else() -> None:
    assert full(report(TRAIN), given=options()) == "All checks passed!\n"
    assert full(report(TRAIN)) == ""


def test_the_mark_tells_what_this_run_would_fix() -> None:
    assert full(sample(Applicability.SAFE)).startswith("TL391 [*] ")
    assert full(sample()).startswith("TL391 `")
    assert full(sample(), given=options(threshold=Applicability.UNSAFE)).startswith("TL391 [*] ")
    assert "note:" not in full(sample(Applicability.SAFE))


def test_a_fix_for_display_is_called_a_sketch() -> None:
    written = full(sample(Applicability.DISPLAY), given=options(threshold=Applicability.UNSAFE))
    assert "note: This is a sketch, which `--fix` never applies\n" in written
    assert "[*]" not in written
    assert "fixable" not in written


def test_the_summary_stands_at_the_first_finding_of_its_rule_only() -> None:
    text = "a.item()\nb.item()\n"
    written = full(report(text, finding(span(text, "a.item()")), finding(span(text, "b.item()"))))
    assert written.count("in every step") == 1
    assert written.count("= runs per batch") == 2
    assert written.index("in every step") < written.index("train.py:2:1")


@pytest.mark.parametrize(
    ("frequency", "line"),
    [
        (Frequency.EPOCH, "  = runs per epoch\n"),
        (Frequency.BATCH, "  = runs per batch\n"),
        (Frequency.SAMPLE, "  = runs per sample\n"),
    ],
)
def test_the_frequency_in_words(frequency: Frequency, line: str) -> None:
    assert line in full(report(TRAIN, finding(span(TRAIN, "loss.item()"), frequency)))


@pytest.mark.parametrize("frequency", [Frequency.UNKNOWN, Frequency.ONCE])
def test_a_frequency_that_does_not_help_is_not_mentioned(frequency: Frequency) -> None:
    assert "= runs" not in full(report(TRAIN, finding(span(TRAIN, "loss.item()"), frequency)))


def test_the_help_of_a_finding_goes_before_the_title_of_its_fix() -> None:
    plain = replace(finding(span(TRAIN, "loss.item()")), help="read it once")
    assert full(report(TRAIN, replace(plain, fix=None))).endswith("help: read it once\n\n")
    assert "help: read it once\n" in full(report(TRAIN, plain))


def test_a_finding_of_an_unlisted_rule_has_no_summary_and_no_page_to_point_to() -> None:
    written = full(sample(), given=options(rules=(), footer=False))
    assert "sample-item-in-loop" not in written
    assert written.endswith("unsafe: the fix may change what is computed\n\n")


def test_diagnostics() -> None:
    assert full(UNREADABLE, UNPARSABLE, CRASHED, given=options()) == (
        """\
E902 No such file or directory
 --> gone.py

E999 expected a parameter
 --> broken.py:1:7
  |
1 | def f(:
  |       ^
  |

E000 sample-item-in-loop: division by zero
    at line 3
 --> fine.py
  = this is a defect of torchlint and not of your code; please report it at \
https://github.com/torchlint/torchlint/issues

Found 3 errors.
"""
    )


def test_findings_and_diagnostics_of_a_file_stand_in_the_order_of_their_places() -> None:
    mixed = FileReport(
        UNPARSABLE.source,
        replace(
            UNPARSABLE.result,
            findings=(finding(Span(0, 3)), finding(Span(7, 7))),
            diagnostics=(*UNPARSABLE.result.diagnostics, *CRASHED.result.diagnostics),
        ),
    )
    assert re.findall(r"^(E\d+|TL\d+)", full(mixed), re.MULTILINE) == ["E000", "TL391", "E999", "TL391"]


def test_carets_stand_below_the_span_behind_tabs_and_wide_and_zero_width_characters() -> None:
    assert framed("if a:\n\té名 = '日本e\u0301', x.item()  # y\n", Span(21, 29)) == (
        "  |\n1 | if a:\n2 |     é名 = '日本e\u0301', x.item()  # y\n  |                     ^^^^^^^^\n  |"
    )


def test_blank_rows_at_the_edges_of_the_context_are_left_out() -> None:
    assert framed("a\n\n\nb\n\n", Span(4, 5)) == "  |\n4 | b\n  | ^\n  |"
    assert framed("a\n\nb\n\nc\n", Span(3, 4)) == "  |\n1 | a\n2 |\n3 | b\n  | ^\n4 |\n5 | c\n  |"


def test_the_numbers_are_as_wide_as_the_last_row() -> None:
    text = "".join(f"{row}\n" for row in range(1, 12))
    assert framed(text, span(text, "9")) == "   |\n 7 | 7\n 8 | 8\n 9 | 9\n   | ^\n10 | 10\n11 | 11\n   |"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_endings_do_not_show(newline: str) -> None:
    text = f"a{newline}b{newline}"
    assert framed(text, span(text, "b")) == "  |\n1 | a\n2 | b\n  | ^\n  |"


def test_an_empty_span_gets_one_caret() -> None:
    assert framed("ab\n", Span(1, 1)) == "  |\n1 | ab\n  |  ^\n  |"
    assert framed("ab", Span(2, 2)) == "  |\n1 | ab\n  |   ^\n  |"
    assert framed("ab\n", Span(3, 3)) == "  |\n1 | ab\n2 |\n  | ^\n  |"
    assert framed("", Span(0, 0)) == "  |\n1 |\n  | ^\n  |"


def test_a_span_that_ends_with_its_line_stays_on_it() -> None:
    assert framed("a b\nc\n", Span(2, 4)) == "  |\n1 | a b\n  |   ^\n2 | c\n  |"


def test_a_span_over_rows_gets_a_bracket() -> None:
    text = "a\nx = f(\n  1,\n)\nb\n"
    assert framed(text, span(text, "f(\n  1,\n)")) == (
        "  |\n1 |   a\n2 |   x = f(\n  |  _____^\n3 | |   1,\n4 | | )\n  | |_^\n5 |   b\n  |"
    )


def test_a_bracket_from_the_start_of_a_row_has_a_corner() -> None:
    text = "a\n  f(\n  1)\n"
    assert framed(text, span(text, "f(\n  1)")) == "  |\n1 |   a\n2 | /   f(\n3 | |   1)\n  | |____^\n  |"


def test_the_middle_of_a_long_span_is_left_out() -> None:
    text = "".join(f"x{row}\n" for row in range(1, 13))
    assert framed(text, Span(0, len(text))) == (
        "   |\n 1 | / x1\n 2 | | x2\n 3 | | x3\n...  |\n12 | | x12\n   | |___^\n   |"
    )


def test_a_long_line_is_cropped_around_the_span() -> None:
    line = "a" * 60 + " x.item() " + "b" * 60
    shown = framed(f"before\n{line}\nafter\n", Span(7 + 61, 7 + 69), 50)
    assert shown == ("  |\n2 | …aaaaaaaaaaaaaaaaa x.item() bbbbbbbbbbbbbbbbb…\n  |                    ^^^^^^^^\n  |")


def test_a_long_line_is_cropped_at_its_end_where_the_span_is_at_its_start() -> None:
    assert framed("x.item() " + "b" * 80 + "\nafter\n", Span(0, 8), 50) == (
        "  |\n1 | x.item() " + "b" * 36 + "…\n  | ^^^^^^^^\n2 | after\n  |"
    )


def test_a_span_longer_than_the_room_is_underlined_to_the_edge() -> None:
    assert framed("x" * 200, Span(20, 190), 50) == ("  |\n1 | …" + "x" * 44 + "…\n  |         " + "^" * 38 + "\n  |")


def test_a_span_longer_than_the_room_keeps_what_stands_before_it_in_sight() -> None:
    assert framed("ab" + "x" * 100, Span(2, 102), 50) == ("  |\n1 | ab" + "x" * 43 + "…\n  |   " + "^" * 44 + "\n  |")


def test_nothing_steers_the_terminal() -> None:
    text = "x = '\x1b[31m\x07\x9b\u202e'\n"
    written = full(report(text, finding(Span(0, 1), message="bad \x1b[2J"), path="a\x1b]0;b\n.py"))
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", written) is None
    assert "x = '␛[31m␇��'" in written
    assert " --> a␛]0;b␊.py:1:1\n" in written


def test_a_fix_in_several_places_shows_each_with_its_row_before_and_after() -> None:
    text = TRAIN
    edits = (Edit(Span(0, 0), "import os\n"), Edit(span(text, "loss.item()"), "loss"))
    lines = change(SourceFile("x.py", text), Fix("t", edits, Applicability.SAFE), PLAIN, 100, 8)
    assert lines == [
        "  |",
        "1 + import os",
        "...",
        "7 -         total += loss.item()",
        "8 +         total += loss",
        "  |",
    ]


def test_a_fix_shows_only_the_rows_that_change() -> None:
    text = "for x in y:\n    a\n    b\n    c\n"
    fix = rewrite(Span(0, len(text)), "for x in y:\n    a\n    c\n")
    assert change(SourceFile("x.py", text), fix, PLAIN, 100, 8) == ["  |", "3 -     b", "  |"]


def test_a_long_change_is_named_but_not_shown() -> None:
    text = "".join(f"{row}\n" for row in range(9))
    fix = rewrite(Span(0, len(text)), "")
    assert change(SourceFile("x.py", text), fix, PLAIN, 100, 8) == []
    assert full(report(text, finding(Span(0, 1), fix=fix))).count("help: Add up on the device\nunsafe:") == 1


def test_the_numbers_of_a_change_are_as_wide_as_the_last_row() -> None:
    text = "".join(f"x{row}\n" for row in range(1, 12))
    fix = Fix("t", (Edit(span(text, "x2"), "y"), Edit(span(text, "x11"), "z")), Applicability.SAFE)
    assert change(SourceFile("x.py", text), fix, PLAIN, 100, 8) == [
        "   |",
        " 2 - x2",
        " 2 + y",
        "...",
        "11 - x11",
        "11 + z",
        "   |",
    ]


@pytest.mark.parametrize(("columns", "filled"), [(60, 60), (20, 40)])
def test_a_change_keeps_to_the_width(columns: int, filled: int) -> None:
    text = "x = 1" + "0" * 100 + "\n"
    lines = change(SourceFile("x.py", text), rewrite(Span(0, 1), "y\nz"), PLAIN, columns, 8)
    assert [width(line) for line in lines[1:4]] == [filled, 5, filled]


def test_both_sides_of_a_long_changed_line_show_the_change() -> None:
    text = "f(" + "a" * 100 + ", old_name, " + "b" * 100 + ")"
    _, removed, added, _ = change(
        SourceFile("x.py", text), rewrite(span(text, "old_name"), "a_newer_name"), PLAIN, 60, 8
    )
    assert "old_name" in removed
    assert "a_newer_name" in added
    assert removed.index(", old_name") == added.index(", a_newer_name")


def test_colour_and_links_change_nothing_but_the_looks() -> None:
    reports = (sample(), sample(Applicability.SAFE), UNPARSABLE, CRASHED)
    dressed = full(*reports, given=options(color=True, hyperlinks=True))
    assert ANSI.sub("", dressed) == full(*reports, given=options())
    assert f"\x1b]8;;{RULE.url}\x1b\\\x1b[1;91mTL391\x1b[0m\x1b]8;;\x1b\\" in dressed
    assert "\x1b]8" not in full(*reports, given=options(color=True))


TEXT = st.text(st.sampled_from("ab(= \t\r\n\x1b\x0c名é\u0301\u200b\u202e😀"), max_size=200)


@STEADY
@given(TEXT, st.integers(0, 200), st.integers(0, 200), st.integers(1, 120))
def test_any_span_of_any_text_fits_the_width_and_is_marked_within_it(text: str, a: int, b: int, columns: int) -> None:
    start, end = sorted((min(a, len(text)), min(b, len(text))))
    lines = frame(SourceFile("x.py", text), Span(start, end), Style(), columns)
    assert max(map(width, lines)) <= max(columns, 40)
    assert sum(line.count("^") for line in lines) >= 1
    assert not any(character < " " or character == "\u202e" for line in lines for character in line)


@STEADY
@given(TEXT, st.integers(0, 200), st.integers(0, 9))
def test_carets_cover_the_columns_of_the_span(text: str, start: int, length: int) -> None:
    line = re.sub(r"[\r\n]", "", text)[:60]
    start = min(start, len(line))
    lines = frame(SourceFile("x.py", line), Span(start, min(start + length, len(line))), PLAIN, 1000)
    carets = lines[2].removeprefix("  | ")
    assert len(carets) - len(carets.lstrip(" ")) == width(line[:start])
    assert carets.count("^") == max(1, width(line[start : start + length]))


# Without CR: an edit that joins a CR to an LF moves rows that it does not touch.
LINES = TEXT.map(lambda text: text.replace("\r", ""))


@STEADY
@given(LINES, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200), LINES), max_size=3))
def test_a_change_never_fails_and_numbers_rows_of_the_new_text(text: str, places: list[tuple[int, int, str]]) -> None:
    edits: list[Edit] = []
    at = 0
    for a, b, new in sorted(places, key=lambda place: min(place[:2])):
        start, end = (min(x, len(text)) for x in sorted((a, b)))
        if start >= at:
            edits.append(Edit(Span(start, end), new))
            at = end + 1
    after, last = "", 0
    for edit in edits:
        after += text[last : edit.span.start] + edit.text
        last = edit.span.end
    new_source = SourceFile("x.py", after + text[last:])
    lines = change(SourceFile("x.py", text), Fix("t", tuple(edits), Applicability.SAFE), PLAIN, 10_000, 10_000)
    for line in lines:
        if found := re.match(r" *(\d+) \+ ?(.*)", line):
            shown = frame(new_source, Span(*[new_source.line_starts[int(found[1]) - 1]] * 2), PLAIN, 10_000)
            assert any(re.fullmatch(rf" *{found[1]} \| ?{re.escape(found[2])}", row) for row in shown)
