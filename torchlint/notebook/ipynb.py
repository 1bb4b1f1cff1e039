"""Reads the sources of a notebook's cells from its JSON, and writes them back with every other byte as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from itertools import pairwise
from json.decoder import scanstring  # type: ignore[attr-defined]  # public by its use, though not in the stubs
from typing import Any, NamedTuple

from torchlint.finding import Edit, Span, edited

FORMAT = 4


class FormatError(ValueError):
    """A file that is no notebook that can be read; the message says what to do."""


class Source(NamedTuple):
    """Where the source of a cell stands in the JSON: its value, and the string or strings that it consists of.

    `number` counts all cells from 1.
    """

    number: int
    value: Span
    literals: tuple[Span, ...]
    text: str

    @property
    def is_list(self) -> bool:
        """Whether it is a list of strings, as Jupyter writes it, and not one string."""
        return self.literals != (self.value,)


@dataclass(frozen=True, slots=True)
class Document:
    """The JSON of a notebook, and the sources of its Python cells."""

    text: str
    sources: tuple[Source, ...]

    @classmethod
    def read(cls, text: str) -> Document:
        """Find the sources of all Python cells; none in a notebook of another language. Raises `FormatError`."""
        cells: list[_Cell] | None = None
        known: dict[str, Any] = {}

        def visit(key: str, at: int) -> int:
            nonlocal cells
            if key == "cells" and text[at : at + 1] == "[":
                cells = []
                return _items(text, at, lambda place: _cell(text, place, cells))
            known[key], end = _value(text, at)
            return end

        try:
            start = _skipped(text, 0)
            if text[start : start + 1] != "{":
                raise FormatError(f"not a notebook: no JSON object; {_REMEDY}")
            end = _skipped(text, _members(text, start, visit))
        except json.JSONDecodeError as error:
            problem = error.msg.removesuffix(" at")
            raise FormatError(f"not a notebook: {problem} on line {error.lineno}; {_REMEDY}") from None
        except RecursionError:
            raise FormatError(f"not a notebook: its JSON nests too deeply; {_REMEDY}") from None
        if end != len(text):
            row = text.count("\n", 0, end) + 1
            raise FormatError(f"not a notebook: something stands behind its end, on line {row}; {_REMEDY}")
        if known.get("nbformat") != FORMAT:
            raise FormatError(
                f"a notebook of format {known.get('nbformat', 'unknown')}, of which only {FORMAT} can be read; "
                "open it in Jupyter and save it, or run `jupyter nbconvert --to notebook --inplace` on it"
            )
        if cells is None:
            raise FormatError(f"not a notebook: no list of cells; {_REMEDY}")
        if not _is_python(known.get("metadata")):
            cells = []
        return cls(text, tuple(cell.source for cell in cells if cell.is_python and cell.source is not None))

    @classmethod
    def of_cells(cls, texts: Mapping[int, str]) -> Document:
        """A document with these Python cells, by number, and empty ones between them."""
        cells: list[dict[str, object]] = [
            {"cell_type": "code" if number in texts else "raw", "metadata": {}, "source": texts.get(number, "")}
            for number in range(1, max(texts, default=0) + 1)
        ]
        return cls.read(json.dumps({"cells": cells, "metadata": {}, "nbformat": FORMAT, "nbformat_minor": 4}))

    def unit(self, source: Source, offset: int) -> Span:
        """Where the code point at `offset` of a source stands in the JSON; behind the last an empty span at the end."""
        if not source.literals:
            return Span(source.value.start, source.value.start)
        last = len(source.literals) - 1
        for index, literal in enumerate(source.literals):
            string, _ = scanstring(self.text, literal.start + 1)
            if offset < len(string) or index == last:
                break
            offset -= len(string)
        end = literal.end - 1
        units = _UNIT.finditer(self.text, literal.start + 1, end)
        return next((Span(*unit.span()) for number, unit in enumerate(units) if number == offset), Span(end, end))

    def edits(self, texts: Sequence[str]) -> list[Edit]:
        """The edits to the JSON that give its sources, in their order, these texts."""
        changes = [(source, text) for source, text in zip(self.sources, texts, strict=True) if source.text != text]
        if not changes:
            return []
        spelling = _Spelling.of(self)
        return [edit for source, text in changes for edit in _edits(self, source, text, spelling)]

    def replaced(self, texts: Sequence[str]) -> Document:
        """The document with these sources."""
        edits = self.edits(texts)
        return Document.read(edited(self.text, edits)) if edits else self


_REMEDY = "restore the file, or save it again in Jupyter"


# Reading


@dataclass(slots=True)
class _Cell:
    """What is read of a cell before its end is known."""

    number: int
    kind: object = None
    language: object = None
    source: Source | None = None

    @property
    def is_python(self) -> bool:
        return self.kind == "code" and self.language in (None, "python")


def _cell(text: str, at: int, cells: list[_Cell] | None) -> int:
    assert cells is not None
    cell = _Cell(len(cells) + 1)
    cells.append(cell)

    def visit(key: str, place: int) -> int:
        value, end = _value(text, place)
        if key == "cell_type":
            cell.kind = value
        elif key == "metadata":
            # Where a kernel runs several languages, VS Code notes the one of a cell that is not in the notebook's.
            cell.language = _inner(value, "vscode", "languageId")
        elif key == "source":
            cell.source = _source(text, cell.number, value, Span(place, end))
        return end

    if text[at : at + 1] != "{":
        raise FormatError(f"not a notebook: a cell is no JSON object; {_REMEDY}")
    return _members(text, at, visit)


def _source(text: str, number: int, value: object, span: Span) -> Source | None:
    if isinstance(value, str):
        return Source(number, span, (span,), value)
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        return None
    literals: list[Span] = []

    def visit(at: int) -> int:
        _, end = scanstring(text, at + 1)
        literals.append(Span(at, end))
        return int(end)

    _items(text, span.start, visit)
    return Source(number, span, tuple(literals), "".join(value))


def _is_python(metadata: object) -> bool:
    """Whether the notebook's language is Python, or nothing says which it is."""
    names = (_inner(metadata, "language_info", "name"), _inner(metadata, "kernelspec", "language"))
    name = next((name for name in names if isinstance(name, str) and name), "python")
    return name.lower() in ("python", "ipython", "python3", "ipython3")


def _inner(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def _skipped(text: str, at: int) -> int:
    """The place of what follows the white space."""
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise
        raise json.JSONDecodeError(str(error), text, at) from None  # a number of too many digits


def _members(text: str, at: int, visit: Callable[[str, int], int]) -> int:
    """Visit each key of the object at `at` with the place of its value; `visit` and this return where they end."""

    def member(place: int) -> int:
        if text[place : place + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, place)
        key, end = scanstring(text, place + 1)
        colon = _skipped(text, end)
        if text[colon : colon + 1] != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", text, colon)
        return visit(key, _skipped(text, colon + 1))

    return _listed(text, at, "}", member)


def _items(text: str, at: int, visit: Callable[[int], int]) -> int:
    """The same for the values of the array at `at`."""
    return _listed(text, at, "]", visit)


def _listed(text: str, at: int, closing: str, visit: Callable[[int], int]) -> int:
    at = _skipped(text, at + 1)
    if text[at : at + 1] == closing:
        return at + 1
    while True:
        at = _skipped(text, visit(at))
        if text[at : at + 1] == closing:
            return at + 1
        if text[at : at + 1] != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        at = _skipped(text, at + 1)


# Writing

# One code point as JSON spells it in a string.
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
# How sources are split into lists: nbformat also ends lines at form feeds and the like.
_SPLITS: tuple[Callable[[str], list[str]], ...] = (_LINE.findall, partial(str.splitlines, keepends=True))


@dataclass(frozen=True, slots=True)
class _Spelling:
    r"""How this document spells what JSON may spell in several ways: some write `<` as `\u003c`, some `é` as `\u00e9`.

    `separator` stands between values on one line.
    """

    escapes: dict[str, str]
    is_ascii: bool
    separator: str

    @classmethod
    def of(cls, document: Document) -> _Spelling:
        literals = [document.text[span.start : span.end] for source in document.sources for span in source.literals]
        found = {unit for literal in literals for unit in _ESCAPE.findall(literal)}
        escapes = {json.loads(f'"{unit}"'): unit for unit in sorted(found, key=lambda unit: (-len(unit), unit))}
        is_ascii = document.text.isascii() and _FAR.search(document.text) is not None
        escapes = {character: unit for character, unit in escapes.items() if character.isascii()}
        return cls(escapes, is_ascii, ", " if '": ' in document.text else ",")

    def unit(self, character: str) -> str:
        if character in self.escapes:
            return self.escapes[character]
        is_escaped = self.is_ascii or "\ud800" <= character <= "\udfff"
        return json.dumps(character, ensure_ascii=is_escaped)[1:-1]

    def spelt(self, string: str) -> str:
        return "".join(map(self.unit, string))


_FAR = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")


def _edits(document: Document, source: Source, text: str, spelling: _Spelling) -> Iterator[Edit]:
    """The edits that give one source another text: lines that are the same in both stay as they are spelt."""
    new = _LINE.findall(text)
    if not source.is_list:
        yield from _in_string(document, source, new, spelling)
        return
    old = [scanstring(document.text, literal.start + 1)[0] for literal in source.literals]
    split = next((split for split in _SPLITS if split(source.text) == old), None)
    if split is not None:
        new = split(text)
        changes = _changes(old, new)
    else:
        # Parts of lines, or several lines in one: what is the same at both ends stays.
        head = _shared(old, text)
        rest = text[len("".join(old[:head])) :]
        tail = _shared([part[::-1] for part in reversed(old[head:])], rest[::-1])
        kept = old[len(old) - tail :]
        new = [*old[:head], *_LINE.findall(rest[: len(rest) - len("".join(kept))]), *kept]
        changes = [(head, len(old) - tail, head, len(new) - tail)]
    yield from _in_list(document, source, (old, new), changes, spelling)


def _changes(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """The ranges of lines that differ: from and to in the old lines, from and to in the new ones."""
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in opcodes if tag != "equal"]


def _shared(parts: Sequence[str], text: str) -> int:
    """How many of the parts the text begins with."""
    place = 0
    for number, part in enumerate(parts):
        if not text.startswith(part, place):
            return number
        place += len(part)
    return len(parts)


def _in_string(document: Document, source: Source, new: Sequence[str], spelling: _Spelling) -> Iterator[Edit]:
    old = _LINE.findall(source.text)
    units = [unit.start() for unit in _UNIT.finditer(document.text, source.value.start + 1, source.value.end - 1)]
    units.append(source.value.end - 1)
    ends = [0]
    for line in old:
        ends.append(ends[-1] + len(line))
    for first, last, start, end in _changes(old, new):
        span = Span(units[ends[first]], units[ends[last]])
        yield _trimmed(document, span, "".join(old[first:last]), "".join(new[start:end]), spelling)


def _in_list(
    document: Document,
    source: Source,
    lines: tuple[Sequence[str], Sequence[str]],
    changes: Sequence[tuple[int, int, int, int]],
    spelling: _Spelling,
) -> Iterator[Edit]:
    old, new = lines
    literals = source.literals
    if not new or not old:
        inner = spelling.separator.join(f'"{spelling.spelt(line)}"' for line in new)
        yield Edit(source.value, f"[{inner}]")
        return
    separator = _separator(document, source, spelling)
    for first, last, start, end in changes:
        both = min(last - first, end - start)
        for number in range(both):
            literal = literals[first + number]
            inside = Span(literal.start + 1, literal.end - 1)
            yield _trimmed(document, inside, old[first + number], new[start + number], spelling)
        added = [f'"{spelling.spelt(line)}"' for line in new[start + both : end]]
        if added and first + both:
            place = literals[first + both - 1].end
            yield Edit(Span(place, place), "".join(f"{separator}{literal}" for literal in added))
        elif added:
            place = literals[0].start
            yield Edit(Span(place, place), "".join(f"{literal}{separator}" for literal in added))
        if first + both < last:
            # With what parts them from the one before, or from the one behind where none is left before.
            gone = literals[first + both : last]
            if first + both:
                yield Edit(Span(literals[first + both - 1].end, gone[-1].end), "")
            else:
                yield Edit(Span(gone[0].start, literals[last].start), "")


def _trimmed(document: Document, span: Span, old: str, new: str, spelling: _Spelling) -> Edit:
    """The edit of a part of a string: what is the same at both ends stays as it is spelt."""
    units = [unit.start() for unit in _UNIT.finditer(document.text, span.start, span.end)]
    units.append(span.end)
    most = min(len(old), len(new))
    head = next((place for place in range(most) if old[place] != new[place]), most)
    tail = next((place for place in range(most - head) if old[-1 - place] != new[-1 - place]), most - head)
    return Edit(Span(units[head], units[len(old) - tail]), spelling.spelt(new[head : len(new) - tail]))


def _separator(document: Document, source: Source, spelling: _Spelling) -> str:
    """What stands between two strings of the list."""
    for one, other in pairwise(source.literals):
        return document.text[one.end : other.start]
    before = document.text[source.value.start + 1 : source.literals[0].start]
    return f",{before}" if before else spelling.separator
