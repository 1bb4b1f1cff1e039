"""Reviewdog's diagnostic format, in one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlint.finding import Applicability, Span, edited
from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.dumped import dumped
from torchlint.report.entry import Entry, entries
from torchlint.report.sarif import HOME
from torchlint.report.text import visible
from torchlint.source import SourceFile

# A suggestion is one piece of text; edits further apart than a reviewer would read in one go are none.
_MOST_ROWS = 10

Json = dict[str, Any]


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """All findings, with what `--fix` would write as suggestions where that is one short piece of text."""
    return dumped(
        {
            "source": {"name": "torchlint", "url": HOME},
            "severity": "WARNING",
            "diagnostics": [_diagnostic(entry) for entry in entries(reports, options)],
        }
    )


def _diagnostic(entry: Entry) -> Json:
    location: Json = {"path": entry.source.path}
    if entry.span is not None:
        stored = entry.source.stored(entry.span)
        location["range"] = _range(stored.source, stored.span)
    diagnostic = {
        "message": visible(f"{entry.sentence}; help: {entry.help}" if entry.help else entry.sentence),
        "location": location,
        "severity": "ERROR" if entry.fault is not None else "INFO" if entry.is_note else "WARNING",
        "code": {"value": visible(entry.code)} | ({"url": entry.url} if entry.url else {}),
    }
    suggestions = list(_suggestions(entry))
    return diagnostic | ({"suggestions": suggestions} if suggestions else {})


def _suggestions(entry: Entry) -> list[Json]:
    """The edits of the fix as one: reviewdog offers each suggestion alone, and they belong together."""
    if entry.fix is None or entry.fix.applicability is Applicability.DISPLAY or not entry.fix.edits:
        return []
    source, edits = entry.source.stored_edits(entry.fix.edits)
    whole = Span(edits[0].span.start, max(edit.span.end for edit in edits))
    if source.position(whole.end)[0] - source.position(whole.start)[0] > _MOST_ROWS:
        return []
    before, after = source.text[: whole.start], source.text[whole.end :]
    changed = edited(source.text, edits)
    return [{"range": _range(source, whole), "text": changed[len(before) : len(changed) - len(after)]}]


def _range(source: SourceFile, span: Span) -> Json:
    return {"start": _position(source, span.start), "end": _position(source, span.end)}


def _position(source: SourceFile, offset: int) -> Json:
    """Columns count the bytes of UTF-8."""
    row, column = source.position(offset)
    return {"line": row, "column": len(source.line(row)[: column - 1].encode("utf-8", "surrogatepass")) + 1}
