"""Trees of texts that are edited: of the statements at the top of a module only those that have changed are parsed."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.syntax.parsing import parse

# Lines that begin a compound statement or its decorators, where they are no part of a string or of brackets: then what
# stands above them could not be parsed alone.
_START = re.compile(
    r"^(?:(?P<decorator>@)|(?P<definition>(?:async[ \t]+)?def\b|class\b)|(?:if|for|while|with|try)\b)", re.MULTILINE
)
_INDENTED = re.compile(r"\n[ \t]+[^ \t\n#]")
# Other line endings and a byte order mark; a line that is nothing but continued, a comment that looks as if it were;
# and above all code an empty line or a comment that is indented.
_UNUSUAL = re.compile(
    r"[\r\f\ufeff]|^[ \t]*\\\n|#.*\\$|\A(?:[ \t]*(?:#.*)?\n)*[ \t]+(?:#.*)?\n",
    re.MULTILINE,
)
# Characters of all that is remembered, besides what the last text holds: some 5,000 lines, whose trees take 50 MB.
_MOST = 200_000


class _Piece(NamedTuple):
    """Statements that follow each other, with the lines above the first; `indent` is None where nothing is indented."""

    header: tuple[cst.EmptyLine, ...]
    body: tuple[cst.SimpleStatementLine | cst.BaseCompoundStatement, ...]
    footer: tuple[cst.EmptyLine, ...]
    indent: str | None


class Pieces:
    """Parses texts, and remembers their pieces: what stands in the next text too is the same nodes there."""

    def __init__(self) -> None:
        # One and the same piece may be there several times, and a node only once.
        self._known: OrderedDict[tuple[str, int], _Piece] = OrderedDict()
        self._size = 0

    def parse(self, text: str) -> cst.Module:
        """As `parsing.parse`."""
        texts = list(_pieces(text))
        if len(texts) == 1 or _UNUSUAL.search(text):
            return parse(text)
        times: Counter[str] = Counter()
        pieces: list[_Piece] = []
        try:
            for each in texts:
                pieces.append(self._piece(each, times[each], is_first=not pieces))
                times[each] += 1
        except cst.ParserSyntaxError:
            return parse(text)  # a line was none of the kind, or says what is wrong from above
        finally:
            self._forget(len(text))
        indents = {piece.indent for piece in pieces} - {None}
        if (
            len(indents) > 1
            or any(piece.footer for piece in pieces[:-1])
            or not all(piece.body for piece in pieces[1:])
        ):
            return parse(text)
        return cst.Module(
            body=[statement for piece in pieces for statement in piece.body],
            header=pieces[0].header,
            footer=pieces[-1].footer,
            default_indent=next(iter(indents), None) or "    ",
            has_trailing_newline=text.endswith("\n"),
        )

    def _piece(self, text: str, time: int, *, is_first: bool) -> _Piece:
        key = text, -1 if is_first else time  # the lines above the first statement are the module's
        if key not in self._known:
            self._known[key] = _read(text, is_first=is_first)
            self._size += len(text)
        self._known.move_to_end(key)
        return self._known[key]

    def _forget(self, size: int) -> None:
        """Let go of what was used least lately; never of what a text of this size is made of."""
        while self._size > size + _MOST:
            (text, _), _ = self._known.popitem(last=False)
            self._size -= len(text)


def _read(text: str, *, is_first: bool) -> _Piece:
    module = parse(text)
    header, body = tuple(module.header), tuple(module.body)
    if not is_first and body:
        # What stands above the first statement is its own where it is not the first of the module.
        body = (body[0].with_changes(leading_lines=(*header, *body[0].leading_lines)), *body[1:])
        header = ()
    return _Piece(header, body, tuple(module.footer), module.default_indent if _INDENTED.search(text) else None)


def _pieces(text: str) -> Iterator[str]:
    """The text in parts, each but the first with the comments and blank lines above its first statement."""
    start = 0
    is_decorated = False
    for match in _START.finditer(text):
        was_decorated, is_decorated = is_decorated, match["decorator"] is not None
        if was_decorated and (match["definition"] or is_decorated):
            continue
        place = _above(text, match.start())
        if place > start and not text.endswith("\\\n", start, place):
            yield text[start:place]
            start = place
    yield text[start:]


def _above(text: str, place: int) -> int:
    """Where the comments and blank lines above a line begin."""
    while place:
        above = text.rfind("\n", 0, place - 1) + 1
        line = text[above:place].rstrip("\n")
        if line and not line.startswith("#"):
            break
        place = above
    return place
