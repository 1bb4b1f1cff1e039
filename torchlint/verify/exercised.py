"""Which fixes of a program change lines that run at all, and how many steps are worth counting."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from torchlint.verify import checks, timing
from torchlint.verify.ablation import ORIGINAL
from torchlint.verify.arms import Arm, Failure
from torchlint.verify.inside.coverage import ran
from torchlint.verify.process import ArmError
from torchlint.verify.session import Session
from torchlint.verify.units import Program, Unit

COUNTED = 20
"""How many calls of a function are counted."""

_LOOK_S = 30.0
_SHARE = 0.25  # of the time there is for all
_LEAST_S = 5.0


@dataclass(frozen=True, slots=True)
class Means:
    """How to measure: when to stop, the seed, how many steps to count (None: to the program's end).

    `only_count` leaves the fixes alone and counts the code as it is.
    """

    limits: timing.Limits
    seed: int = 1
    steps: int | None = None
    only_count: bool = False

    def patience(self, seconds: float) -> float:
        """How long to wait for one answer, within the time that there is for all."""
        return max(min(seconds, self.limits.deadline - time.monotonic()), _LEAST_S)


@dataclass(frozen=True, slots=True)
class Seen:
    """The units that run, those that do not, and those that run only after the steps that can be compared.

    `steps` were run; `ended` says that there are no more, or no more were wanted. `to_end` says that the program ends
    soon and has to be compared up to there, since units run after the first steps.
    """

    units: tuple[Unit, ...]
    idle: tuple[Unit, ...]
    later: tuple[Unit, ...]
    steps: int
    ended: bool
    to_end: bool = False


def look(running: Session, program: Program, units: Sequence[Unit], means: Means) -> Seen:
    """Run the code as it is with an eye on the lines that the units change, in steps of an optimizer or of the entry.

    A program that does not end soon is looked at until all of the lines have run in the first steps, and for half a
    minute where its steps are to be counted. Raises `BaselineError` if it fails.
    """
    watch: dict[str, list[int]] = {}
    for unit in units:
        watch.setdefault(unit.shown, []).extend(unit.lines)
    record = str(running.captured("lines.txt"))
    running.note("looking which of the lines run")
    restarts = running.subject.restarts
    enough = restarts or running.subject.device == "cpu"  # when all of the lines have run
    most = means.steps or (COUNTED if restarts else math.inf)
    done, more, ended = 0, checks.STEPS, False
    covered: tuple[Unit, ...] = ()
    early: tuple[Unit, ...] = ()
    try:
        with running.running(Arm(ORIGINAL), seed=checks.SEED, watch=watch, record=record) as worker:
            worker.ask("start", means.patience(running.patience.check), seed=checks.SEED)
            begin = time.monotonic()
            until = begin + min(_LOOK_S, _SHARE * (means.limits.deadline - begin))
            while not done or (not ended and done < most and time.monotonic() < until):
                wait = until - time.monotonic() if done else running.patience.check
                said = worker.ask("count", means.patience(wait), units=int(min(more, most - done)), warm=0)
                covered = _run_by(ran(record), units, program)
                early = early if done else covered
                done, more, ended = done + said["units"], more * 2, said["ended"]
                if enough and len(covered) == len(units) and (restarts or early == covered):
                    break
    except ArmError as error:
        # What has run until then has run; and a program may end with its last step.
        if not done or error.kind not in ("timeout", "ended"):
            raise timing.BaselineError(Failure(error.kind, str(error), error.trace)) from None
        ended = error.kind == "ended"
        covered = _run_by(ran(record), units, program)
    later = () if restarts else tuple(unit for unit in covered if unit not in early)
    return Seen(
        units=covered,
        idle=tuple(unit for unit in units if unit not in covered),
        later=() if ended else later,
        steps=done,
        ended=ended or restarts,
        to_end=ended and bool(later),
    )


def _run_by(lines: Sequence[tuple[str, int]], units: Sequence[Unit], program: Program) -> tuple[Unit, ...]:
    """The units of which at least one line has run."""
    have_run = {(program.shown(path), row) for path, row in lines}
    return tuple(unit for unit in units if any((unit.shown, row) in have_run for row in unit.lines))
