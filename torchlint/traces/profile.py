"""From a trace and what was found in the files of a run to what was measured of each line and each finding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torchlint.finding import Finding
from torchlint.report import FileReport
from torchlint.report.measured import Certainty, Cost, Line, Part, Profile, Unplaced
from torchlint.source import SourceFile
from torchlint.spoken import Statements, is_about_waiting, rows_of
from torchlint.traces.events import Recording
from torchlint.traces.loaders import OF_LOADING, Loaders
from torchlint.traces.places import Place, Places
from torchlint.traces.timeline import timeline

_MOST_ASKED = 10
_MOST_UNPLACED = 50
_STACKS = "record with `profile(..., with_stack=True)`"

Silences = Callable[[str, Collection[int]], Mapping[int, str]]
"""Why no rule names these lines of a file as waiting or copying."""


def profile(
    recording: Recording,
    shown: str,
    files: Iterable[tuple[str, Path, Callable[[], str | None]]],
    reports: Sequence[FileReport],
    silences: Silences,
) -> Profile:
    """What a recording says of the lines of `files`, `(shown, path, text)`, and of what was found in them."""
    places = Places(files, recording.names)
    found = timeline(recording, places)
    at = _by_row(found.costs)
    by_row = {(place.path, place.row): cost for place, cost in at.items() if _is_line(place)}
    linked = _Linked(reports, by_row)
    lines = [
        Line(
            place.path,
            place.row,
            place.function,
            places.code(place.path, place.row),
            place.certainty,
            cost,
            linked.naming(place.path, place.row) if _is_line(place) else (),
        )
        for place, cost in at.items()
    ]
    lines.sort(key=lambda line: (-line.cost.total, line.path, line.row))
    unplaced = [Unplaced(name, cost) for name, cost in found.unplaced.items()]
    unplaced.sort(key=lambda each: (-each.cost.total, each.name))
    return Profile(
        shown=shown,
        length=found.end - found.start,
        device=(", ".join(sorted(set(recording.devices))) or "GPU") if found.has_device else "",
        busy=sum(end - start for start, end in found.busy),
        steps=len(found.steps) or None,
        lines=tuple(_explained(lines, silences)),
        unplaced=tuple(unplaced[:_MOST_UNPLACED]),
        by_finding=linked.by_finding,
        step=found.step,
        remarks=tuple(_remarks(recording, places, lines, has_device=found.has_device)),
    )


def _is_line(place: Place) -> bool:
    return place.certainty is not Certainty.FUNCTION


def _by_row(costs: Mapping[Place, Cost]) -> dict[Place, Cost]:
    """One place for each row, which may have been told in two ways: the less certain of them."""
    found: dict[tuple[str, int, bool], tuple[Place, Cost]] = {}
    for place, cost in costs.items():
        key = place.path, place.row, _is_line(place)
        before = found.get(key)
        if before is not None:
            cost.include(before[1])
            place = max(place, before[0], key=lambda each: _CERTAIN.index(each.certainty))  # noqa: PLW2901 - as said
        found[key] = place, cost
    return dict(found.values())


_CERTAIN = tuple(Certainty)


def _remarks(recording: Recording, places: Places, lines: Sequence[Line], *, has_device: bool) -> Iterable[str]:
    if not recording.has_frames and not recording.has_stacks:
        yield f"the trace has no Python stacks, so that no line can be named; {_STACKS}"
    elif not lines:
        yield "none of the files given runs in the trace; give the files of the program that was recorded"
    if any(line.certainty is Certainty.ORDER for line in lines):
        yield (
            "the profiler names functions, not lines: of several calls of one name in a function, their order tells "
            "the line"
        )
    if not has_device:
        yield (
            "the trace was recorded on the CPU: what waits, copies and gaps between kernels cost on a GPU is not in it"
        )
    for path in sorted(places.changed):
        yield f"{path} is not as it was when the trace was recorded: some of its functions are elsewhere"
    if recording.skipped:
        yield f"{recording.skipped:,} events without a valid time or thread were left out"


def _explained(lines: Sequence[Line], silences: Silences) -> Iterable[Line]:
    """The lines, with the reason why no rule names those that wait or copy most."""
    asked: dict[str, list[int]] = {}
    for line in [line for line in lines if _is_silent(line)][:_MOST_ASKED]:
        asked.setdefault(line.path, []).append(line.row)
    known = {path: silences(path, rows) for path, rows in sorted(asked.items())}
    for line in lines:
        silence = known.get(line.path, {}).get(line.row, "") if _is_silent(line) else ""
        yield replace(line, silence=silence) if silence else line


def _is_silent(line: Line) -> bool:
    cost = line.cost
    if cost.times.get(Part.LOAD):
        return False  # what a loader reads is its own
    waits = bool(cost.reads) or cost.times.get(Part.WAIT, 0) + cost.times.get(Part.COPY, 0) > 0
    return waits and not line.findings and line.certainty is not Certainty.FUNCTION


class _Linked:
    """Which findings are about which lines, and what was measured of each."""

    def __init__(self, reports: Sequence[FileReport], by_row: Mapping[tuple[str, int], Cost]) -> None:
        self.by_finding: dict[tuple[str, Finding], Cost] = {}
        self._by_row: dict[tuple[str, int], list[Finding]] = {}
        loads = {place: cost for place, cost in by_row.items() if cost.times.get(Part.LOAD)}
        makers = [
            (report.source, finding)
            for report in reports
            for finding in report.result.findings
            if finding.rule in OF_LOADING
        ]
        loaders = Loaders({report.source.path: report.source for report in reports})
        for report in reports:
            source = report.source
            statements = Statements(source.text) if report.result.findings else None
            for finding in report.result.findings:
                rows = {(source.path, row) for row in rows_of(source, finding, statements)} if statements else set()
                if finding.rule in OF_LOADING:
                    rows |= loaders.loops(source, finding, loads, is_only=len({_line(*each) for each in makers}) == 1)
                cost = Cost()
                for place in sorted(rows & by_row.keys()):
                    cost.include(by_row[place])
                    self._by_row.setdefault(place, []).append(finding)
                if cost.total or cost.reads or cost.launches:
                    self.by_finding[source.path, finding] = cost

    def naming(self, path: str, row: int) -> tuple[str, ...]:
        """The findings that name a line, those that are about waiting first."""
        found = self._by_row.get((path, row), ())
        ordered = sorted(
            found, key=lambda finding: (not is_about_waiting(finding.rule), -finding.severity, finding.code)
        )
        return tuple(dict.fromkeys(f"{finding.code} {finding.rule}" for finding in ordered))


def _line(source: SourceFile, finding: Finding) -> tuple[str, int]:
    return source.path, source.position(finding.span.start)[0]
