"""A list of findings under ruff's keys, and how often each line runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlint.finding import Fix, Frequency, Span
from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.dumped import dumped
from torchlint.report.entry import Entry, entries
from torchlint.source import Place, SourceFile


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """A JSON array; with a profile an object that holds it."""
    found: Any = [_finding(entry) for entry in entries(reports, options)]
    if (profile := options.profile) is not None:
        from torchlint.report import measured, where  # a trace was read

        for entry, written in zip(entries(reports, options), found, strict=True):
            written["measured"] = measured.to_json(entry.measured, profile) if entry.measured is not None else None
        found = where.to_json(profile) | {"findings": found}
    return dumped(found)


def _finding(entry: Entry) -> dict[str, Any]:
    return {
        "code": entry.code,
        "name": entry.name,
        "message": entry.message,
        "help": entry.help or None,
        "severity": "error" if entry.fault is not None else str(entry.severity),
        "doubts": [doubt.value for doubt in entry.doubts],
        "filename": entry.source.path,
        "cell": entry.start.cell,
        "location": _location(entry.start),
        "end_location": _location(entry.end),
        "file_location": _file_location(entry),
        "places": [_place(entry.source, span) for span in entry.places],
        "frequency": None if entry.frequency is Frequency.UNKNOWN else str(entry.frequency),
        "called_from": entry.origin or None,
        "fix": _fix(entry.source, entry.fix) if entry.fix else None,
        "url": entry.url,
    }


def _place(source: SourceFile, span: Span) -> dict[str, Any]:
    start = source.place(span.start)
    return {"cell": start.cell, "location": _location(start), "end_location": _location(source.place(span.end))}


def _fix(source: SourceFile, fix: Fix) -> dict[str, Any]:
    return {
        "applicability": str(fix.applicability),
        "message": fix.title,
        "edits": [
            {
                "content": edit.text,
                "cell": source.place(edit.span.start).cell,
                "location": _location(source.place(edit.span.start)),
                "end_location": _location(source.place(edit.span.end)),
            }
            for edit in sorted(fix.edits)
        ],
    }


def _location(place: Place) -> dict[str, int]:
    return {"row": place.row, "column": place.column}


def _file_location(entry: Entry) -> dict[str, int] | None:
    """Where it begins in the JSON of a notebook; of other files `location` says it."""
    if entry.span is None or entry.start.cell is None:
        return None
    stored = entry.source.stored(entry.span)
    return _location(stored.source.place(stored.span.start))
