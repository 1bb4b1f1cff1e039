"""What was found of a rule's pair, as the measurement that evidence keeps of it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import PurePath
from typing import Any

import msgspec

from torchlint import __version__, evidence
from torchlint.verify import checks, stats, timing, verdicts
from torchlint.verify.ablation import NULL, Comparison
from torchlint.verify.arms import PLANTED, Failure
from torchlint.verify.conditions import Work, conditions, start_up, too_good
from torchlint.verify.looked import Looked
from torchlint.verify.session import Session
from torchlint.verify.workload import Workload

FIXED = "fixed"
QUESTION = Comparison(FIXED, NULL, "together")

_UNKNOWN: dict[str, Any] = {"python": "", "torch": "", "platform": ""}
_NO_HELP = "nohelp"
_SHORT_NS = 1e6  # waiting for a device and going round a loop takes some hundredths of it
_OTHER_GAINS = frozenset({"fewer-syncs", "fewer-copies", "fewer-launches", "saves-memory"})
_DOES_NOT_PAY = frozenset({"no-measurable-difference", "slower", "inconclusive"})


@dataclass(slots=True)
class Found:
    """What has been found so far: of each look None, or nothing, where it was not taken.

    `counts` are per unit of work and `memory` is bytes at the peak, both before and after, as `work` is. `uncounted` is
    why there are no counts where they were taken, since they could not be right. `late`: the time ended before there
    was anything. `earlier` is the command that found what was looked at by an earlier run.
    """

    cannot: str = ""
    failure: Failure | None = None
    numerics: Mapping[str, Any] | None = None
    counts: tuple[dict[str, float], dict[str, float]] | None = None
    memory: tuple[int, int] | None = None
    uncounted: str = ""
    late: bool = False
    timed: timing.Timed | None = None
    work: Work = field(default_factory=Work)
    counted: bool = False
    earlier: str = ""

    def take(self, looked: Looked) -> None:
        """Take over what an earlier run has found."""
        self.numerics, self.counts, self.memory = looked.numerics, looked.counts, looked.memory
        self.uncounted, self.counted, self.earlier = looked.uncounted, looked.counted, looked.command
        self.work = Work(looked.busy_ns, looked.flop, looked.fetched)

    def looked(self, torch: str, command: str) -> Looked:
        """What a later run can take over; it is to have `numerics`."""
        assert self.numerics is not None
        return Looked(
            numerics=dict(self.numerics),
            torch=torch,
            command=self.earlier or portable(command),
            counted=self.counted,
            counts=self.counts,
            memory=self.memory,
            flop=self.work.flop,
            fetched=self.work.fetched,
            busy_ns=self.work.busy_ns,
            uncounted=self.uncounted,
        )

    @property
    def decision(self) -> stats.Decision | None:
        """What was decided of the time."""
        return self.timed.decisions.get(QUESTION) if self.timed else None

    @property
    def cut(self) -> bool:
        """Whether the time for measuring ended before anything was decided."""
        if self.late:
            return True
        if self.timed is None or self.decision is None:
            return False
        return self.decision.verdict == "inconclusive" and self.timed.replicates < self.timed.looks[-1]


def measurement(
    workload: Workload, size: str, device: str, command: str, running: Session, found: Found
) -> evidence.Measurement:
    """All of it with its verdict; `command` is how it was measured, and loses what says where."""
    timed, decision = found.timed, found.decision
    identity = {"type": device, "name": device, **running.device}
    if device == "sim":
        identity.pop("cpu_cores", None)  # what is counted does not depend on the machine, and so does not name it
    clocks = timed.clocks if timed else []
    return evidence.Measurement(
        subject=evidence.Subject(
            rule=workload.rule.name,
            size=size,
            parameters=workload.sizes[size],
            sha256_before=workload.digests["sha256_before"],
            sha256_after=workload.digests["sha256_after"],
            fix=workload.fix,
            metric=workload.metric,
        ),
        device=evidence.Device(**identity, sm_clock_mhz=(min(clocks), max(clocks)) if clocks else None),
        software=evidence.Software(torchlint=__version__, **(running.software or _UNKNOWN)),
        verdict=_verdict(workload, size, running, found),
        provenance=evidence.Provenance(
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            command=" && ".join(filter(None, (found.earlier, portable(command)))),
        ),
        protocol=_protocol(timed, running) if timed and timed.replicates else None,
        controls=_controls(timed, found) if timed else None,
        numerics=_numerics(found.numerics, workload) if found.numerics else None,
        time=_time(timed, decision) if timed and decision and decision.n > 1 else None,
        memory=_memory(found.memory) if found.memory else None,
        counts=_counts(device, found.counts) if found.counts else None,
        conditions=(
            conditions(running, timed, FIXED, found.work, decision.ratio)
            if timed and timed.replicates and decision
            else msgspec.UNSET
        ),
    )


def ratio(decision: stats.Decision, log_ratios: Sequence[float]) -> evidence.Ratio:
    """A decision as evidence keeps it."""
    return evidence.Ratio(
        ratio=decision.ratio,
        lo=decision.lo,
        hi=decision.hi,
        level=decision.level,
        n=decision.n,
        log_ratios=tuple(round(value, 6) for value in log_ratios),
    )


def portable(command: str) -> str:
    """A command line in which a path from the root is only its last part: where a tree lies is nobody's business."""
    return shlex.join(_named(word) for word in shlex.split(command))


def _named(word: str) -> str:
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    path = PurePath(value)
    return f"{option}{equals}{path.name}" if path.is_absolute() else word


def _verdict(workload: Workload, size: str, running: Session, found: Found) -> evidence.Verdict:
    """The verdict and its reason: the sentence of a size that is known not to help, where it does not."""
    figures = verdicts.Figures(
        cannot=found.cannot,
        metric=workload.metric,
        failure=found.failure,
        numerics=found.numerics,
        suspicious=_suspicion(running, found.timed, found.work),
        time=found.decision,
        memory=found.memory,
        counts=found.counts,
    )
    overall, reason = verdicts.overall(figures)
    reasons = [reason] if reason else []
    if found.late:
        overall, reasons = "inconclusive", ["the time for measuring ended before the results were compared and counted"]
    if found.cut and found.timed and overall == "inconclusive":
        reasons.append(f"the time for measuring ended after {found.timed.replicates} replicates")
    # Fewer waits are no help where they save no time.
    paid = found.decision.verdict if found.decision and overall in _OTHER_GAINS else overall
    if size.startswith(_NO_HELP) and paid in _DOES_NOT_PAY:
        reasons.append(workload.nohelp)
    if overall == "faster" and found.timed and found.decision:
        reasons += _start_up(found.timed, found.decision) + _at_least(found.timed, found.decision)
    if found.uncounted:
        reasons.append(f"not counted: {found.uncounted}")
    return evidence.Verdict(overall=overall, reason=". ".join(reasons))


def _start_up(timed: timing.Timed, decision: stats.Decision) -> list[str]:
    """What an arm that compiles, or chooses algorithms, pays at its start, and how many runs earn it."""
    found = start_up(timed, FIXED, decision.ratio)
    if found is None or found.runs is None:
        return []
    return [f"its first run takes {timed.later(FIXED):.0f} s longer, which {found.runs:,} runs earn"]


def _at_least(timed: timing.Timed, decision: stats.Decision) -> list[str]:
    """What is left out of the gain of an arm whose samples are as long as reading the clock and waiting takes.

    They have as many runs as those of the null arm, which are what a sample was made long enough for.
    """
    sample_ns = timed.inner * timed.baseline_ns[-1] / decision.ratio
    return ["the gain is at least this: its samples are too short to be timed exactly"] if sample_ns < _SHORT_NS else []


def _suspicion(running: Session, timed: timing.Timed | None, work: Work) -> str:
    """What the fixed arm does that no fix should, and the null arm does not."""
    left = running.left
    if left.get(FIXED) and not left.get(NULL):
        return f"leaves something behind: {left[FIXED][0]}"
    if timed and NULL not in timed.suspicious and FIXED in timed.suspicious:
        return timed.suspicious[FIXED]
    decision = timed.decisions.get(QUESTION) if timed else None
    if timed and decision and timed.baseline_ns:
        return too_good(running, timed, work, timed.baseline_ns[-1] / decision.ratio / 1e9)
    return ""


def _protocol(timed: timing.Timed, running: Session) -> evidence.Protocol:
    return evidence.Protocol(
        name="duet/1",
        metric=timed.metric,  # type: ignore[arg-type]  # one of the two words
        replicates=timed.replicates,
        quads=timed.quads,
        samples=timing.SAMPLES,
        inner=timed.inner,
        looks=timed.looks,
        alpha_spend=timed.spend,
        alpha_scale=timed.scale,
        min_effect=stats.MIN_EFFECT,
        seed=timed.seed,
        isolation=(*running.isolation, *(("one process at a time",) if timed.alone else ())),
    )


def _controls(timed: timing.Timed, found: Found) -> evidence.Controls:
    handicap = timed.handicap
    usable = handicap is not None and handicap.n > 1 and math.isfinite(handicap.hi)
    ratios = next((each for asked, each in timed.log_ratios.items() if asked.question == "handicap"), [])
    return evidence.Controls(
        handicap_planted=PLANTED,
        handicap=ratio(handicap, ratios) if handicap and usable else None,
        handicap_seen=timed.handicap_seen,
        numerics_can_fail=None if found.numerics is None else found.numerics["verdict"] != "not-checked",
        host_busy=round(sum(timed.busy) / len(timed.busy), 4) if timed.busy else None,
    )


def _numerics(said: Mapping[str, Any], workload: Workload) -> evidence.Numerics:
    return evidence.Numerics(
        class_=workload.numerics,
        verdict=said["verdict"],
        reason=said.get("reason", ""),
        steps=checks.STEPS,
        tensors=said.get("tensors", 0),
        bit_equal=said.get("bit_equal", 0),
        worst_over_tolerance=_finite(said.get("worst_over_tolerance")),
        worst_tensor=said.get("worst_tensor") or None,
        aa_bit_equal=said.get("aa_bit_equal"),
        rng_stream=said.get("rng_stream"),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _time(timed: timing.Timed, decision: stats.Decision) -> evidence.TimeResult:
    return evidence.TimeResult(
        verdict=decision.verdict or "inconclusive",
        baseline_us=round(math.exp(sum(map(math.log, timed.baseline_ns)) / len(timed.baseline_ns)) / 1e3, 3),
        speedup=ratio(decision, timed.log_ratios[QUESTION]),
        required_replicates=decision.required,
    )


def _memory(memory: tuple[int, int]) -> evidence.MemoryResult:
    return evidence.MemoryResult(
        verdict=verdicts.memory_verdict(memory),  # type: ignore[arg-type]  # one of the three words
        before=memory[0],
        after=memory[1],
    )


def _counts(device: str, counts: tuple[dict[str, float], dict[str, float]]) -> evidence.Counts:
    return evidence.Counts(source="sim" if device == "sim" else "profiler", before=counts[0], after=counts[1])
