"""Times arms against the null arm: fresh processes per replicate, mirrored rounds, and a decision at each look."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from torchlint.verify import stats
from torchlint.verify.ablation import NULL, Comparison, Stage
from torchlint.verify.arms import Arm, BaselineError, Failure
from torchlint.verify.replicate import SAMPLES, Block, CrowdedError, Rounds, one_at_a_time, replicate
from torchlint.verify.session import Session

__all__ = ["SAMPLES", "BaselineError", "Limits", "Timed", "measure"]

_SPIN_S = 0.05
_CONTROLS = ("handicap", "bias")
_UNSETTLED = 2  # quads
_BUSY = 0.2  # of a CPU, used while the arm should be idle, beyond what the null arm uses
_AT_ONCE = 12  # arms, each of which holds its model and what the device needs for a process


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: after so many replicates, at `deadline` (of `time.monotonic`), or at Ctrl-C if `interruptible`."""

    max_replicates: int = stats.LOOKS[-1]
    deadline: float = math.inf
    interruptible: bool = False


@dataclass(slots=True)
class Timed:
    """What was measured of all arms. Times in nanoseconds a unit of work.

    `working` are the shares of a CPU that each arm used while it should be idle, a value for each block; `busy` is the
    share of one that others used, for each replicate; `clocks_of` are the SM clocks in MHz after each arm's blocks, and
    `unsettled` says how many quads were kept though one of them jumped; `first_ns` are the times of each arm's first
    unit; `at_once` is how many arms are measured beside each other at most, `fitted` are those that have been, and
    `alone` says that not even two fit on the device, so that each is measured in a process alone. `blocks` are all that
    were measured, each with the number of its replicate, and `states` what NVML said after them. `busy_ns` is for how
    long a unit of each arm keeps the device busy, where that was asked. `quads` are a replicate's. `interrupted`: by
    Ctrl-C.
    """

    metric: str
    looks: tuple[int, ...]
    spend: tuple[float, ...]
    scale: float
    seed: int
    log_ratios: dict[Comparison, list[float]]
    decisions: dict[Comparison, stats.Decision] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    working: dict[str, list[float]] = field(default_factory=dict)
    baseline_ns: list[float] = field(default_factory=list)
    inner: int = 1
    quads: int = 0
    replicates: int = 0
    clocks_of: dict[str, list[float]] = field(default_factory=dict)
    unsettled: int = 0
    at_once: int = field(default_factory=lambda: _AT_ONCE)
    fitted: set[frozenset[str]] = field(default_factory=set)
    alone: bool = False
    blocks: list[tuple[int, Block]] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    first_ns: dict[str, list[float]] = field(default_factory=dict)
    busy: list[float] = field(default_factory=list)
    busy_ns: dict[str, float] = field(default_factory=dict)
    asks_busy: bool = False
    interrupted: bool = False

    @property
    def clocks(self) -> list[float]:
        """The SM clocks after all blocks."""
        return [clock for each in self.clocks_of.values() for clock in each]

    def later(self, arm: str) -> float:
        """By how many seconds the first unit of an arm takes longer than that of the null arm, at the median."""
        own, null = self.first_ns.get(arm), self.first_ns.get(NULL)
        return (median(own) - median(null)) / 1e9 if own and null else 0.0

    @property
    def handicap(self) -> stats.Decision | None:
        """What is known of the arm with the planted delay."""
        return next((found for asked, found in self.decisions.items() if asked.question == "handicap"), None)

    @property
    def handicap_seen(self) -> bool:
        """Whether the run can tell a delay of 5 %."""
        return self.handicap is not None and stats.handicap_seen(self.handicap)

    @property
    def suspicious(self) -> dict[str, str]:
        """The arms that do what no fix should and the null arm does not, and what that is."""
        usual = median(self.working.get(NULL) or [0.0])
        return {
            name: "goes on working after it has returned"
            for name, shares in self.working.items()
            if median(shares) - usual > _BUSY
        }

    @property
    def biased(self) -> bool:
        """Whether untouched code differs from code after an edit that does nothing: then nothing can be believed."""
        return any(
            found.verdict in ("faster", "slower") for asked, found in self.decisions.items() if asked.question == "bias"
        )


def measure(
    session: Session,
    arms: Mapping[str, Arm],
    stage: Stage,
    *,
    metric: str,
    limits: Limits,
    seed: int = 0,
    busy: bool = False,
) -> Timed:
    """Answer the comparisons of a stage from as many replicates as they need. Raises `BaselineError`.

    A replicate that would not end before the deadline is not begun; what is open then is inconclusive, and so is all
    that is open once untouched code differs from the null arm.
    `arms` has the arm of each version of the stage. `metric` is `wall`, or `cpu-time` for code whose work is in one
    process and on the CPU. With `busy` arms are asked once, after they were timed, for how long they keep the device
    busy.
    """
    looks, spend = stats.plan(max(limits.max_replicates, stats.LOOKS[0]))
    scale = stats.alpha_scale(max(stage.claims, 1))
    timed = Timed(metric, looks, spend, scale, seed, {asked: [] for asked in stage.comparisons}, asks_busy=busy)
    order = random.Random(seed)  # noqa: S311 - no secret
    took = 0.0
    for look, replicates in enumerate(looks):
        while timed.replicates < min(replicates, limits.max_replicates) and time.monotonic() + took < limits.deadline:
            if not _open(timed):
                return timed
            begin = time.monotonic()
            try:
                _replicate(session, arms, timed, order)
            except KeyboardInterrupt:
                if not limits.interruptible:
                    raise
                timed.interrupted = True
                break
            timed.replicates += 1
            took = time.monotonic() - begin
            session.note(
                f"replicate {timed.replicates} of at most {looks[-1]}, {_so_far(timed)}"
                f"{len(timed.decisions)} of {len(timed.log_ratios)} decided, {took:.0f} s each"
            )
        if timed.replicates < replicates:
            break
        _decide(timed, look)
        if timed.biased:
            break
    for comparison, ratios in timed.log_ratios.items():
        if comparison not in timed.decisions and not _has_failed(timed, comparison):
            timed.decisions[comparison] = stats.stopped(ratios, spend=spend, scale=scale)
    return timed


def _so_far(timed: Timed) -> str:
    """The gain of the one version that is asked about, if there is but one."""
    asked = [ratios for comparison, ratios in timed.log_ratios.items() if comparison.question not in _CONTROLS]
    return f"{100 * math.expm1(fmean(asked[0])):+.1f} % so far, " if len(asked) == 1 and asked[0] else ""


def _has_failed(timed: Timed, comparison: Comparison) -> bool:
    return comparison.arm in timed.failures or comparison.against in timed.failures


def _open(timed: Timed) -> list[Comparison]:
    """The questions without an answer, and with them those about the controls; none if all are answered."""
    alive = [comparison for comparison in timed.log_ratios if not _has_failed(timed, comparison)]
    controls = [comparison for comparison in alive if comparison.question in _CONTROLS]
    wanted = [comparison for comparison in alive if comparison not in controls and comparison not in timed.decisions]
    return [*controls, *wanted] if wanted else []


def _decide(timed: Timed, look: int) -> None:
    """Give each question its answer, if this look has one. The controls are asked first, and again at each look."""
    for comparison, ratios in sorted(timed.log_ratios.items(), key=lambda item: item[0].question not in _CONTROLS):
        is_control = comparison.question in _CONTROLS
        if _has_failed(timed, comparison) or (comparison in timed.decisions and not is_control):
            continue
        found = stats.decide(
            ratios,
            look,
            looks=timed.looks,
            spend=timed.spend,
            scale=1.0 if is_control else timed.scale,
            handicap_seen=timed.handicap_seen,
        )
        if found.verdict is not None or is_control:
            timed.decisions[comparison] = found


def _replicate(session: Session, arms: Mapping[str, Arm], timed: Timed, order: random.Random) -> None:
    """One replicate of fresh processes; adds a log ratio for each open question whose arms live through it."""
    timed.busy.append(host_busy())
    seed = timed.seed + 1000 * (timed.replicates + 1)
    baseline = []
    waves = _waves(_open(timed), timed.at_once)
    while waves:
        wave = waves.pop(0)
        rounds = _rounds(session, arms, timed, wave, seed, order)
        if rounds is None:
            waves = [*_waves(wave, timed.at_once), *waves]
            continue
        timed.failures.update(rounds.failures)
        timed.unsettled += rounds.unsettled
        for name, first in rounds.first_ns.items():
            timed.first_ns.setdefault(name, []).append(first)
        for name, clocks in rounds.clocks.items():
            timed.clocks_of.setdefault(name, []).extend(clocks)
        timed.inner, timed.quads = rounds.inner, len(rounds.quads)
        timed.blocks += [(timed.replicates, block) for block in rounds.blocks]
        timed.states += rounds.states
        timed.busy_ns.update(rounds.busy_ns)
        for name, shares in rounds.working.items():
            timed.working.setdefault(name, []).extend(shares)
        for comparison in wave:
            ratio = rounds.log_ratio(comparison.arm, comparison.against)
            if ratio is not None:
                timed.log_ratios[comparison].append(ratio)
        baseline.append(rounds.time_of(NULL))
    timed.baseline_ns.append(median(baseline))


def _rounds(
    session: Session,
    arms: Mapping[str, Arm],
    timed: Timed,
    wave: Sequence[Comparison],
    seed: int,
    order: random.Random,
) -> Rounds | None:
    """The arms of a wave against each other; None if they do not fit on the device together, and fewer may.

    An arm that runs out of memory beside others is believed only where it does so beside those alone that it is
    compared with. Raises `BaselineError`.
    """
    names = _names(wave)
    chosen = [arms[name] for name in names]
    if timed.alone:
        return one_at_a_time(session, chosen, metric=timed.metric, seed=seed, order=order)
    try:
        rounds = replicate(
            session,
            chosen,
            metric=timed.metric,
            seed=seed,
            order=order,
            # Where the clock does not settle, measuring three times as long does not settle it.
            redo=timed.unsettled < _UNSETTLED,
            fit=any(known.issuperset(names) for known in timed.fitted),
            busy=timed.asks_busy and not timed.busy_ns,
            quads=timed.quads or None,
        )
    except CrowdedError as error:
        fits = error.fits
        if len(wave) == 1:
            return _alone(session, chosen, timed, seed, order)
    except BaselineError as error:
        if error.failure.kind != "oom":
            raise
        fits = len(names) // 2
        if len(wave) == 1:
            return _alone(session, chosen, timed, seed, order)
    else:
        crowded = any(failure.kind == "oom" for failure in rounds.failures.values())
        if not crowded:
            timed.fitted.add(frozenset(names))
        if len(wave) == 1 and crowded:
            timed.at_once = _AT_ONCE  # it was this arm's own doing, and the others may have room
        if len(wave) == 1 or not crowded:
            return rounds
        fits = len(names) // 2
    timed.at_once = max(2, min(fits, len(names) - 1))
    session.note(f"{len(names)} arms do not fit on the device together: {timed.at_once} at a time")
    return None


def _alone(session: Session, arms: Sequence[Arm], timed: Timed, seed: int, order: random.Random) -> Rounds:
    """The rounds of arms of which no two fit on the device, and so of all that follows. Raises `BaselineError`."""
    session.note("no two arms fit on the device together: one process at a time")
    rounds = one_at_a_time(session, arms, metric=timed.metric, seed=seed, order=order)
    timed.alone, timed.at_once = True, _AT_ONCE
    return rounds


def _waves(comparisons: Sequence[Comparison], at_once: int) -> list[list[Comparison]]:
    """The comparisons in as few parts as have at most so many arms, the null arm in each."""
    waves: list[list[Comparison]] = [[]]
    for comparison in comparisons:
        if waves[-1] and len(_names([*waves[-1], comparison])) > at_once:
            waves.append([])
        waves[-1].append(comparison)
    return waves


def _names(comparisons: Sequence[Comparison]) -> list[str]:
    names = [name for comparison in comparisons for name in (comparison.against, comparison.arm)]
    return list(dict.fromkeys([NULL, *names]))


def host_busy() -> float:
    """The share of a CPU that this process, which only spins, does not get."""
    begin, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < _SPIN_S:
        pass
    return max(0.0, 1 - (time.process_time() - cpu) / (time.perf_counter() - begin))
