"""The device that the code runs on, as far as measuring needs it: waiting, memory, counts, what it is."""

from __future__ import annotations

import contextlib
import os
import platform
import warnings
from typing import TYPE_CHECKING, Any, Protocol

import torch

from torchlint.verify.inside.profile import events_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTED = tuple("syncs h2d_pageable h2d_pinned h2d_bytes d2h d2h_bytes launches allocations empty_cache".split())
_SPUN_CYCLES = 5_000_000


class Count:
    """What was counted between entering and leaving: totals by kind, and by line of the code."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self.sites: list[dict[str, Any]] = []

    def add_recurring(self, earlier: Count) -> None:
        """Add what was counted earlier on the lines that are here, too: what only setting up did is left out."""
        lines = {(site["file"], site["line"]) for site in self.sites}
        sums = {(site["file"], site["line"], site["kind"]): site["count"] for site in self.sites}
        for site in earlier.sites:
            if (site["file"], site["line"]) in lines:
                place = (site["file"], site["line"], site["kind"])
                sums[place] = sums.get(place, 0) + site["count"]
                self.totals[site["kind"]] += site["count"]
        self.sites = [
            {"file": file, "line": line, "kind": kind, "count": count} for (file, line, kind), count in sums.items()
        ]


class Device(Protocol):
    """What a process measures on."""

    type: str
    target: str  # what `setup` gets for its `device`

    def sync(self) -> None:
        """Wait until all queued work is done."""

    def identity(self) -> dict[str, Any]:
        """What the device is: `name`, and what else is known."""

    def reset_peak(self) -> None:
        """Begin to look for the peak of memory anew."""

    def peak(self) -> int:
        """Bytes of the peak since then."""

    def live(self) -> int:
        """Bytes held now."""

    def clock(self) -> float | None:
        """The SM clock in MHz."""

    def counting(self) -> contextlib.AbstractContextManager[Count]:
        """Count what the code asks of the device."""


class Cpu:
    """The CPU: no counts, and memory is not looked at."""

    type = "cpu"
    target = "cpu"

    def sync(self) -> None:
        """Nothing is queued."""

    def identity(self) -> dict[str, Any]:
        """Its name."""
        return {"name": processor(), "cpu_cores": os.cpu_count()}

    def reset_peak(self) -> None:
        """Nothing is looked at."""

    def peak(self) -> int:
        """Bytes of the peak."""
        return 0

    def live(self) -> int:
        """Bytes held now."""
        return 0

    def clock(self) -> float | None:
        """Not known."""
        return None

    @contextlib.contextmanager
    def counting(self) -> Iterator[Count]:
        """What is asked of it inside."""
        yield Count()


class Cuda:
    """The current CUDA device."""

    type = "cuda"
    target = "cuda"

    def __init__(self) -> None:
        torch.cuda.init()
        # Bound before any measured code runs, which may patch the module's.
        self._synchronize = torch.cuda.synchronize

    def sync(self) -> None:
        """Wait for all streams."""
        self._synchronize()

    def identity(self) -> dict[str, Any]:
        """Its name, compute capability, memory in bytes and driver."""
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return {
            "name": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "memory": properties.total_memory,
            "driver": _driver(),
            "cpu_cores": os.cpu_count(),
        }

    def reset_peak(self) -> None:
        """Begin anew."""
        torch.cuda.reset_peak_memory_stats()

    def peak(self) -> int:
        """Bytes of the peak."""
        return int(torch.cuda.max_memory_allocated())

    def live(self) -> int:
        """Bytes held now."""
        return int(torch.cuda.memory_allocated())

    def clock(self) -> float | None:
        """From a kernel that spins for a known number of cycles, timed by events: needs neither NVML nor root."""
        spin = getattr(torch.cuda, "_sleep", None)
        if spin is None:
            return None
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        spin(1000)
        self.sync()
        begin.record()
        spin(_SPUN_CYCLES)
        end.record()
        self.sync()
        return float(_SPUN_CYCLES / (begin.elapsed_time(end) * 1e3))

    @contextlib.contextmanager
    def counting(self) -> Iterator[Count]:
        """From the profiler's runtime events; lines from torch's own sync-debug mode, which misses some waits."""
        count = Count()
        with _sync_warnings() as lines, events_counted() as events:
            yield count
        count.totals.update(events)
        count.sites = [
            {"file": file, "line": line, "kind": "syncs", "count": n} for (file, line), n in sorted(lines.items())
        ]


class Sim:
    """The simulated CUDA device: counts are exact, and there is no time."""

    type = "sim"
    target = "cuda"

    def __init__(self, simulated: Any) -> None:  # noqa: ANN401 - loaded only where it is asked for
        self._simulated = simulated

    def sync(self) -> None:
        """Nothing is queued, and the harness does not count its own waits."""

    def identity(self) -> dict[str, Any]:
        """Its name."""
        return {"name": "Simulated CUDA device", "cpu_cores": os.cpu_count()}

    def reset_peak(self) -> None:
        """Begin anew."""
        self._simulated.reset_peak()

    def peak(self) -> int:
        """Bytes of the peak."""
        return int(self._simulated.peak())

    def live(self) -> int:
        """Bytes held now."""
        return int(self._simulated.live())

    def clock(self) -> float | None:
        """Not known."""
        return None

    @contextlib.contextmanager
    def counting(self) -> Iterator[Count]:
        """What is asked of it inside."""
        self._simulated.reset()
        count = Count()
        yield count
        count.totals.update({kind: n for kind, n in self._simulated.counts().items() if kind in count.totals})
        count.sites = list(self._simulated.sites())


def open_device(kind: str, stack: contextlib.ExitStack) -> Device:
    """The device of that kind, until `stack` closes. Raises `RuntimeError` if there is none."""
    if kind == "sim":
        from torchlint.verify.inside.sim import simulated_cuda  # patches torch: only where it is asked for

        return Sim(stack.enter_context(simulated_cuda()))
    if kind == "cuda":
        return Cuda()
    return Cpu()


def software() -> dict[str, Any]:
    """Versions, and the global switches that fixes change."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.version.cuda and torch.cuda.is_available() else None,
        "platform": f"{platform.system()} {platform.machine()}",
        "flags": flags(),
    }


def flags() -> dict[str, Any]:
    """Global switches of torch that change how fast or how exactly it computes."""
    return {
        "threads": torch.get_num_threads(),
        "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
        "cudnn_allow_tf32": bool(torch.backends.cudnn.allow_tf32),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def processor() -> str:
    """The CPU's name."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - no Path here
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _driver() -> str | None:
    with contextlib.suppress(OSError), open("/proc/driver/nvidia/version", encoding="utf-8") as file:  # noqa: PTH123
        words = file.readline().split()
        return next((word for word in words if word[:1].isdigit() and "." in word), None)
    return None


@contextlib.contextmanager
def _sync_warnings() -> Iterator[dict[tuple[str, int], int]]:
    """How often each line waited, by torch.cuda.set_sync_debug_mode("warn")."""
    lines: dict[tuple[str, int], int] = {}
    shown = warnings.showwarning

    def note(message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:  # noqa: ANN401 - the hook's
        if "synchronizing CUDA operation" in str(message):
            lines[filename, lineno] = lines.get((filename, lineno), 0) + 1
        else:
            shown(message, category, filename, lineno, *rest)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note  # type: ignore[assignment]  # it passes on what it is given
        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lines
        finally:
            torch.cuda.set_sync_debug_mode(before)
