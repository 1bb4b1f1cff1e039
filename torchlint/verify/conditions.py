"""How the machine was while time was measured, what that says of the figures, and whether they are possible at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from torchlint import evidence
from torchlint.verify.ablation import NULL
from torchlint.verify.session import Session
from torchlint.verify.timing import Timed

_MOST_A_CYCLE = {"7.0": 1024, "7.5": 2048, "8.0": 4096, "8.6": 2048, "8.7": 2048, "8.9": 2048, "9.0": 8192}
"""Operations a cycle of a multiprocessor, by compute capability: dense, of the narrowest type that torch multiplies.

From NVIDIA's data sheets, operations a second over multiprocessors and boost clock: V100 125 T (float16), T4 130 T and
A100 624 T (int8), RTX 3090 284 T (int8), RTX 4090 660 T and H100 1,979 T (float8). What is not here is not bounded.
"""
_MARGIN = 1.1  # of clocks, which are measured after a block
_UNKNOWN_CACHE = 1 << 30  # more than any GPU has
_BOUNDS = ("multiprocessors", "memory bytes per second", "L2 bytes")
"""Settings that bound what is computed, and that reports do not show."""
_CLEAR = 1.0  # seconds: what a start takes longer by less is noise


@dataclass(frozen=True, slots=True)
class Work:
    """What a run of each arm asks of the device, before and after.

    Nanoseconds that it is busy, operations, and the bytes that it has to fetch from its memory.
    """

    busy_ns: tuple[float, float] | None = None
    flop: tuple[int, int] | None = None
    fetched: tuple[int, int] | None = None


def conditions(running: Session, timed: Timed, arm: str, work: Work, speedup: float) -> evidence.Conditions:
    """Those of a run whose fixed arm has this name and speed-up."""
    states = timed.states
    slowed = {words for state in states for words in state.get("slowed", ())}
    return evidence.Conditions(
        cpu=str(running.machine.get("cpu", "")),
        sm_clock_mhz={name: round(median(clocks), 1) for name, clocks in sorted(timed.clocks_of.items()) if clocks},
        slowed=tuple(sorted(slowed)) if any("slowed" in state for state in states) else None,
        power_w=_range(states, "power_w"),
        temperature_c=_range(states, "temperature_c"),
        processes=max((state["processes"] for state in states if "processes" in state), default=None),
        settings=dict(running.machine.get("settings", {})),
        environment=dict(running.machine.get("environment", {})),
        device_busy_us=_microseconds(work.busy_ns),
        flop=work.flop,
        most_flop_per_s=most(running, timed),
        fetched=work.fetched,
        most_bytes_per_s=_most_bytes(running),
        start_up=start_up(timed, arm, speedup),
    )


def most(running: Session, timed: Timed) -> float | None:
    """Operations a second that the GPU can do at most, at the highest clock that was seen; None where nobody knows."""
    a_cycle = _MOST_A_CYCLE.get(str(running.device.get("capability")))
    count = _setting(running, "multiprocessors")
    if a_cycle is None or count is None or not timed.clocks:
        return None
    return a_cycle * count * max(timed.clocks) * 1e6 * _MARGIN


def _most_bytes(running: Session) -> float | None:
    """Bytes a second that the GPU can fetch from its memory at most; None where neither torch nor NVML tells."""
    told = _setting(running, "memory bytes per second")
    return None if told is None else told * _MARGIN


def _setting(running: Session, name: str) -> int | None:
    told = str(running.machine.get("settings", {}).get(name, ""))
    return int(told) if told.isdigit() else None


def too_good(running: Session, timed: Timed, work: Work, seconds: float) -> str:
    """Why a time cannot be that of what the fixed code computes, in words that follow "the fixed code".

    Empty if it can. What computes when it is counted and not when it is timed has remembered its results. Of what is
    fetched, the cache may have kept as much as it holds since the run before.
    """
    if seconds <= 0:
        return ""
    bounds = (
        (work.flop[1] if work.flop else 0, most(running, timed), "TFLOP/s by its products alone", "do"),
        (
            max(0, (work.fetched[1] if work.fetched else 0) - (_setting(running, "L2 bytes") or _UNKNOWN_CACHE)),
            _most_bytes(running),
            "TB/s from its memory, by what was there before and is read",
            "fetch",
        ),
    )
    for amount, at_most, what, does in bounds:
        if at_most is not None and amount > at_most * seconds:
            rate, bound = (_tera(value) for value in (amount / seconds, at_most))
            return f"is too good to be true: {rate} {what}, where this GPU can {does} {bound}"
    return ""


def _tera(value: float) -> str:
    return f"{value / 1e12:,.0f}" if value >= 1e14 else f"{value / 1e12:.3g}"


def start_up(timed: Timed, arm: str, speedup: float) -> evidence.StartUp | None:
    """What the first run takes, and how many runs of the faster code earn what it takes longer."""
    own, null = timed.first_ns.get(arm), timed.first_ns.get(NULL)
    if not own or not null or not timed.baseline_ns:
        return None
    before, after = median(null), median(own)
    saved = (1 - 1 / speedup) * timed.baseline_ns[-1]
    pays = math.ceil((after - before) / saved) if after - before >= _CLEAR * 1e9 and saved > 0 else None
    return evidence.StartUp(before_us=round(before / 1e3, 3), after_us=round(after / 1e3, 3), runs=pays)


def _range(states: list[dict[str, Any]], name: str) -> tuple[float, float] | None:
    found = [float(state[name]) for state in states if name in state]
    return (min(found), max(found)) if found else None


def _microseconds(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if pair is None else (round(pair[0] / 1e3, 3), round(pair[1] / 1e3, 3))


def lines(found: evidence.Conditions) -> Mapping[str, str]:
    """What of it a report shows, by its name."""
    shown = {"CPU": found.cpu}
    if found.sm_clock_mhz:
        shown["SM clock"] = ", ".join(f"{name} {clock:.0f} MHz" for name, clock in found.sm_clock_mhz.items())
        shown["SM clock"] += " (medians after blocks; clocks are not locked)"
    if found.slowed is not None:
        shown["held back by"] = ", ".join(found.slowed) or "nothing"
    if found.power_w:
        shown["power"] = f"{found.power_w[0]:.0f} to {found.power_w[1]:.0f} W"
    if found.temperature_c:
        shown["temperature"] = f"{found.temperature_c[0]:.0f} to {found.temperature_c[1]:.0f} °C"
    if found.processes is not None:
        shown["processes on the GPU"] = f"at most {found.processes}, ours among them"
    shown |= {name: value for name, value in found.settings.items() if name not in _BOUNDS}
    shown |= found.environment
    shown["caches"] = "as the program leaves them"
    return shown
