"""Measured evidence as Markdown, for the section of a rule's page that holds nothing else."""

from __future__ import annotations

import math
import re
from datetime import date
from typing import TYPE_CHECKING, Any

from torchlint.report.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from torchlint.evidence import Evidence, Measurement

    Stale = Callable[[Measurement], bool]

VERDICTS = {
    "faster": "faster",
    "slower": "slower",
    "no-measurable-difference": "no measurable difference",
    "inconclusive": "inconclusive",
    "saves-memory": "saves memory",
    "fewer-syncs": "fewer synchronizations",
    "fewer-copies": "fewer copies",
    "fewer-launches": "fewer kernel launches",
    "wrong-result": "wrong result",
    "not-exercised": "not exercised",
    "suspicious": "suspicious",
    "error": "failed",
    "timeout": "timed out",
    "oom": "out of memory",
    "cannot-run": "cannot run here",
    "unfit": "unfit to say",
}
_GAINS = ("faster", "saves-memory", "fewer-syncs", "fewer-copies", "fewer-launches")
_KINDS = {
    "cpu": "On the CPU, which says nothing about the time on a GPU.",
    "sim": "On a simulated CUDA device, which counts and does not time.",
}
_ORDER = ("cuda", "cpu", "sim")
_COPIES = ("h2d_pageable", "h2d_pinned", "d2h")
_COUNTED = (("syncs", ("syncs",)), ("copies", _COPIES), ("launches", ("launches",)))
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_NONE = "-"
_SECTION = re.compile(r"^## Evidence\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
# What a page says of a rule whose fix does not change what the program does.
_NOTHING = "Nothing to measure"
_NOT_YET = "Not measured yet."
_NO_TIME = "Time on a GPU: not measured yet."


def markdown(found: Iterable[Evidence], stale: Stale, rule: str, today: date | None = None) -> str:
    """All that was measured of a rule, on GPUs first, newest torch first, and last how to measure it.

    `stale` says whether the pair has changed since a measurement; with `today` each says how old it is.
    """
    remedy = f"Measure it on your machine: `torchlint verify --rule {rule}`"
    groups: dict[tuple[str, str, str], list[Measurement]] = {}
    for evidence in found:
        for each in evidence.measurements:
            groups.setdefault((each.device.type, each.device.name, each.software.torch), []).append(each)
    if not groups:
        return f"{_NOT_YET} {remedy}\n"
    parts = [_group(groups[key], stale, today) for key in sorted(groups, key=_rank)]
    if not any(each.time for key, group in groups.items() for each in group if key[0] == "cuda"):
        remedy = f"{_NO_TIME} {remedy}"
    return "\n".join((*parts, *_legend(groups.values()), remedy)) + "\n"


def placed(page: str, section: str, rule: str) -> str:
    """`page` with `section`, as `markdown` makes it, in the place of the one before; what follows that is kept.

    A page without such a section, or with one that says that there is nothing to measure, stays as it is.
    """
    match = _SECTION.search(page)
    if match is None or match[1].strip().startswith(_NOTHING):
        return page
    before = match[1].strip()
    # The generated text ends with the one line that names the command; a page that is new says less.
    _, command, after = before.partition(f"`torchlint verify --rule {rule}`")
    notes = (after if command else before.removeprefix(_NOT_YET)).strip()
    tail = f"\n{notes}\n" if notes else ""
    gap = "\n" if match.end() < len(page) else ""
    return f"{page[: match.start()]}## Evidence\n\n{section}{tail}{gap}{page[match.end() :]}"


def speedup(measurement: Measurement) -> str:
    """`1.27x [1.24, 1.30], n 8`; before the first look `1.18x, n 2, undecided`."""
    if measurement.time is None:
        return _NONE
    ratio = measurement.time.speedup
    places = 2 if ratio.ratio < 10 else 1
    if measurement.protocol and ratio.n < measurement.protocol.looks[0]:
        return f"{ratio.ratio:.{places}f}x, n {ratio.n}, undecided"
    return f"{ratio.ratio:.{places}f}x [{ratio.lo:.{places}f}, {ratio.hi:.{places}f}], n {ratio.n}"


def headline(measurement: Measurement, *, stale: bool) -> str:
    """One measurement in a line: where, what it comes to, and the figures that say so; a page has the others."""
    counts, metric = measurement.counts, measurement.subject.metric
    figures = [speedup(measurement)] if measurement.time is not None else []
    if counts is not None:
        told = [each for each in _COUNTED if each[0] in (metric, "syncs", "copies")]
        pairs = ((head, _sum(counts.before, keys), _sum(counts.after, keys)) for head, keys in told)
        figures += [f"{before} \N{RIGHTWARDS ARROW} {after} {head}" for head, before, after in pairs if before != after]
    if measurement.verdict.overall == "saves-memory" and measurement.memory is not None:
        before, after = measurement.memory.before, measurement.memory.after
        figures.append(memory(before, after).replace("->", "\N{RIGHTWARDS ARROW}"))
    verdict = VERDICTS[measurement.verdict.overall] + _untold(measurement)
    where = f"{_safe(measurement.device.name)}, torch {_safe(measurement.software.torch)}"
    age = "; of an older version of the fix" if stale else ""
    return f"{where}: {', '.join((verdict, *figures))}{age}"


def times(ratio: float) -> str:
    """A ratio of speeds in a sentence: `3.40x faster`, `1.05x slower`, `as fast`."""
    if math.isclose(ratio, 1, abs_tol=0.0005):
        return "as fast"
    factor = ratio if ratio > 1 else 1 / ratio
    return f"{f'{factor:.2f}' if factor < 100 else f'{factor:,.0f}'}x {'faster' if ratio > 1 else 'slower'}"


def memory(before: int, after: int) -> str:
    """Two amounts of bytes in the larger one's unit: `1.20 -> 0.85 GiB`."""
    size, unit = next((size, unit) for size, unit in _UNITS if max(before, after, 1) >= size)
    return f"{_digits(before / size)} -> {_digits(after / size)} {unit}"


def duration(microseconds: float) -> str:
    """`840 µs`, `12.4 ms`, `3.1 s`."""
    size, unit = next((each for each in _TIMES if microseconds >= each[0]), _TIMES[-1])
    return f"{_digits(microseconds / size)} {unit}"


def _rank(key: tuple[str, str, str]) -> tuple[object, ...]:
    kind, name, torch = key
    version = [int(number) for number in re.findall(r"\d+", torch.partition("+")[0])]
    return (_ORDER.index(kind), [-number for number in version], name, torch)


def _group(measurements: Sequence[Measurement], stale: Stale, today: date | None) -> str:
    """What was measured on one device with one version of torch."""
    first = measurements[0]
    lines = [f"### {_safe(first.device.name)}, torch {_safe(first.software.torch)}", ""]
    lines.append(
        " ".join(filter(None, (_KINDS.get(first.device.type, ""), _versions(first), _dates(measurements, today))))
    )
    lines.append("")
    lines += [_sentence(each, stale=stale(each)) for each in measurements]
    table = _table(measurements)
    return "\n".join((*lines, "", *table, *([""] if table else [])))


def _versions(measurement: Measurement) -> str:
    software = measurement.software
    parts = [f"CUDA {software.cuda}"] if software.cuda and measurement.device.type == "cuda" else []
    if measurement.device.driver:
        parts.append(f"driver {measurement.device.driver}")
    parts += [f"Python {software.python}", f"torchlint {software.torchlint}"]
    return _safe(", ".join(parts)) + "."


def _dates(measurements: Sequence[Measurement], today: date | None) -> str:
    days = sorted({each.provenance.created[:10] for each in measurements})
    age = ""
    if today is not None:
        try:
            past = (today - date.fromisoformat(days[-1])).days
        except ValueError:
            past = 0
        age = f" ({'1 day' if past == 1 else f'{past} days'} ago)" if past > 0 else ""
    return _safe(f"Measured on {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''}{age}.")


def _sentence(measurement: Measurement, *, stale: bool) -> str:
    subject = measurement.subject
    about = ", ".join(f"{name} {_short(value)}" for name, value in subject.parameters.items())
    if measurement.time:
        about = "; ".join(filter(None, (about, f"{duration(measurement.time.baseline_us)} a run")))
    where = f"`{subject.size}` ({_safe(about)})" if about else f"`{subject.size}`"
    reason = _safe(measurement.verdict.reason).rstrip(".")
    sentences = [f"**{VERDICTS[measurement.verdict.overall]}{'' if stale else _bearing(measurement)}**"]
    sentences += [reason[:1].upper() + reason[1:]] if reason else []
    sentences += ["Measured on an older version of the fix"] if stale else []
    return f"- {where}: {'. '.join(sentences)}."


def _bearing(measurement: Measurement) -> str:
    """What a gain is said of: the fix, or a rewrite that nobody automates; counts of a simulation verify neither."""
    if measurement.verdict.overall not in _GAINS or measurement.device.type == "sim":
        return ""
    return _untold(measurement) or (
        ", pattern measured" if measurement.subject.fix == "suggestion" else ", fix verified"
    )


def _untold(measurement: Measurement) -> str:
    """Of a gain that is counted, where the time was measured too and does not show it."""
    time, protocol = measurement.time, measurement.protocol
    if time is None or time.verdict != "inconclusive" or measurement.verdict.overall not in _GAINS:
        return ""
    return "" if protocol and time.speedup.n < protocol.looks[0] else ", no measurable difference in time"


def _table(measurements: Sequence[Measurement]) -> list[str]:
    """A row per size, without the columns in which nothing was measured."""
    rows = [_cells(each) for each in measurements]
    heads = [head for head in rows[0] if head == "size" or any(row[head] != _NONE for row in rows)]
    if len(heads) == 1:
        return []
    lines = [heads, ["---"] * len(heads), *([row[head] for head in heads] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _cells(measurement: Measurement) -> dict[str, str]:
    peak, counts = measurement.memory, measurement.counts
    cells = {
        "size": f"`{measurement.subject.size}`",
        "speed-up": speedup(measurement),
        "peak memory": memory(peak.before, peak.after) if peak else _NONE,
    }
    for head, keys in _COUNTED:
        cells[head] = f"{_sum(counts.before, keys)} -> {_sum(counts.after, keys)}" if counts else _NONE
    return cells


def _legend(groups: Iterable[Sequence[Measurement]]) -> list[str]:
    measurements = [each for group in groups for each in group]
    parts = []
    levels = sorted({each.time.speedup.level for each in measurements if each.time})
    if levels:
        percents = " or ".join(f"{100 * level:.4g} %" for level in levels)
        parts.append(f"In brackets the {percents} interval of the speed-up, from n fresh pairs of processes.")
    if any(each.counts for each in measurements):
        parts.append("Syncs, copies and launches are counted per run of the workload.")
    return [" ".join(parts), ""] if parts else []


def _sum(counts: Mapping[str, float], keys: Iterable[str]) -> str:
    total = sum(counts.get(key, 0) for key in keys)
    return f"{total:,.0f}" if total == int(total) else f"{total:,.2f}"


def _digits(value: float) -> str:
    """Three digits that count, and no exponent."""
    places = 0 if value >= 100 or value == 0 else 1 if value >= 10 else 2
    return f"{value:,.{places}f}"


def _short(value: Any) -> str:  # noqa: ANN401 - whatever a workload's size holds
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _safe(text: str) -> str:
    """`text` on one line that steers no terminal; the backticks in a reason are meant."""
    return visible(" ".join(text.split()))
