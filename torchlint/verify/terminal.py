"""The report of a run for a terminal: a table where it fits, else a few lines per fix."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from torchlint import __version__
from torchlint.evidence import Measurement
from torchlint.report.evidence import VERDICTS, duration, memory
from torchlint.report.style import ALARM, BOLD, DIM, INSERTED, PLAIN, WARNING, Style
from torchlint.report.text import visible, width
from torchlint.verify import words
from torchlint.verify.report_model import Report, Row
from torchlint.verify.report_model import to_json as to_json  # noqa: PLC0414 - beside the other writer

_GAP = "  "
_PLACE = 32
_SITES = 20
_BAD = ("slower", "wrong-result", "suspicious", "error", "timeout", "oom")
_GOOD = ("faster", "saves-memory", "fewer-syncs", "fewer-copies", "fewer-launches")
_PASSED = {True: ", ok", False: ", FAILED", None: ""}


def to_terminal(report: Report, style: Style = PLAIN, columns: int = 100) -> str:
    """What was found, in at most `columns` where words allow it: each fix, the controls, all together, what to do."""
    parts = [
        _head(report, style, columns),
        _warnings(report, style, columns),
        _fixes(report, style, columns),
        _sites(report, style, columns),
        _controls(report, style, columns),
        _together(report, style, columns),
        _fold(visible(report.written), columns),
    ]
    return "\n".join("".join(f"{line}\n" for line in part) for part in map(list, parts) if part)


def measurement_lines(measurement: Measurement, style: Style = PLAIN) -> str:
    """What was measured of a rule's pair at one size, in two lines: the verdict, and the figures behind it."""
    subject, verdict = measurement.subject, measurement.verdict
    ink = ALARM if verdict.overall in _BAD else INSERTED if verdict.overall in _GOOD else BOLD
    label = style.paint(VERDICTS[verdict.overall], ink)
    head = f"{style.paint(subject.rule, BOLD)}{_GAP}{subject.size}{_GAP}{label}"
    if verdict.reason:
        head += f": {visible(verdict.reason)}"
    figures = []
    if measurement.time:
        found = measurement.time.speedup
        figures.append(f"{words.interval(found)} on {duration(measurement.time.baseline_us)}, n {found.n}")
    if measurement.memory and measurement.memory.verdict != "same":
        figures.append(f"peak {memory(measurement.memory.before, measurement.memory.after)}")
    if measurement.counts:
        before, after = measurement.counts.before, measurement.counts.after
        figures += [
            f"{kind} {words.number(before[kind])} -> {words.number(after[kind])}"
            for kind in before
            if before[kind] != after[kind] and not kind.endswith("_bytes")
        ]
    figures += _busy(measurement)
    if measurement.numerics:
        figures.append(f"numerics {measurement.numerics.class_}: {measurement.numerics.verdict}")
    return f"{head}\n    {style.paint('; '.join(figures), DIM)}" if figures else head


def _busy(measurement: Measurement) -> list[str]:
    """For how long a run keeps the GPU busy, of how long it takes; and what held the GPU back."""
    found = measurement.conditions
    if not measurement.time or isinstance(found, msgspec.UnsetType):
        return []
    said = [f"GPU held back by: {', '.join(found.slowed)}"] if found.slowed else []
    if found.device_busy_us:
        before, after = found.device_busy_us
        wall = measurement.time.baseline_us
        shares = (before / wall, after * measurement.time.speedup.ratio / wall)
        shown = [f"{duration(busy)} ({min(share, 1):.0%})" for busy, share in zip((before, after), shares, strict=True)]
        said.append(f"GPU busy {' -> '.join(shown)}")
    return said


def _head(report: Report, style: Style, columns: int) -> list[str]:
    title = f"{style.paint('torchlint', BOLD)} {__version__}{_GAP}{visible(report.device)}"
    entry = [visible(text) for text in (f"entry: {report.entry}", report.summary) if text]
    together = (_GAP * 3).join(entry)
    return [title, *([together] if width(together) <= columns else entry)]


def _warnings(report: Report, style: Style, columns: int) -> list[str]:
    label = style.paint("warning", WARNING)
    return [
        line for warning in report.warnings for line in _hang(f"{label}: ", len("warning: "), visible(warning), columns)
    ]


def _fixes(report: Report, style: Style, columns: int) -> list[str]:
    if not report.rows:
        return []
    heads: tuple[str, ...] = (
        "fix",
        "alone",
        "the set without it",
        f"syncs/{report.unit}",
        "peak",
        "GPU busy",
        "numerics",
        "verdict",
    )
    columned = zip(heads, *(_cells(row) for row in report.rows), strict=True)
    heads, *rows = zip(*(column for column in columned if set(column[1:]) - {"", words.NONE}), strict=True)
    widths = [max(map(width, column)) for column in zip(heads, *rows, strict=True)]
    if sum(widths) + len(_GAP) * len(widths) > columns:
        return [line for row in report.rows for line in _block(row, report.unit, style, columns)]
    lines = [
        _GAP.join(style.paint(head, DIM) + _pad(head, room) for head, room in zip(heads, widths, strict=True)).rstrip()
    ]
    for row, cells in zip(report.rows, rows, strict=True):
        *left, last = (cell + _pad(cell, room) for cell, room in zip(cells, widths, strict=True))
        left[0] = left[0].replace(visible(row.code), style.paint(visible(row.code), ALARM), 1)
        lines.append(_GAP.join((*left, style.paint(last.rstrip(), _ink(row)))))
        lines += [style.paint(line, DIM) for line in _hang("    ", 4, _about(row), columns)]
    return lines


def _block(row: Row, unit: str, style: Style, columns: int) -> Iterator[str]:
    """One fix where the table does not fit."""
    _, alone, without, syncs, peak, busy, numerics, decided = _cells(row)
    yield f"{style.paint(visible(row.code), ALARM)} {visible(words.place(row))}"
    yield f"    {style.paint(decided, _ink(row))}"
    about = (
        ("alone", alone),
        ("the set without it", without),
        (f"syncs/{unit}", syncs),
        ("peak", peak),
        ("GPU busy", busy),
        ("numerics", numerics),
    )
    facts = "; ".join(f"{name} {value}" for name, value in about if value not in ("", words.NONE, words.SAME))
    for text in (facts, _about(row)):
        yield from (_hang("    ", 4, text, columns) if text else ())


def _cells(row: Row) -> tuple[str, ...]:
    return (
        f"{visible(row.code)} {words.end_of(words.place(row), _PLACE)}",
        words.interval(row.alone),
        words.gain(row.without.ratio) if row.without else words.NONE,
        words.counted(row.syncs),
        words.share_changed(row.memory),
        words.share_changed(row.busy),
        visible(row.numerics),
        f"{words.decision(row):5} {words.verdict(row)}".strip(),
    )


def _about(row: Row) -> str:
    return visible("; ".join(filter(None, (row.title, row.why))))


def _sites(report: Report, style: Style, columns: int) -> list[str]:
    """The lines that wait or copy, and what `check` says of each."""
    if not report.sites:
        return []
    rows = [
        (
            f"{words.number(site.per_unit)}/{report.unit}",
            words.end_of(f"{site.path}:{site.line}", columns // 3),
            visible(site.kind),
            visible(words.said_of(site)),
        )
        for site in report.sites[:_SITES]
    ]
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = [
        _GAP.join(cell + _pad(cell, room) for cell, room in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    if max(map(width, lines)) > columns:
        # What the line does goes below it.
        lines = [
            line
            for often, place, does, said in rows
            for line in (f"{often}{_pad(often, widths[0])}{_GAP}{place}", *_hang("    ", 4, f"{does}; {said}", columns))
        ]
    more = len(report.sites) - len(rows)
    lines += [f"and {more} more lines, which --html and --output-format json list"] if more else []
    return [style.paint("where the host waits and copies", DIM), *lines]


def _controls(report: Report, style: Style, columns: int) -> list[str]:
    if not report.controls:
        return []
    said = "; ".join(visible(f"{each.name}: {each.words}{_PASSED[each.passed]}") for each in report.controls)
    ink = ALARM if any(each.passed is False for each in report.controls) else DIM
    return [style.paint(line, ink) for line in _hang("controls: ", 10, said, columns)]


def _together(report: Report, style: Style, columns: int) -> list[str]:
    found = report.together
    if found is None:
        return []
    verdict = VERDICTS[found.verdict]
    if found.speedup:
        verdict = words.times(found.speedup.ratio) if found.verdict in ("faster", "slower") else verdict
        replicates = f"{found.speedup.n} {'fresh ' if found.confirmed else ''}replicates"
        said = [f"{words.ends(found.speedup)} from {replicates}"]
    else:
        said = []
    syncs, peak = words.counted(found.syncs), words.share_changed(found.memory)
    said += [f"syncs/{report.unit} {syncs}"] if syncs not in (words.NONE, words.SAME) else []
    said += [f"peak {peak}"] if peak not in (words.NONE, words.SAME) else []
    said += [visible(found.words)] if found.words else []
    label = f"{words.together(found)}: "
    ink = INSERTED if found.verdict in words.GOOD else ALARM if found.verdict in words.BAD else BOLD
    painted = f"{label}{style.paint(verdict, ink)}"
    lines = _hang("", 4, "; ".join([label + verdict, *said]), columns)
    return [lines[0].replace(label + verdict, painted, 1), *lines[1:]]


def _ink(row: Row) -> str:
    if row.verdict in words.BAD:
        return ALARM
    return INSERTED if row.action == "keep" else DIM


def _hang(lead: str, indent: int, text: str, columns: int) -> list[str]:
    """`text` behind `lead`, which fills `indent` columns, the lines below it indented as far."""
    first, *rest = _fold(text, columns - indent) or [""]
    return [f"{lead}{first}", *(" " * indent + line for line in rest)]


def _fold(text: str, room: int) -> list[str]:
    """`text` in lines of at most `room` columns; a longer word stands alone."""
    lines: list[str] = []
    for word in text.split():
        if lines and width(lines[-1]) + 1 + width(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _pad(text: str, room: int) -> str:
    return " " * (room - width(text))
