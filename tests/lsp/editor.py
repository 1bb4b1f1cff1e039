"""An editor for tests: a client of `torchlint server` that knows what its documents hold and what it was told of them."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from cattrs import Converter

COMMAND = (sys.executable, "-m", "torchlint", "server", "--stdio")
PATIENCE = 30.0
# What says that nothing more will come: longer than any pause of the server's.
SILENCE = 1.0
_RETRY = -32802  # the server gave up on a request, and the client asks again


class Profile(NamedTuple):
    """A kind of client: what it can do, and the unit of the positions that it is to be told in."""

    name: str
    make: Callable[[], lsp.ClientCapabilities]
    encoding: str

    def __str__(self) -> str:
        return self.name


def _neovim() -> lsp.ClientCapabilities:
    """Neovim 0.11 as it introduces itself, but told when to pull again: it prefers UTF-8, and registers nothing later."""
    found = client_capabilities("neovim@v0.11")
    assert found.workspace is not None
    found.workspace.diagnostics = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    return found


def _pushed() -> lsp.ClientCapabilities:
    """A client of the kind that has no pull diagnostics, and UTF-16 alone."""
    found = client_capabilities("visual-studio-code")
    assert found.text_document is not None
    assert found.text_document.diagnostic is None
    assert found.text_document.publish_diagnostics is not None
    found.text_document.publish_diagnostics.version_support = True
    return found


def _vs_code() -> lsp.ClientCapabilities:
    """Visual Studio Code of today: it pulls, also for the cells of notebooks, and is told when to pull again."""
    found = _pushed()
    assert found.text_document is not None
    assert found.workspace is not None
    found.general = lsp.GeneralClientCapabilities(position_encodings=[lsp.PositionEncodingKind.Utf16])
    found.text_document.diagnostic = lsp.DiagnosticClientCapabilities(
        dynamic_registration=True, related_document_support=False
    )
    found.workspace.diagnostics = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    found.notebook_document = lsp.NotebookDocumentClientCapabilities(
        lsp.NotebookDocumentSyncClientCapabilities(dynamic_registration=True, execution_summary_support=True)
    )
    return found


def _pushed_notebooks() -> lsp.ClientCapabilities:
    found = _pushed()
    found.notebook_document = lsp.NotebookDocumentClientCapabilities(
        lsp.NotebookDocumentSyncClientCapabilities(dynamic_registration=False)
    )
    return found


PULL = Profile("pull", _neovim, "utf-8")
PUSH = Profile("push", _pushed, "utf-16")
VS_CODE = Profile("vs-code", _vs_code, "utf-16")
PUSH_NOTEBOOK = Profile("push-notebook", _pushed_notebooks, "utf-16")
PROFILES = (PULL, PUSH, VS_CODE)


@dataclass(slots=True)
class Open:
    """A document that is open."""

    version: int
    text: str


@dataclass
class Editor:
    """What a user sees and does. Documents are known by URI; edits go to the server as they are made."""

    client: LanguageClient
    profile: Profile
    folder: Path
    documents: dict[str, Open] = field(default_factory=dict)
    published: list[lsp.PublishDiagnosticsParams] = field(default_factory=list)
    registered: list[lsp.Registration] = field(default_factory=list)
    answer: lsp.InitializeResult = field(default_factory=lambda: lsp.InitializeResult(lsp.ServerCapabilities()))
    may_log_errors: bool = False

    @property
    def server(self) -> asyncio.subprocess.Process:
        """The process."""
        process = self.client._server  # noqa: SLF001 - the library shows it nowhere else
        assert process is not None
        return process

    @property
    def pulls(self) -> bool:
        """Whether diagnostics are asked for, and again when there are others, and not awaited."""
        capabilities = self.client.capabilities
        asks = capabilities and capabilities.text_document and capabilities.text_document.diagnostic
        return bool(asks) and self._is_told()

    def uri(self, name: str) -> str:
        """The URI of a file below the folder."""
        return (self.folder / name).as_uri()

    # What a user does

    def open(self, name: str, text: str, language: str = "python") -> str:
        """Open a text, under a name in the folder or under a URI."""
        uri = name if ":" in name else self.uri(name)
        self.documents[uri] = Open(1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, language, 1, text)))
        return uri

    def open_quietly(self, uri: str, text: str) -> None:
        """Note a text of which the server is told in another way."""
        self.documents[uri] = Open(1, text)

    def edit(self, uri: str, old: str, new: str) -> None:
        """Put `new` in the place of the one `old` that there is."""
        change = self.edited(uri, old, new)
        self._tell(uri, change)

    def edited(self, uri: str, old: str, new: str) -> lsp.TextDocumentContentChangePartial:
        """Make an edit, of which the server is told in another way: the change that it is."""
        document = self.documents[uri]
        assert document.text.count(old) == 1, f"{old!r} is there {document.text.count(old)} times"
        start = document.text.index(old)
        range_ = lsp.Range(self.position(uri, start), self.position(uri, start + len(old)))
        document.text = document.text.replace(old, new)
        document.version += 1
        return lsp.TextDocumentContentChangePartial(range_, new)

    def replace(self, uri: str, text: str) -> None:
        """Put another text in the place of the whole."""
        self.documents[uri].text = text
        self.documents[uri].version += 1
        self._tell(uri, lsp.TextDocumentContentChangeWholeDocument(text))

    def _tell(self, uri: str, change: lsp.TextDocumentContentChangeEvent) -> None:
        identifier = lsp.VersionedTextDocumentIdentifier(self.documents[uri].version, uri)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [change]))

    def save(self, uri: str) -> None:
        """Write a document to its file, and say so."""
        (self.folder / uri.rpartition("/")[2]).write_text(self.documents[uri].text, encoding="utf-8")
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        del self.documents[uri]
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))

    def files_changed(self, *names: str) -> None:
        """Tell the server that somebody else has written files."""
        changes = [lsp.FileEvent(self.uri(name), lsp.FileChangeType.Changed) for name in names]
        self.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes))

    # What a user sees

    async def findings(self, uri: str) -> Sequence[lsp.Diagnostic]:
        """What is found in the version that is open."""
        if self.pulls:
            return await self._pull(uri)
        version = self.documents[uri].version
        last: lsp.PublishDiagnosticsParams = await self.until(lambda: self._published(uri, version))
        return last.diagnostics

    async def rows(self, uri: str) -> list[tuple[int, str]]:
        """The 1-based row and the code of each finding in the version that is open."""
        return rows(await self.findings(uri))

    async def eventually(self, uri: str, expected: list[tuple[int, str]]) -> Sequence[lsp.Diagnostic]:
        """What is found once it is `expected`, of which a client that can be told has to be told."""
        found: Sequence[lsp.Diagnostic] = []
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < deadline:
            told = self.client.diagnostic_refresh_count
            found = await self.findings(uri)
            if rows(found) == expected:
                return found
            if self.pulls:
                await self.until(lambda told=told: self.client.diagnostic_refresh_count > told)  # type: ignore[misc]
            else:
                await asyncio.sleep(0.05)
        raise AssertionError(f"{rows(found)} is found to the end, and not {expected}")

    def _is_told(self) -> bool:
        workspace = self.client.capabilities.workspace if self.client.capabilities else None
        return bool(workspace and workspace.diagnostics and workspace.diagnostics.refresh_support)

    async def _pull(self, uri: str) -> Sequence[lsp.Diagnostic]:
        params = lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri))
        while True:
            try:
                report = await self.within(self.client.text_document_diagnostic_async(params))
            except JsonRpcException as error:
                if error.code == _RETRY:
                    continue
                raise
            assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
            return report.items

    def _published(self, uri: str, version: int) -> lsp.PublishDiagnosticsParams | None:
        """The last that was published of a document, if it is of that version."""
        own = [each for each in self.published if each.uri == uri]
        return own[-1] if own and own[-1].version == version else None

    async def actions(
        self, uri: str, row: int, only: Sequence[str] | None = None, diagnostics: Iterable[lsp.Diagnostic] | None = None
    ) -> list[lsp.CodeAction]:
        """What is offered on a row, with the diagnostics that an editor has there."""
        if diagnostics is None:
            diagnostics = [each for each in await self.findings(uri) if each.range.start.line == row - 1]
        line = self.documents[uri].text.split("\n")[row - 1]
        range_ = lsp.Range(lsp.Position(row - 1, 0), lsp.Position(row - 1, len(encoded(line, self.profile.encoding))))
        context = lsp.CodeActionContext(list(diagnostics), only)
        params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), range_, context)
        found: Sequence[lsp.CodeAction] = await self.within(self.client.text_document_code_action_async(params)) or []
        return list(found)

    async def hover(self, uri: str, text: str) -> lsp.Hover | None:
        """What is shown at the beginning of the one `text` that there is."""
        assert self.documents[uri].text.count(text) == 1
        position = self.position(uri, self.documents[uri].text.index(text))
        params = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), position)
        found: lsp.Hover | None = await self.within(self.client.text_document_hover_async(params))
        return found

    async def ask(self, method: str, params: object, name: str | None = None) -> Any:  # noqa: ANN401 - of the method
        """What the server answers; a question with a name can be cancelled by it."""
        asked = self.client.protocol.send_request_async(method, params, msg_id=name)  # type: ignore[no-untyped-call]
        return await self.within(asked)

    async def execute(self, command: str, *arguments: Any) -> Any:  # noqa: ANN401 - JSON
        params = lsp.ExecuteCommandParams(command, list(arguments))
        return await self.within(self.client.workspace_execute_command_async(params))

    async def debug(self) -> str:
        said = await self.execute("torchlint.debugInformation")
        assert isinstance(said, str)
        return said

    async def analyses(self) -> int:
        """How many analyses the server has made."""
        match = re.search(r"analyses: (\d+)", await self.debug())
        assert match is not None
        return int(match[1])

    async def workers(self) -> list[int]:
        """The processes that analyse."""
        match = re.search(r"analysing: ([\d, -]+)", await self.debug())
        assert match is not None
        return [int(pid) for pid in re.findall(r"\d+", match[1])]

    def take(self, edit: lsp.WorkspaceEdit | None) -> None:
        """Make the edits of an action in the documents that are open."""
        for uri, text in self.after(edit).items():
            self.replace(uri, text)

    def after(self, edit: lsp.WorkspaceEdit | None) -> dict[str, str]:
        """What documents become with the edits of an action."""
        assert edit is not None
        texts: dict[str, str] = {}
        for uri, version, edits in _by_document(edit):
            assert version in (None, self.documents[uri].version), "edits of a version that is not open"
            text = self.documents[uri].text
            for each in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character))[::-1]:
                start, end = (self.offset(uri, place) for place in (each.range.start, each.range.end))
                text = text[:start] + each.new_text + text[end:]
            texts[uri] = text
        return texts

    # Places

    def position(self, uri: str, offset: int) -> lsp.Position:
        before = self.documents[uri].text[:offset]
        line = before[before.rfind("\n") + 1 :]
        return lsp.Position(before.count("\n"), len(encoded(line, self.profile.encoding)))

    def offset(self, uri: str, position: lsp.Position) -> int:
        lines = self.documents[uri].text.split("\n")
        line = decoded(
            encoded(lines[position.line], self.profile.encoding)[: position.character], self.profile.encoding
        )
        return sum(len(each) + 1 for each in lines[: position.line]) + len(line)

    def text_at(self, uri: str, range_: lsp.Range) -> str:
        """The text that a range covers."""
        return self.documents[uri].text[self.offset(uri, range_.start) : self.offset(uri, range_.end)]

    # Waiting

    @staticmethod
    async def within(awaited: Any) -> Any:  # noqa: ANN401 - what is awaited
        return await asyncio.wait_for(awaited, PATIENCE)

    async def until(self, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - what is asked for
        """What `ask` answers, once that is something."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not (found := ask()):
            assert asyncio.get_running_loop().time() < deadline, "it never came"
            await asyncio.sleep(0.01)
        return found

    async def silence(self) -> None:
        """Wait until nothing more can come."""
        await asyncio.sleep(SILENCE)

    # What has to hold of every session

    def check(self) -> None:
        provider = self.answer.capabilities.diagnostic_provider
        assert (provider is not None) is self.pulls, "diagnostics are offered to be pulled by those who pull"
        if self.pulls:
            assert not self.published, "diagnostics are never both pulled and pushed"
        versions: dict[str, int] = {}
        for each in self.published:
            if each.version is not None:
                assert each.version >= versions.get(each.uri, 0), "what was found in an older version is not told"
                versions[each.uri] = each.version
        errors = [each.message for each in self.client.log_messages if each.type is lsp.MessageType.Error]
        assert self.may_log_errors or not errors, errors


@asynccontextmanager
async def editor(
    folder: Path,
    profile: Profile,
    *,
    folders: Sequence[Path] | None = None,
    settings: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    change: Callable[[lsp.ClientCapabilities], object] = lambda _: None,
    may_log_errors: bool = False,
) -> AsyncIterator[Editor]:
    """An editor on a folder, with a server of its own.

    `settings` are what the client answers where the server asks, `options` what it says at first; `change` may take
    from what the client can do, or add to it.
    """
    client = LanguageClient(converter_factory=_converter)
    this = Editor(client, profile, folder, may_log_errors=may_log_errors)

    def publish(params: lsp.PublishDiagnosticsParams) -> None:
        this.published.append(params)

    def register(params: lsp.RegistrationParams) -> None:
        this.registered.extend(params.registrations)

    def apply(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
        this.take(params.edit)
        return lsp.ApplyWorkspaceEditResult(applied=True)

    own = {
        lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: publish,
        lsp.CLIENT_REGISTER_CAPABILITY: register,
        lsp.WORKSPACE_APPLY_EDIT: apply,
    }
    register_lsp_features(client, {**DEFAULT_CLIENT_FEATURES, **own})
    client.set_configuration({"torchlint": dict(settings)} if settings is not None else {})
    await client.start_io(*COMMAND, cwd=folder, env=dict(os.environ))
    capabilities = profile.make()
    change(capabilities)
    roots = [folder] if folders is None else folders
    try:
        this.answer = await this.within(
            client.initialize_session(
                lsp.InitializeParams(
                    capabilities,
                    root_uri=roots[0].as_uri() if roots else None,
                    workspace_folders=[lsp.WorkspaceFolder(each.as_uri(), each.name) for each in roots],
                    initialization_options=options,
                )
            )
        )
        yield this
        await this.within(client.shutdown_session())
        this.check()
    finally:
        if this.server.returncode is None:  # something went wrong, and nobody has told it to end
            this.server.kill()
        await client.stop()  # type: ignore[no-untyped-call]  # the library's


def rows(found: Iterable[lsp.Diagnostic]) -> list[tuple[int, str]]:
    """The 1-based row and the code of each."""
    return [(each.range.start.line + 1, str(each.code)) for each in found]


def encoded(line: str, encoding: str) -> Sequence[object]:
    """The code units of a line."""
    if encoding == "utf-8":
        return line.encode()
    data = line.encode("utf-16-le")
    return [data[at : at + 2] for at in range(0, len(data), 2)]


def decoded(units: Sequence[object], encoding: str) -> str:
    """The line that these code units are."""
    if encoding == "utf-8":
        assert isinstance(units, bytes)
        return units.decode()
    return b"".join(each for each in units if isinstance(each, bytes)).decode("utf-16-le")


def _converter() -> Converter:
    """The library's, which takes an action with a command for a command: the server gives actions only."""
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]  # the library's
    converter.register_structure_hook(
        lsp.Command | lsp.CodeAction, lambda each, _: converter.structure(each, lsp.CodeAction)
    )
    return converter


def _by_document(edit: lsp.WorkspaceEdit) -> list[tuple[str, int | None, list[lsp.TextEdit]]]:
    found: list[tuple[str, int | None, list[lsp.TextEdit]]] = []
    for uri, edits in (edit.changes or {}).items():
        found.append((uri, None, list(edits)))
    for each in edit.document_changes or []:
        assert isinstance(each, lsp.TextDocumentEdit)
        plain = [one for one in each.edits if isinstance(one, lsp.TextEdit)]
        assert len(plain) == len(each.edits)
        found.append((each.text_document.uri, each.text_document.version, plain))
    return found
