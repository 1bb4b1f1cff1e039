"""What was found in a text, carried over to the text that it has become."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torchlint.finding import Edit, Finding, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def carried(findings: Iterable[Finding], old: str, new: str) -> tuple[Finding, ...]:
    """The findings of `old` on lines that stand in `new` as they were, at their places there.

    The lines between the first and the last that changed count as changed. A fix that reaches into them is left out.
    """
    if old == new:
        return tuple(findings)
    head = _head(old, new)
    tail = _tail(old, new, head)
    shift = len(new) - len(old)

    def moved(span: Span) -> Span | None:
        if span.end < head or (span.end == head and span.start < head):
            return span
        is_behind = tail and span.start >= len(old) - tail
        return Span(span.start + shift, span.end + shift) if is_behind else None

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
    return replace(finding, span=span, fix=fix)


def _head(old: str, new: str) -> int:
    """Where the first line that changed begins."""
    shared = _shared(old, new, 1)
    return old.rfind("\n", 0, shared) + 1


def _tail(old: str, new: str, head: int) -> int:
    """How long the lines behind the last that changed are."""
    shared = min(_shared(old, new, -1), min(len(old), len(new)) - head)
    start = len(old) - shared
    if _starts_line(old, start) and _starts_line(new, len(new) - shared):
        return shared
    newline = old.find("\n", start)
    return 0 if newline < 0 else len(old) - newline - 1


def _starts_line(text: str, offset: int) -> bool:
    return offset == 0 or text[offset - 1] == "\n"


def _shared(old: str, new: str, step: int) -> int:
    """How many characters both begin with, or end with if `step` is -1: found by halving, which compares in C."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        same = old[:middle] == new[:middle] if step > 0 else old[len(old) - middle :] == new[len(new) - middle :]
        if same:
            low = middle
        else:
            high = middle - 1
    return low
