"""The device that the code runs on, as far as measuring needs it: waiting, memory, counts, what it is."""

from __future__ import annotations

import contextlib
import os
import platform
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from torchlint.verify.inside import nvml
from torchlint.verify.inside.profile import events_counted

COUNTED = tuple("syncs h2d_pageable h2d_pinned h2d_bytes d2h d2h_bytes launches allocations empty_cache".split())
_SPUN_CYCLES = 5_000_000
_CONTEXT = 1 << 29


class Count:
    """What was counted between entering and leaving: totals by kind, and by line of the code.

    `doubt` is why the totals cannot be right; they can if it is empty. `busy_ns` is for how long the device worked, 0
    of one that has no time.
    """

    def __init__(self) -> None:
        self.doubt = ""
        self.busy_ns = 0
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

    def settings(self) -> dict[str, str]:
        """How it is set, by names that people know; empty of what has no settings."""

    def reset_peak(self) -> None:
        """Begin to look for the peak of memory again."""

    def peak(self) -> int:
        """Bytes of the peak since then."""

    def live(self) -> int:
        """Bytes held now."""

    def room(self) -> tuple[int, int] | None:
        """Bytes that this process takes of the device, and those that it and others like it may take together."""

    def clock(self) -> float | None:
        """The SM clock in MHz."""

    def state(self) -> dict[str, Any]:
        """What slows it down now, as far as its driver tells: see `nvml.state`."""

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

    def settings(self) -> dict[str, str]:
        """None that is looked at."""
        return {}

    def reset_peak(self) -> None:
        """Nothing is looked at."""

    def peak(self) -> int:
        """Bytes of the peak."""
        return 0

    def live(self) -> int:
        """Bytes held now."""
        return 0

    def room(self) -> tuple[int, int] | None:
        """As much as the host has."""
        return None

    def clock(self) -> float | None:
        """Not known."""
        return None

    def state(self) -> dict[str, Any]:
        """Nobody tells."""
        return {}

    @contextlib.contextmanager
    def counting(self) -> Iterator[Count]:
        """What is asked of it inside."""
        yield Count()


class Cuda:
    """The current CUDA device.

    It is opened by the code, or by the first command that needs it: the driver reads its settings from the environment
    when it starts, and a program may set them in its first lines.
    """

    type = "cuda"
    target = "cuda"

    def __init__(self) -> None:
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

    def settings(self) -> dict[str, str]:
        """How it is set, as `nvml.settings` tells, and what bounds what it computes, as whole numbers.

        `multiprocessors`, `L2 bytes` and, of the memory, which transfers twice a cycle, `memory bytes per second`.
        """
        properties: Any = torch.cuda.get_device_properties(torch.cuda.current_device())
        told = nvml.settings(_uuid())
        bounds = {"multiprocessors": properties.multi_processor_count}
        bounds["L2 bytes"] = getattr(properties, "L2_cache_size", 0)
        # torch 2.9 tells it; before, NVML does.
        rate, wide = getattr(properties, "memory_clock_rate", 0), getattr(properties, "memory_bus_width", 0)
        bounds["memory bytes per second"] = 2 * rate * 1000 * wide // 8 or nvml.memory_rate(_uuid())
        return {**{name: str(value) for name, value in bounds.items() if value}, **told}

    def reset_peak(self) -> None:
        """Begin again."""
        torch.cuda.reset_peak_memory_stats()

    def peak(self) -> int:
        """Bytes of the peak."""
        return int(torch.cuda.max_memory_allocated())

    def live(self) -> int:
        """Bytes held now."""
        return int(torch.cuda.memory_allocated())

    def room(self) -> tuple[int, int]:
        """By the allocator, whose cache stays, and by the driver; a context takes about half a GiB besides."""
        own = int(torch.cuda.max_memory_reserved()) + _CONTEXT
        free, _ = torch.cuda.mem_get_info()
        return own, int(free) + own

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

    def state(self) -> dict[str, Any]:
        """As NVML tells it, where pynvml is there."""
        return nvml.state(_uuid())

    @contextlib.contextmanager
    def counting(self) -> Iterator[Count]:
        """From the profiler's runtime events; lines from torch's own sync-debug mode, which misses some waits."""
        count = Count()
        with events_counted(_known_work) as tally, _sync_warnings() as lines, _caches_emptied() as emptied:
            yield count
        for kind in count.totals.keys() - {"empty_cache", *(tally.counts or count.totals)}:
            del count.totals[kind]  # not known, which is not 0
        count.totals.update(tally.counts, empty_cache=len(emptied))
        count.doubt = tally.doubt
        count.busy_ns = tally.busy
        count.sites = [
            {"file": file, "line": line, "kind": "syncs", "count": n} for (file, line), n in sorted(lines.items())
        ]


class Uncounted(Cpu):
    """An accelerator that is not NVIDIA's: it is waited for, and neither counts nor memory nor clocks are looked at.

    `kind` is `rocm`, which is CUDA to torch, or torch's own name of it.
    """

    def __init__(self, kind: str) -> None:
        self.type = kind
        self.target = "cuda" if kind == "rocm" else kind
        # Bound before any measured code runs, which may patch the module's.
        self._synchronize = getattr(torch, self.target).synchronize

    def sync(self) -> None:
        """Wait for what is queued."""
        self._synchronize()

    def identity(self) -> dict[str, Any]:
        """Its name."""
        return {"name": name_of(self.type), "cpu_cores": os.cpu_count()}


class Sim(Cpu):
    """The simulated CUDA device: counts are exact, and there is no time."""

    type = "sim"
    target = "cuda"

    def __init__(self, simulated: Any) -> None:  # loaded only where it is asked for
        self._simulated = simulated

    def sync(self) -> None:
        """Nothing is queued, and the harness does not count its own waits."""

    def identity(self) -> dict[str, Any]:
        """Its name."""
        return {"name": "Simulated CUDA device", "cpu_cores": os.cpu_count()}

    def reset_peak(self) -> None:
        """Begin again."""
        self._simulated.reset_peak()

    def peak(self) -> int:
        """Bytes of the peak."""
        return int(self._simulated.peak())

    def live(self) -> int:
        """Bytes held now."""
        return int(self._simulated.live())

    @contextlib.contextmanager
    def counting(self) -> Iterator[Count]:
        """What is asked of it inside."""
        self._simulated.reset()
        count = Count()
        yield count
        count.totals.update({kind: n for kind, n in self._simulated.counts().items() if kind in count.totals})
        count.sites = list(self._simulated.sites())
        if self._simulated.used_elsewhere():
            count.sites = []  # half of them would be told
            count.doubt = "it is used in processes that the program starts, too, which are not counted"


def open_device(kind: str, stack: contextlib.ExitStack) -> Device:
    """The device of that kind, until `stack` closes. That there is no CUDA device is told by its first use."""
    if kind == "sim":
        from torchlint.verify.inside.sim import simulated_cuda  # patches torch: only where it is asked for

        return Sim(stack.enter_context(simulated_cuda()))
    if kind == "cuda":
        return Cuda()
    return Cpu() if kind == "cpu" else Uncounted(kind)


def name_of(kind: str) -> str:
    """The name of an accelerator that is not NVIDIA's; of one that is a part of the processor, that one's."""
    module = torch.cuda if kind == "rocm" else getattr(torch, kind, None)
    named = getattr(module, "get_device_name", None)
    return str(named()) if callable(named) else processor()


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


@contextlib.contextmanager
def full_float32() -> Iterator[None]:
    """No TF32 in cuDNN inside, which uses it by default, for recurrent layers too: what does without cuDNN does not.

    A program that was to be compared with one that takes another way would differ from it by 1e-3.
    """
    cudnn = torch.backends.cudnn
    try:
        before = cudnn.allow_tf32
    except RuntimeError:  # set by the newer names, which the older one cannot be mixed with
        kinds = [cudnn.conv, cudnn.rnn]
        precisions = [kind.fp32_precision for kind in kinds]
        for kind in kinds:
            kind.fp32_precision = "ieee"
        try:
            yield
        finally:
            for kind, precision in zip(kinds, precisions, strict=True):
                kind.fp32_precision = precision
        return
    cudnn.allow_tf32 = False
    try:
        yield
    finally:
        cudnn.allow_tf32 = before


def flags() -> dict[str, Any]:
    """Global switches of torch that change how fast or how exactly it computes.

    The older names of what is set by a newer one (`torch.backends.cuda.matmul.fp32_precision = "tf32"`) cannot be read
    any more where there is no one answer: they are `mixed` then. The newer ones are there since torch 2.9.
    """
    return {
        "threads": torch.get_num_threads(),
        "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
        "cudnn_allow_tf32": _unless_mixed(lambda: bool(torch.backends.cudnn.allow_tf32)),
        "float32_matmul_precision": _unless_mixed(torch.get_float32_matmul_precision),
        **_precisions(),
    }


def _unless_mixed(read: Callable[[], Any]) -> Any:  # a switch's value
    try:
        return read()
    except RuntimeError:
        return "mixed"


def _precisions() -> dict[str, str]:
    """The precision of float32 by the newer names, where this torch has them."""
    found = {}
    for name in ("", "cuda.matmul", "cudnn.conv", "cudnn.rnn"):
        place: Any = torch.backends
        for part in filter(None, name.split(".")):
            place = getattr(place, part, None)
        with contextlib.suppress(AttributeError, RuntimeError):  # older versions have neither name nor meaning for it
            found[f"{name}.fp32_precision".lstrip(".")] = str(place.fp32_precision)
    return found


def processor() -> str:
    """The CPU's name."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - no Path here
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


_CHOSEN = (
    *"CUBLAS_ CUDA_ CUDNN_ KMP_ MKL_ NVIDIA_TF32_OVERRIDE OMP_ PYTORCH_ TORCH_ TORCHINDUCTOR_".split(),
    *"HIP_ HSA_ MIOPEN_ ONEAPI_ SYCL_".split(),
)
_PLACES = ("_DIR", "_HOME", "_PATH")
_OF_IMAGES = frozenset({"CUDA_VERSION", "CUDNN_VERSION"})  # of what is in an image


def environment() -> dict[str, str]:
    """The variables that change how fast or how exactly torch and its libraries compute; none that name a place."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_CHOSEN) and not name.endswith(_PLACES) and name not in _OF_IMAGES and "/" not in value
    }


def _uuid() -> str:
    """By which NVML knows the device; "" before torch 2.5, which does not tell."""
    return str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))


def _driver() -> str | None:
    with contextlib.suppress(OSError), open("/proc/driver/nvidia/version", encoding="utf-8") as file:  # noqa: PTH123
        words = file.readline().split()
        return next((word for word in words if word[:1].isdigit() and "." in word), None)
    return None


def _known_work() -> None:
    """A kernel, a copy to the device, and a wait for both: a profiler that does not see these sees nothing."""
    ones = torch.ones(1, device="cuda")
    ones.copy_(torch.zeros(1, device="cpu"))
    torch.cuda.synchronize()


@contextlib.contextmanager
def _caches_emptied() -> Iterator[list[str]]:
    """The calls inside that empty the allocator's cache: calls of the runtime do not tell what they are made for."""
    calls: list[str] = []
    with contextlib.ExitStack() as stack:
        for name in ("_cuda_emptyCache", "_accelerator_emptyCache"):
            original = getattr(torch._C, name, None)  # what all public names come to
            if original is not None:

                def noted(*arguments: Any, _name: str = name, _original: Any = original, **options: Any) -> Any:
                    calls.append(_name)
                    return _original(*arguments, **options)

                setattr(torch._C, name, noted)
                stack.callback(setattr, torch._C, name, original)
        yield calls


@contextlib.contextmanager
def _sync_warnings() -> Iterator[dict[tuple[str, int], int]]:
    """How often each line waited, by torch.cuda.set_sync_debug_mode("warn")."""
    lines: dict[tuple[str, int], int] = {}
    shown = warnings.showwarning

    def note(message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:  # the hook's
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
