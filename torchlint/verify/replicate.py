"""One replicate: fresh processes of some arms, driven alternately in mirrored rounds while the others are frozen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from torchlint.verify import stats
from torchlint.verify.ablation import HANDICAP, NULL
from torchlint.verify.arms import PLANTED, BaselineError, Failure
from torchlint.verify.process import ArmError

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from torchlint.verify.arms import Arm
    from torchlint.verify.process import Worker
    from torchlint.verify.session import Session

QUADS = 2
SAMPLES = 3
SAMPLE_NS = 20_000_000
WARM = 2

_LONG_NS = 500_000_000  # a unit this long is sampled once a block
_WARM_NS = 2_000_000_000
_CLOCK_SPREAD = 0.03
_REDONE = 2


@dataclass(slots=True)
class Rounds:
    """What one replicate has measured.

    `quads` hold their two halves, which visit the arms in mirrored order, and these the time of a block in nanoseconds
    a unit of each arm that lived. `working` are the shares of a CPU that each arm used while it should be idle, a value
    for each block; `clocks` the SM clocks in MHz; `inner` the units of a sample.
    """

    quads: list[tuple[dict[str, float], dict[str, float]]] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    working: dict[str, list[float]] = field(default_factory=dict)
    clocks: list[float] = field(default_factory=list)
    inner: int = 1

    def log_ratio(self, arm: str, against: str) -> float | None:
        """log(T_against / T_arm); None if one of them was not there to the end."""
        if not all({arm, against} <= half.keys() for quad in self.quads for half in quad):
            return None
        return stats.replicate([[(half[against], half[arm]) for half in quad] for quad in self.quads])

    def time_of(self, arm: str) -> float:
        """Nanoseconds a unit of an arm that was there to the end."""
        return median(half[arm] for quad in self.quads for half in quad)


def replicate(session: Session, arms: Sequence[Arm], *, metric: str, seed: int, order: random.Random) -> Rounds:
    """Measure arms, the null arm among them, against each other. Raises `BaselineError` if that one fails."""
    with session.starting(order.sample(list(arms), len(arms)), seed=seed) as (workers, failures):
        rounds = _Driven(session, workers, metric)
        for name, error in failures.items():
            rounds.fail(name, error)
        rounds.set_up(seed)
        rounds.run(order)
        return rounds.found


class _Driven:
    """The live workers of one replicate."""

    def __init__(self, session: Session, workers: dict[str, Worker], metric: str) -> None:
        self.found = Rounds()
        self._session = session
        self._workers = workers
        self._metric = metric
        self._handicap_ns = 0.0
        self._samples = SAMPLES
        self._warm = 1
        self._timeout = session.patience.block

    def fail(self, name: str, error: ArmError) -> None:
        """The arm is out; without the null arm there is nothing to compare with."""
        failure = Failure(error.kind, str(error), error.trace)
        if name in (NULL, HANDICAP):
            raise BaselineError(failure)
        self.found.failures[name] = failure
        if name in self._workers:
            self._workers.pop(name).close()

    def set_up(self, seed: int) -> None:
        """Set all arms up and warm them, one at a time; the null arm says how many units make a sample."""
        patience = self._session.patience.load
        workers = 0
        for name in list(self._workers):
            said = self._ask(name, "start", patience, seed=seed)
            workers = max(workers, said["workers"] if said else 0)
        calibrated = self._ask(NULL, "calibrate", patience, min_ns=SAMPLE_NS, warm=WARM)
        assert calibrated is not None  # the null arm's failure raises
        inner, unit_ns = calibrated["inner"], calibrated["ns"]
        for name in list(self._workers):
            said = self._ask(name, "warm", patience, inner=inner, most_ns=_WARM_NS)
            workers = max(workers, said["workers"] if said else 0)
        if workers:
            # A block that is no multiple of the loaders' workers has a different share of slow batches each time.
            inner = math.ceil(inner / workers) * workers
            self._warm = 2 * workers
        self.found.inner = inner
        self._samples = 1 if unit_ns > _LONG_NS else SAMPLES
        self._handicap_ns = PLANTED * (calibrated["cpu_ns"] if self._metric == "cpu-time" else unit_ns)
        units = inner * self._samples + self._warm
        self._timeout = max(self._session.patience.block, 20 * units * unit_ns / 1e9)

    def run(self, order: random.Random) -> None:
        """The mirrored rounds; a quad during which the clock of the device jumped is measured again."""
        for _ in range(QUADS):
            for _ in range(1 + _REDONE):
                visited = order.sample(sorted(self._workers), len(self._workers))
                clocks: list[float] = []
                halves = self._half(visited, clocks), self._half(visited[::-1], clocks)
                if not clocks or max(clocks) <= (1 + _CLOCK_SPREAD) * min(clocks):
                    break
            self.found.clocks.extend(clocks)
            self.found.quads.append(halves)

    def _half(self, visited: Sequence[str], clocks: list[float]) -> dict[str, float]:
        found = {}
        for name in visited:
            said = self._ask(
                name,
                "block",
                self._timeout,
                inner=self.found.inner,
                samples=self._samples,
                warm=self._warm,
                handicap_ns=self._handicap_ns if name == HANDICAP else 0.0,
                handicap_cpu=self._metric == "cpu-time",
            )
            if said is None:
                continue
            found[name] = block_time(said["samples"], self._metric)
            self.found.working.setdefault(name, []).append(said["busy"])
            if self._session.subject.device == "cuda":
                clock = self._ask(name, "clock", self._timeout)
                clocks.extend([clock["mhz"]] if clock and clock["mhz"] else [])
        return found

    def _ask(self, name: str, command: str, timeout: float, **message: Any) -> dict[str, Any] | None:  # noqa: ANN401 - JSON
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


def block_time(samples: Sequence[Sequence[float]], metric: str) -> float:
    """The median of a block's samples; of the wall's only those during which the CPU was not lost, if there are any."""
    if metric == "cpu-time":
        return max(median(cpu for _, cpu, _ in samples), 1.0)  # some clocks tick in milliseconds
    undisturbed = [wall for wall, _, lost in samples if not lost]
    return max(median(undisturbed or [wall for wall, _, _ in samples]), 1.0)
