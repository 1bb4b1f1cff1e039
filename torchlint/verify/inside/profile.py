"""Counts from torch.profiler: which calls of the CUDA runtime the code made, and what they were for.

CUPTI, which records them, is known to lose records without a word: the device's at the start of each session (CUDA 12.6
update 2 to 13.0, pytorch issue 192021), and all of them for the life of a process that has opened an empty session
(CUDA 13.0). So there is one session for each process. Before and after what is counted it holds known work; a copy is
believed only where the call and the device's record of it are both there. Where one is missing, no count is given.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

BEGIN, END = "torchlint: begin", "torchlint: end"
"""The names of the two ranges between which events count."""

_WAITS = frozenset(
    "cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cuCtxSynchronize cuStreamSynchronize "
    "cuEventSynchronize cudaFree cudaFreeHost cudaMemcpy cudaMemcpy2D cudaMemcpy3D".split()
)
_LAUNCHES = frozenset(
    "cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel cuLaunchKernel cuLaunchKernelEx "
    "cuLaunchCooperativeKernel cudaGraphLaunch cuGraphLaunch".split()
)
_COPIES = ("cudaMemcpy", "cuMemcpy")
_ALLOCATIONS = frozenset("cudaMalloc cudaMallocAsync cuMemCreate".split())
_BYTES = re.compile(r'"bytes": *(\d+)')
_OPENING = 20  # times the known work is done first: what the start of a session swallows is to be this and no more


@dataclass(frozen=True, slots=True)
class Event:
    """What the profiler has recorded, with its start in nanoseconds.

    A call of the runtime and what it has the device do have one `correlation`. `size` is the bytes of a copy, None
    where torch does not tell (as 2.11). `lasts` is how many nanoseconds, and `by_device` says that the device did it.
    """

    name: str
    start: int
    correlation: int = 0
    size: int | None = 0
    lasts: int = 0
    by_device: bool = False


@dataclass(slots=True)
class Tally:
    """Counts by kind, and in `doubt` why they cannot be right; empty if they can.

    `busy` is for how many nanoseconds the device did something: a kernel, a copy, or several at once.
    """

    counts: dict[str, int]
    doubt: str = ""
    busy: int = 0


@contextlib.contextmanager
def events_counted(known: Callable[[], None]) -> Iterator[Tally]:
    """The counts of what runs inside, filled in on leaving.

    `known` launches at least one kernel, copies something to the device, and waits for both.
    """
    from torch.profiler import ProfilerActivity, profile, record_function

    tally = Tally({})
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(_OPENING):
            known()
        with record_function(BEGIN):
            pass
        yield tally
        with record_function(END):
            pass
        known()  # which waits for the code's work as well: what it has left in the queue is recorded
    found = _events(profiler)
    tally.counts, tally.doubt = tallied(found) if found is not None else ({}, "torch's profiler gives no raw events")
    tally.busy = busy(found) if found is not None and not tally.doubt else 0


def tallied(events: Iterable[Event]) -> tuple[dict[str, int], str]:
    """Counts by kind of what happened between the two marks, and why they cannot be right, empty if they can.

    Names are CUPTI's, as Kineto records them: runtime calls (`cudaStreamSynchronize`, `cudaLaunchKernel`) and copies
    (`Memcpy HtoD (Pageable -> Device)`). A call counts by when it was made, what the device did by whose call it was.
    """
    every = list(events)
    marks = {event.name: event.start for event in every if event.name in (BEGIN, END)}
    if marks.keys() != {BEGIN, END}:
        return {}, "the profiler has lost where counting began and ended"
    calls = [event for event in every if _is_call(event.name)]
    before = [call for call in calls if call.start < marks[BEGIN]]
    inside = [call for call in calls if marks[BEGIN] <= call.start <= marks[END]]
    after = [call for call in calls if call.start > marks[END]]
    records: dict[int, list[Event]] = {}
    for event in every:
        if event.name.startswith("Memcpy "):
            records.setdefault(event.correlation, []).append(event)
    for known, when in ((before, "before"), (after, "after")):
        if not any(call.name in _LAUNCHES for call in known):
            return {}, f"the profiler did not see kernels that were launched {when} the code ran, to try it"
    if not any(call.correlation in records for call in after if call.name.startswith(_COPIES)):
        return {}, "the profiler did not see the device do a copy that was made after the code ran, to try it"
    copies = [call for call in inside if call.name.startswith(_COPIES)]
    lost = sum(call.correlation not in records for call in copies)
    if lost:
        return {}, f"the profiler did not see the device do {lost} of {len(copies)} copies"
    return _counts(inside, records), ""


def busy(events: Iterable[Event]) -> int:
    """Nanoseconds in which the device worked off what it was told between the two marks.

    It may begin with that later, and do several things at once: whose call it was decides, and no moment counts twice.
    """
    every = list(events)
    marks = {event.name: event.start for event in every if event.name in (BEGIN, END)}
    asked = {
        event.correlation
        for event in every
        if not event.by_device and event.correlation and marks[BEGIN] <= event.start <= marks[END]
    }
    total, until = 0, 0
    for event in sorted(every, key=lambda event: event.start):
        if event.by_device and event.correlation in asked:
            end = event.start + event.lasts
            total += max(0, end - max(event.start, until))
            until = max(until, end)
    return total


def _is_call(name: str) -> bool:
    return name in _WAITS or name in _LAUNCHES or name in _ALLOCATIONS or name.startswith(_COPIES)


def _counts(calls: Iterable[Event], records: dict[int, list[Event]]) -> dict[str, int]:
    counts = dict.fromkeys("syncs h2d_pageable h2d_pinned h2d_bytes d2h d2h_bytes launches allocations".split(), 0)
    for call in calls:
        counts["syncs"] += call.name in _WAITS
        counts["launches"] += call.name in _LAUNCHES
        counts["allocations"] += call.name in _ALLOCATIONS
        for copy in records.get(call.correlation, ()):  # a graph's launch may have several
            if copy.name.startswith("Memcpy HtoD"):
                counts["h2d_pinned" if "Pinned" in copy.name else "h2d_pageable"] += 1
                counts["h2d_bytes"] += copy.size or 0
            elif copy.name.startswith("Memcpy DtoH"):
                counts["d2h"] += 1
                counts["d2h_bytes"] += copy.size or 0
    if any(copy.size is None for call in calls for copy in records.get(call.correlation, ())):
        del counts["h2d_bytes"], counts["d2h_bytes"]
    return counts


def _events(profiler: Any) -> list[Event] | None:  # torch is not typed here
    """All that was recorded; None where torch does not give it: its own summary has neither calls nor bytes."""
    raw = getattr(getattr(profiler.profiler, "kineto_results", None), "events", None)
    if raw is None:
        return None
    return [
        Event(
            event.name(),
            int(event.start_ns()),
            int(event.correlation_id()),
            _bytes_of(event),
            int(event.duration_ns()),
            "CPU" not in str(event.device_type()),
        )
        for event in raw()
    ]


def _bytes_of(event: Any) -> int | None:  # torch's, whose attributes differ between versions
    """How many bytes a copy moved, None where the profiler does not say it; 0 of what is no copy."""
    if not event.name().startswith("Memcpy"):
        return 0
    metadata = getattr(event, "metadata_json", None)
    found = _BYTES.search(metadata()) if callable(metadata) else None
    return int(found[1]) if found else None
