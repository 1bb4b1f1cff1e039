"""What is analysed together: one document, or the cells of a notebook; what is known of it, and where that stands.

What was found in a text is carried over to the text that it has become.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from torchlint.facts import NOTHING, Facts
from torchlint.finding import NOTHING_WANTED, Edit, Finding, Span, Wanted
from torchlint.lsp.text import differences

if TYPE_CHECKING:
    import asyncio

    from lsprotocol import types as lsp

    from torchlint.lsp.documents import Document
    from torchlint.source import SourceFile


class Part(NamedTuple):
    """A document, and the offset at which it begins in the source that is analysed."""

    document: Document
    start: int


@dataclass(frozen=True, slots=True)
class View:
    """A source and the documents that it was made of, as they were then."""

    source: SourceFile
    parts: tuple[Part, ...]

    def part(self, offset: int) -> Part:
        """The part that holds an offset."""
        return self.parts[bisect_right(self.parts, offset, key=lambda part: part.start) - 1]

    def start(self, uri: str) -> int | None:
        """Where a document begins in the source; None for one that is no part of it."""
        return next((part.start for part in self.parts if part.document.uri == uri), None)

    def location(self, span: Span) -> tuple[Document, lsp.Range]:
        """The document that a span begins in, and its range there."""
        document, start = self.part(span.start)
        return document, document.text.range(Span(span.start - start, span.end - start))

    def edits(self, new: SourceFile) -> list[tuple[Document, list[lsp.TextEdit]]]:
        """What makes the new source of this one, by document."""
        texts = new.notebook.sources if new.notebook is not None else (new.text,)
        pairs = [(part.document, text) for part, text in zip(self.parts, texts, strict=True)]
        return [
            (document, document.text.edits(differences(document.text.value, text)))
            for document, text in pairs
            if document.text.value != text
        ]


@dataclass(slots=True)
class Unit:
    """What is known of what is analysed together.

    `revision` is another one whenever what is found may be, `checked` is the one looked at last. `findings` are
    those in `text`, the last that could be read; `readable` is that of each cell of a notebook. `asked` is what other
    files were asked, and the count of changes elsewhere then. `is_news` says that the client has no reason to expect
    something new.
    """

    uri: str
    revision: int
    checked: int = 0
    changes: int = 0
    text: str = ""
    findings: tuple[Finding, ...] = ()
    questions: Wanted = NOTHING_WANTED
    facts: Facts = NOTHING
    asked: tuple[Wanted, int] = (NOTHING_WANTED, 0)
    cache_folder: str = ""
    project: str = ""
    problem: str = ""
    is_news: bool = False
    readable: dict[str, str] = field(default_factory=dict)
    published: set[str] = field(default_factory=set)
    check: asyncio.Task[None] | None = None
    inquiry: asyncio.Task[None] | None = None

    def current(self, view: View) -> tuple[Finding, ...]:
        """What was found, where it stands now."""
        return carried(self.findings, self.text, view.source.raw)


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
