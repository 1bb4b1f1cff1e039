"""Findings as the diagnostics of a document."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from torchlint.finding import Finding, Frequency, Severity
from torchlint.registry import find
from torchlint.suppress import UNUSED_IGNORE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchlint.lsp.unit import View

SOURCE = "torchlint"
_ORIGIN = re.compile(r"(?P<path>.+?):(?P<cell>cell \d+:)?(?P<row>\d+)")


def diagnostics(
    findings: Iterable[Finding], view: View, root: str, *, relates: bool
) -> dict[str, list[lsp.Diagnostic]]:
    """The diagnostics of each part of a view, by URI, empty ones too.

    `root` is the folder that paths in findings start from. A client that shows nothing that is related is told in the
    message of calls in other files.
    """
    found: dict[str, list[lsp.Diagnostic]] = {part.document.uri: [] for part in view.parts}
    for finding in findings:
        document, range_ = view.location(finding.span)
        often = frequency(finding)
        said = " — ".join(filter(None, (finding.message, finding.doubtful)))
        said += f" ({often})" if finding.origin and not relates else ""
        related = _related(finding, view, root) if relates else []
        found[document.uri].append(
            lsp.Diagnostic(
                range=range_,
                message=f"{said}\nhelp: {finding.help}" if finding.help else said,
                severity=_severity(finding),
                code=finding.code,
                code_description=lsp.CodeDescription(find(finding.rule).url),
                source=SOURCE,
                tags=[lsp.DiagnosticTag.Unnecessary] if finding.rule == UNUSED_IGNORE else None,
                related_information=related or None,
            )
        )
    return found


def frequency(finding: Finding) -> str:
    """How often the line runs, in words; empty where that is not known."""
    if finding.frequency is Frequency.UNKNOWN:
        return ""
    return f"runs {finding.frequency}{f', called from {finding.origin}' if finding.origin else ''}"


def _severity(finding: Finding) -> lsp.DiagnosticSeverity:
    is_faint = finding.rule == UNUSED_IGNORE or finding.severity is Severity.NOTE
    return lsp.DiagnosticSeverity.Hint if is_faint else lsp.DiagnosticSeverity.Warning


def _related(finding: Finding, view: View, root: str) -> list[lsp.DiagnosticRelatedInformation]:
    """How often the line runs, at what makes it so, a call in another file or what this one has; and further places."""
    match = _ORIGIN.fullmatch(finding.origin)
    if match is not None and not match["cell"]:  # a place in a notebook's cell has no address
        uri = from_fs_path(os.path.join(root, match["path"]))  # noqa: PTH118 - a string is wanted
        place = lsp.Position(int(match["row"]) - 1, 0)
        where = lsp.Location(uri, lsp.Range(place, place)) if uri is not None else None
    elif finding.cause is not None:
        document, range_ = view.location(finding.cause)
        where = lsp.Location(document.uri, range_)
    else:
        where = None
    found = [lsp.DiagnosticRelatedInformation(where, frequency(finding))] if where is not None else []
    for span in finding.places:
        document, range_ = view.location(span)
        found.append(lsp.DiagnosticRelatedInformation(lsp.Location(document.uri, range_), "and so it is here"))
    return found
