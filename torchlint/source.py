"""The text of one file, and how it goes to and from bytes without a change."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from torchlint.finding import Edit, Span, edited
from torchlint.regular import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchlint.notebook.cells import Notebook


# LibCST takes a hundred bytes of memory for each; of larger files a program was the author.
MOST_CODE = 10_000_000


class DecodeError(ValueError):
    """The bytes of a file are no text in the encoding that it declares; the message says where."""


class Place(NamedTuple):
    """Where something stands, for people: row and column, from 1, columns in code points; of a `cell`, if in one."""

    row: int
    column: int
    cell: int | None = None

    @property
    def line(self) -> str:
        """As it follows the path and a colon, without the column: `12`, or `cell 3:4` in a notebook."""
        return str(self.row) if self.cell is None else f"cell {self.cell}:{self.row}"

    @property
    def words(self) -> str:
        """The row in a sentence: `line 12`, or `line 4 of cell 3`."""
        return f"line {self.row}" if self.cell is None else f"line {self.row} of cell {self.cell}"

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class View(NamedTuple):
    """A span of a file as somebody else finds it: in a text of which it may be a part, in a cell if `cell` is given."""

    source: SourceFile
    span: Span
    cell: int | None = None


@dataclass(frozen=True)
class SourceFile:
    """A path (as shown to people, POSIX separators) and its decoded text, newlines untouched.

    `encoding` is what the file declares (PEP 263) or UTF-8; `bom` says that a UTF-8 byte order mark precedes
    the text, which does not hold it. The text of a `notebook` is the code of its cells: what the user wrote, and where,
    is seen in the views.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    notebook: Notebook | None = None

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> SourceFile:
        """Decode `data` as Python would, or as a notebook by its suffix. Raises `DecodeError`."""
        if not is_notebook(path):
            _check_size(len(data))
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[len(codecs.BOM_UTF8) :] if bom else data
        encoding = "utf-8" if is_notebook(path) else _declared_encoding(data, body)
        text = _decoded(path, body, encoding)
        if not is_notebook(path):
            return cls(path, text, encoding, bom)
        from torchlint.notebook.cells import Notebook
        from torchlint.notebook.ipynb import FormatError  # `json`, which only notebooks need

        try:
            notebook = Notebook.read(text)
            _check_size(len(notebook.code))
            return cls.of_notebook(path, notebook, bom=bom)
        except FormatError as error:
            raise DecodeError(str(error)) from None

    @classmethod
    def of_notebook(cls, path: str, notebook: Notebook, *, bom: bool = False) -> SourceFile:
        """A notebook as one text."""
        return cls(path, notebook.code, bom=bom, notebook=notebook)

    def to_bytes(self) -> bytes:
        """The file in its encoding, with its byte order mark; of an editor's notebook one with these cells.

        Raises `UnicodeEncodeError`.
        """
        text = self.text
        if self.notebook is not None:
            text = self.notebook.written.text
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    def edited(self, edits: Iterable[Edit]) -> SourceFile:
        """The file with edits made that do not overlap; those at one place in the order given."""
        if self.notebook is None:
            return replace(self, text=edited(self.text, edits))
        notebook = self.notebook.edited(edits)
        return replace(self, text=notebook.code, notebook=notebook)

    def allows(self, edits: Iterable[Edit]) -> bool:
        """Whether the edits may be made: those of a notebook within one cell each, and in nothing that is no Python."""
        return self.notebook is None or self.notebook.allows(edits)

    @property
    def raw(self) -> str:
        """What the user wrote; of a notebook also what is no Python, every place as in the text."""
        return self.text if self.notebook is None else self.notebook.raw

    def place(self, offset: int) -> Place:
        """Where an offset is for people: of a notebook in the cell."""
        view = self.seen(Span(offset, offset))
        return Place(*view.source.position(view.span.start), view.cell)

    def row(self, row: int, cell: int | None) -> int | None:
        """The row of the text that people know as this one, of this cell in a notebook; None where there is none."""
        if self.notebook is None or cell is None:
            return row if 1 <= row <= len(self.line_starts) else None
        found = next((each for each in self.notebook.cells if each.number == cell), None)
        if found is None:
            return None
        row += self.position(found.start)[0] - 1
        return row if row <= self.position(found.end)[0] else None

    def seen(self, span: Span) -> View:
        """A span as people see it: of a notebook in what the user wrote in the cell where it starts."""
        cell = self.notebook.cell_at(span.start) if self.notebook is not None else None
        if self.notebook is None or cell is None:
            return View(self, span)
        text = self.notebook.raw[cell.start : cell.end]
        inside = Span(*(min(offset - cell.start, len(text)) for offset in (span.start, span.end)))
        return View(SourceFile(self.path, text), inside, cell.number)

    def in_cells(self, edits: Iterable[Edit]) -> Iterator[tuple[SourceFile, tuple[Edit, ...], int | None]]:
        """Edits as people see them: of a notebook in what the user wrote in each cell, by its number."""
        groups: dict[int | None, tuple[SourceFile, list[Edit]]] = {}
        for edit in sorted(edits):
            view = self.seen(edit.span)
            groups.setdefault(view.cell, (view.source, []))[1].append(Edit(view.span, edit.text))
        for cell, (source, inside) in groups.items():
            yield source, tuple(inside), cell

    def stored(self, span: Span) -> View:
        """A span as it stands in the file: of a notebook in its JSON, if it comes from a file."""
        notebook = self.notebook
        if notebook is None or notebook.document is None:
            return self.seen(span)
        return View(self._document, notebook.stored(span))

    def stored_edits(self, edits: Iterable[Edit]) -> tuple[SourceFile, list[Edit]]:
        """Edits as they change the file: of a notebook its JSON, if it comes from a file."""
        notebook = self.notebook
        if notebook is None or notebook.document is None:
            return self, sorted(edits)
        return self._document, sorted(notebook.written.edits(notebook.edited(edits).sources))

    @cached_property
    def _document(self) -> SourceFile:
        assert self.notebook is not None
        return SourceFile(self.path, self.notebook.written.text)

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset at which each line starts, lines ending in LF, CR LF or CR as Python has it."""
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    @cached_property
    def newline(self) -> str:
        """The line ending of the first line; LF where there is none."""
        match = _NEWLINE.search(self.text)
        return match[0] if match else "\n"

    def position(self, offset: int) -> tuple[int, int]:
        """Row and column of an offset in the text, both 1-based, columns in code points."""
        row = bisect_right(self.line_starts, offset)
        return row, offset - self.line_starts[row - 1] + 1

    def line(self, row: int) -> str:
        """The text of a 1-based row without its line ending."""
        start = self.line_starts[row - 1]
        end = self.line_starts[row] if row < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


def is_notebook(path: str) -> bool:
    """Whether a file is read as a notebook, by its suffix."""
    return path.endswith(".ipynb")


def code_of(path: str, data: bytes) -> bytes:
    """The code in the bytes of a file, for those who look at bytes; none in a notebook that cannot be read."""
    if not is_notebook(path):
        return data
    try:
        return SourceFile.from_bytes(path, data).text.encode(errors="replace")
    except DecodeError:
        return b""


def _check_size(count: int) -> None:
    if count > MOST_CODE:
        raise DecodeError(f"{size(count)} of code; torchlint reads up to {size(MOST_CODE)} of a file; exclude it")


def _declared_encoding(data: bytes, body: bytes) -> str:
    """What the first two lines declare (PEP 263), or UTF-8. Raises `DecodeError`."""
    if b"coding" not in b"\n".join(body.split(b"\n", 2)[:2]):
        return "utf-8"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        name = codecs.lookup(encoding).name
    except (SyntaxError, LookupError, ValueError) as error:
        raise DecodeError(str(error)) from None
    if name in _NOT_OF_FILES:
        raise DecodeError(_NO_ENCODING.format(encoding))
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _decoded(path: str, body: bytes, encoding: str) -> str:
    """The text, in which the declaration can still be read. Raises `DecodeError`."""
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        is_declared = is_notebook(path) or encoding != "utf-8"
        remedy = "" if is_declared else " or declare its encoding on the first line"
        raise DecodeError(
            f"not {encoding}: byte 0x{body[error.start]:02x} on line {line}; save the file as UTF-8{remedy}"
        ) from None
    except (LookupError, ValueError):  # bytes to bytes, such as base64, or text to text
        raise DecodeError(_NO_ENCODING.format(encoding)) from None
    if encoding != "utf-8" and "coding" not in "\n".join(text.split("\n", 2)[:2]):  # such as UTF-16
        raise DecodeError(_NO_ENCODING.format(encoding))
    return text


_NO_ENCODING = "`{}` is no encoding for source code; save the file as UTF-8"
# Of domain names, each decoded in a time that goes by the square of its length, and one that decodes nothing.
_NOT_OF_FILES = frozenset({"idna", "punycode", "undefined"})

_NEWLINE = re.compile(r"\r\n|\r|\n")
