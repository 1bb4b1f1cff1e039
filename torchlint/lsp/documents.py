"""The documents that a client has open, as they are there: texts with versions, and notebooks of such texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lsprotocol import types as lsp
from pygls.uris import to_fs_path

from torchlint.lsp.text import Text

PYTHON = "python"
_SUFFIXES = (".py", ".pyi")


@dataclass(slots=True)
class Document:
    """A text that is open. `notebook` is the notebook whose cell it is."""

    uri: str
    language: str
    version: int
    text: Text
    notebook: str | None = None

    @property
    def is_python(self) -> bool:
        """Whether the client, or its name, says that it holds Python."""
        return self.language == PYTHON or urlsplit(self.uri).path.endswith(_SUFFIXES)


@dataclass(slots=True)
class NotebookDocument:
    """A notebook that is open: its cells in order."""

    uri: str
    version: int
    cells: list[lsp.NotebookCell] = field(default_factory=list)


class Documents:
    """All documents that are open, by URI. What is said of a document that is not open is ignored."""

    def __init__(self) -> None:
        self.encoding: lsp.PositionEncodingKind | str = lsp.PositionEncodingKind.Utf16
        self._documents: dict[str, Document] = {}
        self._notebooks: dict[str, NotebookDocument] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._documents.values()))

    def get(self, uri: str) -> Document | None:
        """The document of this URI, if it is open."""
        return self._documents.get(uri)

    def notebook(self, uri: str) -> NotebookDocument | None:
        """The notebook of this URI, if it is open."""
        return self._notebooks.get(uri)

    def units(self) -> list[str]:
        """The URIs of what is analysed: notebooks, and Python documents that are no cells."""
        alone = [each.uri for each in self._documents.values() if each.notebook is None and each.is_python]
        return [*self._notebooks, *alone]

    def unit_of(self, uri: str) -> str | None:
        """The URI of what a document is analysed with: itself, or its notebook; None where it is not."""
        if uri in self._notebooks:
            return uri
        document = self._documents.get(uri)
        if document is None or not document.is_python:
            return None
        return document.notebook or uri

    def parts(self, unit: str) -> list[Document]:
        """The documents that are analysed together, in order: the one, or the Python cells of a notebook."""
        notebook = self._notebooks.get(unit)
        if notebook is None:
            document = self._documents.get(unit)
            return [document] if document is not None else []
        found = [
            self._documents.get(cell.document) for cell in notebook.cells if cell.kind == lsp.NotebookCellKind.Code
        ]
        return [document for document in found if document is not None and document.is_python]

    def open(self, item: lsp.TextDocumentItem, notebook: str | None = None) -> None:
        """A text was opened; one that was open is replaced."""
        text = Text(item.text, self.encoding)
        self._documents[item.uri] = Document(item.uri, item.language_id, item.version, text, notebook)

    def change(self, uri: str, version: int, changes: Sequence[lsp.TextDocumentContentChangeEvent]) -> None:
        """A text was changed."""
        document = self._documents.get(uri)
        if document is not None:
            for change in changes:
                document.text = document.text.changed(change)
            document.version = version

    def close(self, uri: str) -> None:
        """A text was closed."""
        self._documents.pop(uri, None)

    def open_notebook(self, notebook: lsp.NotebookDocument, cells: Iterable[lsp.TextDocumentItem]) -> None:
        """A notebook was opened, with the texts of its cells."""
        self._notebooks[notebook.uri] = NotebookDocument(notebook.uri, notebook.version, list(notebook.cells))
        for item in cells:
            self.open(item, notebook.uri)

    def change_notebook(self, uri: str, version: int, change: lsp.NotebookDocumentChangeEvent) -> None:
        """Cells were added, taken out, moved or changed."""
        notebook = self._notebooks.get(uri)
        if notebook is None:
            return
        notebook.version = version
        cells = change.cells
        if cells is None:
            return
        if cells.structure is not None:
            array = cells.structure.array
            notebook.cells[array.start : array.start + array.delete_count] = array.cells or []
            for item in cells.structure.did_open or []:
                self.open(item, uri)
            for closed in cells.structure.did_close or []:
                self.close(closed.uri)
        for each in cells.data or []:
            notebook.cells = [each if cell.document == each.document else cell for cell in notebook.cells]
        for content in cells.text_content or []:
            self.change(content.document.uri, content.document.version, content.changes)

    def close_notebook(self, uri: str, cells: Iterable[lsp.TextDocumentIdentifier]) -> None:
        """A notebook was closed, and its cells with it."""
        notebook = self._notebooks.pop(uri, None)
        for cell in notebook.cells if notebook is not None else ():
            self.close(cell.document)
        for closed in cells:
            self.close(closed.uri)


def path_of(uri: str) -> str | None:
    """The path of a file; None for a document that is none."""
    return to_fs_path(uri) if urlsplit(uri).scheme == "file" else None
