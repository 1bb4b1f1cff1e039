"""What every format says of a finding or a diagnostic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Diagnostic, Doubt, Fault, Finding, Fix, Frequency, Severity, Span
from torchlint.source import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchlint.report.contents import FileReport, ReportOptions
    from torchlint.report.measured import Cost
    from torchlint.rule import Rule
    from torchlint.source import SourceFile


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding or a diagnostic and where it stands.

    `start` and `end` are places as people see them, of a notebook in a cell, the end exclusive; both are 1:1 where no
    place is known. `cause` is what makes it run so often, `origin` the call in another file, `path:row`, that does.
    `rule` is None for a diagnostic and for a rule that the options do not list. `fault` is None for a finding;
    `severity` and `doubts` are those of one, `doubtful` the same in words, `places` its further ones, `help` what to
    do about it, if only what its fix does; empty where nobody says it.
    """

    source: SourceFile
    code: str
    name: str
    message: str
    span: Span | None
    fault: Fault | None
    frequency: Frequency = Frequency.UNKNOWN
    origin: str = ""
    cause: Span | None = None
    fix: Fix | None = None
    rule: Rule | None = None
    severity: Severity = Severity.WARNING
    doubts: tuple[Doubt, ...] = ()
    doubtful: str = ""
    places: tuple[Span, ...] = ()
    help: str = ""
    measured: Cost | None = None

    @property
    def is_note(self) -> bool:
        """Whether it is a finding that is no warning."""
        return self.severity is Severity.NOTE

    @property
    def start(self) -> Place:
        """Where it begins."""
        return self.source.place(self.span.start) if self.span else Place(1, 1)

    @property
    def end(self) -> Place:
        """Where it ends."""
        return self.source.place(self.span.end) if self.span else Place(1, 1)

    @property
    def url(self) -> str | None:
        """Where the rule's page is published."""
        return self.rule.url if self.rule else None

    @property
    def stored(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Row and column of both ends in the file, of a notebook in its JSON, which is what services show."""
        if self.span is None:
            return (1, 1), (1, 1)
        source, span, _ = self.source.stored(self.span)
        return source.position(span.start), source.position(span.end)

    @property
    def sentence(self) -> str:
        """What is said and doubtful, on one line; of a notebook also where, for those who see its JSON."""
        said = " ".join(map(str.strip, self.message.splitlines()))
        said += f" — {self.doubtful}" if self.doubts else ""
        return said if self.start.cell is None else f"{said} ({self.start.words})"

    def is_fixable(self, threshold: Applicability) -> bool:
        """Whether a run at this threshold applies its fix."""
        return self.fix is not None and self.fix.applicability >= threshold


def entries(reports: Sequence[FileReport], options: ReportOptions) -> Iterator[Entry]:
    """Everything there is to say, file by file and top to bottom, or what weighs most first.

    With a profile that is what was measured to take most.
    """
    found = _by_place(reports, options)
    if options.profile is not None:
        return iter(sorted(found, key=_time))
    return iter(sorted(found, key=_impact)) if options.sort == "impact" else found


def _impact(entry: Entry) -> tuple[bool, int, int]:
    """Errors, then warnings, then notes, of each what runs most often first."""
    return entry.fault is None, -entry.severity, -entry.frequency


def _by_place(reports: Sequence[FileReport], options: ReportOptions) -> Iterator[Entry]:
    rules = {rule.name: rule for rule in options.rules}
    measured = options.profile.by_finding if options.profile is not None else {}
    for report in reports:
        found = [
            *(_of_diagnostic(report.source, diagnostic) for diagnostic in report.result.diagnostics),
            *(
                _of_finding(report.source, finding, rules, measured.get((report.source.path, finding)))
                for finding in report.result.findings
            ),
        ]
        yield from sorted(found, key=_place)


def _of_diagnostic(source: SourceFile, diagnostic: Diagnostic) -> Entry:
    return Entry(
        source=source,
        code=diagnostic.code,
        name=diagnostic.name,
        message=diagnostic.message,
        span=diagnostic.span,
        fault=diagnostic.fault,
    )


def _of_finding(source: SourceFile, finding: Finding, rules: dict[str, Rule], measured: Cost | None) -> Entry:
    return Entry(
        source=source,
        code=finding.code,
        name=finding.rule,
        message=finding.message,
        span=finding.span,
        frequency=finding.frequency,
        origin=finding.origin,
        cause=finding.cause,
        fix=finding.fix,
        rule=rules.get(finding.rule),
        fault=None,
        severity=finding.severity,
        doubts=finding.doubts,
        doubtful=finding.doubtful,
        places=finding.places,
        help=finding.help or (finding.fix.title if finding.fix is not None else ""),
        measured=measured,
    )


def _time(entry: Entry) -> float:
    return -entry.measured.total if entry.measured is not None else 0.0


def _place(entry: Entry) -> tuple[int, int, str]:
    return (entry.span.start, entry.span.end, entry.code) if entry.span else (-1, -1, entry.code)
