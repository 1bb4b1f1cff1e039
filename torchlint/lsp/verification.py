"""What `torchlint verify` found out last about a line that is open in an editor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchlint import verified
from torchlint.lsp.documents import path_of

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.lsp.unit import Unit, View


def words_for(finding: Finding, unit: Unit, view: View) -> str:
    """The last result in words; empty where there is none."""
    path = path_of(unit.uri)
    if path is None or not unit.cache_folder:
        return ""
    project = Path(unit.project)
    row, _ = view.source.position(finding.span.start)
    line, alike = verified.place(view.source, row)
    records = verified.read(Path(unit.cache_folder), project)
    found = verified.lookup(records, verified.relative(Path(path), project), finding.rule, line, alike)
    return verified.words(found) if found is not None else ""
