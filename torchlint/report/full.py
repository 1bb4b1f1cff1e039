"""The default format: each finding with its source, how often the line runs, and the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Frequency, Severity
from torchlint.report.entry import Entry, entries
from torchlint.report.frame import change, frame, gutter
from torchlint.report.style import ALARM, BOLD, FRAME, HINT, WARNING, Style
from torchlint.report.summary import footer
from torchlint.report.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.report import FileReport, ReportOptions

ISSUES = "https://github.com/torchlint/torchlint/issues"
_MOST_CHANGED_LINES = 8


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """Every finding in its source frame, then the footer."""
    style = Style(options.color, options.hyperlinks)
    explained: set[str] = set()
    parts: list[str] = []
    for entry in entries(reports, options):
        lines = [*_header(entry, options, style), *_notes(entry, explained, style), *_help(entry, options, style)]
        parts.append("\n".join(lines) + "\n\n")
        explained.add(entry.name)
    return "".join(parts) + footer(reports, options)


def _header(entry: Entry, options: ReportOptions, style: Style) -> list[str]:
    """The message, the place and the source."""
    code = style.link(style.paint(entry.code, ALARM), entry.url)
    mark = f" [{style.paint('*', HINT)}]" if entry.is_fixable(options.threshold) else ""
    message, *more = entry.message.splitlines() or [""]
    lines = [f"{code}{mark} {style.paint(visible(message), BOLD)}", *(f"  {visible(line)}".rstrip() for line in more)]
    path = visible(entry.source.path)
    if entry.span is None:
        return [*lines, f"{style.paint(' -->', FRAME)} {path}"]
    margin = gutter(entry.source, entry.span)
    row, column = entry.start
    return [
        *lines,
        f"{style.paint(f'{str():{margin}}-->', FRAME)} {path}:{row}:{column}",
        *frame(entry.source, entry.span, style, options.width),
    ]


def _notes(entry: Entry, explained: set[str], style: Style) -> list[str]:
    """How often it runs and, where a rule occurs for the first time, its name and why it matters."""
    notes = []
    if entry.frequency is not Frequency.UNKNOWN:
        words = str(entry.frequency)
        words = style.paint(words, WARNING) if entry.frequency >= Frequency.BATCH else words
        notes.append(f"runs {words}{f', called from {visible(entry.origin)}' if entry.origin else ''}")
    if entry.rule and entry.name not in explained:
        notes.append(f"{style.paint(entry.name, BOLD)}: {visible(entry.rule.summary)}")
    if entry.severity is Severity.INTERNAL:
        notes.append(f"this is a defect of torchlint and not of your code; please report it at {ISSUES}")
    margin = gutter(entry.source, entry.span) if entry.span else 1
    return [f"{style.paint(f'{str():{margin}} =', FRAME)} {note}" for note in notes]


def _help(entry: Entry, options: ReportOptions, style: Style) -> list[str]:
    """The fix: its title, the lines it changes where they are few, and how far to trust it."""
    if entry.fix is None:
        return []
    changed = change(entry.source, entry.fix, style, options.width, _MOST_CHANGED_LINES)
    lines = [f"{style.paint('help', HINT)}: {style.paint(visible(entry.fix.title), BOLD)}", *changed]
    match entry.fix.applicability:
        case Applicability.UNSAFE:
            where = f"; `torchlint explain {entry.code}` says what may differ" if entry.rule else ""
            lines.append(f"{style.paint('note', BOLD)}: This is an unsafe fix{where}")
        case Applicability.DISPLAY:
            lines.append(f"{style.paint('note', BOLD)}: This is a sketch, which `--fix` never applies")
        case Applicability.SAFE:
            pass
    return lines
