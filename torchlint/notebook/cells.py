"""A notebook as one text: its Python cells in order, as the user wrote them and as code of the same length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from torchlint.finding import Diagnostic, Edit, Span, edited
from torchlint.notebook.ipython import read, shown

if TYPE_CHECKING:
    from torchlint.notebook.ipynb import Document


class Cell(NamedTuple):
    """A Python cell: which of all cells it is, from 1, and where it stands in the text of the notebook.

    `body` is where its Python begins, behind cell magics. The text from `start` to `end` ends in a newline, which is
    the user's only where the cell `is_ended`. Between a cell and the next one stands an empty line.
    """

    number: int
    start: int
    body: int
    end: int
    is_ended: bool


@dataclass(frozen=True)
class Notebook:
    """Cells as one text: `raw` as the user wrote it, `code` with `masks` in the place of what is no Python.

    Both are of the same length, so that a place in one is the same place in the other. A cell that is no Python is
    masked as a whole and is one of the `problems`. The `document` is the JSON that the cells were read from, before
    any edit; there is none for the cells of an editor.
    """

    raw: str
    code: str
    cells: tuple[Cell, ...]
    masks: tuple[Span, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    document: Document | None = None

    @classmethod
    def read(cls, text: str) -> Notebook:
        """The notebook in the text of a file. Raises `FormatError`, whose message says what to do."""
        from torchlint.notebook.ipynb import Document  # `json`, which the notebook of an editor does without

        document = Document.read(text)
        sources = document.sources
        found = cls.of_cells([source.text for source in sources], [source.number for source in sources])
        return replace(found, document=document)

    @classmethod
    def of_cells(cls, cells: Sequence[str], numbers: Sequence[int] | None = None) -> Notebook:
        """The notebook of these Python cells, which have these numbers or are all there are."""
        newline = next((ending for text in cells if (ending := _newline(text))), "\n")
        raw: list[str] = []
        code: list[str] = []
        found: list[Cell] = []
        masks: list[Span] = []
        problems: list[Diagnostic] = []
        start = 0
        for text, number in zip(cells, numbers or range(1, len(cells) + 1), strict=True):
            reading = read(text)
            is_ended = text.endswith(("\n", "\r"))
            seam = newline if is_ended else newline * 2
            end = start + len(text) + (0 if is_ended else len(newline))
            found.append(Cell(number, start, start + reading.body, end, is_ended))
            masks += (Span(start + mask.start, start + mask.end) for mask in reading.masks)
            if reading.error is not None:
                problems.append(_problem(start + reading.error[0], reading.error[1]))
            raw += (text, seam)
            code += (reading.code, seam)
            start = end + len(newline)
        return cls("".join(raw), "".join(code), tuple(found), tuple(masks), tuple(problems))

    def cell_at(self, offset: int) -> Cell | None:
        """The cell that a place belongs to, with the empty line below it; None where there are no cells."""
        index = bisect_right(self.cells, offset, key=lambda cell: cell.start) - 1
        return self.cells[max(index, 0)] if self.cells else None

    @property
    def texts(self) -> tuple[str, ...]:
        """What the user sees in each of the cells, its last line ended."""
        return tuple(self.raw[cell.start : cell.end] for cell in self.cells)

    @property
    def sources(self) -> tuple[str, ...]:
        """What the user has in each of the cells."""
        return tuple(self._source(cell) for cell in self.cells)

    def _source(self, cell: Cell) -> str:
        text = self.raw[cell.start : cell.end]
        if cell.is_ended:
            return text
        return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text.removesuffix("\r")

    def allows(self, edits: Iterable[Edit]) -> bool:
        """Whether each of the edits is one of the user's Python: within one cell, and in nothing that is masked."""
        return all(self._allows(edit.span) for edit in edits)

    def _allows(self, span: Span) -> bool:
        cell = self.cell_at(span.start)
        if cell is None or not cell.body <= span.start <= span.end <= cell.end:
            return False
        return all(mask.end <= span.start or span.end <= mask.start for mask in self.masks)

    def shows_as_before(self, edits: Iterable[Edit]) -> bool:
        """Whether each cell shows the value that it did, of the same last statement, however that is written."""
        edits = tuple(edits)
        new = self.edited(edits)
        for before, after in zip(self.cells, new.cells, strict=True):
            old_code, new_code = self.code[before.start : before.end], new.code[after.start : after.end]
            old = shown(old_code) if old_code != new_code else None
            if old is None:
                continue
            now = shown(new_code)
            if now is None or (now[1] != old[1] and now[0] != old[0]):
                return False
        return True

    def edited(self, edits: Iterable[Edit]) -> Notebook:
        """The notebook with edits made that it allows."""
        edits = sorted(edits, key=lambda edit: edit.span)
        moved = _Moved(edits)
        cells = []
        shift = 0
        for cell in self.cells:
            inside = sum(
                len(edit.text) - (edit.span.end - edit.span.start)
                for edit in edits
                if cell.start <= edit.span.start <= cell.end
            )
            start, body, end = cell.start + shift, cell.body + shift, cell.end + shift + inside
            cells.append(cell._replace(start=start, body=body, end=end))
            shift += inside
        return Notebook(
            edited(self.raw, edits),
            edited(self.code, edits),
            tuple(cells),
            tuple(
                Span(moved.place(mask.start), moved.place(mask.start) + mask.end - mask.start) for mask in self.masks
            ),
            tuple(replace(problem, span=moved.span(problem.span)) for problem in self.problems),
            self.document,
        )

    @cached_property
    def written(self) -> Document:
        """The document with the cells as they are now; of an editor one that holds them and nothing else."""
        if self.document is not None:
            return self.document.replaced(self.sources)
        from torchlint.notebook.ipynb import Document  # as above

        return Document.of_cells({cell.number: text for cell, text in zip(self.cells, self.sources, strict=True)})

    def stored(self, span: Span) -> Span:
        """Where a span stands in the text of the document as it is now."""
        if not self.cells:
            return Span(0, 0)
        index = max(bisect_right(self.cells, span.start, key=lambda cell: cell.start) - 1, 0)
        source, start = self.written.sources[index], self.cells[index].start
        first = self.written.unit(source, span.start - start)
        if span.start == span.end:
            return Span(first.start, first.start)
        return Span(first.start, self.written.unit(source, span.end - 1 - start).end)


def _newline(text: str) -> str:
    """The first line ending of a text."""
    end = text.find("\n")
    if end < 0:
        return "\r" if "\r" in text else ""
    return "\r\n" if text[:end].endswith("\r") else "\n"


def _problem(offset: int, message: str) -> Diagnostic:
    return Diagnostic("E999", "invalid-syntax", f"syntax error: {message}", span=Span(offset, offset))


class _Moved:
    """Where places are once edits are made; what is inserted at a place goes above it."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        self._ends: list[int] = []
        self._shifts = [0]
        for edit in edits:
            self._ends.append(edit.span.end)
            self._shifts.append(self._shifts[-1] + len(edit.text) - (edit.span.end - edit.span.start))

    def place(self, offset: int) -> int:
        return offset + self._shifts[bisect_right(self._ends, offset)]

    def span(self, span: Span | None) -> Span | None:
        return span and Span(self.place(span.start), self.place(span.end))
