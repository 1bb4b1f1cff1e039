"""Findings as the diagnostics of a document."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from torchlint.finding import Finding, Frequency
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

    `root` is the folder that paths in findings start from. A client that shows nothing that is related has it in the
    message.
    """
    found: dict[str, list[lsp.Diagnostic]] = {part.document.uri: [] for part in view.parts}
    for finding in findings:
        document, range_ = view.location(finding.span)
        often = frequency(finding)
        related = [_related(finding, often, lsp.Location(document.uri, range_), root)] if often and relates else None
        found[document.uri].append(
            lsp.Diagnostic(
                range=range_,
                message=f"{finding.message} ({often})" if often and not relates else finding.message,
                severity=_severity(finding),
                code=finding.code,
                code_description=lsp.CodeDescription(find(finding.rule).url),
                source=SOURCE,
                tags=[lsp.DiagnosticTag.Unnecessary] if finding.rule == UNUSED_IGNORE else None,
                related_information=related,
            )
        )
    return found


def frequency(finding: Finding) -> str:
    """How often the line runs, in words; empty where that is not known."""
    if finding.frequency is Frequency.UNKNOWN:
        return ""
    return f"runs {finding.frequency}{f', called from {finding.origin}' if finding.origin else ''}"


def _severity(finding: Finding) -> lsp.DiagnosticSeverity:
    return lsp.DiagnosticSeverity.Hint if finding.rule == UNUSED_IGNORE else lsp.DiagnosticSeverity.Warning


def _related(finding: Finding, often: str, here: lsp.Location, root: str) -> lsp.DiagnosticRelatedInformation:
    """How often the line runs: at the call that makes it so, where that is in another file."""
    match = _ORIGIN.fullmatch(finding.origin)
    if match is not None and not match["cell"]:  # a place in a notebook's cell has no address
        uri = from_fs_path(os.path.join(root, match["path"]))  # noqa: PTH118 - a string is wanted
        if uri is not None:
            place = lsp.Position(int(match["row"]) - 1, 0)
            here = lsp.Location(uri, lsp.Range(place, place))
    return lsp.DiagnosticRelatedInformation(here, often)
