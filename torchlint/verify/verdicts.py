"""What the figures of one arm come to: one verdict, and a line that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchlint.evidence import Overall
from torchlint.verify.arms import Failure
from torchlint.verify.stats import Decision

_MEMORY_SHARE = 0.01
_MEMORY_BYTES = 4096
_COPIES = ("h2d_pageable", "h2d_pinned", "d2h")
_BYTES = ("h2d_bytes", "d2h_bytes")


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of an arm against the null arm; None is what was not looked at.

    `cannot` is why the machine cannot run it. `numerics` is what `compare` says. `suspicious` is what the code does, in
    words that follow "the fixed code". `counts` are per unit of work, before and after; `memory` bytes at the peak,
    before and after.
    """

    metric: str = "time"
    cannot: str = ""
    failure: Failure | None = None
    numerics: Mapping[str, Any] | None = None
    suspicious: str = ""
    executed: bool = True
    time: Decision | None = None
    memory: tuple[int, int] | None = None
    counts: tuple[Mapping[str, float], Mapping[str, float]] | None = None


def overall(figures: Figures) -> tuple[Overall, str]:
    """The verdict and its reason; an empty reason where the figures speak for themselves."""
    if figures.cannot:
        return "cannot-run", figures.cannot
    if not figures.executed:
        return "not-exercised", "the lines that the fix changes do not run from this entry"
    if figures.failure is not None:
        return _failed(figures.failure)
    if figures.numerics is not None and figures.numerics["verdict"] == "wrong":
        return "wrong-result", str(figures.numerics["reason"])
    if figures.suspicious:
        return "suspicious", f"the fixed code {figures.suspicious}"
    if figures.numerics is not None and figures.numerics["verdict"] == "not-checked":
        return "inconclusive", f"the results could not be compared: {figures.numerics['reason']}"
    return _gain(figures)


def memory_verdict(memory: tuple[int, int]) -> str:
    """Whether the peak is less, more or the same: by more than 1 % and a page of 4 KiB."""
    before, after = memory
    if abs(after - before) <= max(_MEMORY_SHARE * before, _MEMORY_BYTES):
        return "same"
    return "less" if after < before else "more"


Counts = tuple["Mapping[str, float]", "Mapping[str, float]"]


def fewer_copies(counts: Counts) -> bool:
    """Whether fewer copies cross between host and device, or as many with fewer bytes, and nothing waits more often."""
    before, after = ((_sum(each, _COPIES), _sum(each, _BYTES)) for each in counts)
    return after < before and after[1] <= before[1] and _sum(counts[1], ("syncs",)) <= _sum(counts[0], ("syncs",))


def fewer_launches(counts: Counts) -> bool:
    """Whether fewer kernels are launched, with no more copies and no more waits."""
    before, after = counts
    bought = any(_sum(after, kinds) > _sum(before, kinds) for kinds in (_COPIES, ("syncs",)))
    return after.get("launches", 0) < before.get("launches", 0) and not bought


def _sum(counts: Mapping[str, float], kinds: tuple[str, ...]) -> float:
    return sum(counts.get(kind, 0) for kind in kinds)


def _failed(failure: Failure) -> tuple[Overall, str]:
    if failure.kind == "timeout":
        return "timeout", failure.reason
    if failure.kind == "oom":
        return "oom", failure.reason
    return "error", failure.reason


def _gain(figures: Figures) -> tuple[Overall, str]:
    """Of an arm that computes the same: the gain in time, or else in waits, or else in memory.

    A fix that is there for the memory's sake is asked for memory before waits. One that is there for the sake of copies
    or launches is asked for these after waits and before memory; of any other fix, fewer of them are no gain by
    themselves.
    """
    time = figures.time.verdict if figures.time else None
    if time == "faster":
        return "faster", ""
    saves = figures.memory is not None and memory_verdict(figures.memory) == "less"
    waits = figures.counts is not None and figures.counts[1].get("syncs", 0) < figures.counts[0].get("syncs", 0)
    if time == "slower":
        if saves and figures.metric == "memory":
            return "saves-memory", "it takes more time for it"
        return "slower", ""
    if saves and figures.metric == "memory":
        return "saves-memory", ""
    if waits:
        return "fewer-syncs", ""
    if figures.metric == "copies" and figures.counts and fewer_copies(figures.counts):
        return "fewer-copies", ""
    if figures.metric == "launches" and figures.counts and fewer_launches(figures.counts):
        return "fewer-launches", ""
    if saves:
        return "saves-memory", ""
    if time is None:
        moved = _moved(figures) or "nothing that is counted has changed"
        return "inconclusive", f"{moved}; time was not measured"
    return time, ""


def _moved(figures: Figures) -> str:
    """Which counts the fix has changed, in words."""
    if figures.counts is None:
        return ""
    before, after = figures.counts
    return ", ".join(
        f"{kind} {count:g} -> {after[kind]:g}" for kind, count in before.items() if after.get(kind, count) != count
    )
