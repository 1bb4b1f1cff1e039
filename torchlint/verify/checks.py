"""Whether an arm computes what the null arm computes: captures of both in fresh processes, and their comparison."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchlint.verify.arms import BaselineError, Failure
from torchlint.verify.process import ArmError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.verify.arms import Arm
    from torchlint.verify.machine import Clerk
    from torchlint.verify.process import Worker
    from torchlint.verify.session import Session

STEPS = 3
SEED = 7
OTHER_SEED = 1017
_SCALE = 1.01
_SAME = ("same", "same-within-class")


@dataclass(frozen=True, slots=True)
class Declared:
    """What a fix says of its numbers: their class, and which parameters it drops and buffers it leaves free."""

    numerics: str
    dropped: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """Files of captures of the null arm; None is what the code does not offer.

    With a seed, with it again in another process, with another seed, with its parameters off by 1 % (or its inputs, if
    it has none), and of a unit after all numbers of its state were moved. `state` are its parameters at the start. With
    `to_end` the code was followed to its end, and what it printed was taken down.
    """

    first: str
    again: str
    other: str
    scaled: str | None = None
    moved: str | None = None
    state: str | None = None
    to_end: bool = False


def reference(
    session: Session, null: Arm, declared: Declared, steps: int = STEPS, *, to_end: bool = False
) -> Reference:
    """Capture the null arm; `to_end` for a program that ends soon. Raises `BaselineError` if it fails."""
    try:
        return _reference(_Looking(session, null, declared, steps, to_end=to_end))
    except ArmError as error:
        raise BaselineError(Failure(error.kind, str(error), error.trace)) from None


def check(
    session: Session, clerk: Clerk, base: Reference, arm: Arm, declared: Declared, steps: int = STEPS
) -> dict[str, Any]:
    """What the comparison of `arm` with the null arm says. Raises `ArmError`."""
    looking = _Looking(session, arm, declared, steps, state=base.state, to_end=base.to_end)
    # Parameters that come from the null arm are the same for each seed.
    restarts = session.subject.restarts and base.state is None
    session.note(f"numerics: {arm.name}")
    moved = other = again = None
    with looking.started(SEED) as worker:
        first = looking.capture(worker, "first")
        if base.moved:
            moved = looking.capture_moved(worker)
        if restarts:
            looking.start(worker, OTHER_SEED)
            other = looking.capture(worker, "other")
    if declared.numerics == "nondeterministic":
        with looking.started(SEED) as worker:
            again = looking.capture(worker, "again")
    options = {"class": declared.numerics, "dropped": list(declared.dropped), "free": list(declared.free)}
    runs = {"again": base.again, "after_again": again, "other_seed": base.other, "scaled": base.scaled}
    result = clerk.compare(before=base.first, after=first, **runs, **options)
    # Code that remembers what it computed first gives the same again for other inputs.
    for before, after, when in ((base.other, other, "with another seed"), (base.moved, moved, "from other numbers")):
        if result["verdict"] in _SAME and before and after:
            second = clerk.compare(before=before, after=after, **options)
            if second["verdict"] == "wrong":
                result = {**result, "verdict": "wrong", "reason": f"{when}: {second['reason']}"}
    return result


def _reference(looking: _Looking) -> Reference:
    looking.session.note("numerics: the code as it is")
    moved = scaled = state = None
    with looking.started(SEED) as worker:
        if looking.declared.numerics == "mapped-state":
            state = looking.file("state")
            worker.ask("state", looking.session.patience.check, file=state)
        first = looking.capture(worker, "first")
        if looking.session.subject.restarts:
            try:
                moved = looking.capture_moved(worker)
            except ArmError:
                moved = None  # code may refuse the numbers that we move its own to
    with looking.started(SEED) as worker:
        again = looking.capture(worker, "again")
        if looking.session.subject.restarts:
            looking.start(worker, OTHER_SEED)
            other = looking.capture(worker, "other")
            if looking.start(worker, SEED, scale=_SCALE)["scaled"]:
                scaled = looking.capture(worker, "scaled")
    if not looking.session.subject.restarts:
        with looking.started(OTHER_SEED) as worker:
            other = looking.capture(worker, "other")
    return Reference(first, again, other, scaled, moved, state, looking.to_end)


@dataclass(frozen=True, slots=True)
class _Looking:
    """How one arm's captures are taken."""

    session: Session
    arm: Arm
    declared: Declared
    steps: int
    state: str | None = None
    to_end: bool = False

    @contextlib.contextmanager
    def started(self, seed: int) -> Iterator[Worker]:
        """The arm in a fresh process, set up."""
        with self.session.running(self.arm, seed=seed) as worker:
            self.start(worker, seed)
            yield worker

    def start(self, worker: Worker, seed: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Set it up from a seed; the reply."""
        # Random numbers drawn on another device are other numbers: such a fix is compared with all drawn on the CPU.
        # Code may seed its generators itself, so that another seed has to reach those seeds too.
        options = {"host_random": self.declared.numerics == "rng", "deterministic": True, "shift": seed - SEED, **more}
        if self.state:
            dropped, free = list(self.declared.dropped), list(self.declared.free)
            options |= {"state": self.state, "dropped": dropped, "free": free}
        return worker.ask("start", self.session.patience.check, seed=seed, **options)

    def capture(self, worker: Worker, name: str) -> str:
        """The file with what it computes in its next units."""
        file = self.file(name)
        worker.ask(
            "check",
            self.session.patience.check,
            steps=self.steps,
            file=file,
            stdout=self.to_end or self.declared.numerics == "stdout",
            to_end=self.to_end,
        )
        return file

    def capture_moved(self, worker: Worker) -> str | None:
        """The file with what it computes from other numbers, None if its state has none."""
        file = self.file("moved")
        return file if worker.ask("moved", self.session.patience.check, file=file)["moved"] else None

    def file(self, name: str) -> str:
        """A file of this arm's, whose name may hold what no file's may."""
        arm = hashlib.sha256(self.arm.name.encode()).hexdigest()[:12]
        return str(self.session.captured(f"{arm}-{name}.pt"))
