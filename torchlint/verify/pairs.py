"""Measures a rule's pair: the slow file against the fast one, first what they compute, then counts, then time."""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torchlint import evidence
from torchlint.verify import checks, timing
from torchlint.verify.ablation import HANDICAP, NULL, Comparison, Stage, Version
from torchlint.verify.arms import Arm, Failure, Patience, Subject
from torchlint.verify.conditions import Work
from torchlint.verify.looked import Looked
from torchlint.verify.machine import Clerk, Machine, threads_for
from torchlint.verify.measurement import FIXED, QUESTION, Found, measurement
from torchlint.verify.process import ArmError, Worker
from torchlint.verify.raw import Run
from torchlint.verify.session import Session, session
from torchlint.verify.workload import FILE, Workload

STAGE = Stage((Version(NULL), Version(HANDICAP), Version(FIXED)), (Comparison(HANDICAP, NULL, "handicap"), QUESTION))
WARM = 1
"""How many units of work run before those that are counted."""
COUNTED = 1
"""How many are: a unit is a whole run of the workload, and costs the same each time."""

PHASES = ("numerics", "counts", "time")
"""What is looked at, in this order: each is of use only where those before it found nothing wrong."""

_NO_OP = b"\n# null\n"


@dataclass(frozen=True, slots=True)
class Order:
    """What to measure: a device, when to stop, the seed, and how the command was called.

    `phases` are some of `PHASES`. `at_once` is how many pairs are looked at beside each other, and `given_up` says
    whether nobody waits for what comes of them any more.
    """

    device: Literal["cuda", "cpu", "sim", "rocm", "mps", "xpu"]
    limits: timing.Limits
    seed: int
    python: str
    command: str
    phases: tuple[str, ...] = PHASES
    at_once: int = 1
    given_up: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement; whether the time for it ended before anything was decided, and whether the slow file failed.

    `late`: it ended before the results were compared and counted, so that there is nothing to keep. `raw` is what was
    timed. `looked` is what was found before the time, where that is not decided.
    """

    measurement: evidence.Measurement
    cut: bool = False
    broken: bool = False
    late: bool = False
    raw: Run | None = None
    looked: Looked | None = None


def measure(
    workload: Workload,
    size: str,
    order: Order,
    clerk: Clerk,
    machine: Machine,
    note: Callable[[str], None],
    looked: Looked | None = None,
) -> Measured:
    """One size of a rule's pair. What fails becomes a verdict; only the machine's own failures are raised.

    What was `looked` at before is not looked at again.
    """
    with tempfile.TemporaryDirectory(prefix="torchlint-pair-") as folder:
        root = Path(folder)
        (root / FILE).write_bytes(workload.slow)
        entry = {"kind": "workload", "file": FILE, "size": size}
        threads = max(1, threads_for(order.device) // order.at_once)
        subject = Subject(root, entry, order.device, threads, order.python)
        with session(subject, note, Patience(), order.given_up) as running:
            found, broken = Found(), False
            if looked is not None:
                found.take(looked)
            null = Arm(NULL, {FILE: workload.slow + _NO_OP})
            fixed = Arm(FIXED, {FILE: workload.fast})
            try:
                if workload.devices > (machine.devices if order.device == "cuda" else 1):
                    found.cannot = f"needs {workload.devices} CUDA devices"
                    _identify(running, null)
                else:
                    _look(running, workload, order, clerk, null, fixed, found)
            except _LateError:
                found.late = True
            except timing.BaselineError as error:
                found.cannot, broken = f"the slow file fails: {error.failure.reason}", True
            made = measurement(workload, size, order.device, order.command, running, found)
            raw = Run({"rule": workload.rule.name, "size": size}, running.where, found.timed) if found.timed else None
            return Measured(made, found.cut, broken, found.late, raw, _looked(running, order, found))


def _looked(running: Session, order: Order, found: Found) -> Looked | None:
    """What is kept for a run that will time the pair; None where there is nothing left to time."""
    is_open = found.timed is None or found.cut
    if not is_open or found.late or found.cannot or found.failure or order.device == "sim" or found.numerics is None:
        return None
    if found.numerics["verdict"] == "wrong":
        return None
    return found.looked(str(running.software.get("torch", "")), order.command)


def _identify(running: Session, null: Arm) -> None:
    """Start a process for what it says of its device, and no more. Raises `BaselineError`."""
    try:
        with running.running(null) as worker:
            worker.ask("identify", running.patience.load)
    except ArmError as error:
        raise timing.BaselineError(_failure(error)) from None


def _look(
    running: Session, workload: Workload, order: Order, clerk: Clerk, null: Arm, fixed: Arm, found: Found
) -> None:
    """As far as the pair allows it: what is wrong is neither counted nor timed. Raises `BaselineError`."""
    declared = checks.Declared(
        workload.numerics,
        workload.dropped,
        workload.free,
        of_loaders=workload.rule.name.startswith(checks.OF_LOADERS),
        slow_is_wrong=workload.slow_is_wrong,
    )
    running.deadline = order.limits.deadline
    if found.numerics is None:
        with _in_time(running):
            base = checks.reference(running, null, declared)
        try:
            with _in_time(running):
                found.numerics = checks.check(running, clerk, base, fixed, declared)
        except ArmError as error:
            found.failure = _failure(error)
        running.forget()
        if running.late and found.numerics and found.numerics["verdict"] == "not-checked":
            raise _LateError
    if found.failure or (found.numerics and found.numerics["verdict"] == "wrong"):
        return
    if "counts" in order.phases and not found.counted:
        if running.subject.is_counted:
            with _in_time(running):
                _count(running, null, fixed, found)
        found.counted = True
        if order.at_once > 1:  # what others do on the device meanwhile makes it last longer
            found.work = replace(found.work, busy_ns=None)
    if order.device == "sim" or found.failure or "time" not in order.phases:
        return
    running.deadline = math.inf  # from here on no replicate is begun that will not end in time
    metric = "wall" if running.subject.on_accelerator or declared.of_loaders else "cpu-time"
    arms = {NULL: null, HANDICAP: Arm(HANDICAP, null.files), FIXED: fixed}
    unknown = order.device == "cuda" and found.counts is not None and found.work.busy_ns is None
    found.timed = timing.measure(
        running, arms, STAGE, metric=metric, limits=order.limits, seed=order.seed, busy=unknown
    )
    if {NULL, FIXED} <= found.timed.busy_ns.keys():
        before, after = found.timed.busy_ns[NULL], found.timed.busy_ns[FIXED]
        found.work = replace(found.work, busy_ns=(before, after))
    found.failure = found.timed.failures.get(FIXED)


def _count(running: Session, null: Arm, fixed: Arm, found: Found) -> None:
    """Counts and peak memory of both arms, each in a fresh process. Raises `BaselineError`."""
    counts: list[dict[str, float]] = []
    memory: list[int] = []
    busy: list[float] = []
    work: list[tuple[int, int] | None] = []
    for arm in (null, fixed):
        running.note(f"counts: {arm.name}")
        try:
            with running.running(arm, seed=checks.SEED) as worker:
                timeout = running.patience.check
                worker.ask("start", timeout, seed=checks.SEED)
                said = worker.ask("count", timeout, units=COUNTED, warm=WARM)
                found.uncounted = found.uncounted or said["doubt"]
                counts.append({kind: n / said["units"] for kind, n in said["counts"].items()})
                busy.append(said.get("busy_ns", 0) / said["units"])
                memory.append(worker.ask("memory", timeout, units=COUNTED)["peak"])
                if running.subject.device == "cuda":
                    work.append(_work(worker, timeout))
        except ArmError as error:
            if error.kind == "timeout" and running.late:
                raise _LateError from None
            if arm is null:
                raise timing.BaselineError(_failure(error)) from None
            found.failure = _failure(error)
            return
    if not found.uncounted:
        known = counts[0].keys() & counts[1].keys()  # some versions of torch do not tell the bytes of a copy
        before, after = ({kind: n for kind, n in each.items() if kind in known} for each in counts)
        found.counts = (before, after)
    found.memory = (memory[0], memory[1])
    counted = [each for each in work if each is not None]
    found.work = Work(
        (busy[0], busy[1]) if all(busy) and not found.uncounted else None,
        *([(before, after) for before, after in zip(*counted, strict=True)] if len(counted) == 2 else []),
    )


def _work(worker: Worker, timeout: float) -> tuple[int, int] | None:
    """The operations of a run, and the bytes that it has to fetch.

    None of code that does not run while they are counted, as compiled code may not.
    """
    try:
        said = worker.ask("work", timeout)
    except ArmError:
        return None
    return int(said["flop"]), int(said["fetched"])


class _LateError(Exception):
    """The time for all ended while an arm was waited for, which is no fault of its own."""


@contextlib.contextmanager
def _in_time(running: Session) -> Iterator[None]:
    """Tell an arm that takes too long from one that was not given long enough. Raises `_LateError` for that."""
    try:
        yield
    except (ArmError, timing.BaselineError) as error:
        kind = error.kind if isinstance(error, ArmError) else error.failure.kind
        if kind == "timeout" and running.late:
            raise _LateError from None
        raise


def _failure(error: ArmError) -> Failure:
    return Failure(error.kind, str(error), error.trace)


def deadline(seconds: float | None) -> float:
    """The moment, of `time.monotonic`, at which a budget of so many seconds is spent."""
    return math.inf if seconds is None else time.monotonic() + seconds
