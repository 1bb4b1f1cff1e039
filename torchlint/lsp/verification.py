"""What `torchlint verify` found out last about a line that is open in an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.lsp.unit import Unit, View


def words_for(finding: Finding, unit: Unit, view: View) -> str:
    """The last result in words; empty where there is none."""
    del finding, unit, view
    return ""
