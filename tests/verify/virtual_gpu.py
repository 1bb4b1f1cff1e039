"""A host and a GPU on a virtual clock: sessions of the verifier in milliseconds, without a GPU.

The host queues launches and runs ahead; the device works them off in order; a sync makes the host wait until the device
has nothing left. This is enough for what decides whether a fix pays: syncs that mask each other, host-bound and
GPU-bound steps, and time that is only noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from torchlint.verify import stats
from torchlint.verify.ablation import HANDICAP, NULL, ORIGINAL, Comparison, Stage, Version

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
