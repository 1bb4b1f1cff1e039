"""Pylint's lines, `path:line: [CODE] message`, which Jenkins, reviewdog and editors parse."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.entry import Entry, entries
from torchlint.report.text import opening, visible


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """A line per finding and nothing else."""
    return "".join(_line(entry) for entry in entries(reports, options))


def _line(entry: Entry) -> str:
    (row, _), _ = entry.stored
    kind = "note: " if entry.is_note else ""
    return f"{opening(entry.source.path)}:{row}: [{visible(entry.code)}] {kind}{visible(entry.sentence)}\n"
