"""Logging commands that Azure Pipelines shows as issues of a build."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.entry import Entry, entries
from torchlint.report.text import opening, visible


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """A warning or an error for each; a note is a plain line, since Azure has no third kind."""
    return "".join(f"{_command(entry)}\n" for entry in entries(reports, options))


def _command(entry: Entry) -> str:
    said = visible(f"{entry.code} {entry.sentence}")
    if entry.is_note:
        return f"{opening(entry.source.path)}:{entry.start}: note: {said}"
    (row, column), _ = entry.stored
    properties = (
        f"type={'warning' if entry.fault is None else 'error'};sourcepath={_property(visible(entry.source.path))};"
        f"linenumber={row};columnnumber={column};code={_property(visible(entry.code))};"
    )
    return f"##vso[task.logissue {properties}]{_data(f'{said}; help: {visible(entry.help)}' if entry.help else said)}"


def _data(text: str) -> str:
    return text.replace("%", "%AZP25")


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
