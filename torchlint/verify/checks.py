"""Whether an arm computes what the null arm computes: captures of both in fresh processes, and their comparison."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from torchlint.verify.arms import Arm, BaselineError, Failure
from torchlint.verify.machine import Clerk
from torchlint.verify.process import ArmError, Worker
from torchlint.verify.session import CAPTURE, Session

_Taken = TypeVar("_Taken")
Determinism = Literal["error", "warn"]

STEPS = 3
SEED = 7
OTHER_SEED = 1017
OF_LOADERS = "dataloader-"
"""What the names of rules begin with whose fixes move work to a loader's processes."""
_SCALE = 1.01
_NOT_DETERMINISTIC = ("does not have a deterministic implementation", "torch.use_deterministic_algorithms(True)")
"""Words of an operation that cannot be repeated, where torch is told to raise for those."""
_REPEATS = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Without it cuBLAS may add in another order each time, and torch refuses it where it is to be deterministic."""
_NUDGED = {0: "", 1: "-nudged", 2: "-again"}
_WAITED = "; compared with the code as it is made to wait for each copy, since it reads what is still being copied"
_MAY_NOT_VARY = ("exact", "close", "mapped-state", "shape", "alias", "stdout")
_ROUNDED = ("close", "lower-precision", "mapped-state")
"""The classes by which a program may differ in rounding: of what they complain of, float64 is asked."""
_SAME = ("same", "same-within-class")


@dataclass(frozen=True, slots=True)
class Declared:
    """What a fix says of its numbers: their class, and which parameters it drops and buffers it leaves free.

    `of_loaders`: it moves work to a loader's processes, which have one thread each; sums of many numbers round
    differently by the number of threads, so that all that is compared has one. `slow_is_wrong`: the code reads what is
    still being copied, so that what it is compared with is the same code made to wait for each copy.
    """

    numerics: str
    dropped: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    of_loaders: bool = False
    slow_is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """Files of captures of the null arm; None is what the code does not offer.

    With a seed, with it again in another process, with another seed, with its parameters off by 1 % (or its inputs, if
    it has none), and of a unit after all numbers of its state were moved. `state` are its parameters at the start. With
    `to_end` the code was followed to its end, and what it printed was taken down. `null` is the arm itself, and
    `deterministic` whether all that it does has an algorithm that is.
    """

    first: str
    again: str
    other: str
    scaled: str | None = None
    moved: str | None = None
    state: str | None = None
    to_end: bool = False
    null: Arm | None = None
    deterministic: Determinism = "error"


def reference(
    session: Session, null: Arm, declared: Declared, steps: int = STEPS, *, to_end: bool = False
) -> Reference:
    """Capture the null arm; `to_end` for a program that ends soon. Raises `BaselineError` if it fails."""
    try:
        looking = _Looking(session, null, declared, steps, to_end=to_end, wait=declared.slow_is_wrong)
        return _repeatable(looking, _reference)
    except ArmError as error:
        raise BaselineError(Failure(error.kind, str(error), error.trace)) from None


def check(
    session: Session, clerk: Clerk, base: Reference, arm: Arm, declared: Declared, steps: int = STEPS
) -> dict[str, Any]:
    """What the comparison of `arm` with the null arm says. Raises `ArmError`.

    What was captured for it is removed: of a large program that is gigabytes, and the next arm captures as much.
    """
    looking = _Looking(
        session, arm, declared, steps, state=base.state, to_end=base.to_end, deterministic=base.deterministic
    )
    try:
        return _check(looking, clerk, base)
    finally:
        if base.null is None or base.null.name != arm.name:
            session.forget(f"{looking.prefix}*")


def _check(looking: _Looking, clerk: Clerk, base: Reference) -> dict[str, Any]:
    session, arm, declared = looking.session, looking.arm, looking.declared
    session.note(f"numerics: {arm.name}")
    # Parameters that come from the null arm are the same for each seed.
    other = session.subject.restarts and base.state is None
    seen = _repeatable(looking, lambda look: _seen(look, moved=base.moved is not None, other=other))
    again = _repeatable(looking, _again) if declared.numerics == "nondeterministic" else None
    result = _compared(session, clerk, base, seen, declared, after_again=again)
    if result["verdict"] == "wrong" and result.get("aa_bit_equal") is False and declared.numerics in _MAY_NOT_VARY:
        again = _repeatable(looking, _again)  # it may be as noisy as the null arm is
        result = _compared(session, clerk, base, seen, declared, after_again=again)
    if declared.slow_is_wrong:
        result = {**result, "reason": f"{result['reason']}{_WAITED}"}
    if result["verdict"] != "wrong" or declared.numerics not in _ROUNDED or base.null is None:
        return result
    session.note(f"numerics: {arm.name}, in float64")
    try:
        exact = _repeatable(looking, partial(_in_float64, null=base.null, seen=seen))
    except ArmError as error:  # as code does that names the type it wants
        reason = f"{result['reason']}; in float64, which would tell rounding, it fails: {error}"
        # What the time did not suffice for was not decided.
        return {**result, "verdict": "not-checked" if error.kind == "timeout" else "wrong", "reason": reason}
    return _compared(session, clerk, base, seen, declared, after_again=again, exact=exact)


def _repeatable(looking: _Looking, take: Callable[[_Looking], _Taken]) -> _Taken:
    """What `take` captures with deterministic algorithms alone; if there are none for all, with those that there are.

    torch takes some, such as those of attention, only where it is to raise for what has none. Raises `ArmError`.
    """
    try:
        return take(looking)
    except ArmError as error:
        if looking.deterministic == "warn" or not any(words in str(error) for words in _NOT_DETERMINISTIC):
            raise
    looking.session.note(f"numerics: {looking.arm.name}, which has no deterministic algorithm for all it does")
    return take(replace(looking, deterministic="warn"))


def _again(looking: _Looking) -> str:
    """The first capture in another process."""
    with looking.started(SEED) as worker:
        return looking.capture(worker, "again")


@dataclass(frozen=True, slots=True)
class _Seen:
    """Files of captures of one arm, as in `Reference`."""

    first: str
    other: str | None = None
    moved: str | None = None
    state: str | None = None


def _seen(looking: _Looking, *, moved: bool, other: bool, keep: bool = False) -> _Seen:
    """The captures of an arm in one fresh process; `keep` its parameters at the start. Raises `ArmError`."""
    files: dict[str, str | None] = {}
    with looking.started(SEED) as worker:
        if keep:
            files["state"] = looking.keep(worker)
        files["first"] = looking.capture(worker, "first")
        if moved:
            files["moved"] = looking.capture_moved(worker)
        if other:
            looking.start(worker, OTHER_SEED)
            files["other"] = looking.capture(worker, "other")
    return _Seen(**files)  # type: ignore[arg-type]  # the first is always there


def _in_float64(looking: _Looking, null: Arm, seen: _Seen) -> tuple[_Seen, ...]:
    """What the null arm and this one compute where all is computed in float64. Raises `ArmError`.

    Behind both: what the null arm computes as it is, twice, from parameters that are a unit in the last place off. A
    script, whose parameters cannot be reached, is not run so.
    """
    wanted = {"moved": seen.moved is not None, "other": seen.other is not None}
    slow = replace(looking, arm=null, state=None, double=True, wait=looking.declared.slow_is_wrong)
    before = _seen(slow, **wanted, keep=looking.state is not None)
    after = _seen(replace(looking, state=before.state, double=True), **wanted)
    if not looking.session.subject.restarts:
        return before, after
    return before, after, *(_seen(replace(slow, double=False, nudge=seed), **wanted) for seed in (1, 2))


def _compared(
    session: Session,
    clerk: Clerk,
    base: Reference,
    seen: _Seen,
    declared: Declared,
    *,
    after_again: str | None,
    exact: tuple[_Seen, ...] = (),
) -> dict[str, Any]:
    """What the comparisons come to, of which the first that finds something wrong counts."""
    options = {"class": declared.numerics, "dropped": list(declared.dropped), "free": list(declared.free)}
    runs = {"again": base.again, "after_again": after_again, "other_seed": base.other, "scaled": base.scaled}

    def compared(name: str, **more: Any) -> dict[str, Any]:
        if exact:
            more["fp64"] = [getattr(each, name) for each in exact[:2]]
            more["nudged"] = [getattr(each, name) for each in exact[2:]]
        files = {"before": getattr(base, name), "after": getattr(seen, name)}
        return clerk.compare(patience=session.patience.compare, **files, **more, **options)

    result = compared("first", **runs)
    noisy = {}
    if result.get("aa_bit_equal") is False:
        noisy["noisy"] = [[base.first, base.again], *([[seen.first, after_again]] if after_again else [])]
    # Code that remembers what it computed first gives the same again for other inputs.
    for name, when in (("other", "with another seed"), ("moved", "from other numbers")):
        if result["verdict"] in _SAME and getattr(base, name) and getattr(seen, name):
            second = compared(name, **noisy)
            if second["verdict"] == "wrong":
                result = {**result, "verdict": "wrong", "reason": f"{when}: {second['reason']}"}
    return result


def _reference(looking: _Looking) -> Reference:
    looking.session.note("numerics: the code as it is")
    moved = scaled = state = None
    with looking.started(SEED) as worker:
        if looking.declared.numerics == "mapped-state":
            state = looking.keep(worker)
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
    return Reference(first, again, other, scaled, moved, state, looking.to_end, looking.arm, looking.deterministic)


@dataclass(frozen=True, slots=True)
class _Looking:
    """How one arm's captures are taken."""

    session: Session
    arm: Arm
    declared: Declared
    steps: int
    state: str | None = None
    to_end: bool = False
    double: bool = False
    deterministic: Determinism = "error"
    wait: bool = False
    nudge: int = 0

    @contextlib.contextmanager
    def started(self, seed: int) -> Iterator[Worker]:
        """The arm in a fresh process, set up."""
        threads = {"threads": 1} if self.declared.of_loaders else {}
        with self.session.running(self.arm, seed=seed, env=_REPEATS, **threads) as worker:
            self.start(worker, seed)
            yield worker

    def start(self, worker: Worker, seed: int, **more: Any) -> dict[str, Any]:
        """Set it up from a seed; the reply."""
        # Random numbers drawn on another device are other numbers: such a fix is compared with all drawn on the CPU.
        # Code may seed its generators itself, so that another seed has to reach those seeds too.
        options = {
            "host_random": self.declared.numerics == "rng",
            "deterministic": self.deterministic,
            "full_float32": self.declared.numerics != "lower-precision",
            "shift": seed - SEED,
            **more,
        }
        if self.wait:
            options["wait"] = True
        if self.double:
            options["double"] = True
        if self.nudge:
            options["nudge"] = self.nudge
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

    def keep(self, worker: Worker) -> str:
        """The file with its parameters and buffers."""
        file = self.file("state")
        worker.ask("state", self.session.patience.check, file=file)
        return file

    def capture_moved(self, worker: Worker) -> str | None:
        """The file with what it computes from other numbers, None if its state has none."""
        file = self.file("moved")
        return file if worker.ask("moved", self.session.patience.check, file=file)["moved"] else None

    def file(self, name: str) -> str:
        """A file of this arm's."""
        double = "-64" if self.double else ""
        return str(self.session.captured(f"{self.prefix}-{name}{double}{_NUDGED[self.nudge]}{CAPTURE}"))

    @property
    def prefix(self) -> str:
        """What the names of its files begin with: its own may hold what no file's may."""
        return hashlib.sha256(self.arm.name.encode()).hexdigest()[:12]
