"""`torchlint server`: what the protocol calls what, and what is asked of the client."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import RPCMessage, RPCRequest

from torchlint import __version__
from torchlint.config import FILE_NAMES
from torchlint.finding import Finding, Span
from torchlint.lsp import actions, verification
from torchlint.lsp.diagnostics import diagnostics
from torchlint.lsp.documents import PYTHON, path_of
from torchlint.lsp.heads import Checked, HeadError
from torchlint.lsp.hover import hover
from torchlint.lsp.session import Session
from torchlint.lsp.settings import KEYS, SECTION, ClientSettings
from torchlint.lsp.unit import Unit, View
from torchlint.registry import UnknownRuleError, find
from torchlint.report.text import visible

if TYPE_CHECKING:
    from pygls.server import ServerErrors  # a name for type checkers alone

_NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[
        lsp.NotebookDocumentFilterWithNotebook(
            notebook="jupyter-notebook", cells=[lsp.NotebookCellLanguage(language=PYTHON)]
        )
    ],
    save=True,
)
_PULLED = lsp.DiagnosticOptions(
    identifier=SECTION, inter_file_dependencies=True, workspace_diagnostics=False, work_done_progress=False
)
# What the library would do beside: keep documents of its own, whose lines end where Python's strings say.
_OURS = (
    lsp.TEXT_DOCUMENT_DID_OPEN,
    lsp.TEXT_DOCUMENT_DID_CHANGE,
    lsp.TEXT_DOCUMENT_DID_CLOSE,
    lsp.NOTEBOOK_DOCUMENT_DID_OPEN,
    lsp.NOTEBOOK_DOCUMENT_DID_CHANGE,
    lsp.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
_WATCHED = (*(f"**/{name}" for name in FILE_NAMES), "**/*.{py,pyi}")


class _Protocol(LanguageServerProtocol):
    """The protocol, where a request with wrong parameters is answered."""

    def structure_message(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - the library's
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def handle_message(self, message: RPCMessage) -> None:
        """Answer also what is asked behind the end, which the library leaves without an answer."""
        if self._shutdown and isinstance(message, RPCRequest):
            self._send_response(message.id, error=JsonRpcInvalidRequest().to_response_error())
        else:
            super().handle_message(message)


class Server(LanguageServer):
    """A language server for one client."""

    def __init__(self) -> None:
        super().__init__(
            "torchlint",
            __version__,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=_NOTEBOOKS,
            protocol_cls=_Protocol,
        )
        for name in _OURS:
            del self.protocol.fm.builtin_features[name]
        self.session = Session(self)
        self.abilities = actions.Abilities()
        self.given: dict[str, Any] = {}
        self.has_shown: set[str] = set()
        self.is_leaving = False

    def report_server_error(self, error: Exception, source: ServerErrors) -> None:
        """Log it: it is the client's mistake or ours, and nothing that its user can put right."""
        self.log(f"{getattr(source, '__name__', source)}: {error}")

    # What the client can do

    @property
    def pulls(self) -> bool:
        """Whether the client asks for diagnostics, and asks again when it is told to; else it is sent them."""
        documents, workspace = self.client_capabilities.text_document, self.client_capabilities.workspace
        asks = documents.diagnostic if documents is not None else None
        told = workspace.diagnostics if workspace is not None else None
        return asks is not None and told is not None and bool(told.refresh_support)

    @property
    def relates(self) -> bool:
        """Whether the client shows what a diagnostic is related to."""
        documents = self.client_capabilities.text_document
        pushed = documents.publish_diagnostics if documents is not None else None
        pulled = documents.diagnostic if documents is not None else None
        return bool(
            (pushed is not None and pushed.related_information) or (pulled is not None and pulled.related_information)
        )

    # What a session says

    def news(self, unit: Unit, *, asked: bool) -> None:
        """Send what is found to a client that does not ask for it, and let the others know that they should."""
        if self.pulls:
            if not asked:
                self.workspace_diagnostic_refresh(None, lambda _: None)
            return
        view = self.session.view(unit)
        if view is None:
            return
        found = self.diagnostics(unit, view)
        for uri in unit.published - found.keys():
            self._publish(uri, None, [])
        unit.published = set(found)
        for part in view.parts:
            self._publish(part.document.uri, part.document.version, found[part.document.uri])

    def warn(self, message: str) -> None:
        """Show a message."""
        self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"torchlint: {message}"))

    def log(self, message: str) -> None:
        """Write to the client's log."""
        self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, message))

    def diagnostics(self, unit: Unit, view: View) -> dict[str, list[lsp.Diagnostic]]:
        """What there is to say of each part of a unit, by URI."""
        root = self.session.place(unit.uri).root
        return diagnostics(unit.current(view), view, root, relates=self.relates)

    def forget(self, unit: Unit | None) -> None:
        """Take back what was said of a unit that is closed."""
        for uri in unit.published if unit is not None else ():
            self._publish(uri, None, [])

    def _publish(self, uri: str, version: int | None, found: Sequence[lsp.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))

    # What is set

    def take(self, settings: object) -> None:
        """Settings for all folders, as a client sends them."""
        if isinstance(settings, dict):
            # As a section, as what is in it, or with the section in the name of each key.
            section = settings.get(SECTION, settings)
            values = section.items() if isinstance(section, dict) else ()
            given = {key.removeprefix(f"{SECTION}."): value for key, value in values}
            # Some clients send what is set for other servers, or nothing, before they send anything else.
            if SECTION not in settings and given.keys().isdisjoint(KEYS):
                return
            self.given = given
            self.session.default_settings = self._understood(given)
            self.session.settings.clear()

    async def ask_for_settings(self) -> None:
        """Ask the client what is set for each folder."""
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return
        folders = list(self.session.folders)
        scopes = [None, *(_uri(folder) for folder in folders)]
        items = [lsp.ConfigurationItem(scope, SECTION) for scope in scopes]
        try:
            answers = await self.workspace_configuration_async(lsp.ConfigurationParams(items))
        except JsonRpcException as error:
            self.log(f"the client does not say what is set: {error}")
            return
        values = list(map(_plain, answers))
        self.session.default_settings = self._understood((values and values[0]) or self.given)
        asked = zip(folders, values[1:], strict=False)
        self.session.settings = {folder: self._understood(each) for folder, each in asked if each}

    def _understood(self, values: object) -> ClientSettings:
        settings, problems = ClientSettings.of(values)
        for problem in problems:
            if problem not in self.has_shown:
                self.has_shown.add(problem)
                self.warn(problem)
        return settings


server = Server()


@server.feature(lsp.INITIALIZE)
def initialize(params: lsp.InitializeParams) -> None:
    """Note what the client can do and where it is; offer diagnostics to be pulled to a client that pulls."""
    session = server.session
    session.documents.encoding = server.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
    session.folders = [path for folder in params.workspace_folders or [] if (path := path_of(folder.uri))]
    root = path_of(params.root_uri) if params.root_uri else params.root_path
    if not session.folders and root:
        session.folders = [root]
    options = _plain(params.initialization_options)
    options = options if isinstance(options, dict) else {}
    workspace = params.capabilities.workspace
    edit = workspace.workspace_edit if workspace is not None else None
    server.abilities = actions.Abilities(
        changes_documents=bool(edit is not None and edit.document_changes),
        verifies=actions.VERIFY_FIX in (options.get("commands") or ()),
    )
    server.take(options.get("settings"))
    if server.pulls:
        server.feature(lsp.TEXT_DOCUMENT_DIAGNOSTIC, _PULLED)(pull)


@server.feature(lsp.INITIALIZED)
async def initialized(params: lsp.InitializedParams) -> None:
    """Ask to be told of changed files, get ready, and ask what is set."""
    del params
    warming = asyncio.create_task(server.session.warm())
    workspace = server.client_capabilities.workspace
    watches = workspace.did_change_watched_files if workspace is not None else None
    registrations = []
    if watches is not None and watches.dynamic_registration:
        watched = [lsp.FileSystemWatcher(pattern) for pattern in _WATCHED]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watched)
        registrations.append(lsp.Registration("torchlint-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    sets = workspace.did_change_configuration if workspace is not None else None
    if sets is not None and sets.dynamic_registration:
        section = lsp.DidChangeConfigurationRegistrationOptions(SECTION)
        registrations.append(lsp.Registration("torchlint-set", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
    if registrations:
        server.client_register_capability(lsp.RegistrationParams(registrations), lambda _: None)
    await server.ask_for_settings()
    server.session.configured()
    await warming


@server.feature(lsp.SHUTDOWN)
def shutdown(params: None) -> None:
    """End what was started."""
    del params
    server.is_leaving = True
    server.session.close()


# Documents


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
    """A document was opened."""
    server.session.documents.open(params.text_document)
    server.session.edited(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
    """A document was changed."""
    document = params.text_document
    server.session.documents.change(document.uri, document.version, params.content_changes)
    server.session.edited(document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
    """A document was saved."""
    if path_of(params.text_document.uri) is not None and params.text_document.uri.endswith(FILE_NAMES):
        server.session.configured()
    server.session.saved(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
    """A document was closed."""
    server.session.documents.close(params.text_document.uri)
    server.forget(server.session.closed(params.text_document.uri))


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
def did_open_notebook(params: lsp.DidOpenNotebookDocumentParams) -> None:
    """A notebook was opened."""
    server.session.documents.open_notebook(params.notebook_document, params.cell_text_documents)
    server.session.edited(params.notebook_document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
def did_change_notebook(params: lsp.DidChangeNotebookDocumentParams) -> None:
    """A notebook was changed: its cells, or what is in them."""
    notebook = params.notebook_document
    server.session.documents.change_notebook(notebook.uri, notebook.version, params.change)
    server.session.edited(notebook.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
def did_save_notebook(params: lsp.DidSaveNotebookDocumentParams) -> None:
    """A notebook was saved."""
    server.session.saved(params.notebook_document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
def did_close_notebook(params: lsp.DidCloseNotebookDocumentParams) -> None:
    """A notebook was closed."""
    server.session.documents.close_notebook(params.notebook_document.uri, params.cell_text_documents)
    server.forget(server.session.closed(params.notebook_document.uri))


# The workspace


@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def did_change_files(params: lsp.DidChangeWatchedFilesParams) -> None:
    """Files were changed by somebody else, or saved."""
    if any(change.uri.endswith(FILE_NAMES) for change in params.changes):
        server.session.configured()
    elif any(server.session.documents.get(change.uri) is None for change in params.changes):
        server.session.files_changed()


@server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
async def did_change_settings(params: lsp.DidChangeConfigurationParams) -> None:
    """What is set was changed."""
    server.take(_plain(params.settings))
    await server.ask_for_settings()
    server.session.configured()


@server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
async def did_change_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
    """Folders were added to the workspace, or taken out."""
    gone = {path_of(folder.uri) for folder in params.event.removed}
    added = [path for folder in params.event.added if (path := path_of(folder.uri))]
    server.session.folders = [*(folder for folder in server.session.folders if folder not in gone), *added]
    await server.ask_for_settings()
    server.session.configured()


# What the client asks


async def pull(params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
    """What is found in a document as it is now."""
    known = await server.session.analysed(params.text_document.uri)
    if known is None:
        return lsp.RelatedFullDocumentDiagnosticReport(items=[])
    unit, view = known
    items = server.diagnostics(unit, view).get(params.text_document.uri, [])
    result = f"{unit.uri}:{unit.revision}"
    if params.previous_result_id == result:
        return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=result)
    return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=result)


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
async def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
    """What is known of the findings at a place, or why there is none on the line."""
    known = await server.session.analysed(params.text_document.uri)
    if known is None:
        return None
    unit, view = known
    uri, range_ = params.text_document.uri, lsp.Range(params.position, params.position)
    found = _at(unit, view, uri, range_)
    if not found:
        span = _span(view, uri, range_)
        row = view.source.position(span.start)[0] if span is not None else 0
        text = await server.session.explained(unit, view, row) if row else ""
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None
    texts = [hover(finding, verification.words_for(finding, unit, view)) for finding in found]
    _, range_ = view.location(found[0].span)
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n---\n\n".join(texts)), range_)


@server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=list(actions.KINDS)))
async def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """What can be done at a place, and about the whole document."""
    uri, only = params.text_document.uri, params.context.only
    known = await server.session.analysed(uri)
    if known is None:
        return []
    unit, view = known
    edits = actions.Edits(view, server.abilities)
    offered: list[lsp.CodeAction] = []
    if actions.is_wanted(lsp.CodeActionKind.QuickFix, only):
        found = _at(unit, view, uri, params.range)
        offered += actions.quick_fixes(found, params.context.diagnostics, edits, _to_verify(unit))
    if actions.is_wanted(actions.FIX_ALL, only) and actions.has_safe_fixes(unit.current(view)):
        if not only:
            offered.append(actions.fix_all_by_command(uri))
        elif (fixed := await server.session.repaired(unit, view)) is not None and fixed != view.source:
            offered.append(actions.fix_all(edits, fixed))
    return offered


@server.command(actions.APPLY_AUTOFIX)
async def apply_autofix(uri: str) -> None:
    """Apply all safe fixes of a document."""
    known = await server.session.analysed(uri)
    if known is None:
        return
    unit, view = known
    fixed = await server.session.repaired(unit, view)
    if fixed is not None and fixed != view.source:
        edit = actions.fix_all(actions.Edits(view, server.abilities), fixed).edit
        if edit is not None:
            await server.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(edit, actions.ALL_SAFE))


@server.command(actions.EXPLAIN)
async def explain(code: str) -> None:
    """Show the page of a rule, or say in a line what it is about."""
    try:
        rule = find(code)
    except UnknownRuleError as error:
        server.warn(str(error))
        return
    window = server.client_capabilities.window
    if window is not None and window.show_document is not None and window.show_document.support:
        await server.window_show_document_async(lsp.ShowDocumentParams(rule.url, external=True))
    else:
        message = f"{rule.code} {rule.name}: {rule.summary} {rule.url}"
        server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, message))


@server.command("torchlint.debugInformation")
def debug_information() -> str:
    """What a report of a defect should hold."""
    session = server.session
    encoding = getattr(session.documents.encoding, "value", session.documents.encoding)
    return "\n".join(
        (
            f"torchlint {__version__}, process {os.getpid()}, analysing: {', '.join(map(str, session.workers)) or '-'}",
            f"diagnostics are {'pulled' if server.pulls else 'pushed'}, positions in {encoding}",
            f"folders: {', '.join(session.folders) or '-'}",
            f"open: {len(session.documents.units())}, analyses: {session.lints}",
            f"settings: {json.dumps(server.given, sort_keys=True)}",
        )
    )


def _at(unit: Unit, view: View, uri: str, range_: lsp.Range) -> list[Finding]:
    """The findings that a range of a document touches."""
    span = _span(view, uri, range_)
    if span is None:
        return []
    found = unit.current(view)
    return [finding for finding in found if finding.span.start <= span.end and span.start <= finding.span.end]


def _span(view: View, uri: str, range_: lsp.Range) -> Span | None:
    """Where a range of a document is in the source; None for a document that is no part of it."""
    document = server.session.documents.get(uri)
    start = view.start(uri)
    if document is None or start is None:
        return None
    span = document.text.span(range_)
    return Span(span.start + start, span.end + start)


def _to_verify(unit: Unit) -> dict[str, Any]:
    """What a client needs to know to run `torchlint verify` on a file; empty for what is none."""
    place = server.session.place(unit.uri)
    if place.path is None or not place.path.endswith(".py"):
        return {}
    return {"uri": unit.uri, "cwd": place.root, "file": place.shown}


def _uri(folder: str) -> str:
    return Path(folder).as_uri()


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """JSON as dictionaries, where the library made objects of it."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def main() -> int:
    """Serve one client on the standard streams; 0 if it said that it would leave, 2 if it speaks no LSP."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    # The library would wait for a thread that reads. There is nothing to tidy: what was started ends with its pipe.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        server.start_io(cast("BinaryIO", Checked(sys.stdin.buffer)))
    except HeadError as error:
        sys.stderr.write(f"error: torchlint server: {visible(str(error))}; what writes to it speaks no LSP\n")
        return 2
    finally:
        server.session.close()
    return 0 if server.is_leaving else 1
