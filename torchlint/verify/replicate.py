"""One replicate: fresh processes of some arms, driven alternately in mirrored rounds while the others are frozen."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from torchlint.verify import stats
from torchlint.verify.ablation import HANDICAP, NULL
from torchlint.verify.arms import PLANTED, Arm, BaselineError, Failure
from torchlint.verify.process import ArmError, Worker
from torchlint.verify.session import Session

QUADS = 2
MOST_QUADS = 6
SAMPLES = 3
SAMPLE_NS = 20_000_000
WARM = 3  # what records graphs does so in its second and third call

_LONG_NS = 500_000_000  # a unit this long is sampled once a block
_WARM_NS = 2_000_000_000
_CLOCK_SPREAD = 0.03
_REDONE = 2


@dataclass(frozen=True, slots=True)
class Block:
    """One block of an arm: its units a sample, samples as the process gave them, and the SM clock after it, if known.

    A sample is nanoseconds a unit by the wall, and of CPU time, and how often it lost the CPU. The handicap's are as
    planted: nothing is taken off.
    """

    arm: str
    inner: int
    samples: tuple[tuple[float, ...], ...]
    mhz: float | None = None


@dataclass(slots=True)
class Rounds:
    """What one replicate has measured.

    `quads` hold their two halves, which visit the arms in mirrored order, and these the time of a block in nanoseconds
    a unit of each arm that lived. `working` are the shares of a CPU that each arm used while it should be idle, a value
    for each block; `clocks` the SM clocks in MHz after each arm's blocks; `unsettled` how many quads were kept though
    an arm's clock jumped within them; `inner` the units of a sample; `first_ns` how long the first unit of each arm
    took. `blocks` are all that were measured, one after the other, also those of quads that were measured again, and
    `states` what NVML said after them. `busy_ns` is for how long a unit of each arm keeps the device busy, where that
    was asked.
    """

    quads: list[tuple[dict[str, float], dict[str, float]]] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    working: dict[str, list[float]] = field(default_factory=dict)
    clocks: dict[str, list[float]] = field(default_factory=dict)
    unsettled: int = 0
    first_ns: dict[str, float] = field(default_factory=dict)
    inner: int = 1
    blocks: list[Block] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    busy_ns: dict[str, float] = field(default_factory=dict)

    def log_ratio(self, arm: str, against: str) -> float | None:
        """log(T_against / T_arm); None if one of them was not there to the end."""
        if not all({arm, against} <= half.keys() for quad in self.quads for half in quad):
            return None
        return stats.replicate([[(half[against], half[arm]) for half in quad] for quad in self.quads])

    def time_of(self, arm: str) -> float:
        """Nanoseconds a unit of an arm that was there to the end."""
        return median(half[arm] for quad in self.quads for half in quad)

    def take(self, halves: Sequence[Mapping[str, Sequence[Sequence[float]]]], metric: str) -> None:
        """Add a quad of two halves, with the samples of each arm's block."""
        whole = undisturbed(halves)
        first, second = ({name: block_time(half[name], metric, whole=whole) for name in half} for half in halves)
        self.quads.append((first, second))


class CrowdedError(Exception):
    """The arms do not fit on the device together; `fits` of them do."""

    def __init__(self, fits: int) -> None:
        super().__init__(f"{fits} arms fit")
        self.fits = fits


def replicate(  # noqa: PLR0913 - what is settled before, and what this one settles
    session: Session,
    arms: Sequence[Arm],
    *,
    metric: str,
    seed: int,
    order: random.Random,
    redo: bool = True,
    fit: bool = False,
    busy: bool = False,
    quads: int | None = None,
) -> Rounds:
    """Measure arms, the null arm among them, against each other. Raises `BaselineError` if that one fails.

    So many `quads` are measured: by default 2 to 6, which take as long as setting up did. Processes are dear, and on
    the host of an H200 quads of one differ by 4 to 20 %, and processes less. With `busy` they are asked in the end
    for how long they keep the device busy, which nothing is timed after. With `redo` a quad within which an arm's clock
    jumped is measured again. Raises `CrowdedError` where, with the null arm set up, no room is left for all others;
    with `fit` it is known that there is.
    """
    begin = time.monotonic()
    with session.starting(order.sample(list(arms), len(arms)), seed=seed) as (workers, failures):
        rounds = _Driven(session, workers, metric)
        for name, error in failures.items():
            rounds.fail(name, error)
        rounds.set_up(seed, fit=fit)
        rounds.run(order, redo=redo, quads=quads, ready=time.monotonic() - begin)
        if busy:
            rounds.look_at_device()
        return rounds.found


def one_at_a_time(session: Session, arms: Sequence[Arm], *, metric: str, seed: int, order: random.Random) -> Rounds:
    """As `replicate`, of arms that do not fit beside each other: each visit is a process of its own, alone.

    One quad, which the null arm begins and ends: in its first process it says how many units make a sample. That a
    process is another one at each visit is noise, which replicates average out. Raises `BaselineError`.
    """
    names = {arm.name: arm for arm in arms}
    others = order.sample([name for name in names if name != NULL], len(names) - 1)
    found, clocks = Rounds(), dict[str, list[float]]()
    visits = [NULL, *others]
    driven = _Driven(session, {}, metric, found)
    halves = []
    for half in (visits, visits[::-1]):
        samples: dict[str, list[list[float]]] = {}
        for name in half:
            if name in found.failures:
                continue
            with session.starting([names[name]], seed=seed) as (workers, failures):
                driven.attend(workers)
                for failed, error in failures.items():
                    driven.fail(failed, error)
                if driven.set_up_one(name, seed):
                    samples |= driven.half([name], clocks)
        halves.append(samples)
    found.clocks = clocks
    found.take(halves, metric)
    return found


class _Driven:
    """The live workers of one replicate."""

    def __init__(self, session: Session, workers: dict[str, Worker], metric: str, found: Rounds | None = None) -> None:
        self.found = found or Rounds()
        self._session = session
        self._workers = workers
        self._metric = metric
        self._handicap_ns = 0.0
        self._samples = SAMPLES
        self._warm = 1
        self._timeout = session.patience.block
        self._known: dict[str, Any] | None = None
        self._loading = 0

    def fail(self, name: str, error: ArmError) -> None:
        """The arm is out; without the null arm there is nothing to compare with."""
        failure = Failure(error.kind, str(error), error.trace)
        if name in (NULL, HANDICAP):
            raise BaselineError(failure)
        self.found.failures[name] = failure
        if name in self._workers:
            self._workers.pop(name).close()

    def set_up(self, seed: int, *, fit: bool) -> None:
        """Set all arms up and warm them; the null arm says how many units make a sample.

        Setting up is most of a replicate, and is not timed: the arms do it at once. But for the null arm, on a device
        of which it is to say whether the others fit there. First units run one at a time: what they take is told.
        """
        patience = self._session.patience.load
        workers = 0
        if fit or self._session.subject.device != "cuda":
            workers = self._start(list(self._workers), seed)
            calibrated = self._calibrated(patience)
        else:
            workers = self._start([NULL], seed)
            calibrated = self._calibrated(patience)
            self._make_room()
            workers = max(workers, self._start([name for name in self._workers if name != NULL], seed))
        self._warm_up(list(self._workers), calibrated, workers)

    def attend(self, workers: dict[str, Worker]) -> None:
        """Drive these workers in the place of those before."""
        self._workers = workers

    def set_up_one(self, name: str, seed: int) -> bool:
        """Set an arm up that is alone; whether it lives. The null arm comes first, and says what a sample is."""
        loading = self._start([name], seed) if name in self._workers else 0
        if name == NULL and self._known is None:
            self._known = self._calibrated(self._session.patience.load)
        assert self._known is not None  # or the null arm had failed, which raises
        self._loading = max(self._loading, loading)
        if name in self._workers:
            self._warm_up([name], self._known, self._loading)
        return name in self._workers

    def _warm_up(self, names: Sequence[str], calibrated: dict[str, Any], workers: int) -> None:
        """Run arms until they are steady, and settle how they are sampled."""
        inner, unit_ns = calibrated["inner"], calibrated["ns"]
        for name in names:
            said = self._ask(name, "warm", self._session.patience.load, inner=inner, most_ns=_WARM_NS)
            if said:
                # The null arm was run before, to be calibrated.
                first = calibrated["first_ns"] if name == NULL else said["first_ns"]
                self.found.first_ns.setdefault(name, first)
            workers = max(workers, said["workers"] if said else 0)
        self._loading = workers
        if workers:
            # A block that is no multiple of the loaders' workers has a different share of slow batches each time.
            inner = math.ceil(inner / workers) * workers
            self._warm = 2 * workers
        self.found.inner = inner
        self._samples = 1 if unit_ns > _LONG_NS else SAMPLES
        self._handicap_ns = PLANTED * (calibrated["cpu_ns"] if self._metric == "cpu-time" else unit_ns)
        units = inner * self._samples + self._warm
        self._timeout = max(self._session.patience.block, 20 * units * unit_ns / 1e9)

    def _start(self, names: Sequence[str], seed: int) -> int:
        """Set these arms up beside each other; how many processes a loader of one of them has at most."""
        for name in names:
            self._workers[name].thaw()
            self._workers[name].tell("start", seed=seed)
        loading = 0
        for name in names:
            worker = self._workers[name]
            try:
                loading = max(loading, worker.answer(self._session.patience.load)["workers"])
            except ArmError as error:
                self.fail(name, error)
            else:
                worker.freeze()
        return loading

    def _calibrated(self, patience: float) -> dict[str, Any]:
        said = self._ask(NULL, "calibrate", patience, min_ns=SAMPLE_NS, warm=WARM)
        assert said is not None  # the null arm's failure raises
        return said

    def _make_room(self) -> None:
        """Look whether as many arms as there are fit on the device, if each takes what the null arm does."""
        if self._session.subject.device != "cuda":
            return
        said = self._ask(NULL, "room", self._timeout)
        if said and said["need"] and said["need"] * len(self._workers) > said["there"]:
            raise CrowdedError(max(1, int(said["there"] // said["need"])))

    def run(self, order: random.Random, *, redo: bool, quads: int | None, ready: float) -> None:
        """The mirrored rounds; with `redo` a quad during which the clock of the device jumped is measured again.

        Without `quads` there are as many as are measured within `ready` seconds, which all before has taken.

        An arm's clock is compared with its own in the mirrored half: under a limit of power, code that does more work
        at a time runs at a lower clock by nature, however steady the device is.
        """
        took = 0.0
        while len(self.found.quads) < (quads or max(QUADS, min(MOST_QUADS, int(ready / max(took, 1e-9))))):
            for _ in range(1 + _REDONE * redo):
                begin = time.monotonic()
                visited = order.sample(sorted(self._workers), len(self._workers))
                clocks: dict[str, list[float]] = {}
                halves = self.half(visited, clocks), self.half(visited[::-1], clocks)
                jumped = any(max(each) > (1 + _CLOCK_SPREAD) * min(each) for each in clocks.values())
                took = max(took, time.monotonic() - begin)
                if not jumped:
                    break
            self.found.unsettled += jumped
            for name, each in clocks.items():
                self.found.clocks.setdefault(name, []).extend(each)
            self.found.take(halves, self._metric)

    def look_at_device(self) -> None:
        """For how long a unit keeps the device busy, by the profiler; of an arm that fails then it is not known."""
        for name, worker in self._workers.items():
            if name.startswith(HANDICAP):  # the null arm's code
                continue
            worker.thaw()
            try:
                said = worker.ask("count", self._session.patience.check, units=1, warm=0)
            except ArmError:
                continue
            worker.freeze()
            if said.get("busy_ns") and not said["doubt"]:
                self.found.busy_ns[name] = said["busy_ns"] / said["units"]

    def half(self, visited: Sequence[str], clocks: dict[str, list[float]]) -> dict[str, list[list[float]]]:
        """The samples of each arm's block."""
        found = {}
        for name in visited:
            said = self._ask(
                name,
                "block",
                self._timeout,
                inner=self.found.inner,
                samples=self._samples,
                warm=self._warm,
                handicap_ns=self._handicap_ns if name.startswith(HANDICAP) else 0.0,
                handicap_cpu=self._metric == "cpu-time",
            )
            if said is None:
                continue
            found[name] = said["samples"]
            self.found.working.setdefault(name, []).append(said["busy"])
            mhz = None
            if self._session.subject.device == "cuda":
                clock = self._ask(name, "clock", self._timeout)
                if clock and clock["mhz"]:
                    mhz = clock["mhz"]
                    clocks.setdefault(name, []).append(mhz)
                if clock and clock.get("state"):
                    self.found.states.append(clock["state"])
            self.found.blocks.append(Block(name, self.found.inner, tuple(map(tuple, said["samples"])), mhz))
        return found

    def _ask(self, name: str, command: str, timeout: float, **message: Any) -> dict[str, Any] | None:
        """Wake the arm, ask it, and freeze it again; None if it has failed, now or before."""
        worker = self._workers.get(name)
        if worker is None:
            return None
        worker.thaw()
        try:
            said = worker.ask(command, timeout, **message)
        except ArmError as error:
            self.fail(name, error)
            return None
        worker.freeze()
        return said


def undisturbed(halves: Sequence[Mapping[str, Sequence[Sequence[float]]]]) -> bool:
    """Whether the samples of a quad during which the CPU was not lost are enough: half of them, of each arm.

    Every thread of a process counts, so that of code with loaders nearly every sample has lost it once. A few samples
    of one arm, picked for being lucky, cannot be compared with all of another.
    """
    samples: dict[str, list[Sequence[float]]] = {}
    for half in halves:
        for name, block in half.items():
            samples.setdefault(name, []).extend(block)
    return all(2 * sum(not lost for _, _, lost in each) >= len(each) for each in samples.values())


def block_time(samples: Sequence[Sequence[float]], metric: str, *, whole: bool) -> float:
    """The median of a block's samples; with `whole`, of the wall's only those during which the CPU was not lost."""
    if metric == "cpu-time":
        return max(median(cpu for _, cpu, _ in samples), 1.0)  # some clocks tick in milliseconds
    kept = [wall for wall, _, lost in samples if whole and not lost]
    return max(median(kept or [wall for wall, _, _ in samples]), 1.0)
