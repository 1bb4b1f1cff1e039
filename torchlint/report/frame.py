"""Source lines in a frame: the lines around a span with the span underlined, and the lines that a fix changes."""

from __future__ import annotations

from collections.abc import Iterator

from torchlint.finding import Edit, Fix, Span
from torchlint.report.style import ALARM, DELETED, FRAME, INSERTED, Style
from torchlint.report.text import crop, width
from torchlint.source import SourceFile

_CONTEXT = 2
_MOST_ROWS = 6
_ROWS_BEFORE_GAP = 3
_NARROWEST = 40
_LEAD = 8
_GAP = "..."


def frame(source: SourceFile, span: Span, style: Style, columns: int) -> list[str]:
    """The rows of `span` with their numbers, up to two rows around them, and the span underlined."""
    first, last = _rows(source, span)
    rows = _with_context(source, first, last)
    margin = len(str(rows[-1]))
    room = max(columns, _NARROWEST) - margin - len(" | ")
    if first == last:
        body = _underlined(source, rows, span, room, style)
    else:
        body = _bracketed(source, rows, span, room - len("| "), style)
    bar = style.paint(f"{'':{margin}} |", FRAME)
    return [bar, *(_row(label, text, margin, style) for label, text in body), bar]


def gutter(source: SourceFile, span: Span) -> int:
    """How wide the line numbers of `frame` are."""
    return len(str(_with_context(source, *_rows(source, span))[-1]))


def change(source: SourceFile, fix: Fix, style: Style, columns: int, most: int) -> list[str]:
    """The lines that `fix` takes out and puts in; empty where there are none or more than `most`."""
    hunks = list(_hunks(source, fix))
    if not hunks or sum(len(old) + len(new) for _, _, old, new in hunks) > most:
        return []
    margin = max(len(str(max(row + len(old), other + len(new)))) for row, other, old, new in hunks)
    room = max(columns, _NARROWEST) - margin - len(" - ")
    bar = style.paint(f"{'':{margin}} |", FRAME)
    lines = [bar]
    for index, (row, other, old, new) in enumerate(hunks):
        if index:
            lines.append(style.paint(_GAP, FRAME))
        left = _difference(old[0], new[0], room) if len(old) == len(new) == 1 else 0
        for sign, ink, start, block in (("-", DELETED, row, old), ("+", INSERTED, other, new)):
            for number, line in enumerate(block, start):
                text = style.paint(crop(line, left, left + room).rstrip(), ink)
                label = style.paint(f"{number:>{margin}}", FRAME)
                lines.append(f"{label} {style.paint(sign, ink)} {text}".rstrip())
    return [*lines, bar]


def _rows(source: SourceFile, span: Span) -> tuple[int, int]:
    """The first and last row that hold a part of the span; a line ending at its end counts for the row it ends."""
    first, _ = source.position(span.start)
    last, column = source.position(span.end)
    return first, last - 1 if column == 1 and last > first else last


def _with_context(source: SourceFile, first: int, last: int) -> list[int]:
    before = [row for row in range(first - _CONTEXT, first) if row >= 1]
    after = [row for row in range(last + 1, last + 1 + _CONTEXT) if row <= len(source.line_starts)]
    while before and not source.line(before[0]).strip():
        before.pop(0)
    while after and not source.line(after[-1]).strip():
        after.pop()
    return [*before, *range(first, last + 1), *after]


def _underlined(source: SourceFile, rows: list[int], span: Span, room: int, style: Style) -> Iterator[tuple[str, str]]:
    """Rows behind their numbers, and the carets behind nothing, for a span within one row."""
    marked, _ = _rows(source, span)
    line = source.line(marked)
    offset = span.start - source.line_starts[marked - 1]
    start = width(line[:offset])
    end = start + max(1, width(line[offset : offset + span.end - span.start]))
    left = _window(line, offset, offset + span.end - span.start, room)
    for row in rows if left == 0 else [marked]:  # the rows around a line shown from its middle say nothing
        yield str(row), crop(source.line(row), left, left + room)
        if row == marked:
            carets = "^" * (min(end, left + room) - start)
            yield "", " " * (start - left) + style.paint(carets, ALARM)


def _bracketed(source: SourceFile, rows: list[int], span: Span, room: int, style: Style) -> Iterator[tuple[str, str]]:
    """The same for a span over several rows: a bracket along the left, the middle of a long one left out."""
    first, last = _rows(source, span)
    head, tail = source.line(first), source.line(last)
    opening = span.start - source.line_starts[first - 1]
    start = min(width(head[:opening]), room - 1)
    end = min(max(1, width(tail[: span.end - source.line_starts[last - 1]])), room)
    corner = not head[:opening].strip()
    side = style.paint("|", ALARM)
    skipped = range(first + _ROWS_BEFORE_GAP, last) if last - first >= _MOST_ROWS else range(0)
    for row in rows:
        if row in skipped:
            if row == skipped[0]:
                yield _GAP, side
            continue
        text = crop(source.line(row), 0, room)
        if row == first:
            yield str(row), f"{style.paint('/', ALARM) if corner else ' '} {text}"
            if not corner:
                yield "", " " + style.paint("_" * (start + 1) + "^", ALARM)
        elif first < row <= last:
            yield str(row), f"{side} {text}"
        else:
            yield str(row), f"  {text}"
        if row == last:
            yield "", side + style.paint("_" * end + "^", ALARM)


def _row(label: str, text: str, margin: int, style: Style) -> str:
    if label == _GAP:
        return style.paint(f"{label:{margin + len(' | ')}}", FRAME) + text
    return f"{style.paint(f'{label:>{margin}} |', FRAME)} {text}".rstrip()


def _window(line: str, start: int, end: int, room: int) -> int:
    """The leftmost column to show so that the characters `start:end` of a line are in sight."""
    total, left, right = width(line), width(line[:start]), width(line[:end])
    if total <= room or right < room:
        return 0
    if right - left >= room - _LEAD:
        return max(0, left - _LEAD)
    return min(left - (room - (right - left)) // 2, total - room)


def _hunks(source: SourceFile, fix: Fix) -> Iterator[tuple[int, int, list[str], list[str]]]:
    """Per run of changed rows: its first row before and after the fix, the lines before and after it."""
    shift = 0
    for edits in _together(source, sorted(fix.edits)):
        row, last = source.position(edits[0].span.start)[0], source.position(edits[-1].span.end)[0]
        start = source.line_starts[row - 1]
        end = source.line_starts[last] if last < len(source.line_starts) else len(source.text)
        old = _lines(source.text[start:end])
        new = _lines(_apply(source.text, Span(start, end), edits))
        added = len(new) - len(old)
        while old and new and old[-1] == new[-1]:
            old.pop()
            new.pop()
        while old and new and old[0] == new[0]:
            row += 1
            del old[0], new[0]
        if old or new:
            yield row, row + shift, old, new
        shift += added


def _together(source: SourceFile, edits: list[Edit]) -> Iterator[list[Edit]]:
    """Edits in runs that share rows."""
    run: list[Edit] = []
    for edit in edits:
        if run and source.position(edit.span.start)[0] > source.position(run[-1].span.end)[0]:
            yield run
            run = []
        run.append(edit)
    if run:
        yield run


def _apply(text: str, within: Span, edits: list[Edit]) -> str:
    parts: list[str] = []
    at = within.start
    for edit in edits:
        parts += (text[at : edit.span.start], edit.text)
        at = edit.span.end
    return "".join((*parts, text[at : within.end]))


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _difference(old: str, new: str, room: int) -> int:
    """The leftmost column to show so that the place where two lines part is in sight in both."""
    pairs = enumerate(zip(old, new, strict=False))
    at = next((index for index, (before, after) in pairs if before != after), min(len(old), len(new)))
    return _window(max(old, new, key=width), at, at, room)
