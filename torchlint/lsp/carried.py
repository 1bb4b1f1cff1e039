"""What was found in a text, carried over to the text that it has become."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from torchlint.finding import Edit, Finding, Span


def carried(findings: Iterable[Finding], old: str, new: str) -> tuple[Finding, ...]:
    """The findings of `old` on lines that stand in `new` as they were, at their places there.

    A fix that reaches into other lines is left out.
    """
    if old == new:
        return tuple(findings)
    old_lines, new_lines = old.split("\n"), new.split("\n")
    old_starts, new_starts = _starts(old_lines), _starts(new_lines)
    rows = _rows(old_lines, new_lines)

    def moved(span: Span) -> Span | None:
        first, last = (bisect_right(old_starts, offset) - 1 for offset in (span.start, span.end))
        row = rows.get(first)
        if row is None or any(rows.get(first + below) != row + below for below in range(1, last - first + 1)):
            return None
        shift = new_starts[row] - old_starts[first]
        return Span(span.start + shift, span.end + shift)

    return tuple(found for finding in findings if (found := _carried(finding, moved)) is not None)


def _carried(finding: Finding, moved: Callable[[Span], Span | None]) -> Finding | None:
    span = moved(finding.span)
    if span is None:
        return None
    fix = finding.fix
    if fix is not None:
        places = [(moved(edit.span), edit.text) for edit in fix.edits]
        edits = tuple(Edit(place, text) for place, text in places if place is not None)
        fix = replace(fix, edits=edits) if len(edits) == len(places) else None
    others = tuple(filter(None, map(moved, finding.places)))
    return replace(finding, span=span, fix=fix, cause=finding.cause and moved(finding.cause), places=others)


def _starts(lines: Sequence[str]) -> list[int]:
    return list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))


def _rows(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Which line of `new` a line of `old` has become.

    What both begin and end with is the same, and so are, between these, lines that both have once, in an order that
    both have, and those around them.
    """
    shorter = min(len(old), len(new))
    head = next((row for row in range(shorter) if old[row] != new[row]), shorter)
    most = shorter - head
    tail = next((row for row in range(most) if old[-1 - row] != new[-1 - row]), most)
    rows = {row: row for row in range(head)}
    rows |= {len(old) - row: len(new) - row for row in range(1, tail + 1)}
    old_end, new_end = len(old) - tail, len(new) - tail
    above, other_above = head, head
    for row, other in _rising(_unique(old, new, head, old_end, new_end)):
        if row in rows:
            continue
        room = min(row - above, other - other_above)
        begin = next((step for step in range(room) if old[row - step - 1] != new[other - step - 1]), room)
        room = min(old_end - row, new_end - other)
        end = next((step for step in range(room) if old[row + step] != new[other + step]), room)
        rows |= {row + step: other + step for step in range(-begin, end)}
        above, other_above = row + end, other + end
    return rows


def _unique(old: Sequence[str], new: Sequence[str], head: int, old_end: int, new_end: int) -> Iterator[tuple[int, int]]:
    """The rows of lines that both have once between head and tail, in the order of the old ones."""
    counts = Counter(old[head:old_end]), Counter(new[head:new_end])
    there = {new[row]: row for row in range(head, new_end)}
    for row in range(head, old_end):
        if counts[0][old[row]] == 1 and counts[1][old[row]] == 1:
            yield row, there[old[row]]


def _rising(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs, in their order, whose second numbers rise."""
    ends: list[int] = []  # the smallest second number that ends a run of each length
    longest: list[tuple[int, tuple[int, int]]] = []
    for pair in pairs:
        length = bisect_left(ends, pair[1])
        ends[length : length + 1] = [pair[1]]
        longest.append((length, pair))
    run: list[tuple[int, int]] = []
    wanted = len(ends) - 1
    for length, pair in reversed(longest):
        if length == wanted and (not run or pair[1] < run[-1][1]):
            run.append(pair)
            wanted -= 1
    return run[::-1]
