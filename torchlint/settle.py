"""What becomes of a file once it is linted: it is left as it is, fixed, or given ignores."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from torchlint.finding import Diagnostic, Result
from torchlint.report import FileReport
from torchlint.source import DecodeError, SourceFile

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.finding import Severity
    from torchlint.sweep import Swept


class Mode(Enum):
    """What a run does to files."""

    CHECK = "check"
    FIX = "fix"
    DIFF = "diff"
    IGNORE = "ignore"


class Settled(NamedTuple):
    """A file before and after; the same where nothing was to be done or could be."""

    before: FileReport
    after: FileReport

    @property
    def is_changed(self) -> bool:
        """Whether it holds another text."""
        return self.before.source.text != self.after.source.text

    def at_least(self, severity: Severity) -> Settled:
        """The same with those findings that are so severe."""
        after = self.after.result.at_least(severity)
        if after is self.after.result:
            return self
        return Settled(self.before, replace(self.after, result=after))

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """What has changed: a name, the text before and the text after; of a notebook for each cell."""
        path, old, new = self.before.source.path, self.before.source.notebook, self.after.source.notebook
        if old is None or new is None:
            return [(path, self.before.source.text, self.after.source.text)]
        return [
            (f"{path}:cell {cell.number}", before, after)
            for cell, before, after in zip(old.cells, old.texts, new.texts, strict=True)
            if before != after
        ]


def settle(swept: Swept, mode: Mode, reason: str, path: Path | None) -> Settled:
    """Change what `mode` says, and write it to `path` unless that is None. `reason` goes with every ignore."""
    shown = swept.file.shown
    try:
        source = SourceFile.from_bytes(shown, swept.data)
    except DecodeError:
        return unchanged(FileReport(SourceFile(shown, ""), swept.result))
    before = FileReport(source, swept.result)
    match mode:
        case Mode.CHECK:
            return unchanged(before)
        case Mode.IGNORE:
            after = _ignoring(before, reason)
        case _:
            after = _fixed(before, swept)
    problem = _write(before, after, swept.data, path)
    if problem is None:
        return Settled(before, after)
    diagnostics = (*before.result.diagnostics, Diagnostic("E902", "io-error", problem))
    return unchanged(replace(before, result=replace(before.result, diagnostics=diagnostics)))


def unchanged(report: FileReport) -> Settled:
    """A file to which nothing was done."""
    return Settled(report, report)


def _ignoring(before: FileReport, reason: str) -> FileReport:
    if not before.result.findings:
        return before
    from torchlint.suppress import add_ignores  # most runs add none

    source = add_ignores(before.source, before.result.findings, reason or None)
    if source.text == before.source.text:
        return before
    return FileReport(source, Result(diagnostics=before.result.diagnostics))


def _fixed(before: FileReport, swept: Swept) -> FileReport:
    if swept.fixed is None:
        return before
    return FileReport(swept.fixed.source, swept.fixed.result, swept.fixed.applied)


def _write(before: FileReport, after: FileReport, old: bytes, path: Path | None) -> str | None:
    """Write the new text; why that was not possible."""
    if before.source.text == after.source.text:
        return None
    encoding = after.source.encoding
    try:
        new = after.source.to_bytes()
        is_kept = encoding == "utf-8" or (before.source.to_bytes() == old and _read(new, after.source))
    except UnicodeEncodeError as error:
        return f"the change needs {error.object[error.start]!r}, which {encoding} cannot write; not written"
    if not is_kept:
        return f"the file cannot be written in {encoding} as it was; not written; save it as UTF-8"
    if path is None:
        return None
    from torchlint.write import NotWrittenError, write

    try:
        write(path, old, new)
    except NotWrittenError as error:
        return str(error)
    return None


def _read(data: bytes, source: SourceFile) -> bool:
    """Whether the bytes are read as this source: some encodings write otherwise than they read."""
    try:
        return SourceFile.from_bytes(source.path, data) == source
    except DecodeError:
        return False
