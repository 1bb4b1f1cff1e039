"""Findings made by hand, for the tests of the reports."""

from __future__ import annotations

from hypothesis import settings

from torchlint.finding import Applicability, Diagnostic, Edit, Fault, Finding, Fix, Frequency, Result, Span
from torchlint.report import FileReport, ReportOptions
from torchlint.rule import Rule
from torchlint.source import SourceFile

# The same examples on every machine, however busy it is.
STEADY = settings(deadline=None, derandomize=True)

RULE = Rule(
    name="sample-item-in-loop",
    code="TL391",
    group="sync",
    summary="`.item()` in a training loop makes the host wait for the device in every step.",
    since="0.1.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="sums round in another place",
)

TRAIN = """\
import torch

def train(model, loader):
    total = 0
    for batch in loader:
        loss = model(batch)
        total += loss.item()
    return total
"""

UNREADABLE = FileReport(
    SourceFile("gone.py", ""), Result(diagnostics=(Diagnostic("E902", "io-error", "No such file or directory"),))
)
UNPARSABLE = FileReport(
    SourceFile("broken.py", "def f(:\n"),
    Result(diagnostics=(Diagnostic("E999", "invalid-syntax", "expected a parameter", Fault.FILE, Span(6, 7)),)),
)
CRASHED = FileReport(
    SourceFile("fine.py", "x = 1\n"),
    Result(
        diagnostics=(
            Diagnostic("E000", "rule-failed", "sample-item-in-loop: division by zero\n  at line 3", Fault.INTERNAL),
        )
    ),
)


def span(text: str, part: str, nth: int = 1) -> Span:
    """Where `part` occurs in `text` for the nth time."""
    at = -1
    for _ in range(nth):
        at = text.index(part, at + 1)
    return Span(at, at + len(part))


def finding(
    place: Span,
    frequency: Frequency = Frequency.BATCH,
    fix: Fix | None = None,
    message: str = "`loss.item()` makes the host wait for the device",
) -> Finding:
    """A finding of the sample rule."""
    return Finding(RULE.name, RULE.code, place, message, frequency, fix)


def rewrite(place: Span, text: str, applicability: Applicability = Applicability.UNSAFE) -> Fix:
    """A fix of one edit."""
    return Fix("Add up on the device", (Edit(place, text),), applicability)


def report(text: str, *findings: Finding, path: str = "train.py", fixed: int = 0) -> FileReport:
    """A file with these findings, of which so many others were fixed."""
    return FileReport(SourceFile(path, text), Result(findings), ((RULE.name, fixed),) if fixed else ())


def sample(applicability: Applicability = Applicability.UNSAFE) -> FileReport:
    """A training loop with one finding and its fix."""
    place = span(TRAIN, "loss.item()")
    return report(TRAIN, finding(place, fix=rewrite(place, "loss.detach()", applicability)))


def options(  # noqa: PLR0913 - as many as there are options that a test turns
    *,
    color: bool = False,
    hyperlinks: bool = False,
    width: int = 100,
    threshold: Applicability = Applicability.SAFE,
    fixing: bool = False,
    statistics: bool = False,
    show_fixes: bool = False,
    footer: bool = True,
    exit_code: int | None = None,
    rules: tuple[Rule, ...] = (RULE,),
) -> ReportOptions:
    """Options that know the sample rule alone."""
    return ReportOptions(color, hyperlinks, width, threshold, fixing, statistics, show_fixes, footer, exit_code, rules)
