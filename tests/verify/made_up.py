"""A session whose processes are made up, and what it finds out is scripted: for tests of what is done with that."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlint.verify import stats
from torchlint.verify.ablation import HANDICAP, NULL
from torchlint.verify.arms import Arm, Failure, Patience, Subject
from torchlint.verify.process import ArmError
from torchlint.verify.replicate import Block
from torchlint.verify.timing import Timed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchlint.verify.ablation import Stage
    from torchlint.verify.checks import Declared

COUNTS = ("syncs", "h2d_pageable", "h2d_pinned", "h2d_bytes", "d2h", "d2h_bytes", "launches", "allocations")
NOISE = (-0.002, 0.001, 0.0, 0.001)


@dataclass
class MadeUp:
    """Stands for a `Session`. `lines` say at which of its `length` steps a line first runs, `syncs` how many an arm has per step.

    `speed` is the log ratio of an arm by its units, `verdicts` what the numerics of some units come to, `fails` the
    errors of arms by their name.
    """

    folder: Path
    device: dict[str, Any] = field(default_factory=lambda: {"name": "Made-up device"})
    software: dict[str, Any] = field(default_factory=lambda: {"torch": "2.13.0"})
    machine: dict[str, Any] = field(default_factory=lambda: {"cpu": "Made-up CPU"})
    where: dict[str, Any] = field(default_factory=dict)
    isolation: tuple[str, ...] = ("overlay",)
    left: dict[str, list[str]] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
    subject: Subject = field(default_factory=lambda: subject("script", "cuda"))
    lines: Mapping[tuple[str, int], int] = field(default_factory=dict)
    length: int = 40
    syncs: Mapping[str, int] = field(default_factory=dict)
    speed: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    fails: Mapping[str, ArmError] = field(default_factory=dict)
    uncounted: Mapping[str, str] = field(default_factory=dict)
    suspicious: frozenset[str] = frozenset()
    biased: bool = False
    slowed: frozenset[str] = frozenset()
    first_s: float = 0.0
    replicates: int = 4
    ran: list[str] = field(default_factory=list)
    checked: list[tuple[str, str]] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.note = self.notes.append

    def captured(self, name: str) -> Path:
        return self.folder / name

    @contextmanager
    def running(self, arm: Arm, *, seed: int = 0, **options: Any) -> Iterator[_Worker]:  # noqa: ANN401 - JSON
        del seed
        self.ran.append(arm.name)
        if options.get("record"):
            Path(options["record"]).touch()
        yield _Worker(self, arm, options)

    def check(self, session: object, clerk: object, base: object, arm: Arm, declared: Declared) -> dict[str, Any]:
        """In place of `checks.check`."""
        del session, clerk, base
        self.checked.append((arm.name, declared.numerics))
        if arm.name in self.fails:
            raise self.fails[arm.name]
        verdict = self.verdicts.get(arm.name, "same")
        return {"class": declared.numerics, "verdict": verdict, "reason": "" if verdict == "same" else "so it is said"}

    def measure(self, session: object, arms: Mapping[str, Arm], stage: Stage, **options: Any) -> Timed:  # noqa: ANN401 - as the original
        """In place of `timing.measure`: each arm has the speed of its units, those of `together` if it has several."""
        del session
        assert set(arms) == {version.name for version in stage.arms}
        self.stages.append(stage)
        blocks = [(0, Block(name, 10, ((2e6, 1e6, 0.0),), 1980.0)) for name in arms]
        units = {version.name: version.units for version in stage.arms}
        timed = Timed(options["metric"], (4,), (0.01,), 1.0, options["seed"], {})
        timed.replicates, timed.blocks, timed.baseline_ns = self.replicates, blocks, [4e6]
        timed.states = [{"slowed": sorted(self.slowed), "temperature_c": 61}]
        timed.clocks_of = {name: [1980.0] for name in arms}
        timed.first_ns = {name: [1e6 if name == NULL else self.first_s * 1e9] for name in arms}
        for asked in stage.comparisons:
            if asked.arm in self.fails:
                continue
            effect = self._speed(asked.arm, units) - self._speed(asked.against, units)
            timed.log_ratios[asked] = [effect + noise for noise in NOISE[: self.replicates]]
            decide = stats.decide if self.replicates == len(NOISE) else None
            timed.decisions[asked] = (
                decide(timed.log_ratios[asked], 0) if decide else stats.stopped(timed.log_ratios[asked])
            )
        timed.failures = {
            name: error_of(self.fails[name]) for name in arms if name in self.fails and name not in (NULL, HANDICAP)
        }
        timed.working = {name: [0.9] if self.suspicious.intersection(units[name]) else [0.0] for name in arms}
        return timed

    def _speed(self, arm: str, units: Mapping[str, Sequence[str]]) -> float:
        if arm == HANDICAP:
            return -0.05
        if arm == "original":
            return 0.1 if self.biased else 0.0
        key = "+".join(sorted(units[arm]))
        return self.speed.get(key, sum(self.speed.get(unit, 0.0) for unit in units[arm]))


def error_of(error: ArmError) -> Failure:
    return Failure(error.kind, str(error), error.trace)


def subject(kind: str, device: str, root: Path = Path("/project")) -> Subject:
    entry = {"kind": kind, "file": "train.py", "arguments": [], "clock": "auto"}
    return Subject(root, entry, device, 1, "python")


class _Worker:
    """A process that has run so many steps."""

    def __init__(self, session: MadeUp, arm: Arm, options: Mapping[str, Any]) -> None:
        self._session = session
        self._arm = arm
        self._options = options
        self._done = 0

    def ask(self, name: str, timeout: float, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        assert timeout > 0
        if self._arm.name in self._session.fails and name == "start":
            raise self._session.fails[self._arm.name]
        if name == "start":
            return {"workers": 0}
        assert name == "count"
        left = self._session.length - self._done
        wanted = left if message["units"] is None else min(message["units"], left)
        if not wanted:
            raise ArmError("ended", "the program ended without a step")
        self._done += wanted
        self._note_lines()
        syncs = self._session.syncs.get(self._arm.name, 4) * wanted
        file = str(self._session.subject.root / "train.py")
        sites = [
            {"file": file, "line": 3, "kind": "syncs", "count": syncs - wanted},
            {"file": file, "line": 3, "kind": "syncs", "count": wanted},
            {"file": file, "line": 3, "kind": "d2h", "count": wanted},
            {"file": file, "line": 3, "kind": "launches", "count": 99},
        ]
        return {
            "units": wanted,
            "ended": message["units"] is None or wanted < message["units"],
            "counts": dict.fromkeys(COUNTS, 0) | {"syncs": syncs},
            "sites": sites,
            "earlier": [],
            "doubt": self._session.uncounted.get(self._arm.name, ""),
            "peak": 1 << 20,
            "busy_ns": (1e6 if self._arm.name == NULL else 0.5e6) * wanted,
        }

    def _note_lines(self) -> None:
        record, watch = self._options.get("record"), self._options.get("watch") or {}
        if record:
            with Path(record).open("a", encoding="utf-8") as file:
                for (name, line), step in self._session.lines.items():
                    if line in watch.get(name, ()) and step <= self._done:
                        file.write(f"{line} {self._session.subject.root / name}\n")
