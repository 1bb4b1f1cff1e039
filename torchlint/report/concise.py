"""One line per finding: `path:line:column: CODE message`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchlint.finding import Frequency
from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.entry import Entry, entries
from torchlint.report.profiled import measured, where_time_goes
from torchlint.report.style import ALARM, BOLD, CODE, HINT, Style
from torchlint.report.summary import footer
from torchlint.report.text import opening, visible


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """A line per finding, in groups where they are asked for, then the footer."""
    style = Style(options.color, options.hyperlinks)
    found = list(entries(reports, options))
    if not options.group_by:
        lines = "".join(_lines(found, options, style))
        return lines + where_time_goes(options, gap=bool(lines)) + footer(reports, options)
    from torchlint.report.groups import groups  # few runs have any

    parts = []
    for title, group in groups(found, options.group_by):
        lines = "".join(f"  {line}" for line in _lines(group, options, style))
        parts.append(f"{style.paint(title, BOLD)}\n{lines}\n")
    return "".join(parts) + where_time_goes(options) + footer(reports, options)


def _lines(found: Sequence[Entry], options: ReportOptions, style: Style) -> Iterator[str]:
    for entry in found:
        code = style.link(style.paint(visible(entry.code), CODE if entry.is_note else ALARM), entry.url)
        kind = "note: " if entry.is_note else ""
        mark = f"[{style.paint('*', HINT)}] " if entry.is_fixable(options.threshold) else ""
        message = visible(" ".join(map(str.strip, entry.message.splitlines())))
        if entry.origin:
            often = f" {entry.frequency}" if entry.frequency >= Frequency.ONCE else ""
            message += f" (called{often} from {visible(entry.origin)})"
        message += measured(entry, options)
        if entry.doubts:
            message += f" — {visible(entry.doubtful)}"
        path = "" if options.group_by == "file" else f"{style.paint(opening(entry.source.path), BOLD)}:"
        yield f"{path}{entry.start}: {kind}{code} {mark}{message}\n"
