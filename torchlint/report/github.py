"""Workflow commands that GitHub Actions shows as annotations."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Frequency
from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.entry import Entry, entries
from torchlint.report.text import visible


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """One command per finding: `::warning` or `::notice`; `::error` for what went wrong."""
    return "".join(f"{_command(entry)}\n" for entry in entries(reports, options))


def _command(entry: Entry) -> str:
    (row, column), (end_row, end_column) = entry.stored
    path = visible(entry.source.path)
    place = f"line={row},endLine={end_row}"
    if row == end_row:  # GitHub refuses columns on an annotation of several lines
        place = f"line={row},col={column},endLine={end_row},endColumn={end_column}"
    lines = [f"{path}:{entry.start}: {entry.code} {entry.message}"]
    if entry.frequency is not Frequency.UNKNOWN:
        lines.append(f"  runs {entry.frequency}{f', called from {entry.origin}' if entry.origin else ''}")
    if entry.doubts:
        lines.append(f"  but {entry.doubtful}")
    if entry.help:
        lines.append(f"  help: {entry.help}")
    text = "%0A".join(_data(line) for line in "\n".join(lines).splitlines())
    command = "error" if entry.fault is not None else "notice" if entry.is_note else "warning"
    return f"::{command} title=torchlint ({_property(entry.code)}),file={_property(path)},{place}::{text}"


def _data(line: str) -> str:
    return visible(line).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
