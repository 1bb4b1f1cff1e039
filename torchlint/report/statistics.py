"""How often each rule was found: `--statistics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.entry import Entry, entries
from torchlint.report.style import ALARM, HINT, Style
from torchlint.report.summary import count, footer
from torchlint.report.text import visible, width


def write(output_format: str, reports: Sequence[FileReport], options: ReportOptions) -> str:
    """A line, or in JSON an object, per rule, the most frequent first.

    Raises `ValueError` for a format that has no place for statistics.
    """
    found = Counter((entry.code, entry.name) for entry in entries(reports, options))
    notes = Counter((entry.code, entry.name) for entry in entries(reports, options) if entry.is_note)
    fixable = Counter((entry.code, entry.name) for entry in _fixable(reports, options))
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    match output_format:
        case "full" | "concise":
            return _table(ranked, fixable, notes, options) + footer(reports, options)
        case "json":
            from torchlint.report.dumped import dumped  # `json`, only where it is the format

            rows = [
                {
                    "code": rule[0],
                    "name": rule[1],
                    "count": times,
                    "notes": notes[rule],
                    "fixable": fixable[rule] == times,
                    "fixable_count": fixable[rule],
                }
                for rule, times in ranked
            ]
            return dumped(rows)
        case _:
            raise ValueError(f"`--statistics` writes full, concise or json, not {output_format}")


def _fixable(reports: Sequence[FileReport], options: ReportOptions) -> list[Entry]:
    return [entry for entry in entries(reports, options) if entry.is_fixable(options.threshold)]


def _table(
    ranked: list[tuple[tuple[str, str], int]],
    fixable: Counter[tuple[str, str]],
    notes: Counter[tuple[str, str]],
    options: ReportOptions,
) -> str:
    style = Style(options.color)
    numbers = max((len(str(times)) for _, times in ranked), default=0)
    codes = max((width(code) for (code, _), _ in ranked), default=0)
    lines = []
    for rule, times in ranked:
        code, name = map(visible, rule)
        some = fixable[rule]
        mark = "*" if some == times else "-" if some else " "
        box = f"[{style.paint(mark, HINT) if some else mark}] " if fixable else ""
        doubtful = f" ({count(notes[rule], 'note')})" if notes[rule] else ""
        lines.append(f"{times:>{numbers}}\t{style.paint(f'{code:{codes}}', ALARM)}\t{box}{name}{doubtful}\n")
    return "".join(lines)
