"""What `check` says of the lines of a file that wait or copy, and why it is silent where it is."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint.finding import Doubt, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from torchlint.facts import Facts
    from torchlint.finding import Finding
    from torchlint.reasons import Verdict
    from torchlint.settings import Settings
    from torchlint.source import SourceFile

NO_RULE = "no rule looks for it"
AND = " | "
"""Between the reasons of several rules."""

_GROUPS = ("sync", "transfer")
# Of these groups, what is about something else; and what is about waits or copies in other groups.
_NOT = frozenset({"gc-collect-in-loop", "leafness-lost-by-move", "load-without-map-location"})
_ALSO = frozenset(
    {"builtin-reduction-on-tensor", "gradscaler-step-syncs", "item-comprehension", "numpy-growth-in-loop"}
)


@dataclass(frozen=True, slots=True)
class Said:
    """What stands to a line: the code and name of the rule that names it with its severity, or why none does."""

    finding: str = ""
    severity: str = ""
    silence: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A statement that a rule names as waiting or copying: its first line, all of its lines, and what names it."""

    line: int
    rows: tuple[int, ...]
    finding: str
    severity: str


def is_about_waiting(rule: str) -> bool:
    """Whether the rule of that name says of the lines that it names that they wait or copy."""
    from torchlint.registry import find

    return rule not in _NOT and (rule in _ALSO or find(rule).group in _GROUPS)


def said_of(
    source: SourceFile, settings: Settings, facts: Facts, findings: Sequence[Finding], lines: Collection[int]
) -> dict[int, Said]:
    """What is said of each of these lines; a finding counts for all lines of the statements that it is about."""
    statements = Statements(source.text)
    found, silent = {}, []
    for line in lines:
        rows = statements.around(line)
        here = [finding for finding in findings if not rows.isdisjoint(rows_of(source, finding, statements))]
        # What is about waiting first, and a warning before a note.
        here.sort(key=lambda finding: (not is_about_waiting(finding.rule), finding.severity is Severity.NOTE))
        if here:
            found[line] = Said(f"{here[0].code} {here[0].rule}", here[0].severity.name.lower())
        if not here or not is_about_waiting(here[0].rule):
            silent.append(line)
    if silent:
        found |= _silent(source, settings, facts, silent, statements, found)
    return found


def named(source: SourceFile, findings: Sequence[Finding]) -> list[Named]:
    """The statements that findings name as waiting or copying."""
    statements = Statements(source.text)
    found = []
    for finding in findings:
        if is_about_waiting(finding.rule):
            line = source.position(finding.span.start)[0]
            rows = tuple(sorted(rows_of(source, finding, statements)))
            found.append(Named(line, rows, f"{finding.code} {finding.rule}", finding.severity.name.lower()))
    return found


def rows_of(source: SourceFile, finding: Finding, statements: Statements) -> frozenset[int]:
    """The lines of the statements that a finding is about, its places among them."""
    rows: set[int] = set()
    for span in (finding.span, *finding.places):
        first, last = source.position(span.start)[0], source.position(span.end)[0]
        rows |= statements.around(first) | {*range(first, last + 1)}
    return frozenset(rows)


class Statements:
    """The lines of each statement of a text; of one that has a body, those above the body."""

    def __init__(self, text: str) -> None:
        self._spans: list[tuple[int, int]] = []
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return  # of an older Python: each line by itself
        for node in ast.walk(tree):
            if isinstance(node, (ast.stmt, ast.excepthandler)):
                body = getattr(node, "body", None)
                end = max(node.lineno, body[0].lineno - 1) if isinstance(body, list) and body else node.end_lineno
                self._spans.append((node.lineno, end or node.lineno))

    def around(self, line: int) -> frozenset[int]:
        """The lines of the smallest statement that holds a line."""
        holding = [span for span in self._spans if span[0] <= line <= span[1]]
        first, last = min(holding, key=lambda span: span[1] - span[0], default=(line, line))
        return frozenset(range(first, last + 1))


def _silent(
    source: SourceFile,
    settings: Settings,
    facts: Facts,
    lines: Sequence[int],
    statements: Statements,
    found: dict[int, Said],
) -> dict[int, Said]:
    from torchlint.reasons import verdicts_of  # loads LibCST

    rows = {line: statements.around(line) for line in lines}
    known = verdicts_of(source, settings, facts, sorted({row for each in rows.values() for row in each}))
    silences = {}
    for line in lines:
        verdicts = [verdict for row in sorted(rows[line]) for verdict in known[row]]
        before = found.get(line, Said())
        silences[line] = Said(before.finding, before.severity, _words(verdicts))
    return silences


def _words(verdicts: Sequence[Verdict]) -> str:
    """Why those rules were silent that came near to speaking, each once, the nearest first."""
    from torchlint.reasons import NOTHING, Outcome

    said: dict[str, str] = {}
    doubts = {doubt.value for doubt in Doubt}

    def distance(verdict: Verdict) -> tuple[bool, bool, int]:
        # A flag that a doubt made worthless was nearest, then who found what it looks for; who decided last got far.
        is_doubted = bool(verdict.reasons) and verdict.reasons[0].id in doubts
        return not is_doubted, verdict.words.startswith("there is none"), -len(verdict.reasons)

    for verdict in sorted(verdicts, key=distance):
        is_code = bool(verdict.reasons) and verdict.reasons[0].is_code
        if verdict.outcome is not Outcome.SILENT or verdict.words == NOTHING or is_code:
            continue
        if is_about_waiting(verdict.rule.name):
            reason = f" ({verdict.reasons[0].id})" if verdict.reasons else ""
            said.setdefault(verdict.rule.code, f"{verdict.rule.code} {verdict.rule.name}: {verdict.words}{reason}")
    return AND.join(said.values()) or NO_RULE
