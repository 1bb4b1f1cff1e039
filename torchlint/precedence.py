"""One line, one message: which of the flags on the same code, or on the same line, speaks."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, TypeAlias

from torchlint.finding import Fix, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torchlint.finding import Finding, Span
    from torchlint.rule import Flag, Rule

Flagged: TypeAlias = "tuple[Rule, Flag]"


def settled(
    flagged: Sequence[Flagged], subjects: Callable[[Flag], Sequence[Span]], row: Callable[[int], int]
) -> list[Flagged]:
    """The flags less those whose rule yields to another's flag of the same code or line, where that one speaks.

    What is certain never yields to what is doubtful.
    `subjects` gives the spans of code that a flag speaks of, the one that it points at first; `row` the line of an
    offset.
    """
    spans = [subjects(flag) for _, flag in flagged]
    rows = [row(each[0].start) for each in spans]
    by_rule: dict[str, list[int]] = {}
    for place, (rule, _) in enumerate(flagged):
        by_rule.setdefault(rule.name, []).append(place)
    known: dict[int, bool] = {}

    def speaks(one: int) -> bool:
        """Whether no other flag that speaks takes precedence over one."""
        if one not in known:
            rule, flag = flagged[one]
            known[one] = not any(
                (bool(flag.doubts) or not flagged[other][1].doubts)
                and (rows[other] == rows[one] or any(_overlap(spans[one][0], span) for span in spans[other]))
                and speaks(other)
                for name in rule.yields_to
                for other in by_rule.get(name, ())
            )
        return known[one]

    return [each for place, each in enumerate(flagged) if speaks(place)]


def merged(findings: Iterable[Finding], row: Callable[[int], int]) -> list[Finding]:
    """The findings, with those of one rule on one line as one: its fix is all of their edits."""
    ordered = sorted(findings, key=lambda each: (each.rule, each.span))
    return [_one(list(group)) for _, group in groupby(ordered, key=lambda each: (each.rule, row(each.span.start)))]


def _one(findings: list[Finding]) -> Finding:
    """The first of the findings, which holds the others, or stands for them; one without doubts before any that has."""
    findings = [each for each in findings if each.severity is Severity.WARNING] or findings
    apart = [findings[0]]
    for finding in findings[1:]:
        if not _overlap(apart[-1].span, finding.span):
            apart.append(finding)
    first = apart[0]
    more = len(apart) - 1
    message = first.message + _MORE.format(more) if more else first.message
    return replace(first, message=message, fix=_fix(apart))


_MORE = " (and {} more on this line)"
_COUNT = re.compile(r" \(and (\d+) more on this line\)")


def count_of(finding: Finding) -> int:
    """How many findings on its line one stands for."""
    match = _COUNT.search(finding.message)
    return 1 + int(match[1]) if match is not None else 1


def _fix(findings: list[Finding]) -> Fix | None:
    """The surest fixes, together where they leave each other's text alone, else the first of them."""
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    if not fixes:
        return None
    surest = max(fix.applicability for fix in fixes)  # a safe fix must not wait for an unsafe one
    alike = [fix for fix in fixes if fix.applicability is surest]
    edits = tuple(sorted({edit for fix in alike for edit in fix.edits}))
    if any(one.span.end > other.span.start or one.span == other.span for one, other in pairwise(edits)):
        return alike[0]
    return Fix(alike[0].title, edits, surest)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
