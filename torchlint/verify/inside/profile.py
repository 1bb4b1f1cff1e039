"""Counts from torch.profiler: which calls of the CUDA runtime the code made, and what they were for."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cuStreamSynchronize")
_LAUNCHES = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaLaunchCooperativeKernel",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
)
_BYTES = re.compile(r'"bytes": *(\d+)')


@contextlib.contextmanager
def events_counted() -> Iterator[dict[str, int]]:
    """The counts of what runs inside, filled in on leaving."""
    from torch.profiler import ProfilerActivity, profile

    def events(profiler: Any) -> dict[str, int]:  # noqa: ANN401 - torch is not typed here
        # Only the raw events know how many bytes a copy moved.
        raw = getattr(getattr(profiler.profiler, "kineto_results", None), "events", None)
        if raw is None:
            return count_events((event.name, 0) for event in profiler.events())
        return count_events((event.name(), _bytes_of(event)) for event in raw())

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities) as idle:
        pass
    counts: dict[str, int] = {}
    with profile(activities=activities) as profiler:
        yield counts
    own = events(idle)  # the profiler waits for the device too
    counts.update({kind: max(n - own[kind], 0) for kind, n in events(profiler).items()})


def count_events(events: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Counts by kind, of events given as name and bytes.

    Names are CUPTI's, as Kineto records them: runtime calls (`cudaStreamSynchronize`, `cudaLaunchKernel`) and copies
    (`Memcpy HtoD (Pageable -> Device)`).
    """
    counts = dict.fromkeys(("syncs", "h2d_pageable", "h2d_pinned", "h2d_bytes", "d2h", "d2h_bytes", "launches"), 0)
    counts["allocations"] = 0
    for name, size in events:
        if name in _WAITS:
            counts["syncs"] += 1
        elif name in _LAUNCHES:
            counts["launches"] += 1
        elif name == "cudaMalloc":
            counts["allocations"] += 1
        elif name.startswith("Memcpy HtoD"):
            counts["h2d_pinned" if "Pinned" in name else "h2d_pageable"] += 1
            counts["h2d_bytes"] += size
        elif name.startswith("Memcpy DtoH"):
            counts["d2h"] += 1
            counts["d2h_bytes"] += size
    return counts


def _bytes_of(event: Any) -> int:  # noqa: ANN401 - torch's, whose attributes differ between versions
    """How many bytes a copy moved, where the profiler says it."""
    metadata = getattr(event, "metadata_json", None)
    found = _BYTES.search(metadata()) if callable(metadata) and event.name().startswith("Memcpy") else None
    return int(found[1]) if found else 0
