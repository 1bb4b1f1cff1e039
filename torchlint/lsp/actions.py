"""What can be done about findings at the press of a key: fix, ignore, explain, prove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types as lsp

from torchlint.finding import Applicability, Finding
from torchlint.fixer import edits_of
from torchlint.lsp.diagnostics import SOURCE
from torchlint.suppress import add_ignores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchlint.lsp.unit import View
    from torchlint.source import SourceFile

FIX_ALL = "source.fixAll.torchlint"
KINDS = (lsp.CodeActionKind.QuickFix, FIX_ALL)
ALL_SAFE = f"{SOURCE}: apply all safe fixes"
APPLY_AUTOFIX = "torchlint.applyAutofix"
EXPLAIN = "torchlint.explain"
# A command of the client, which is named when it has one.
VERIFY_FIX = "torchlint.verifyFix"


class Abilities(NamedTuple):
    """What a client can do with what it is offered."""

    changes_documents: bool = False
    verifies: bool = False


class Edits(NamedTuple):
    """Changes of a view as edits of a workspace."""

    view: View
    abilities: Abilities

    def to(self, new: SourceFile) -> lsp.WorkspaceEdit:
        """What makes the new source of the view's, in its documents as they are."""
        found = self.view.edits(new)
        if not self.abilities.changes_documents:
            return lsp.WorkspaceEdit(changes={document.uri: each for document, each in found})
        return lsp.WorkspaceEdit(
            document_changes=[
                lsp.TextDocumentEdit(
                    lsp.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version), list(each)
                )
                for document, each in found
            ]
        )


def is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether actions of a kind are asked for: by name, or by a kind that it is one of."""
    return not only or any(kind == each or kind.startswith(f"{each}.") for each in map(_text, only))


def quick_fixes(
    findings: Sequence[Finding], diagnostics: Sequence[lsp.Diagnostic], edits: Edits, verify: dict[str, Any]
) -> Iterator[lsp.CodeAction]:
    """What can be done about each finding, with the diagnostic that stands for it: its fix first.

    `verify` is what a client needs to know to prove a fix, but for the rule and the line.
    """
    source = edits.view.source
    pairs = [(finding, _own(finding, diagnostics, edits.view)) for finding in findings]
    for finding, diagnostic in pairs:
        fix = finding.fix
        if fix is not None and _is_fixable(finding):
            is_safe = fix.applicability is Applicability.SAFE
            yield lsp.CodeAction(
                title=_title(finding, fix.title, "" if is_safe else ", unsafe"),
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=diagnostic,
                is_preferred=is_safe or None,
                edit=edits.to(source.edited(edits_of(source, finding))),
            )
    for finding, diagnostic in pairs:
        if edits.abilities.verifies and _is_fixable(finding) and verify:
            row = edits.view.location(finding.span)[1].start.line
            arguments = ["verify", verify["file"], "--select", finding.code]
            if finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE:
                arguments.append("--unsafe-fixes")
            what = {"uri": verify["uri"], "cwd": verify["cwd"], "arguments": arguments, "line": row + 1}
            yield _commanded(_title(finding, "verify this fix on this machine"), VERIFY_FIX, what, diagnostic)
    for finding, diagnostic in pairs:
        yield lsp.CodeAction(
            title=_title(finding, "ignore on this line"),
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=diagnostic,
            edit=edits.to(add_ignores(source, (finding,), None)),
        )
    for code, name in dict.fromkeys((finding.code, finding.rule) for finding in findings):
        own = [diagnostic[0] for finding, diagnostic in pairs if finding.code == code and diagnostic]
        yield _commanded(f"{SOURCE} ({code}): explain {name}", EXPLAIN, code, own or None)


def fix_all(edits: Edits, fixed: SourceFile) -> lsp.CodeAction:
    """One action that makes a source what it is with all safe fixes."""
    return lsp.CodeAction(title=ALL_SAFE, kind=FIX_ALL, edit=edits.to(fixed))


def fix_all_by_command(uri: str) -> lsp.CodeAction:
    """As `fix_all`, worked out when it is chosen."""
    return lsp.CodeAction(title=ALL_SAFE, kind=FIX_ALL, command=lsp.Command(ALL_SAFE, APPLY_AUTOFIX, arguments=[uri]))


def has_safe_fixes(findings: Iterable[Finding]) -> bool:
    """Whether there is something to fix."""
    return any(finding.fix is not None and finding.fix.applicability is Applicability.SAFE for finding in findings)


def _is_fixable(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability > Applicability.DISPLAY


def _commanded(title: str, command: str, argument: object, diagnostics: list[lsp.Diagnostic] | None) -> lsp.CodeAction:
    return lsp.CodeAction(
        title=title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=diagnostics,
        command=lsp.Command(title, command, arguments=[argument]),
    )


def _title(finding: Finding, what: str, note: str = "") -> str:
    return f"{SOURCE} ({finding.code}{note}): {what}"


def _own(finding: Finding, diagnostics: Sequence[lsp.Diagnostic], view: View) -> list[lsp.Diagnostic] | None:
    """The client's diagnostic that stands for a finding."""
    _, range_ = view.location(finding.span)
    own = [
        each
        for each in diagnostics
        if each.source == SOURCE and each.code == finding.code and each.range.start.line == range_.start.line
    ]
    return own[:1] or None


def _text(kind: str) -> str:
    return getattr(kind, "value", kind)
