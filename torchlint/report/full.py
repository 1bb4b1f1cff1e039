"""The default format: each warning with its source, how often the line runs, and the fix; notes in one line each."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Applicability, Fault, Fix, Frequency
from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.entry import Entry, entries
from torchlint.report.frame import change, frame, gutter
from torchlint.report.profiled import measured, where_time_goes
from torchlint.report.style import ALARM, BOLD, CODE, DIM, FRAME, HINT, WARNING, Style
from torchlint.report.summary import footer
from torchlint.report.text import opening, visible, width, wrapped
from torchlint.source import SourceFile

ISSUES = "https://github.com/torchlint/torchlint/issues"
_MOST_CHANGED_LINES = 8
_MOST_NOTES = 10
_MOST_PLACES = 5
_NARROWEST = 40


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """Every warning in its source frame, then the notes, of each group if there are any, then the footer."""
    style = Style(options.color, options.hyperlinks)
    explained: set[str] = set()
    found = list(entries(reports, options))
    if not options.group_by:
        return _all(found, explained, options, style) + where_time_goes(options) + footer(reports, options)
    from torchlint.report.groups import groups  # few runs have any

    parts = [
        f"{style.paint(f'## {title}', BOLD)}\n\n{_all(group, explained, options, style)}"
        for title, group in groups(found, options.group_by)
    ]
    return "".join((*parts, where_time_goes(options), footer(reports, options)))


def _all(found: Sequence[Entry], explained: set[str], options: ReportOptions, style: Style) -> str:
    parts: list[str] = []
    for entry in found:
        if entry.is_note:
            continue
        lines = [
            *_header(entry, options, style),
            *_notes(entry, explained, options, style),
            *_help(entry, options, style),
        ]
        parts.append("\n".join(lines) + "\n\n")
        explained.add(entry.name)
    notes = _all_notes([entry for entry in found if entry.is_note], options, style)
    return "".join((*parts, notes))


def _folded(text: str, options: ReportOptions, indent: int, first: int | None = None) -> str:
    """Visible text, on several lines where the terminal is narrower."""
    text = visible(text)
    return wrapped(text, max(options.width, _NARROWEST), indent, first) if options.wraps else text


def _all_notes(found: Sequence[Entry], options: ReportOptions, style: Style) -> str:
    """The notes, one line each, below the warnings; of many the first, and how many more there are."""
    if not found:
        return ""
    lines = [_one_line(entry, options, style) for entry in found[:_MOST_NOTES]]
    if len(found) > _MOST_NOTES:
        lines.append(f"  {len(found) - _MOST_NOTES} more; `--output-format concise` lists them all")
    return "\n".join((style.paint("notes", BOLD) + ":", *lines)) + "\n\n"


def _one_line(note: Entry, options: ReportOptions, style: Style) -> str:
    """Where a note is, what it says, and why it is no warning."""
    code = style.link(style.paint(visible(note.code), CODE), note.url)
    place = f"  {opening(note.source.path)}:{note.start}: "
    said = f"{' '.join(note.message.split())}{measured(note, options)}"
    # Of both together it is known where lines end; the colour is laid on behind that.
    whole = _folded(f"{said} — {note.doubtful}" if note.doubts else said, options, 4, width(f"{place}{note.code} "))
    message, dash, doubt = whole.rpartition("— ") if note.doubts else (whole, "", "")
    dimmed = "\n".join(style.paint(line, DIM) for line in (dash + doubt).split("\n"))
    return f"{place}{code} {message}{dimmed}"


def _header(entry: Entry, options: ReportOptions, style: Style) -> list[str]:
    """The message, the place and the source."""
    code = style.link(style.paint(visible(entry.code), ALARM), entry.url)
    mark = f" [{style.paint('*', HINT)}]" if entry.is_fixable(options.threshold) else ""
    message, *more = entry.message.splitlines() or [""]
    taken = width(entry.code) + (len(" [*] ") if mark else 1)
    first, *rest = _folded(message, options, taken).split("\n")
    lines = [f"{code}{mark} {style.paint(first, BOLD)}"]
    lines += [" " * taken + style.paint(line.strip(), BOLD) for line in rest]
    lines += [f"  {visible(line)}".rstrip() for line in more]
    path = visible(entry.source.path)
    if entry.span is None:
        return [*lines, f"{style.paint(' -->', FRAME)} {path}"]
    seen = entry.source.seen(entry.span)
    margin = gutter(seen.source, seen.span)
    return [
        *lines,
        f"{style.paint(f'{str():{margin}}-->', FRAME)} {path}:{entry.start}",
        *frame(seen.source, seen.span, style, options.width),
    ]


def _notes(entry: Entry, explained: set[str], options: ReportOptions, style: Style) -> list[str]:
    """How often it runs and, where a rule occurs for the first time, its name and why it matters."""
    notes = []
    seen = entry.source.seen(entry.span) if entry.span else None
    margin = gutter(seen.source, seen.span) if seen else 1
    indent = margin + len(" = ")
    if entry.frequency > Frequency.ONCE:
        words = str(entry.frequency)
        words = style.paint(words, WARNING) if entry.frequency >= Frequency.BATCH else words
        notes.append(f"runs {words}{f', called from {visible(entry.origin)}' if entry.origin else ''}")
    if options.profile is not None and entry.measured is not None:
        from torchlint.report import where  # a trace was read

        told = f"{where.brief(entry.measured, options.profile)}: {where.words(entry.measured, options.profile)}"
        notes.append(f"{style.paint('measured', BOLD)}: {told}")
    if entry.places:
        notes.append(f"so {'is' if len(entry.places) == 1 else 'are'} {_elsewhere(entry)}")
    if entry.rule and entry.name not in explained:
        summary = _folded(entry.rule.summary, options, indent, indent + width(f"{entry.name}: "))
        notes.append(f"{style.paint(visible(entry.name), BOLD)}: {summary}")
    if entry.fault is Fault.INTERNAL:
        notes.append(f"this is a defect of torchlint and not of your code; please report it at {ISSUES}")
    return [f"{style.paint(f'{str():{margin}} =', FRAME)} {note}" for note in notes]


def _elsewhere(entry: Entry) -> str:
    """`line 12`, `lines 12, 13 and 15`: where else the same holds, of many the first."""
    rows = [str(entry.source.place(span.start).row) for span in entry.places]
    shown = rows[:_MOST_PLACES]
    if len(rows) > len(shown):
        return f"lines {', '.join(shown)} and {len(rows) - len(shown)} more"
    return f"line {rows[0]}" if len(rows) == 1 else f"lines {', '.join(rows[:-1])} and {rows[-1]}"


def _help(entry: Entry, options: ReportOptions, style: Style) -> list[str]:
    """What to do; of a fix the lines it changes, where they are few, and how far to trust it."""
    lines = []
    if entry.help:
        first, *rest = _folded(entry.help, options, len("help: ")).split("\n")
        lines.append(f"{style.paint('help', HINT)}: {style.paint(first, BOLD)}")
        lines += [f"      {style.paint(line.strip(), BOLD)}" for line in rest]
    if entry.fix is None:
        return lines
    lines += _changed(entry.source, entry.fix, style, options.width)
    match entry.fix.applicability:
        case Applicability.UNSAFE:
            why = entry.rule.unsafe if entry.rule else ""
            why = _folded(why or "the fix may change what is computed", options, len("unsafe: "))
            lines.append(f"{style.paint('unsafe', BOLD)}: {why}")
        case Applicability.DISPLAY:
            lines.append(f"{style.paint('note', BOLD)}: This is a sketch, which `--fix` never applies")
        case Applicability.SAFE:
            pass
    return lines


def _changed(source: SourceFile, fix: Fix, style: Style, width: int) -> list[str]:
    """The lines that the fix changes, where they are few; of a notebook cell by cell, each below its number."""
    parts = list(source.in_cells(fix.edits))
    shown = [
        change(part, Fix(fix.title, edits, fix.applicability), style, width, _MOST_CHANGED_LINES)
        for part, edits, _ in parts
    ]
    if not all(shown) or sum(map(len, shown)) > _MOST_CHANGED_LINES + 2 * len(shown):
        return []
    lines = []
    for (_, _, cell), changed in zip(parts, shown, strict=True):
        lines += [f"{style.paint(':::', FRAME)} cell {cell}", *changed] if cell is not None else changed
    return lines
