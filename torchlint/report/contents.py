"""What a report is made of: what each file gave, and how it is to be written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Result, Severity, sort_key
from torchlint.registry import all_rules

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.report.measured import Profile
    from torchlint.rule import Rule
    from torchlint.source import SourceFile


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file gave. `fixed` counts the findings that are gone by rule name, sorted; `result` holds the rest.

    `source` is the text that the result's spans point into; of a file that cannot be read it holds no text.
    """

    source: SourceFile
    result: Result
    fixed: tuple[tuple[str, int], ...] = ()


def joined(report: FileReport) -> FileReport:
    """The same with findings that are alike within one definition as one, which names the further places."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in report.result.findings:
        alone = finding.span if finding.within is None else None
        surety = finding.fix.applicability if finding.fix is not None else None
        key = (finding.rule, finding.within, alone, finding.severity, finding.doubts, finding.help, surety)
        groups.setdefault(key, []).append(finding)
    if len(groups) == len(report.result.findings):
        return report
    findings = sorted((_one(group, report.source) for group in groups.values()), key=sort_key)
    return replace(report, result=replace(report.result, findings=tuple(findings)))


def _one(alike: list[Finding], source: SourceFile) -> Finding:
    first, *others = alike
    if not others or first.within is None:
        return first
    name = source.text[first.within.start : first.within.end]
    edits = tuple(sorted({edit for finding in alike if finding.fix for edit in finding.fix.edits}))
    places = (span for finding in alike for span in (finding.span, *finding.places))
    return replace(
        first,
        message=f"{first.message} (and {len(others)} more in `{name}`)",
        fix=replace(first.fix, edits=edits) if first.fix is not None else None,
        places=tuple(sorted(set(places) - {first.span})),
    )


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How to write a report.

    `threshold` is the applicability that `--fix` would apply or has applied, `fixing` says that it has.
    `width` is in columns. `footer` is off under `--quiet`. `exit_code` is the run's, None where it follows from the
    results. `rules` are those whose metadata may be quoted. `problems` say what is wrong with rule packs. Findings of
    severity `fail_on` fail the run. `sort` is `place` or `impact`, `group_by` `rule`, `file`, `loop` or nothing. With
    `wraps` lines end at `width`. `folder` is where paths start, from the root of the repository, if that is known.
    `profile` is what a trace says of the lines, where one was given.
    """

    color: bool = False
    hyperlinks: bool = False
    width: int = 100
    threshold: Applicability = Applicability.SAFE
    fixing: bool = False
    statistics: bool = False
    show_fixes: bool = False
    footer: bool = True
    exit_code: int | None = None
    rules: tuple[Rule, ...] = field(default_factory=all_rules)
    problems: tuple[str, ...] = ()
    fail_on: Severity = Severity.WARNING
    folder: str = ""
    sort: str = "place"
    group_by: str = ""
    wraps: bool = False
    profile: Profile | None = None
