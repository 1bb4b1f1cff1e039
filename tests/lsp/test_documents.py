"""What is open, and what is analysed together."""

from __future__ import annotations

from lsprotocol import types as lsp

from torchlint.lsp.documents import Documents, path_of

NOTEBOOK = "file:///w/n.ipynb"


def cell(name: str) -> str:
    return f"vscode-notebook-cell:/w/n.ipynb#{name}"


def item(uri: str, text: str = "", language: str = "python") -> lsp.TextDocumentItem:
    return lsp.TextDocumentItem(uri, language, 1, text)


def notebook_cell(name: str, kind: lsp.NotebookCellKind = lsp.NotebookCellKind.Code) -> lsp.NotebookCell:
    return lsp.NotebookCell(kind, cell(name))


def texts(documents: Documents) -> list[str]:
    return [document.text.value for document in documents.parts(NOTEBOOK)]


def opened() -> Documents:
    documents = Documents()
    cells = [notebook_cell("a"), notebook_cell("words", lsp.NotebookCellKind.Markup), notebook_cell("b")]
    documents.open_notebook(
        lsp.NotebookDocument(NOTEBOOK, "jupyter-notebook", 1, cells),
        [item(cell("a"), "import torch\n"), item(cell("words"), "# Title", "markdown"), item(cell("b"), "x = 1\n")],
    )
    return documents


def test_python_by_what_the_client_says_or_by_its_name() -> None:
    documents = Documents()
    for uri, language in (
        ("file:///w/a.py", "plaintext"),
        ("untitled:Untitled-1", "python"),
        ("file:///w/pyproject.toml", "toml"),
        ("file:///w/a%20b.pyi?x=1", ""),
    ):
        documents.open(item(uri, language=language))
    assert documents.units() == ["file:///w/a.py", "untitled:Untitled-1", "file:///w/a%20b.pyi?x=1"]
    assert documents.unit_of("file:///w/pyproject.toml") is None
    assert documents.unit_of("file:///w/nowhere.py") is None


def test_changes_are_made_one_after_the_other() -> None:
    documents = Documents()
    documents.open(item("file:///w/a.py", "a = 1\n"))
    start = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))
    changes = [lsp.TextDocumentContentChangePartial(start, "bc"), lsp.TextDocumentContentChangePartial(start, "")]
    documents.change("file:///w/a.py", 7, changes)
    (document,) = documents.parts("file:///w/a.py")
    assert (document.text.value, document.version) == ("c = 1\n", 7)


def test_what_is_not_open_is_ignored() -> None:
    documents = Documents()
    documents.change("file:///w/a.py", 2, [lsp.TextDocumentContentChangeWholeDocument("x")])
    documents.change_notebook(NOTEBOOK, 2, lsp.NotebookDocumentChangeEvent())
    documents.close("file:///w/a.py")
    documents.close_notebook(NOTEBOOK, [lsp.TextDocumentIdentifier(cell("a"))])
    assert documents.units() == []
    assert documents.parts(NOTEBOOK) == []


def test_a_notebook_is_analysed_as_one() -> None:
    documents = opened()
    assert documents.units() == [NOTEBOOK]
    assert documents.unit_of(cell("b")) == documents.unit_of(NOTEBOOK) == NOTEBOOK
    assert documents.unit_of(cell("words")) is None
    assert texts(documents) == ["import torch\n", "x = 1\n"]


def test_cells_are_added_and_taken_out_and_changed() -> None:
    documents = opened()
    added = lsp.NotebookDocumentCellChangeStructure(
        array=lsp.NotebookCellArrayChange(start=2, delete_count=1, cells=[notebook_cell("c"), notebook_cell("d")]),
        did_open=[item(cell("c"), "y = 2\n"), item(cell("d"), "z = 3\n")],
        did_close=[lsp.TextDocumentIdentifier(cell("b"))],
    )
    changed = lsp.NotebookDocumentCellContentChanges(
        lsp.VersionedTextDocumentIdentifier(2, cell("c")), [lsp.TextDocumentContentChangeWholeDocument("y = 20\n")]
    )
    change = lsp.NotebookDocumentCellChanges(structure=added, text_content=[changed])
    documents.change_notebook(NOTEBOOK, 2, lsp.NotebookDocumentChangeEvent(cells=change))
    assert texts(documents) == ["import torch\n", "y = 20\n", "z = 3\n"]
    assert documents.get(cell("b")) is None


def test_cells_change_places_and_kinds() -> None:
    documents = opened()
    moved = lsp.NotebookDocumentCellChangeStructure(
        array=lsp.NotebookCellArrayChange(start=0, delete_count=3, cells=[notebook_cell("b"), notebook_cell("a")])
    )
    documents.change_notebook(
        NOTEBOOK, 2, lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(structure=moved))
    )
    assert texts(documents) == ["x = 1\n", "import torch\n"]
    data = [notebook_cell("b", lsp.NotebookCellKind.Markup)]
    documents.change_notebook(
        NOTEBOOK, 3, lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(data=data))
    )
    assert texts(documents) == ["import torch\n"]


def test_a_closed_notebook_takes_its_cells_with_it() -> None:
    documents = opened()
    documents.close_notebook(NOTEBOOK, [])
    assert documents.units() == []
    assert list(documents) == []


def test_only_files_have_paths() -> None:
    assert path_of("file:///w/a%20b.py") == "/w/a b.py"
    for uri in ("untitled:Untitled-1", "git:/w/a.py?ref", cell("a"), "https://example.org/a.py", ""):
        assert path_of(uri) is None
