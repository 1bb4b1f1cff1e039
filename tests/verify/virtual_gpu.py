"""A host and a GPU on a virtual clock: sessions of the verifier in milliseconds, without a GPU.

The host queues launches and runs ahead; the device works them off in order; a sync makes the host wait until the device
has nothing left. This is enough for what decides whether a fix pays: syncs that mask each other, host-bound and
GPU-bound steps, and time that is only noise.

`Card` has what decides whether a fix can be timed: memory, of which each process takes some for its context, and a clock
that falls while nothing is done and rises with the work. `Code` has first calls that compile. A `Virtual` session of them is
driven by `timing.measure` itself, and the processes in it carry out the commands of `inside.commands`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, cast

from torchlint.verify import stats, timing
from torchlint.verify.ablation import HANDICAP, NULL, ORIGINAL, Comparison, Stage, Version
from torchlint.verify.arms import Arm, Patience, Subject
from torchlint.verify.inside import commands, devices
from torchlint.verify.process import ArmError

if TYPE_CHECKING:
    import pytest

QUADS = 2
SAMPLES = 3


@dataclass
class Machine:
    """What all processes share: the time of day, and a clock that drifts, and may step."""

    random: Random
    noise: float = 0.01
    layout: float = 0.004
    """Standard deviation of what a process is faster or slower by for good."""
    drift: float = 0.0
    """By how much everything slows down in a virtual second."""
    step_at: float = math.inf
    step: float = 0.0
    """From `step_at` seconds on, everything takes this much longer."""
    seconds: float = 0.0

    def slowness(self) -> float:
        """What a duration is multiplied by now."""
        return (1 + self.drift * self.seconds) * (1 + self.step * (self.seconds >= self.step_at))


@dataclass
class Process:
    """A process of its own on the machine, with its queue on the device; times in microseconds."""

    machine: Machine
    host: float = 0.0
    device: float = 0.0
    syncs: int = 0
    layout: float = field(init=False)

    def __post_init__(self) -> None:
        """Fall where the process happens to lie in memory."""
        self.layout = math.exp(self.machine.random.gauss(0, self.machine.layout))

    def python(self, duration: float) -> None:
        """The host computes."""
        self.host += duration * self._factor()

    def launch(self, duration: float, overhead: float = 6.0) -> None:
        """The host queues a kernel, which starts when it is queued and those before it have ended."""
        self.host += overhead * self._factor()
        self.device = max(self.device, self.host) + duration * self._factor()

    def sync(self) -> None:
        """The host waits for the device."""
        self.syncs += 1
        self.host = max(self.host, self.device) + 1.0

    def time(self, program: Program, steps: int) -> float:
        """Nanoseconds of a step, with the device idle before and after."""
        start = self.host = max(self.host, self.device)
        for _ in range(steps):
            program(self)
        self.host = max(self.host, self.device)
        self.machine.seconds += (self.host - start) / 1e6
        return (self.host - start) / steps * 1e3

    def _factor(self) -> float:
        return math.exp(self.machine.random.gauss(0, self.machine.noise)) * self.layout * self.machine.slowness()


Program = Callable[[Process], None]


def train_step(*, kernels: int = 20, kernel: float = 8.0, python: float = 60.0, syncs: int = 0) -> Program:
    """A step of training: kernels, then reads of the loss that each wait for them, then Python that could overlap."""

    def step(process: Process) -> None:
        for _ in range(kernels):
            process.launch(kernel)
        for _ in range(syncs):
            process.sync()
        process.python(python)

    return step


def measure(
    stage: Stage,
    program: Callable[[Version], Program],
    machine: Machine,
    *,
    bias: float = 0.0,
    max_replicates: int = 16,
) -> Mapping[Comparison, stats.Decision]:
    """The decisions of a session over the stage's arms, run as the verifier runs it.

    `bias` is by how much the harness slows the untouched tree: a path that is cached worse, say.
    """
    looks, spend = stats.plan(max_replicates)
    scale = stats.alpha_scale(max(1, stage.claims))
    log_ratios: dict[Comparison, list[float]] = {comparison: [] for comparison in stage.comparisons}
    decided: dict[Comparison, stats.Decision] = {}
    handicap = Comparison(HANDICAP, NULL, "handicap")
    for look, replicates in enumerate(looks):
        while len(_first(log_ratios)) < replicates:
            asked = [comparison for comparison in log_ratios if comparison not in decided]
            names = {name for comparison in asked for name in (comparison.arm, comparison.against)}
            arms = [arm for arm in stage.arms if arm.name in names]
            halves = _replicate({arm.name: program(arm) for arm in arms}, machine, bias)
            for comparison in asked:
                quads = [
                    [(half[comparison.against], half[comparison.arm]) for half in halves[quad : quad + 2]]
                    for quad in range(0, len(halves), 2)
                ]
                log_ratios[comparison].append(stats.replicate(quads))
        for comparison in sorted(log_ratios, key=lambda comparison: comparison != handicap):
            if comparison not in decided:
                seen = handicap in decided and stats.handicap_seen(decided[handicap])
                own = 1.0 if comparison == handicap else scale
                values = log_ratios[comparison]
                decision = stats.decide(values, look, looks=looks, spend=spend, scale=own, handicap_seen=seen)
                if decision.verdict is not None:
                    decided[comparison] = decision
        if len(decided) == len(log_ratios):
            break
    return decided


def _first(log_ratios: Mapping[Comparison, list[float]]) -> list[float]:
    """Those of a comparison that is still open."""
    return max(log_ratios.values(), key=len)


def _replicate(programs: Mapping[str, Program], machine: Machine, bias: float) -> list[dict[str, float]]:
    """Median block times of fresh processes, one dict for each half of each quad."""
    processes = {name: Process(machine) for name in programs}
    halves: list[dict[str, float]] = []
    for _ in range(QUADS):
        order = machine.random.sample(sorted(programs), len(programs))
        for visits in (order, order[::-1]):
            half = {}
            for name in visits:
                processes[name].time(programs[name], 1)  # warm-up
                times = sorted(processes[name].time(programs[name], 1) for _ in range(SAMPLES))
                slower = 1.05 if name == HANDICAP else 1 + bias if name == ORIGINAL else 1.0
                half[name] = times[SAMPLES // 2] * slower
            halves.append(half)
    return halves


# What decides whether a fix can be timed

GIB = 1 << 30
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
CONTEXT = GIB // 2
_CLOCK_READ = 1000


@dataclass
class Card:
    """A GPU and its host, with one clock for all processes, in nanoseconds.

    It runs at `idle_mhz` after `falls_ns` without work, and rises to `full_mhz` within `ramp_ns` of work; `power` lowers the
    clock of an arm that does more work at a time.
    """

    memory: int = 80 * GIB
    idle_mhz: float = 1980.0
    full_mhz: float = 1980.0
    ramp_ns: int = SECOND
    falls_ns: int = 5 * SECOND
    now: int = 0
    worked: int = 0
    ended: int = -(10**18)
    cpu: int = 0
    taken: dict[str, int] = field(default_factory=dict)
    most: int = 0
    refused: int = 0

    def mhz(self) -> float:
        """The clock now."""
        if self.now - self.ended > self.falls_ns:
            self.worked = 0
        share = min(1.0, self.worked / self.ramp_ns)
        return self.idle_mhz + (self.full_mhz - self.idle_mhz) * share

    def work(self, duration: float, power: float = 1.0) -> None:
        """The device works for so many nanoseconds at its full clock, and the host waits for it."""
        left = duration
        while left > 0:
            part = min(left, float(MILLISECOND))
            took = part * self.full_mhz / (self.mhz() * power)
            self.now += int(took)
            self.cpu += int(took)
            self.worked += int(took)
            self.ended = self.now
            left -= part

    def read(self) -> int:
        """Reading the clock takes some time, too."""
        self.now += _CLOCK_READ
        self.cpu += _CLOCK_READ
        return self.now

    def rest(self, seconds: float) -> None:
        """Nobody does anything."""
        self.now += int(seconds * SECOND)

    def take(self, process: str, size: int) -> None:
        """Memory for a process. Raises `ArmError` where there is not enough."""
        if sum(self.taken.values()) + size > self.memory:
            self.refused += 1
            raise ArmError("oom", "CUDA out of memory")
        self.taken[process] = self.taken.get(process, 0) + size
        self.most = max(self.most, sum(self.taken.values()))


@dataclass(frozen=True)
class Code:
    """An arm's code: nanoseconds of a unit at the full clock, and of its first calls, which compile and record graphs.

    `needs` are bytes beside the context, and `power` is the share of the full clock that a limit of power leaves it.
    """

    unit: float = 20.0 * MILLISECOND
    first: tuple[float, ...] = ()
    needs: int = GIB
    power: float = 1.0


class _Device(devices.Cpu):
    """What the commands of a process know of the card."""

    def __init__(self, card: Card, process: str, power: float) -> None:
        self._card, self._process, self._power = card, process, power

    def clock(self) -> float:
        return self._card.mhz() * self._power

    def room(self) -> tuple[int, int]:
        own = self._card.taken[self._process]
        return own, self._card.memory - sum(self._card.taken.values()) + own


class Resident:
    """A process with code on the card, which carries out the commands of a measured one."""

    def __init__(self, name: str, code: Code, session: Virtual) -> None:
        self.name, self.code, self.session = name, code, session
        self.calls = 0
        self.awake = True
        self._told: dict[str, Any] = {}
        self._arm = commands.Arm.__new__(commands.Arm)
        self._arm._device = _Device(session.card, name, code.power)  # noqa: SLF001 - all that its commands need

    def thaw(self) -> None:
        self.awake = True

    def freeze(self) -> None:
        self.awake = False

    def close(self) -> None:
        self.session.card.taken.pop(self.name, None)

    def tell(self, command: str, **message: Any) -> None:  # noqa: ANN401 - JSON
        self._told = {"command": command, **message}

    def answer(self, timeout: float) -> dict[str, Any]:
        return self.ask(self._told.pop("command"), timeout, **self._told)

    def ask(self, command: str, timeout: float, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        assert self.awake
        card = self.session.card
        begin = card.now
        self.session.asked.append((self.name, command))
        if command == "start":
            card.take(self.name, CONTEXT + self.code.needs)
            return {"workers": 0, "scaled": 0}
        handler = getattr(self._arm, f"_{command}")
        said = self._run(handler(message)) if command in ("calibrate", "warm", "block") else handler(message)
        if card.now - begin > timeout * SECOND:
            raise ArmError("timeout", f"no answer within {timeout:g} s")
        return cast("dict[str, Any]", said)

    def _run(self, task: Iterator[None]) -> dict[str, Any]:
        """A command that needs the code to run."""
        try:
            next(task)
            while True:
                self._unit()
                next(task)
        except StopIteration as done:
            return dict(done.value)

    def _unit(self) -> None:
        card, code = self.session.card, self.code
        if self.calls < len(code.first):
            card.rest(code.first[self.calls] / SECOND)  # the CPU compiles
        noise = math.exp(self.session.random.gauss(0, 0.002))
        card.work(code.unit * noise, code.power)
        self.calls += 1


@dataclass
class Virtual:
    """A session over a card; `starts` is how long fresh processes take, in seconds, while which the card rests."""

    card: Card
    codes: Mapping[str, Code]
    starts: float = 6.0
    started: list[list[str]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    patience: Patience = field(default_factory=Patience)
    random: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - noise is no secret

    @property
    def subject(self) -> Subject:
        return Subject(cast("Any", None), {"kind": "workload"}, "cuda", 1, "python")

    def note(self, text: str) -> None:
        self.notes.append(text)

    @contextmanager
    def starting(self, arms: Sequence[Arm], *, seed: int) -> Iterator[tuple[dict[str, Resident], dict[str, ArmError]]]:
        del seed
        self.card.rest(self.starts)
        self.started.append(sorted(arm.name for arm in arms))
        live = {arm.name: Resident(arm.name, self.codes[arm.name], self) for arm in arms}
        try:
            yield live, {}
        finally:
            self.card.taken.clear()


def timed_on(
    card: Card,
    codes: Mapping[str, Code],
    monkeypatch: pytest.MonkeyPatch,
    *,
    limits: timing.Limits | None = None,
    seed: int = 1,
) -> tuple[timing.Timed, Virtual]:
    """A run of `timing.measure` over these arms; what is asked of each but the controls is whether it is faster."""
    session = Virtual(card, {HANDICAP: codes[NULL], **codes}, random=Random(seed))  # noqa: S311 - noise is no secret
    for name in ("perf_counter_ns", "process_time_ns", "thread_time_ns"):
        monkeypatch.setattr(commands, name, card.read if name == "perf_counter_ns" else lambda: card.cpu)
    monkeypatch.setattr(commands, "sleep", card.rest)
    monkeypatch.setattr(commands, "_switches", lambda: 0)
    monkeypatch.setattr(commands, "loading", lambda: 0)
    monkeypatch.setattr("gc.collect", lambda: 0)
    monkeypatch.setattr(timing, "host_busy", lambda: 0.0)
    names = [name for name in codes if name not in (NULL, HANDICAP)]
    versions = [Version(NULL), Version(HANDICAP), *(Version(name, (name,)) for name in names)]
    questions = [Comparison(HANDICAP, NULL, "handicap"), *(Comparison(name, NULL, "alone", name) for name in names)]
    arms = {version.name: Arm(version.name) for version in versions}
    stage = Stage(tuple(versions), tuple(questions))
    found = timing.measure(
        cast("Any", session), arms, stage, metric="wall", limits=limits or timing.Limits(), seed=seed
    )
    return found, session
