"""Texts as editors hold them: lines, and positions in the encoding that was agreed on."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lsprotocol import types as lsp

from torchlint.finding import Edit, Span

# What ends a line in the protocol, and in Python; `str.splitlines` knows more.
_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Text:
    """The text of a document; a character of a position is a code unit of `encoding`."""

    value: str
    encoding: lsp.PositionEncodingKind | str = lsp.PositionEncodingKind.Utf16

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.value))]

    def position(self, offset: int) -> lsp.Position:
        """Line and character of an offset in code points."""
        line = bisect_right(self._starts, offset) - 1
        before = self.value[self._starts[line] : offset]
        return lsp.Position(line, self._units(before))

    def offset(self, position: lsp.Position) -> int:
        """The offset of a position; one that lies behind the end of its line, or of the text, means that end."""
        if position.line >= len(self._starts):
            return len(self.value)
        start, end = self._line(position.line)
        line = self.value[start:end]
        if line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= position.character:
                return start + index
            units += self._units(character)
        return end

    def range(self, span: Span) -> lsp.Range:
        """The range of a span."""
        return lsp.Range(self.position(span.start), self.position(span.end))

    def span(self, range_: lsp.Range) -> Span:
        """The span of a range."""
        start, end = self.offset(range_.start), self.offset(range_.end)
        return Span(min(start, end), max(start, end))

    def edits(self, edits: tuple[Edit, ...]) -> list[lsp.TextEdit]:
        """Edits as the protocol has them."""
        return [lsp.TextEdit(self.range(edit.span), edit.text) for edit in edits]

    def changed(self, change: lsp.TextDocumentContentChangeEvent) -> Text:
        """The text after a change of a part, or of the whole."""
        if isinstance(change, lsp.TextDocumentContentChangeWholeDocument):
            return Text(change.text, self.encoding)
        span = self.span(change.range)
        return Text(self.value[: span.start] + change.text + self.value[span.end :], self.encoding)

    def _line(self, line: int) -> tuple[int, int]:
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.value)
        while end > start and self.value[end - 1] in "\r\n":
            end -= 1
        return start, end

    def _units(self, text: str) -> int:
        if text.isascii() or self.encoding == lsp.PositionEncodingKind.Utf32:
            return len(text)
        if self.encoding == lsp.PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


def differences(old: str, new: str) -> tuple[Edit, ...]:
    """Edits of whole lines that make `new` of `old`; of lines that are much alike, the part that differs."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    first = _shared(before, after)
    last = _shared(before[first:][::-1], after[first:][::-1])
    place = sum(map(len, before[:first]))
    return tuple(_blocks(before[first : len(before) - last], after[first : len(after) - last], place))


def _blocks(before: list[str], after: list[str], place: int) -> Iterator[Edit]:
    from difflib import SequenceMatcher  # where something was fixed

    for kind, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            start = place + sum(map(len, before[:i1]))
            yield _trimmed(start, "".join(before[i1:i2]), "".join(after[j1:j2]))


def _trimmed(start: int, old: str, new: str) -> Edit:
    """The replacement without what both begin and end with."""
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    return Edit(Span(start + head, start + len(old) - tail), new[head : len(new) - tail])


def _shared(one: list[str] | str, other: list[str] | str) -> int:
    """How many items both begin with."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
