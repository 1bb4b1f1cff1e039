"""Rules for people and programs: the page of one, the table of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlint.report.page import body, page
from torchlint.report.style import ALARM, BOLD, DIM, PLAIN, Style
from torchlint.report.text import visible
from torchlint.rule import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.rule import Rule

_HEADS = ("code", "name", "fix", "default", "summary")
_GAP = "  "
_NARROWEST_SUMMARY = 30


def page_text(rule: Rule, style: Style = PLAIN, columns: int = 100) -> str:
    """The rule's page for a terminal of that many columns."""
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
    explanation = render(body(rule) or rule.summary, style, columns)
    return f"{title}\n{style.paint(' · '.join(facts), DIM)}\n\n{explanation}\n{style.paint(rule.url, DIM)}\n"


def page_json(rule: Rule) -> str:
    """The rule's metadata and page as a JSON object; `explanation` is null where there is no page."""
    import json  # only where it is the format

    return json.dumps(_metadata(rule) | {"explanation": page(rule)}, indent=2) + "\n"


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
