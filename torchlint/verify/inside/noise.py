"""What a program differs from itself by, from one run to the next: it cannot be told from another one by less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint.verify.inside.classes import HIDDEN, MANY
from torchlint.verify.inside.distance import Distance, Tolerance, measure, tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from torchlint.verify.inside.capture import Capture

TIMES = 3
"""Of two draws of the same noise one is seldom more than so many times the other."""

_ANY = Tolerance(0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Floor:
    """The most that an element has differed by, and the root mean square of all; `complaint`: why it is no noise."""

    largest: float = 0.0
    typical: float = 0.0
    complaint: str = ""


def floors(*runs: tuple[Capture, Capture | None], free: frozenset[str] = frozenset()) -> dict[str, Floor]:
    """The floor of each floating value that differs between a run and its repetition, but for those that are `free`.

    A single number says little of its own noise: each is taken to be at least as noisy as such numbers are together,
    in units of their tolerances. Noise of more than 1 % of what a value says would hide a mistake: a complaint.
    """
    apart: dict[str, Distance] = {}
    units: dict[str, float] = {}
    for run, repetition in runs:
        for path, tensor in run.values.items():
            other = repetition.values.get(path) if repetition else None
            if path in free or not is_inexact(tensor) or other is None or other.shape != tensor.shape:
                continue
            distance = measure(tensor, other, _ANY)
            if not distance.equal and (path not in apart or distance.largest > apart[path].largest):
                apart[path] = distance
                allowed = tolerance(tensor.dtype, run.facts[path].kind)
                units[path] = allowed.absolute + allowed.relative * distance.scale
    few = [path for path, distance in apart.items() if distance.size < MANY]
    together = math.sqrt(sum((apart[path].largest / units[path]) ** 2 for path in few) / len(few)) if few else 0.0
    signal = math.sqrt(sum(apart[path].scale ** 2 for path in few) / len(few)) if few else 0.0
    found = {}
    for path, distance in apart.items():
        own = distance.size >= MANY
        hides = distance.difference > HIDDEN * (distance.signal if own else max(distance.scale, signal))
        complaint = ""
        if hides or not distance.pattern:
            complaint = (
                f"{path}: {distance.count} of {distance.size} elements differ, by at most {distance.largest:.2g}"
            )
        least = 0.0 if own else together * units[path]
        found[path] = Floor(max(distance.largest, least), max(distance.difference, least), complaint)
    return found


def slack(found: Mapping[str, Floor]) -> dict[str, float]:
    """What is allowed to an element of each value, besides what its class allows."""
    return {path: TIMES * floor.largest for path, floor in found.items()}


def is_inexact(tensor: torch.Tensor) -> bool:
    """Whether its elements are floating numbers, real or complex."""
    return tensor.is_floating_point() or tensor.is_complex()
