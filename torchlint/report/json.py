"""A list of findings under ruff's keys, and how often each line runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from torchlint.finding import Frequency
from torchlint.report.entry import Entry, entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.finding import Fix
    from torchlint.report import FileReport, ReportOptions
    from torchlint.source import SourceFile


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """A JSON array, in ASCII so that any consumer's encoding will do."""
    return json.dumps([_finding(entry) for entry in entries(reports, options)], indent=2) + "\n"


def _finding(entry: Entry) -> dict[str, Any]:
    return {
        "code": entry.code,
        "name": entry.name,
        "message": entry.message,
        "filename": entry.source.path,
        "location": _location(entry.start),
        "end_location": _location(entry.end),
        "frequency": None if entry.frequency is Frequency.UNKNOWN else str(entry.frequency),
        "called_from": entry.origin or None,
        "fix": _fix(entry.source, entry.fix) if entry.fix else None,
        "url": entry.url,
    }


def _fix(source: SourceFile, fix: Fix) -> dict[str, Any]:
    return {
        "applicability": str(fix.applicability),
        "message": fix.title,
        "edits": [
            {
                "content": edit.text,
                "location": _location(source.position(edit.span.start)),
                "end_location": _location(source.position(edit.span.end)),
            }
            for edit in sorted(fix.edits)
        ],
    }


def _location(position: tuple[int, int]) -> dict[str, int]:
    row, column = position
    return {"row": row, "column": column}
