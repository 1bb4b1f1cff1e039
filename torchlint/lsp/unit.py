"""What is analysed together: one document, or the cells of a notebook; what is known of it, and where that stands."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from torchlint.facts import NOTHING, Facts
from torchlint.finding import NOTHING_WANTED, Finding, Span, Wanted
from torchlint.lsp.carried import carried
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
