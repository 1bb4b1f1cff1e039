"""What was found stays with its line while other lines change, and goes with it."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchlint.finding import Applicability, Edit, Finding, Fix, Span
from torchlint.lsp.carried import carried

LINES = st.lists(st.text(alphabet="abc 😀", max_size=6), max_size=8)


def of_line(text: str, row: int) -> Finding:
    """A finding about a whole line, with its newline left out."""
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[:row])
    return Finding("a-rule", "TL000", Span(start, start + len(lines[row])), lines[row])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
@given(LINES, LINES, LINES, LINES)
def test_findings_of_lines_that_stay(head: list[str], old: list[str], new: list[str], tail: list[str]) -> None:
    before, after = "\n".join((*head, *old, *tail)), "\n".join((*head, *new, *tail))
    findings = [of_line(before, row) for row in range(before.count("\n") + 1)]
    found = carried(findings, before, after)
    for finding in found:
        start, end = finding.span.start, finding.span.end
        assert after[start:end] == finding.message
        assert start == 0 or after[start - 1] == "\n"
        assert end == len(after) or after[end] == "\n"
    if before == after:
        assert found == tuple(findings)


def test_a_line_that_changed_loses_its_finding_and_others_move() -> None:
    before, after = "one\ntwo\nthree\n", "one\nzero\ntwo!\nthree\n"
    findings = [of_line(before, row) for row in range(3)]
    assert [after[found.span.start : found.span.end] for found in carried(findings, before, after)] == ["one", "three"]


def test_what_is_typed_behind_a_line_is_of_that_line() -> None:
    assert carried([of_line("one\ntwo", 1)], "one\ntwo", "one\ntwo!") == ()
    assert carried([of_line("one\ntwo", 0)], "one\ntwo", "!one\ntwo") == ()


def test_a_fix_that_reaches_into_what_changed_is_left_out() -> None:
    before = "import a\nx = 1\ny = 2\n"
    fix = Fix("Fix", (Edit(Span(0, 0), "import b\n"), Edit(Span(9, 14), "x = 2")), Applicability.SAFE)
    finding = Finding("a-rule", "TL000", Span(9, 14), "message", fix=fix)
    (moved,) = carried([finding], before, "import a\nnew\nx = 1\ny = 2\n")
    assert moved.fix == Fix("Fix", (Edit(Span(0, 0), "import b\n"), Edit(Span(13, 18), "x = 2")), Applicability.SAFE)
    (moved,) = carried([finding], before, "import z\nx = 1\ny = 2\n")
    assert moved.span == Span(9, 14)
    assert moved.fix is None


@given(LINES, LINES, LINES, st.integers(0, 8), st.integers(0, 8))
def test_lines_of_their_own_stay_between_lines_that_change(
    top: list[str], bottom: list[str], more: list[str], above: int, below: int
) -> None:
    """As where a line is written at the top while the code is broken at the bottom."""
    lines = [f"line {number}" for number in range(8)]
    before = "\n".join((*top, *lines, *bottom))
    after = "\n".join((*top[:above], *more, *lines, *more, *bottom[below:]))
    findings = [of_line(before, len(top) + row) for row in range(8)]
    assert [after[found.span.start : found.span.end] for found in carried(findings, before, after)] == lines


def test_lines_that_were_moved_past_others_are_fewer_than_those_that_stay() -> None:
    before, after = "a\nb\nc\nd\ne\n", "new\nd\na\nb\nc\ne\nnew\n"
    findings = [of_line(before, row) for row in range(5)]
    assert [found.message for found in carried(findings, before, after)] == ["a", "b", "c", "e"]


def test_a_finding_whose_lines_were_parted_is_left_out() -> None:
    before, after = "call(\n    a,\n)\n", "call(\n    b,\n    a,\n)\n"
    finding = Finding("a-rule", "TL000", Span(0, before.index(")") + 1), "message")
    assert carried([finding], before, after) == ()
