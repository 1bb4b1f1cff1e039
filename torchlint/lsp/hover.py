"""What is shown of a finding under the pointer: what it costs and why, and what was measured."""

from __future__ import annotations

import re

from torchlint.evidence import EvidenceError, evidence_of, is_stale, pair
from torchlint.finding import Applicability, Finding
from torchlint.lsp.diagnostics import frequency
from torchlint.registry import find
from torchlint.report.evidence import headline
from torchlint.report.page import page
from torchlint.rule import Rule

_WHY = re.compile(r"^## Why is this slow\n+(?P<text>.+?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_KINDS = ("cuda", "cpu", "sim")
_MOST_MEASUREMENTS = 3
# Verdicts that say something of a run, and nothing of a fix.
_NOTHING = ("inconclusive", "not-exercised", "error", "timeout", "oom", "cannot-run", "unfit")


def hover(finding: Finding, verified: str = "") -> str:
    """Markdown for one finding; `verified` says what was measured of this very line, if anything was."""
    rule = find(finding.rule)
    often = frequency(finding)
    parts = [
        f"**{rule.code}** [{rule.name}]({rule.url}){f' · {often}' if often else ''}",
        finding.message,
        f"**Doubtful**: {finding.doubtful}" if finding.doubts else "",
        f"**Help**: {finding.help}" if finding.help else "",
        f"**This line**: {verified}" if verified else "",
        _fix(finding, rule),
        _why(rule),
        _measured(rule),
    ]
    return "\n\n".join(filter(None, parts))


def _why(rule: Rule) -> str:
    match = _WHY.search(page(rule) or "")
    return match["text"] if match is not None else rule.summary


def _measured(rule: Rule) -> str:
    """What was measured of the rule and came to something, on GPUs first."""
    try:
        found = [
            each
            for evidence in evidence_of(rule)
            for each in evidence.measurements
            if each.verdict.overall not in _NOTHING
        ]
        now = pair(rule) if found else {}
    except (EvidenceError, OSError):
        found = []
    found.sort(key=lambda each: (_KINDS.index(each.device.type), each.device.name))
    lines = [f"- {headline(each, stale=is_stale(each, now))}" for each in found[:_MOST_MEASUREMENTS]]
    if found and all(each.device.type != "cuda" for each in found):
        lines.append(f"- Time on a GPU: not measured yet; `torchlint verify --rule {rule.name}` measures it")
    return "\n".join(("**Measured**", "", *lines)) if lines else ""


def _fix(finding: Finding, rule: Rule) -> str:
    if finding.fix is None:
        return ""
    title = finding.fix.title
    match finding.fix.applicability:
        case Applicability.SAFE:
            return f"**Fix** (safe): {title}"
        case Applicability.UNSAFE:
            return f"**Fix** (unsafe): {title}. [What may differ]({rule.url}#fix-safety)"
    return f"**Sketch**: {title}"
