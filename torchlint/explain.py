"""Rules for people and programs: the page of one, the table of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlint.report.page import body, conditions, page
from torchlint.report.style import ALARM, BOLD, DIM, PLAIN, Style
from torchlint.report.text import visible
from torchlint.rule import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from torchlint.rule import Rule

_HEADS = ("code", "name", "fix", "default", "summary")
_GAP = "  "
_NARROWEST_SUMMARY = 30


def page_text(rule: Rule, style: Style = PLAIN, columns: int = 100, today: date | None = None) -> str:
    """The rule's page for a terminal of that many columns, with what has been measured by now.

    `today` says how old that is; without it, it is the day in UTC.
    """
    from torchlint.report.markdown import render  # compiles expressions that the table does without

    title = style.link(style.paint(rule.code, ALARM), rule.url) + " " + style.paint(rule.name, BOLD)
    facts = [
        rule.group,
        f"{' or '.join(map(str, rule.fix))} fix" if rule.fix else "no fix",
        f"{'on' if rule.default else 'off'} by default",
        f"since {rule.since}",
    ]
    if rule.status is not Status.STABLE:
        facts.append(rule.status.value)
    facts += [f"{key} {value}" for key, value in conditions(rule)]
    explanation = render(_with_evidence(rule, body(rule) or rule.summary, today), style, columns)
    return f"{title}\n{style.paint(' · '.join(facts), DIM)}\n\n{explanation}\n{style.paint(rule.url, DIM)}\n"


def page_json(rule: Rule) -> str:
    """The rule's metadata, page and evidence as a JSON object.

    `explanation` is null where there is no page, `evidence` where its files are damaged. Each measurement says whether
    it is `stale`: of an older version of the fix.
    """
    import json  # only where it is the format

    text = page(rule)
    explanation = None if text is None else _with_evidence(rule, text, None)
    return json.dumps(_metadata(rule) | {"explanation": explanation, "evidence": _evidence(rule)}, indent=2) + "\n"


def table_text(rules: Sequence[Rule], style: Style = PLAIN, columns: int | None = None) -> str:
    """One row per rule under a head. With `columns`, a summary that does not fit goes on below itself."""
    rows = [
        (rule.code, rule.name, ", ".join(map(str, rule.fix)) or "-", _default(rule), visible(rule.summary))
        for rule in rules
    ]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)][:-1]
    left = sum(widths) + len(_GAP) * len(widths)
    room = max(columns - left, _NARROWEST_SUMMARY) if columns else None
    lines = [_row(_HEADS, widths, (BOLD,) * len(widths), style)]
    for *cells, summary in rows:
        first, *rest = _fold(summary, room)
        lines.append(_row((*cells, first), widths, (ALARM, BOLD, "", ""), style))
        lines.extend(" " * left + line for line in rest)
    return "".join(f"{line}\n" for line in lines)


def table_json(rules: Sequence[Rule]) -> str:
    """The metadata of the rules as a JSON array."""
    import json  # only where it is the format

    return json.dumps([_metadata(rule) for rule in rules], indent=2) + "\n"


def _with_evidence(rule: Rule, text: str, today: date | None) -> str:
    """The page with its section of evidence as the files say it now: they may be newer than the page."""
    from torchlint import evidence  # it, msgspec and hashlib, for this alone
    from torchlint.report.evidence import markdown, placed

    if not evidence.is_measurable(rule):
        return text
    if today is None:
        from datetime import datetime, timezone

        today = datetime.now(timezone.utc).date()
    try:
        section = markdown(
            evidence.evidence_of(rule), lambda each: evidence.is_stale(each, evidence.pair(rule)), rule.name, today
        )
    except evidence.EvidenceError as error:
        section = f"The evidence cannot be read. {error}\n"
    return placed(text, section, rule.name)


def _evidence(rule: Rule) -> list[dict[str, Any]] | None:
    import msgspec  # as its file is read

    from torchlint import evidence

    if not evidence.is_measurable(rule):
        return []
    try:
        found = evidence.evidence_of(rule)
    except evidence.EvidenceError:
        return None
    shown = []
    for each in found:
        built = msgspec.to_builtins(each)
        for measurement, plain in zip(each.measurements, built["measurements"], strict=True):
            plain["stale"] = evidence.is_stale(measurement, evidence.pair(rule))
        shown.append(built)
    return shown


def _metadata(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "group": rule.group,
        "summary": rule.summary,
        "fix": [str(applicability) for applicability in rule.fix],
        "default": rule.default,
        "status": rule.status.value,
        "since": rule.since,
        "yields_to": list(rule.yields_to),
        "eager": rule.eager,
        "torch": "{}.{}".format(*rule.torch),
        "url": rule.url,
    }


def _default(rule: Rule) -> str:
    if rule.status is not Status.STABLE:
        return str(rule.status.value)
    return "on" if rule.default else "off"


def _row(cells: Sequence[str], widths: list[int], inks: Sequence[str], style: Style) -> str:
    """The cells in their columns, the last one as long as it is."""
    dressed = [
        (style.paint(cell, ink) if ink else cell) + " " * (width - len(cell))
        for cell, width, ink in zip(cells, widths, inks, strict=False)
    ]
    return f"{_GAP.join(dressed)}{_GAP}{cells[-1]}"


def _fold(text: str, room: int | None) -> list[str]:
    """`text` in lines of at most `room` columns; a longer word stands alone."""
    if room is None:
        return [text]
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
