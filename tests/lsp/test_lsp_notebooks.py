"""A notebook is looked at as a whole: its Python cells in order, each told of what is in it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from cases import case
from editor import PUSH_NOTEBOOK, VS_CODE, Editor, Profile, editor, rows
from lsprotocol import types as lsp
from samples import FAST, SLOW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow

every = pytest.mark.parametrize("profile", [VS_CODE, PUSH_NOTEBOOK], ids=str)

IMPORTS = "%matplotlib inline\nimport torch\nfrom torch import nn"
MADE = '!pip install torch\n\ndef made(n):\n    name = "😀"; return torch.zeros(n).cuda()'
TRAIN = """\
running = 0.0
for inputs, targets in loader:
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item()"""
MAGIC = "%%timeit\ntorch.zeros(3).cuda()"
TEXT = "# Training\n\n`torch.zeros(n).cuda()`"


class Notebook:
    """A notebook that is open in an editor."""

    def __init__(self, seen: Editor, name: str = "train.ipynb", kind: str = "jupyter-notebook") -> None:
        self.seen = seen
        self.uri = seen.uri(name)
        self.kind = kind
        self.version = 1
        self.cells: list[str] = []

    def cell(self, name: str) -> str:
        return f"vscode-notebook-cell:{self.uri.removeprefix('file://')}#{name}"

    def open(self, **cells: str) -> None:
        """Open it with cells of these names; a text that begins with `#` and a blank is Markdown."""
        items = [self._item(name, text) for name, text in cells.items()]
        self.cells = [item.uri for item in items]
        notebook = lsp.NotebookDocument(self.uri, self.kind, self.version, [self._listed(item) for item in items])
        self.seen.client.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(notebook, items))

    def _item(self, name: str, text: str) -> lsp.TextDocumentItem:
        uri = self.cell(name)
        self.seen.open_quietly(uri, text)
        return lsp.TextDocumentItem(uri, "markdown" if text.startswith("# ") else "python", 1, text)

    @staticmethod
    def _listed(item: lsp.TextDocumentItem) -> lsp.NotebookCell:
        kind = lsp.NotebookCellKind.Markup if item.language_id == "markdown" else lsp.NotebookCellKind.Code
        return lsp.NotebookCell(kind, item.uri)

    def edit(self, name: str, old: str, new: str) -> None:
        """Edit a cell."""
        uri = self.cell(name)
        change = self.seen.edited(uri, old, new)
        identifier = lsp.VersionedTextDocumentIdentifier(self.seen.documents[uri].version, uri)
        content = lsp.NotebookDocumentCellContentChanges(identifier, [change])
        self._changed(lsp.NotebookDocumentCellChanges(text_content=[content]))

    def put(self, at: int, deleted: int, **cells: str) -> None:
        """Take cells out, and put others in their place."""
        items = [self._item(name, text) for name, text in cells.items()]
        gone = [lsp.TextDocumentIdentifier(uri) for uri in self.cells[at : at + deleted]]
        self.cells[at : at + deleted] = [item.uri for item in items]
        array = lsp.NotebookCellArrayChange(at, deleted, [self._listed(item) for item in items])
        self._changed(
            lsp.NotebookDocumentCellChanges(
                structure=lsp.NotebookDocumentCellChangeStructure(array, did_open=items, did_close=gone)
            )
        )

    def move(self, source: int, target: int) -> None:
        """Put a cell in another place, as editors do: out and in again, and open all the while."""
        uri = self.cells.pop(source)
        out = lsp.NotebookCellArrayChange(source, 1)
        self._changed(lsp.NotebookDocumentCellChanges(structure=lsp.NotebookDocumentCellChangeStructure(out)))
        self.cells.insert(target, uri)
        back = lsp.NotebookCellArrayChange(target, 0, [lsp.NotebookCell(lsp.NotebookCellKind.Code, uri)])
        self._changed(lsp.NotebookDocumentCellChanges(structure=lsp.NotebookDocumentCellChangeStructure(back)))

    def _changed(self, cells: lsp.NotebookDocumentCellChanges) -> None:
        self.version += 1
        identifier = lsp.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        change = lsp.NotebookDocumentChangeEvent(cells=cells)
        self.seen.client.notebook_document_did_change(lsp.DidChangeNotebookDocumentParams(identifier, change))

    def close(self) -> None:
        cells = [lsp.TextDocumentIdentifier(uri) for uri in self.cells]
        params = lsp.DidCloseNotebookDocumentParams(lsp.NotebookDocumentIdentifier(self.uri), cells)
        self.seen.client.notebook_document_did_close(params)

    async def findings(self, name: str) -> Sequence[lsp.Diagnostic]:
        return await self.seen.findings(self.cell(name))

    async def becomes(self, name: str, expected: list[tuple[int, str]]) -> None:
        """A cell that was not edited itself comes to be found in so."""
        await self.seen.eventually(self.cell(name), expected)


@every
async def test_cells_are_looked_at_together(tmp_path: Path, profile: Profile) -> None:
    """What is imported in the first cell is known in the others, and magics are no syntax errors."""
    async with editor(tmp_path, profile) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, text=TEXT, made=MADE, train=TRAIN)
        (found,) = await book.findings("made")
        assert (found.code, seen.text_at(book.cell("made"), found.range)) == ("TL201", SLOW)
        assert found.range.start == lsp.Position(3, 4 + len('name = "😀"; return ') + 1)
        (found,) = await book.findings("train")
        assert (found.code, seen.text_at(book.cell("train"), found.range)) == ("TL301", "loss.item()")
        assert found.related_information is not None
        (related,) = found.related_information
        assert (related.message, related.location.uri) == ("runs per batch", book.cell("train"))
        assert rows(await book.findings("imports")) == []
        assert not [each for each in seen.published if each.uri in (book.uri, book.cell("text")) and each.diagnostics]


@every
async def test_a_cell_is_edited(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, made=MADE, train=TRAIN)
        assert rows(await book.findings("made")) == [(4, "TL201")]
        book.edit("made", 'name = "😀"; ', "")
        (found,) = await book.findings("made")
        assert seen.text_at(book.cell("made"), found.range) == SLOW
        book.edit("made", SLOW, FAST)
        assert rows(await book.findings("made")) == []
        book.edit("imports", "import torch\n", "import torch\n\n\n")
        assert rows(await book.findings("imports")) == []
        await book.becomes("train", [(7, "TL301")])
        book.edit("imports", "import torch\n", "import jax\n")
        book.edit("imports", "from torch import nn", "from jax import nn")
        await book.becomes("train", [])


@every
async def test_a_cell_that_is_half_written_imports_what_it_did(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, made=MADE, train=TRAIN)
        assert rows(await book.findings("train")) == [(7, "TL301")]
        book.edit("imports", "import torch\n", "import torch\ndef broken(:\n\n")
        assert rows(await book.findings("imports")) == []
        assert rows(await book.findings("train")) == [(7, "TL301")]
        assert rows(await book.findings("made")) == [(4, "TL201")]


@every
async def test_a_cell_that_is_half_written(tmp_path: Path, profile: Profile) -> None:
    """What was found on its lines that are as they were stays, and the other cells are looked at."""
    async with editor(tmp_path, profile) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, made=MADE, train=TRAIN)
        assert rows(await book.findings("made")) == [(4, "TL201")]
        book.edit("made", "!pip install torch\n", "!pip install torch\ndef broken(:\n")
        assert rows(await book.findings("made")) == [(5, "TL201")]
        await book.becomes("train", [(7, "TL301")])
        book.edit("made", SLOW, SLOW[:-1])
        assert rows(await book.findings("made")) == []
        book.edit("train", "optimizer.step()", "optimizer.step()\n    scheduler.step()")
        assert (8, "TL301") in rows(await book.findings("train"))


@every
async def test_cells_come_go_and_move(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, train=TRAIN)
        assert rows(await book.findings("train")) == [(7, "TL301")]
        book.put(1, 0, made=MADE, text=TEXT)
        assert rows(await book.findings("made")) == [(4, "TL201")]
        await book.becomes("train", [(7, "TL301")])
        book.move(3, 1)
        await book.becomes("train", [(7, "TL301")])
        await book.becomes("made", [(4, "TL201")])
        book.put(2, 1)
        await book.becomes("train", [(7, "TL301")])
        if not seen.pulls:
            last = await seen.until(lambda: [each for each in seen.published if each.uri == book.cell("made")][-1:])
            await seen.until(lambda: not [e for e in seen.published if e.uri == book.cell("made")][-1].diagnostics)
            assert last
        book.put(0, 1)  # without the imports it still goes backward
        await book.becomes("train", [(7, "TL301")])


@every
async def test_what_is_done_about_a_finding_in_a_cell(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, made=MADE, train=TRAIN)
        made, train = book.cell("made"), book.cell("train")
        assert rows(await book.findings("made")) == [(4, "TL201")]
        hover = await seen.hover(made, "torch.zeros")
        assert hover is not None
        assert hover.range is not None
        assert seen.text_at(made, hover.range) == SLOW
        offered = await seen.actions(made, 4)
        assert offered[0].is_preferred
        assert _changes(seen, offered[0]) == {made: MADE.replace(SLOW, FAST)}
        (ignore,) = [each for each in offered if each.title.endswith("ignore on this line")]
        assert _changes(seen, ignore) == {made: f"{MADE}  # torchlint: ignore[host-factory-then-move]"}
        unsafe = (await seen.actions(train, 7))[0]
        fixed = TRAIN.replace("loss.item()", "loss.detach()")
        assert _changes(seen, unsafe) == {train: fixed}
        for asked in (made, train):
            for action in await seen.actions(asked, 1, ["source.fixAll"], ()):
                assert set(_changes(seen, action)) <= {made}, "no other cell has a fix that is safe"


@every
async def test_a_notebook_is_closed(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, made=MADE)
        assert rows(await book.findings("made")) == [(4, "TL201")]
        book.close()
        if seen.pulls:
            assert await seen.rows(book.cell("made")) == []
        else:
            await seen.until(lambda: not [e for e in seen.published if e.uri == book.cell("made")][-1].diagnostics)
        again = Notebook(seen)
        again.open(imports=IMPORTS, made=MADE)
        await again.becomes("made", [(4, "TL201")])


async def test_a_cell_whose_magic_is_another_language(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE) as seen:
        book = Notebook(seen)
        book.open(
            imports=IMPORTS, loop="%%bash\nfor x in 1 2; do echo $x; done", help="torch.zeros?", empty="", made=MADE
        )
        assert rows(await book.findings("made")) == [(4, "TL201")]
        for name in ("loop", "help", "empty"):
            assert rows(await book.findings(name)) == []


async def test_a_script_and_a_notebook_side_by_side(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH_NOTEBOOK) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, made=MADE)
        uri = seen.open("made.py", "import torch\n" + MADE.partition("\n\n")[2] + "\n")
        assert await seen.rows(uri) == [(3, "TL201")]
        assert rows(await book.findings("made")) == [(4, "TL201")]


async def test_many_edits_of_a_cell(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE) as seen:
        book = Notebook(seen)
        book.open(imports=IMPORTS, made=MADE, train=TRAIN)
        assert rows(await book.findings("made")) == [(4, "TL201")]
        before = await seen.analyses()
        for number in range(40):
            book.edit(
                "train",
                "for inputs" if not number else "#" * number + "\nfor inputs",
                "#" * (number + 1) + "\nfor inputs",
            )
            await asyncio.sleep(0.002)
        assert rows(await book.findings("train")) == [(8, "TL301")]
        assert await seen.analyses() - before <= 10


async def test_changes_of_cells_that_are_not_there(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH_NOTEBOOK, may_log_errors=True) as seen:
        for begin in (0, 1, 99):
            with case(begin):
                await _changed_elsewhere(seen, begin)


async def _changed_elsewhere(seen: Editor, begin: int) -> None:
    book = Notebook(seen, f"train{begin}.ipynb")
    book.open(imports=IMPORTS, made=MADE)
    assert rows(await book.findings("made")) == [(4, "TL201")]
    seen.client.notebook_document_did_change(
        lsp.DidChangeNotebookDocumentParams(
            lsp.VersionedNotebookDocumentIdentifier(2, book.uri),
            lsp.NotebookDocumentChangeEvent(
                cells=lsp.NotebookDocumentCellChanges(
                    structure=lsp.NotebookDocumentCellChangeStructure(
                        lsp.NotebookCellArrayChange(
                            begin,
                            99,
                            [lsp.NotebookCell(lsp.NotebookCellKind.Code, "vscode-notebook-cell:/nowhere")],
                        )
                    )
                )
            ),
        )
    )
    uri = seen.open(f"made{begin}.py", "import torch\n" + MADE.partition("\n\n")[2] + "\n")
    assert await seen.rows(uri) == [(3, "TL201")]
    book.close()


def _changes(seen: Editor, action: lsp.CodeAction) -> dict[str, str]:
    """The texts that an action makes, without a change of them."""
    before = {uri: document.text for uri, document in seen.documents.items()}
    return {uri: text for uri, text in seen.after(action.edit).items() if text != before[uri]}
