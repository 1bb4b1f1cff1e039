"""What a client is told and when: which document is analysed next, what came of it, and whom it is news to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Protocol
from urllib.parse import urlsplit

from torchlint.finding import Fault
from torchlint.globs import posix
from torchlint.lsp.analysis import Explain, Inquire, Lint, Place, Repair
from torchlint.lsp.documents import Documents, path_of
from torchlint.lsp.settings import ClientSettings
from torchlint.lsp.unit import Part, Unit, View
from torchlint.lsp.worker import AnalysisError, Worker
from torchlint.notebook.cells import Notebook
from torchlint.source import SourceFile

# Keys that follow each other this closely are looked at together.
TYPING_PAUSE = 0.02
# Other files are asked when nothing was typed for this long.
THINKING_PAUSE = 0.3
# So long may they take to answer for the first time; from then on what they said last holds until there is news.
FIRST_PATIENCE = 10.0
# Then there is time to tidy up.
RESTING_PAUSE = 2.0
SYNTAX_ERROR = "E999"


class Client(Protocol):
    """Whom a session tells what there is to say."""

    def news(self, unit: Unit, *, asked: bool) -> None:
        """What is found may have changed; `asked` says that the client itself changed it, and will ask if it pulls."""

    def warn(self, message: str) -> None:
        """Something that the user has to put right."""

    def log(self, message: str) -> None:
        """Something went wrong that only a developer can put right."""


class Session:
    """The open documents and what is known of them."""

    def __init__(self, client: Client) -> None:
        self.documents = Documents()
        self.folders: list[str] = []
        self.settings: dict[str, ClientSettings] = {}
        self.default_settings = ClientSettings()
        self.lints = 0
        self._is_closed = False
        self._revisions = count(1)
        self._client = client
        self._units: dict[str, Unit] = {}
        self._typing = Worker("typing")
        self._thinking = Worker("thinking")
        self._generation = 0
        self._changes = 0
        self._warned: set[str] = set()
        self._resting: asyncio.Task[None] | None = None

    @property
    def workers(self) -> list[int]:
        """The processes that analyse."""
        return [pid for worker in (self._typing, self._thinking) if (pid := worker.process_id) is not None]

    async def warm(self) -> None:
        """Load what the first document will need."""
        await self._typing.rest()

    def close(self) -> None:
        """End everything."""
        self._is_closed = True
        for unit in self._units.values():
            _cancel(unit)
        self._typing.close()
        self._thinking.close()

    # What the client tells

    def edited(self, uri: str) -> None:
        """A document or notebook was opened or changed, or a part of it."""
        unit = self._unit(uri)
        if unit is None:
            return
        unit.changes += 1
        self._changes += 1
        unit.revision = next(self._revisions)
        if self.settings_of(unit.uri).run == "onSave" and unit.checked:
            unit.checked = unit.revision
            self._client.news(unit, asked=True)
        else:
            self._check(unit)
        self._ask_again(unit)

    def saved(self, uri: str) -> None:
        """A document was saved: what is found is looked for again where that is when it is wanted."""
        unit = self._unit(uri)
        if unit is not None and self.settings_of(unit.uri).run == "onSave":
            self.reconsider([unit.uri])

    def closed(self, uri: str) -> Unit | None:
        """A document or notebook was closed; what was known of it, if it was analysed."""
        unit = self._units.pop(uri, None)
        if unit is not None:
            _cancel(unit)
            self._changes += 1
            self._ask_again(unit)
        return unit

    def files_changed(self) -> None:
        """Files changed that are not open."""
        self._changes += 1
        self._ask_again(None)

    def configured(self) -> None:
        """What is configured or set has changed."""
        self._generation += 1
        self._changes += 1
        self._warned.clear()
        for unit in [unit for uri, unit in self._units.items() if not self.settings_of(uri).enable]:
            unit.findings = ()
            self._client.news(unit, asked=False)
            del self._units[unit.uri]
        self.reconsider(self.documents.units())

    def reconsider(self, uris: Iterable[str]) -> None:
        """Analyse documents again that have not changed themselves."""
        for uri in uris:
            unit = self._unit(uri)
            if unit is not None:
                unit.revision = next(self._revisions)
                unit.is_news = True
                self._check(unit)

    # What the client asks

    async def analysed(self, uri: str) -> tuple[Unit, View] | None:
        """What is known of a document as it is now; None for one that is not analysed."""
        unit = self._unit(uri)
        while unit is not None:
            if unit.checked == unit.revision and (unit.check is None or unit.check.done()):
                view = self.view(unit)
                return None if view is None else (unit, view)
            self._check(unit)
            if unit.check is not None:
                await asyncio.wait({unit.check})
            unit = self._unit(uri)
        return None

    async def repaired(self, unit: Unit, view: View) -> SourceFile | None:
        """The source with all safe fixes; None where that failed."""
        try:
            return await self._typing.repair(Repair(self.place(unit.uri), view.source, unit.facts))
        except AnalysisError as error:
            self._complain(str(error))
            return None

    async def explained(self, unit: Unit, view: View, row: int) -> str:
        """Why nothing is reported of a row of the source, in Markdown; empty where there is nothing to say."""
        try:
            return await self._typing.explain(Explain(self.place(unit.uri), view.source, row, unit.facts))
        except AnalysisError as error:
            self._complain(str(error))
            return ""

    def view(self, unit: Unit) -> View | None:
        """The source that a unit is now; None once it is closed."""
        parts = self.documents.parts(unit.uri)
        if not parts:
            return None
        if self.documents.notebook(unit.uri) is None:
            return View(SourceFile(self.place(unit.uri).shown, parts[0].text.value), (Part(parts[0], 0),))
        source = self._notebook(unit, [part.text.value for part in parts])
        assert source.notebook is not None
        return View(source, tuple(map(Part, parts, (cell.start for cell in source.notebook.cells))))

    def _notebook(self, unit: Unit, texts: Sequence[str]) -> SourceFile:
        """The notebook with these texts in its Python cells."""
        notebook = self.documents.notebook(unit.uri)
        assert notebook is not None
        numbers = {cell.document: number for number, cell in enumerate(notebook.cells, 1)}
        cells = Notebook.of_cells(texts, [numbers[part.uri] for part in self.documents.parts(unit.uri)])
        return SourceFile.of_notebook(self.place(unit.uri).shown, cells)

    def settings_of(self, uri: str) -> ClientSettings:
        """What the client set for a document."""
        return self.settings.get(self._folder(path_of(uri)) or "", self.default_settings)

    def place(self, uri: str) -> Place:
        """Where a document is, and what is set for it."""
        path = path_of(uri)
        folder = self._folder(path)
        overrides = self.settings_of(uri).overrides
        if path is None:
            root = self.folders[0] if self.folders else os.getcwd()  # noqa: PTH109 - a string, as all here
            return Place(root, None, uri.rpartition("/")[2].rpartition(":")[2] or "untitled", overrides)
        if folder is None:
            root, name = os.path.split(path)
            return Place(root, path, name, overrides, generation=self._generation)
        shown = posix(os.path.relpath(path, folder))
        return Place(folder, path, shown, overrides, _is_project(folder), self._generation)

    def _folder(self, path: str | None) -> str | None:
        """The workspace folder that a file is in, the innermost."""
        if path is None:
            return None
        around = [folder for folder in self.folders if path.startswith(os.path.join(folder, ""))]  # noqa: PTH118 - as above
        return max(around, key=len, default=None)

    # What is done about it

    def _unit(self, uri: str) -> Unit | None:
        unit = self.documents.unit_of(uri)
        if unit is None or not _is_analysed(unit) or not self.settings_of(unit).enable:
            return None
        if unit not in self._units:
            self._units[unit] = Unit(unit, next(self._revisions))
        return self._units[unit]

    def _check(self, unit: Unit) -> None:
        if unit.check is None or unit.check.done():
            unit.check = asyncio.create_task(self._checked(unit))

    async def _checked(self, unit: Unit) -> None:
        """Analyse a unit until it is known as it is."""
        while unit.checked != unit.revision:
            await asyncio.sleep(TYPING_PAUSE)
            revision, view = unit.revision, self.view(unit)
            if view is None:
                return
            try:
                await self._look(unit, view)
            except Exception as error:  # noqa: BLE001 - nobody else would see it, and others wait for the answer
                self._client.log(f"{view.source.path}: {type(error).__name__}: {error}")
            unit.checked = max(unit.checked, revision)
            if not unit.asked[0]:
                await self._hear_others(unit)
        is_news, unit.is_news = unit.is_news, False
        self._client.news(unit, asked=not is_news)
        self._think(unit)
        self._rest()

    async def _look(self, unit: Unit, view: View) -> None:
        self.lints += 1
        source = self._readable(unit, view)
        try:
            linted = await self._typing.lint(Lint(self.place(unit.uri), source, unit.facts))
        except AnalysisError as error:
            self._complain(f"{source.path}: {error}")
            unit.text, unit.findings = source.raw, ()
            return
        unit.cache_folder, unit.project = linted.cache_folder, linted.project
        if linted.problem and linted.problem not in self._warned:
            self._warned.add(linted.problem)
            self._client.warn(linted.problem)
        for diagnostic in linted.result.diagnostics:
            if diagnostic.fault is Fault.INTERNAL:
                self._client.log(f"{source.path}: {diagnostic.message}")
        is_broken = any(each.code == SYNTAX_ERROR for each in linted.result.diagnostics)
        if is_broken and source.notebook is None:
            return  # what was found before stands where its lines do
        unit.text, unit.findings, unit.questions = source.raw, linted.result.findings, linted.result.questions

    def _readable(self, unit: Unit, view: View) -> SourceFile:
        """The source, with what cells held last that could be read in the place of what is half written.

        Else the other cells would lose what those import and define. What is found stands with its lines.
        """
        notebook = view.source.notebook
        if notebook is None:
            return view.source
        texts = {part.document.uri: text for part, text in zip(view.parts, notebook.sources, strict=True)}
        broken = {view.part(each.span.start).document.uri for each in notebook.problems if each.span is not None}
        unit.readable = {uri: unit.readable.get(uri, text) if uri in broken else text for uri, text in texts.items()}
        return view.source if unit.readable == texts else self._notebook(unit, list(unit.readable.values()))

    async def _hear_others(self, unit: Unit) -> None:
        """Let other files answer for the first time before anything is said that they may refute."""
        is_news = unit.is_news
        self._think(unit)
        if unit.inquiry is not None:
            await asyncio.wait({unit.inquiry}, timeout=FIRST_PATIENCE)
            unit.is_news = is_news  # nothing was said yet

    def _think(self, unit: Unit) -> None:
        """Ask other files, where that may bring something new."""
        wanted = unit.questions, self._changes - unit.changes
        if path_of(unit.uri) is None:
            return
        if unit.questions and unit.asked != wanted and (unit.inquiry is None or unit.inquiry.done()):
            unit.inquiry = asyncio.create_task(self._inquired(unit))

    async def _inquired(self, unit: Unit) -> None:
        changes = -1
        while changes != self._changes:  # not while somebody types, here or elsewhere
            changes = self._changes
            await asyncio.sleep(THINKING_PAUSE if unit.asked[0] else 0)
        view = self.view(unit)
        if view is None:
            return
        unit.asked = unit.questions, self._changes - unit.changes
        order = Inquire(self.place(unit.uri), _data(view), unit.questions, dict(self._open_files()))
        try:
            facts = await self._thinking.inquire(order)
        except AnalysisError as error:
            self._complain(f"{view.source.path}: {error}")
            return
        if facts != unit.facts:
            unit.facts = facts
            self.reconsider([unit.uri])
        asyncio.get_running_loop().call_soon(self._think, unit)

    def _ask_again(self, changed: Unit | None) -> None:
        """Let all that depend on other files ask them again."""
        for unit in self._units.values():
            if unit is not changed:
                self._think(unit)

    def _open_files(self) -> Iterator[tuple[str, bytes]]:
        for uri in self.documents.units():
            path, unit = path_of(uri), self._unit(uri)
            view = self.view(unit) if path is not None and unit is not None else None
            if path is not None and view is not None:
                yield path, _data(view)

    def _complain(self, message: str) -> None:
        if not self._is_closed:
            self._client.log(message)

    def _rest(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.create_task(self._rested())

    async def _rested(self) -> None:
        await asyncio.sleep(RESTING_PAUSE)
        await self._typing.rest()


def _data(view: View) -> bytes:
    """What a file would hold that is as the documents are."""
    notebook = view.source.notebook
    return (view.source.text if notebook is None else notebook.written.text).encode(errors="replace")


def _cancel(unit: Unit) -> None:
    for task in (unit.check, unit.inquiry):
        if task is not None:
            task.cancel()


def _is_analysed(uri: str) -> bool:
    """Whether a document is the user's own: a file or one that will be, not an older version or somebody else's."""
    return urlsplit(uri).scheme in ("file", "untitled", "")


def _is_project(folder: str) -> bool:
    """Whether all that is below a folder may belong together, which is not so for a home or a disk."""
    return folder not in (os.path.expanduser("~"), os.path.dirname(folder))  # noqa: PTH111, PTH120 - strings, as above
