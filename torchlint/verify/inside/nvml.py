"""What NVIDIA's driver tells of a GPU: what slows it down, and how it is set. Nothing is ever set here.

pynvml comes with PyTorch's CUDA wheels on most machines; without it, or without the right to ask, nothing is told.
Names and bits are those of nvml.h (NVML API reference, nvmlClocksEventReasons).
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

_SLOWED = {
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x20: "thermal limit",
    0x40: "thermal limit",
    0x80: "power brake",
}
"""Bits of the clocks' event reasons that say by what the GPU is held back; the others are settings, or idling."""
_ON = {0: "off", 1: "on"}
_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}


def state(uuid: str) -> dict[str, Any]:
    """What there is of `slowed` (what holds it back), `power_w`, `temperature_c` and `processes` (that compute)."""
    found: dict[str, Any] = {}
    with _opened(uuid) as (library, handle):
        if library is None:
            return found
        reasons = _asked(library, handle, "nvmlDeviceGetCurrentClocksEventReasons") or _asked(
            library, handle, "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        if reasons is not None:
            found["slowed"] = sorted({words for bit, words in _SLOWED.items() if reasons & bit})
        power = _asked(library, handle, "nvmlDeviceGetPowerUsage")
        if power is not None:
            found["power_w"] = power / 1000
        temperature = _asked(library, handle, "nvmlDeviceGetTemperature", 0)  # of the GPU itself
        if temperature is not None:
            found["temperature_c"] = temperature
        processes = _asked(library, handle, "nvmlDeviceGetComputeRunningProcesses")
        if processes is not None:
            found["processes"] = len(processes)
    return found


def settings(uuid: str) -> dict[str, str]:
    """What there is of its limits and modes, in words."""
    found: dict[str, str] = {}
    with _opened(uuid) as (library, handle):
        if library is None:
            return found
        shown: dict[str, tuple[str, Callable[[Any], str]]] = {
            "power limit": ("nvmlDeviceGetEnforcedPowerLimit", lambda milliwatts: f"{milliwatts / 1000:.0f} W"),
            "persistence mode": ("nvmlDeviceGetPersistenceMode", lambda mode: _ON[mode]),
            "compute mode": ("nvmlDeviceGetComputeMode", lambda mode: _MODES[mode]),
            "ECC": ("nvmlDeviceGetEccMode", lambda modes: _ON[modes[0]]),
            "MIG": ("nvmlDeviceGetMigMode", lambda modes: _ON[modes[0]]),
        }
        for name, (function, words) in shown.items():
            value = _asked(library, handle, function)
            if value is not None:
                with contextlib.suppress(KeyError):
                    found[name] = words(value)
        highest = _asked(library, handle, "nvmlDeviceGetMaxClockInfo", 1)  # of the SMs
        if highest is not None:
            found["highest SM clock"] = f"{highest} MHz"
    return found


def memory_rate(uuid: str) -> int:
    """Bytes a second between the GPU and its memory at the highest clock, 0 where nobody tells."""
    with _opened(uuid) as (library, handle):
        if library is None:
            return 0
        clock = _asked(library, handle, "nvmlDeviceGetMaxClockInfo", 2)  # of the memory, in MHz
        wide = _asked(library, handle, "nvmlDeviceGetMemoryBusWidth")
    return 2 * clock * 1_000_000 * wide // 8 if clock and wide else 0


class _opened:  # noqa: N801 - a context manager
    """The library and the handle of a GPU while it is open; (None, None) where there is none."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        self._library: Any = None

    def __enter__(self) -> tuple[Any, Any]:
        try:
            library = importlib.import_module("pynvml")  # optional, and only here
            library.nvmlInit()
            self._library = library
            return library, library.nvmlDeviceGetHandleByUUID(self._uuid)
        except Exception:  # noqa: BLE001 - a driver without NVML, or of another version, raises errors of its own
            return None, None

    def __exit__(self, *_: object) -> None:
        if self._library is not None:
            with contextlib.suppress(Exception):
                self._library.nvmlShutdown()


def _asked(library: Any, handle: Any, name: str, *arguments: int) -> Any:  # untyped there
    """The answer of a function; None where this version has none, or the device does not know."""
    try:
        return getattr(library, name)(handle, *arguments)
    except Exception:  # noqa: BLE001 - as above
        return None
