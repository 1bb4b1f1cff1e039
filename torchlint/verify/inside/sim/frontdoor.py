"""What stands in for `torch.cuda` and `torch.accelerator`: one device that is there, and whose waits are counted.

Older programs make tensors with `torch.cuda.FloatTensor` and its like, and name types by them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

from torchlint.verify.inside.sim import transfers
from torchlint.verify.inside.sim.memory import memory
from torchlint.verify.inside.sim.sites import ledger
from torchlint.verify.inside.sim.tensor import CUDA, SimTensor

NAME = "Simulated CUDA device"
CAPABILITY = (9, 0)
TOTAL_BYTES = 139 * 2**30

_PROPERTIES = SimpleNamespace(
    name=NAME,
    major=CAPABILITY[0],
    minor=CAPABILITY[1],
    total_memory=TOTAL_BYTES,
    multi_processor_count=132,
    is_integrated=False,
    is_multi_gpu_board=False,
    gcnArchName="",
    warp_size=32,
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    L2_cache_size=50 * 2**20,
    uuid="simulated",
)


class Stream:
    """A stream; work here is done as soon as it is issued, so that nothing is ever in flight."""

    device = CUDA
    device_index = 0
    device_type = 1
    stream_id = 0
    cuda_stream = 0
    priority = 0

    def __init__(self, *_: object, **__: object) -> None:
        """A stream of its own, though there is but one order of work."""

    def synchronize(self) -> None:
        """Wait for the stream (`cudaStreamSynchronize`)."""
        ledger.note("syncs")

    def query(self) -> bool:
        """Whether all work is done."""
        return True

    def is_capturing(self) -> bool:
        """Whether a graph is being captured."""
        return False

    def wait_stream(self, stream: object) -> None:
        """Order this stream after another; the host does not wait."""

    def wait_event(self, event: object) -> None:
        """Order this stream after an event; the host does not wait."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:  # noqa: PYI034 - `Self` is new in Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Event:
    """An event; its times are the host's."""

    device = CUDA

    def __init__(self, *_: object, **__: object) -> None:
        self._at = 0.0

    def record(self, stream: object = None) -> None:
        """Note the time."""
        del stream
        self._at = time.perf_counter()

    def wait(self, stream: object = None) -> None:
        """Order a stream after this event; the host does not wait."""

    def query(self) -> bool:
        """Whether the event has happened."""
        return True

    def synchronize(self) -> None:
        """Wait for the event (`cudaEventSynchronize`)."""
        ledger.note("syncs")

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds on the host's clock; they say nothing about a GPU."""
        return float(1e3 * (end._at - self._at))


_STREAM = Stream()


class _Device:
    """`torch.cuda.device` and its relatives: there is one device, so nothing is switched."""

    def __init__(self, *_: object, **__: object) -> None:
        self.idx = 0
        self.prev_idx = 0

    def __enter__(self) -> _Device:  # noqa: PYI034 - as above
        return self

    def __exit__(self, *_: object) -> None:
        return None


@contextlib.contextmanager
def _on_stream(stream: object = None) -> Iterator[Any]:
    yield stream


def _synchronize(*_: object, **__: object) -> None:
    ledger.note("syncs")


def _empty_cache(*_: object, **__: object) -> None:
    # `emptyCache` (c10/cuda/CUDACachingAllocator.cpp) calls `cudaFree`, which waits for the device.
    ledger.note("empty_cache")
    ledger.note("syncs")


def nothing(*_: object, **__: object) -> None:
    """What a function does that has no effect here."""


def _zero(*_: object, **__: object) -> int:
    return 0


def _no(*_: object, **__: object) -> bool:
    return False


def _yes(*_: object, **__: object) -> bool:
    return True


def _live(*_: object, **__: object) -> int:
    return memory.live


def _peak(*_: object, **__: object) -> int:
    return memory.peak


def _reset_peak(*_: object, **__: object) -> None:
    memory.reset_peak()


def _memory_stats(*_: object, **__: object) -> dict[str, int]:
    return {
        f"{what}_bytes.all.{when}": number
        for what in ("allocated", "reserved", "active")
        for when, number in (("current", memory.live), ("peak", memory.peak))
    }


def _memory_info(*_: object, **__: object) -> tuple[int, int]:
    return TOTAL_BYTES - memory.live, TOTAL_BYTES


def _set_state(state: torch.Tensor, *_: object, **__: object) -> None:
    torch.set_rng_state(state.cpu())


def _get_state(*_: object, **__: object) -> torch.Tensor:
    return torch.get_rng_state()


def _current_accelerator(*_: object, **__: object) -> torch.device:
    return torch.device("cuda")


# The generator of the device is the host's, which `torch.manual_seed` seeds; a seed for CUDA alone changes nothing.
CUDA_NAMES: dict[str, Any] = {
    "Event": Event,
    "Stream": Stream,
    "_DeviceGuard": _Device,
    "_exchange_device": _zero,
    "_get_device_index": _zero,
    "_is_in_bad_fork": _no,
    "_lazy_call": nothing,
    "_lazy_init": nothing,
    "_maybe_exchange_device": _zero,
    "current_device": _zero,
    "current_stream": lambda *_, **__: _STREAM,
    "default_stream": lambda *_, **__: _STREAM,
    "device": _Device,
    "device_count": lambda: 1,
    "device_of": _Device,
    "empty_cache": _empty_cache,
    "get_arch_list": lambda: ["sm_90"],
    "get_device_capability": lambda *_, **__: CAPABILITY,
    "get_device_name": lambda *_, **__: NAME,
    "get_device_properties": lambda *_, **__: _PROPERTIES,
    "get_rng_state": _get_state,
    "get_rng_state_all": lambda: [_get_state()],
    "init": nothing,
    "initial_seed": torch.initial_seed,
    "ipc_collect": nothing,
    "is_available": _yes,
    "is_bf16_supported": _yes,
    "is_current_stream_capturing": _no,
    "is_initialized": _yes,
    "is_tf32_supported": _yes,
    "manual_seed": nothing,
    "manual_seed_all": nothing,
    "max_memory_allocated": _peak,
    "max_memory_cached": _peak,
    "max_memory_reserved": _peak,
    "mem_get_info": _memory_info,
    "memory_allocated": _live,
    "memory_cached": _live,
    "memory_reserved": _live,
    "memory_stats": _memory_stats,
    "memory_summary": lambda *_, **__: f"{memory.live} bytes are allocated, {memory.peak} at the peak",
    "reset_accumulated_memory_stats": nothing,
    "reset_max_memory_allocated": _reset_peak,
    "reset_peak_memory_stats": _reset_peak,
    "seed": nothing,
    "seed_all": nothing,
    "set_device": nothing,
    "set_per_process_memory_fraction": nothing,
    "set_rng_state": _set_state,
    "set_rng_state_all": lambda states: _set_state(states[0]),
    "set_stream": nothing,
    "set_sync_debug_mode": nothing,
    "stream": _on_stream,
    "synchronize": _synchronize,
}

ACCELERATOR_NAMES: dict[str, Any] = {
    "current_accelerator": _current_accelerator,
    "current_device_idx": _zero,
    "current_device_index": _zero,
    "current_stream": lambda *_, **__: _STREAM,
    "device_count": lambda: 1,
    "device_index": _Device,
    "empty_cache": _empty_cache,
    "get_device_capability": lambda *_, **__: {},
    "get_memory_info": _memory_info,
    "is_available": _yes,
    "max_memory_allocated": _peak,
    "max_memory_reserved": _peak,
    "memory_allocated": _live,
    "memory_reserved": _live,
    "memory_stats": _memory_stats,
    "reset_accumulated_memory_stats": nothing,
    "reset_peak_memory_stats": _reset_peak,
    "set_device_idx": nothing,
    "set_device_index": nothing,
    "set_stream": nothing,
    "synchronize": _synchronize,
}

NVTX_NAMES = ("mark", "range_end", "range_pop", "range_push", "range_start")


NAMES = tuple(f"{kind}Tensor" for kind in "BFloat16 Bool Byte Char Double Float Half Int Long Short".split())


class Typed(type):
    """The type of such a class: tensors on the device, of its `dtype`, are its instances."""

    dtype: torch.dtype
    is_cuda = True

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is SimTensor and instance.dtype == cls.dtype

    def __call__(cls, *arguments: Any, **_: object) -> torch.Tensor:  # sizes, or numbers
        """As `torch.FloatTensor`, on the device: of a size its memory, of numbers a copy of them."""
        if arguments and isinstance(arguments[0], SimTensor):
            return arguments[0].to(cls.dtype)
        value = getattr(torch, cls.__name__)(*arguments)
        if arguments and not isinstance(arguments[0], (int, torch.Size)):
            transfers.to_device(value, value.dtype, non_blocking=False)
        return SimTensor(value)


def typed(name: str) -> Typed:
    """What `torch.cuda` has under that name, which is one of `NAMES`."""
    return Typed(name, (), {"__module__": "torch.cuda", "dtype": getattr(torch, name).dtype})
