"""Simulated measuring sessions: five regimes of noise that the decision procedure is held against.

The logarithm of a block's time is the arm's effect, and what every arm feels at that moment (linear drift, a wandering
clock, a step of it, bursts of interference), and what its process has for good (placement, memory layout, the choice
of an algorithm), and autocorrelated noise with outliers. The magnitudes are assumptions; those of `h200-host` are chosen
after what was measured of four pairs, whose steps the host bounds, on a machine with an H200: quads of one process differ
by 4 to 20 %, and processes by 0 to 3 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLES = 3
"""Timed samples in a block, whose median counts."""


@dataclass(frozen=True, slots=True)
class Regime:
    """Standard deviations of log time, or mean sizes where they are exponential."""

    noise: float
    autocorrelation: float
    outlier_rate: float
    outlier_size: float
    process: float
    linear: float
    wander: float
    step: float
    bursts: float
    """Mean number in a session."""
    burst_size: float
    two_algorithms: float = 0.0
    """Each process takes one of two, this much above or below."""
    quads: int = 2
    """In a replicate: more where blocks are cheap beside setting up, as on a GPU they are."""


REGIMES = {
    "quiet-gpu": Regime(0.005, 0.2, 0.01, 0.10, 0.0036, 0.006, 0.003, 0.005, 0.3, 0.03),
    "typical-gpu": Regime(0.015, 0.3, 0.02, 0.30, 0.0072, 0.015, 0.006, 0.015, 1.0, 0.08),
    "noisy-vm": Regime(0.050, 0.5, 0.05, 0.50, 0.0180, 0.030, 0.020, 0.030, 3.0, 0.25),
    "bimodal-gpu": Regime(0.015, 0.3, 0.02, 0.30, 0.0072, 0.015, 0.006, 0.015, 1.0, 0.08, two_algorithms=0.02),
    "h200-host": Regime(0.120, 0.8, 0.05, 0.20, 0.0250, 0.030, 0.020, 0.030, 3.0, 0.25, quads=6),
}


def log_times(
    random: np.random.Generator, regime: Regime, effects: Sequence[float], *, sessions: int, replicates: int = 16
) -> Floats:
    """Mean log time of every arm in every quad of every replicate: (sessions, replicates, quads, arms).

    `effects` are the arms' changes of log time. The arms of a quad run in random order, then in reverse.
    """
    arms = len(effects)
    blocks = (sessions, replicates, regime.quads, 2, arms, SAMPLES)
    place = np.argsort(random.random((sessions, replicates, regime.quads, arms)), axis=-1)
    mirrored = np.stack((place, arms - 1 - place), axis=3)[..., None]
    common = np.take_along_axis(_common(random, regime, blocks), np.broadcast_to(mirrored, blocks), axis=4)
    own = _own(random, regime, (sessions, replicates, arms, regime.quads, 2, SAMPLES)).transpose(0, 1, 3, 4, 2, 5)
    return np.asarray(np.median(common + own, axis=-1).mean(axis=3) + np.asarray(effects))


def log_ratios(times: Floats, null: int, arm: int) -> Floats:
    """log(T_null / T_arm) of every replicate: (sessions, replicates)."""
    return np.asarray(np.median(times[..., null] - times[..., arm], axis=2))


def _common(random: np.random.Generator, regime: Regime, blocks: tuple[int, ...]) -> Floats:
    """What all arms feel, in the order of time."""
    sessions, ticks = blocks[0], int(np.prod(blocks[1:]))
    moment = np.linspace(0, 1, ticks)[:, None]
    drift = random.normal(0, regime.linear, sessions) * moment
    decay = np.exp(-1 / (0.05 * ticks))  # correlated over a twentieth of the session
    kicks = random.normal(0, regime.wander * np.sqrt(1 - decay**2), (ticks, sessions))
    wander = random.normal(0, regime.wander, sessions)
    for tick in range(ticks):
        drift[tick] += wander
        wander = decay * wander + kicks[tick]
    has_step = random.random(sessions) < 0.4
    drift += (moment > random.random(sessions)) * (has_step * random.normal(0, regime.step, sessions))
    count = random.poisson(regime.bursts, sessions)
    for burst in range(int(count.max())):
        start, length = random.random(sessions), random.exponential(0.03, sessions)
        size = np.log1p(random.exponential(regime.burst_size, sessions)) * (count > burst)
        drift += size * ((moment >= start) & (moment < start + length))
    return np.asarray(drift.T.reshape(blocks))


def _own(random: np.random.Generator, regime: Regime, shape: tuple[int, ...]) -> Floats:
    """What each process feels alone; the first three axes of `shape` are processes, the others its samples in time."""
    processes, samples = shape[:3], int(np.prod(shape[3:]))
    noise = random.normal(0, regime.noise, (*processes, samples))
    for sample in range(1, samples):
        fresh = noise[..., sample] * np.sqrt(1 - regime.autocorrelation**2)
        noise[..., sample] = regime.autocorrelation * noise[..., sample - 1] + fresh
    outliers = random.random(noise.shape) < regime.outlier_rate
    noise[outliers] += np.log1p(random.exponential(regime.outlier_size, int(outliers.sum())))
    process = random.normal(0, regime.process, processes)
    process += regime.two_algorithms * random.choice((-1.0, 1.0), processes)
    return np.asarray((noise + process[..., None]).reshape(shape))
