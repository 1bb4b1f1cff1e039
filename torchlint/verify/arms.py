"""What is compared: arms, which are a tree of code with some files replaced, and the way into it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLANTED = 0.05
"""The handicap: the share of its time by which one arm is delayed, to see whether the run can tell."""


COUNTED = frozenset({"cuda", "sim"})
"""The devices of which it is known what is asked of them."""
ON_CPU = frozenset({"cpu", "sim"})

_LEAST_S = 5.0


@dataclass(frozen=True, slots=True)
class Arm:
    """One version of the code: `files` maps paths relative to the tree to what stands there instead."""

    name: str
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """The code that runs and how: the same for all arms.

    `entry` is the way in as the measured process takes it: `kind` and what belongs to it. `allow_write` are folders
    that the code may write to besides its scratch folder.
    """

    root: Path
    entry: Mapping[str, Any]
    device: str
    threads: int
    python: str
    allow_write: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_counted(self) -> bool:
        """Whether it is known what the code asks of the device."""
        return self.device in COUNTED

    @property
    def on_accelerator(self) -> bool:
        """Whether there is a device that works beside the CPU, so that only the wall's clock tells the time."""
        return self.device not in ON_CPU

    @property
    def restarts(self) -> bool:
        """Whether one process can set the code up again; a script runs once."""
        return str(self.entry["kind"]) != "script"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for an arm, and for a comparison of what two computed, in seconds."""

    load: float = 300.0
    check: float = 300.0
    block: float = 60.0
    compare: float = 600.0

    def until(self, deadline: float) -> Patience:
        """What is left of it before that moment of `time.monotonic`. A little always is: what is about to end may."""
        most = max(deadline - time.monotonic(), _LEAST_S)
        return Patience(*(min(seconds, most) for seconds in (self.load, self.check, self.block, self.compare)))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an arm gave no result: `kind` as in `ArmError`, and a line for people."""

    kind: str
    reason: str
    trace: str = ""


class BaselineError(Exception):
    """The code fails as it is, before any fix."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure
