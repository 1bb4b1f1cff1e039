"""What a trace says of lines: how long they held the host up, left the device idle, or computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from torchlint.finding import Finding


class Part(Enum):
    """What time goes to."""

    WAIT = "wait"
    COPY = "copy"
    LOAD = "load"
    IDLE = "idle"
    ALLOCATE = "allocate"
    COMPUTE = "compute"

    @property
    def words(self) -> str:
        """As it stands before a time."""
        return _WORDS[self]


_WORDS = {
    Part.WAIT: "waits for the GPU",
    Part.COPY: "copies",
    Part.LOAD: "loads batches",
    Part.IDLE: "leaves the GPU idle",
    Part.ALLOCATE: "allocates",
    Part.COMPUTE: "operators on the CPU",
}


class Certainty(Enum):
    """How the line of a call is known: the trace says it, one call of the function fits, the order of calls says it.

    FUNCTION: of the function alone; the line is that of its definition.
    """

    LINE = "line"
    CALL = "call"
    ORDER = "order"
    FUNCTION = "function"


@dataclass(slots=True)
class Cost:
    """For how many µs the host, or for IDLE the device, was held up by what, and how often.

    The parts do not overlap. `launches` are kernels, `bytes` what was copied, `reads` how often a value was read by the
    host, which waits where the value is on a GPU.
    """

    times: dict[Part, float] = field(default_factory=dict)
    counts: dict[Part, int] = field(default_factory=dict)
    launches: int = 0
    bytes: float = 0.0
    reads: int = 0

    @property
    def total(self) -> float:
        """All of it, in µs."""
        return sum(self.times.values())

    def add(self, part: Part, time: float, count: int = 1) -> None:
        """Another event; none of its own with a count of 0."""
        self.times[part] = self.times.get(part, 0.0) + time
        self.counts[part] = self.counts.get(part, 0) + count

    def include(self, other: Cost) -> None:
        """What another one holds."""
        for part, time in other.times.items():
            self.times[part] = self.times.get(part, 0.0) + time
            self.counts[part] = self.counts.get(part, 0) + other.counts[part]
        self.launches += other.launches
        self.bytes += other.bytes
        self.reads += other.reads

    def parts(self) -> list[tuple[Part, float, int]]:
        """What it is made of, the largest first, with how often."""
        found = [(part, time, self.counts[part]) for part, time in self.times.items() if time > 0]
        return sorted(found, key=lambda each: (-each[1], each[0].value))


@dataclass(frozen=True, slots=True)
class Line:
    """What a trace says of a statement: its file and first row, its code, and which findings name it.

    `function` is where it stands. `silence` says why no rule names it, where that was asked.
    """

    path: str
    row: int
    function: str
    code: str
    certainty: Certainty
    cost: Cost
    findings: tuple[str, ...] = ()
    silence: str = ""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """What a trace has of an operation that no line of the run is known to have started."""

    name: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of one step: from and to in µs of its start, what it goes to, and the line, if known."""

    start: float
    end: float
    part: Part
    place: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of usual length: its µs, what the host did, and when the device was busy."""

    length: float
    host: tuple[Stretch, ...]
    device: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Profile:
    """What a trace says of a run. Times are µs.

    `length` is that of the whole recording, `busy` for how long the device was at work. `steps` is how many steps were
    recorded, None where that is not known. `by_finding` is what was measured of the lines of each finding, by the path.
    `remarks` say what of the trace could not be used, and what to do about it.
    """

    shown: str
    length: float
    device: str = ""
    busy: float = 0.0
    steps: int | None = None
    lines: tuple[Line, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    by_finding: Mapping[tuple[str, Finding], Cost] = field(default_factory=dict)
    step: Step | None = None
    remarks: tuple[str, ...] = ()

    @property
    def has_device(self) -> bool:
        """Whether anything ran on a device."""
        return bool(self.device)

    def share(self, cost: Cost) -> float:
        """Which part of the recording that is, from 0 to 1."""
        return min(cost.total / self.length, 1.0) if self.length else 0.0


def to_json(cost: Cost, profile: Profile) -> dict[str, Any]:
    """What was measured of a line or a finding."""
    return {
        "total_us": round(cost.total, 3),
        "share": round(profile.share(cost), 6),
        "parts": {
            part.value: {"us": round(time, 3), "count": count}
            for part, time, count in sorted(cost.parts(), key=lambda each: each[0].value)
        },
        "launches": cost.launches,
        "copied_bytes": round(cost.bytes),
        "reads": cost.reads,
    }


def summed(costs: Iterable[Cost]) -> Cost:
    """All of them together."""
    total = Cost()
    for cost in costs:
        total.include(cost)
    return total


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans in order and without overlaps."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
