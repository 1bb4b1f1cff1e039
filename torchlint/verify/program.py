"""Measures the fixes of a user's program: each alone, all together, all but one, and what is kept once more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torchlint.verify import ablation, checks, stats, timing
from torchlint.verify.ablation import ALL, KEPT, NULL, ORIGINAL
from torchlint.verify.arms import Arm, Failure
from torchlint.verify.exercised import COUNTED, Means, look
from torchlint.verify.inside.coverage import ran
from torchlint.verify.machine import Clerk
from torchlint.verify.numbers import Numbers
from torchlint.verify.process import ArmError
from torchlint.verify.session import Session
from torchlint.verify.stats import Decision
from torchlint.verify.units import Program, Unit

NOT_COMPARED = f"it runs after the first {checks.STEPS} steps, and results are compared over those alone"

_WHOLE = 4  # a whole program may take so many times as long as a few steps


@dataclass(slots=True)
class Counted:
    """What one arm asks of the device per step, the lines that it does so on, and bytes at the peak.

    `per_unit` is None where what was counted cannot be right. `earlier` are the lines that asked something of it while
    the program set itself up, up to its first step. `busy_ns` is for how long a step keeps the device busy, 0 if nobody
    knows.
    """

    units: int
    ended: bool
    per_unit: dict[str, float] | None
    sites: list[dict[str, Any]]
    peak: int
    earlier: list[dict[str, Any]] = field(default_factory=list)
    busy_ns: float = 0.0


@dataclass(slots=True)
class Found:
    """All that a run has found out. `units` are those that run, `idle` do not; `together` is what the arm `all` has.

    `later` are those that run only after the steps over which results are compared. `ran` are the lines that run, of
    those that were looked at because `check` names them as waiting. `where` is what processes say of where they run.

    Numerics, failures, suspicions and counts go by the name of a unit, or of an arm of several.
    """

    units: tuple[Unit, ...] = ()
    idle: tuple[Unit, ...] = ()
    later: tuple[Unit, ...] = ()
    together: tuple[Unit, ...] = ()
    conflicts: tuple[frozenset[str], ...] = ()
    numerics: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    suspicious: dict[str, str] = field(default_factory=dict)
    counts: dict[str, Counted] = field(default_factory=dict)
    stages: list[timing.Timed] = field(default_factory=list)
    judgements: tuple[ablation.Judgement, ...] = ()
    kept: tuple[Unit, ...] = ()
    confirmed: Decision | None = None
    warnings: list[str] = field(default_factory=list)
    ran: list[tuple[str, int]] = field(default_factory=list)
    where: dict[str, Any] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the timing."""
        return any(timed.interrupted for timed in self.stages)

    def decision(self, question: str, unit: str = "") -> tuple[Decision, list[float]] | None:
        """The answer to a question and the log ratios behind it, of the last stage that has it."""
        for timed in reversed(self.stages):
            for asked, decision in timed.decisions.items():
                if (asked.question, asked.unit) == (question, unit):
                    return decision, timed.log_ratios[asked]
        return None


def measure(
    running: Session, clerk: Clerk, program: Program, units: Sequence[Unit], entry_file: str, means: Means
) -> Found:
    """Measure `units` of a program through the entry of the session. Raises `BaselineError` if it fails unfixed."""
    found = Found()
    arms = _Arms(program, entry_file)
    counting = running.subject.is_counted
    to_end = False
    if means.only_count:
        _count_alone(running, program, arms.null, found, means)
        return found
    if units or (counting and not running.subject.restarts):
        seen = look(running, program, units, means)
        found.units, found.idle, found.later, to_end = seen.units, seen.idle, seen.later, seen.to_end
        if not seen.ended and means.steps is None and (counting or seen.idle):
            found.warnings.append(
                f"the program goes on after {seen.steps:,} steps, and these are what is counted; `--steps` takes more"
            )
            means = replace(means, steps=seen.steps)
    if counting:
        _count(running, arms.null, found, means)
    if not found.units:
        return found
    found.conflicts = program.conflicts(found.units)
    numbers = Numbers(running, clerk, arms.null, arms.of, found.numerics, found.failures, to_end)
    good = numbers.same(found.units, found.conflicts)
    right = [unit for unit in found.units if found.numerics.get(unit.name, {}).get("verdict", "wrong") != "wrong"]
    names = ablation.applicable_together([unit.name for unit in good or right], found.conflicts)
    found.together = tuple(unit for unit in found.units if unit.name in names)
    if counting:
        _count_fixes(running, arms, right, found, means)
    if good and running.subject.device != "sim":
        _Timing(running, arms, numbers, good, found, means).run()
    return found


class _Arms:
    """The arms of a program."""

    def __init__(self, program: Program, entry_file: str) -> None:
        self._program = program
        # An edit that does nothing, made as a fix is made: what the pipeline costs, the null arm pays too.
        source = (program.root / entry_file).read_bytes()
        newline = b"" if source.endswith(b"\n") or not source else b"\n"
        self._null = {entry_file: source + newline + b"# null\n"}
        self.null = Arm(NULL, self._null)

    def of(self, name: str, units: Sequence[Unit]) -> Arm:
        """The arm of that name with these units."""
        if name == ORIGINAL:
            return Arm(ORIGINAL)
        return Arm(name, {**self._null, **self._program.with_units(units)})


def _count_alone(running: Session, program: Program, null: Arm, found: Found, means: Means) -> None:
    """Count the program as it is, and look which of the lines run that `check` names as waiting."""
    record = str(running.captured("named.txt"))
    watch = {path: sorted({row for each in named for row in each.rows}) for path, named in program.named().items()}
    _count(running, null, found, means, watch=watch, record=record)
    found.ran = ran(record)


def _counted(running: Session, arm: Arm, means: Means, **options: Any) -> dict[str, Any]:
    """The reply to `count` of a fresh process. Raises `ArmError`."""
    steps = means.steps or (COUNTED if running.subject.restarts else None)
    timeout = means.patience(running.patience.check * _WHOLE)
    with running.running(arm, seed=checks.SEED, **options) as worker:
        # The profiler of a real device would count all of a long set-up with the first step.
        first = running.subject.device == "sim" and not running.subject.restarts
        worker.ask("start", timeout, seed=checks.SEED, count=first)
        return worker.ask("count", timeout, units=steps, warm=0)


def _count(running: Session, arm: Arm, found: Found, means: Means, **options: Any) -> None:
    """What an arm asks of the device, in a fresh process."""
    running.note(f"counts: {arm.name}")
    try:
        said = _counted(running, arm, means, **options)
    except ArmError as error:
        failure = Failure(error.kind, str(error), error.trace)
        if arm.name == NULL:
            raise timing.BaselineError(failure) from None
        found.failures[arm.name] = failure
        return
    per_unit = None
    if said["doubt"]:
        name = "the program" if arm.name == NULL else arm.name
        found.warnings.append(f"what {name} asks of the device is not counted: {said['doubt']}")
    else:
        per_unit = {kind: number / said["units"] for kind, number in said["counts"].items()}
    busy = 0.0 if said["doubt"] else said.get("busy_ns", 0) / said["units"]
    rest = (said["sites"], said["peak"], said["earlier"], busy)
    found.counts[arm.name] = Counted(said["units"], said["ended"], per_unit, *rest)
    nothing = not (said["doubt"] or said["sites"] or said["earlier"] or running.subject.restarts)
    if nothing and running.subject.device == "sim" and arm.name == NULL:
        found.warnings.append("the program puts nothing on the device: does it ask for one, by an option of its own?")


def _count_fixes(running: Session, arms: _Arms, right: Sequence[Unit], found: Found, means: Means) -> None:
    """Each fix whose results are not wrong, and those of them that are measured together."""
    for unit in right:
        _count(running, arms.of(unit.name, [unit]), found, means)
    if len(found.together) > 1:
        _count(running, arms.of(ALL, found.together), found, means)


@dataclass(frozen=True, slots=True)
class _Timing:
    """Stages A, B and C over the units that compute the same."""

    running: Session
    arms: _Arms
    numbers: Numbers
    units: Sequence[Unit]
    found: Found
    means: Means

    def run(self) -> None:
        """Time them all together, each alone and all but each, and what is kept once more."""
        found, names, seed = self.found, [unit.name for unit in self.units], self.means.seed
        first = self._stage("all fixes", ablation.stage_a(names, found.conflicts), seed)
        if first.biased:
            found.warnings.append(
                "untouched code is not as fast as after an edit that does nothing: no time of this run can be believed"
            )
            return
        decisions = dict(first.decisions)
        together = found.decision("together")
        second = ablation.stage_b(names, together[0].verdict if together else None, found.conflicts)
        if second is not None and not found.interrupted:
            decisions |= self._stage("each fix alone, and all without it", second, seed + 1).decisions
        found.judgements = self._left(ablation.judge(names, decisions, found.conflicts), self._doubts())
        if not found.interrupted:
            self._confirm(seed + 2)
        if found.interrupted:
            found.warnings.append("interrupted: what was not decided by then is open")

    def _doubts(self) -> dict[str, str]:
        """The units that may not be kept however fast they are, and why."""
        later = {unit.name: NOT_COMPARED for unit in self.found.later}
        return later | {name: f"the fixed code {words}" for name, words in self.found.suspicious.items()}

    @staticmethod
    def _left(judgements: Sequence[ablation.Judgement], why: Mapping[str, str]) -> tuple[ablation.Judgement, ...]:
        return tuple(
            replace(judged, action="leave", reason=why[judged.unit])
            if judged.action == "keep" and judged.unit in why
            else judged
            for judged in judgements
        )

    def _confirm(self, seed: int) -> None:
        """What is kept has to compute the same and be faster once more; else it is not kept."""
        found = self.found
        last = ablation.stage_c(found.judgements)
        if last is None:
            return
        kept = [unit for unit in self.units if unit.name in last.arms[-1].units]
        if self.numbers.are_same(KEPT, kept):
            self._stage("what is kept, again", last, seed)
            decision = found.decision("together")
            if decision and decision[0].verdict == "faster" and KEPT not in found.suspicious:
                found.kept, found.confirmed = tuple(kept), decision[0]
                if found.counts and len(kept) > 1 and found.kept != found.together:
                    _count(self.running, self.arms.of(KEPT, kept), found, self.means)
                return
            enough = decision is not None and decision[0].n >= stats.LOOKS[0]
            why = "not faster once more, on fresh processes" if enough else "no time was left to measure it once more"
        else:
            why = "together with the others that were to be kept, it does not compute the same"
        found.warnings.append(f"what was to be kept is left: {why}")
        found.judgements = self._left(found.judgements, {unit.name: why for unit in kept})

    def _stage(self, title: str, asked: ablation.Stage, seed: int) -> timing.Timed:
        named = {unit.name: unit for unit in self.units}
        built = {
            version.name: self.arms.of(version.name, [named[each] for each in version.units]) for version in asked.arms
        }
        of_loaders = any(unit.rule.startswith(checks.OF_LOADERS) for unit in self.units)
        wall = of_loaders or self.running.subject.on_accelerator
        with _titled(self.running, title):
            timed = timing.measure(
                self.running,
                built,
                asked,
                metric="wall" if wall else "cpu-time",
                limits=self.means.limits,
                seed=seed,
            )
        self.found.stages.append(timed)
        self._note_failures(asked, timed)
        return timed

    def _note_failures(self, asked: ablation.Stage, timed: timing.Timed) -> None:
        """Failures and suspicions of an arm of one unit are the unit's."""
        for version in asked.arms:
            name = version.units[0] if len(version.units) == 1 else version.name
            if version.name in timed.failures:
                self.found.failures[name] = timed.failures[version.name]
            if version.name in timed.suspicious and NULL not in timed.suspicious:
                self.found.suspicious[name] = timed.suspicious[version.name]


@contextlib.contextmanager
def _titled(running: Session, title: str) -> Iterator[None]:
    """Put the stage before what is noted meanwhile."""
    note = running.note
    running.note = lambda text: note(f"{title}: {text}")
    running.note("the first processes start")
    try:
        yield
    finally:
        running.note = note
