"""What is shown of a finding under the pointer: what it costs and why, and what was measured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchlint.evidence import EvidenceError, evidence_of, is_stale, pair
from torchlint.finding import Applicability
from torchlint.lsp.diagnostics import frequency
from torchlint.registry import find
from torchlint.report.evidence import headline
from torchlint.report.page import page

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.rule import Rule

_WHY = re.compile(r"^## Why is this slow\n+(?P<text>.+?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_KINDS = ("cuda", "cpu", "sim")
_MOST_MEASUREMENTS = 3
_UNMEASURED = "Not measured on a GPU yet"


def hover(finding: Finding, verified: str = "") -> str:
    """Markdown for one finding; `verified` says what was measured of this very line, if anything was."""
    rule = find(finding.rule)
    often = frequency(finding)
    parts = [
        f"**{rule.code}** [{rule.name}]({rule.url}){f' · {often}' if often else ''}",
        finding.message,
        _why(rule),
        _measured(rule, verified),
        _fix(finding, rule),
    ]
    return "\n\n".join(filter(None, parts))


def _why(rule: Rule) -> str:
    match = _WHY.search(page(rule) or "")
    return match["text"] if match is not None else rule.summary


def _measured(rule: Rule, verified: str) -> str:
    """The last result for this line, then what was measured of the rule, on GPUs first."""
    lines = [f"- This line: {verified}"] if verified else []
    try:
        found = [each for evidence in evidence_of(rule) for each in evidence.measurements]
        now = pair(rule) if found else {}
    except (EvidenceError, OSError):
        found = []
    found.sort(key=lambda each: (_KINDS.index(each.device.type), each.device.name))
    lines += [f"- {headline(each, stale=is_stale(each, now))}" for each in found[:_MOST_MEASUREMENTS]]
    if found and all(each.device.type != "cuda" for each in found):
        lines.append(f"- {_UNMEASURED}: `torchlint verify --rule {rule.name}` does it")
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
