"""One measuring run: its scratch folder, the processes it starts, and that nothing of them remains."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlint.verify import leftovers, manifest, remains
from torchlint.verify.arms import Arm, Patience, Subject
from torchlint.verify.placement import Tree, place
from torchlint.verify.process import ArmError, Worker

COMPILED = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda"}
"""The variables by which compilers are told where to keep what they made, and the folder of each."""
CAPTURE = ".pt"
"""The suffix of the files with what an arm computes."""
_LOADING = max(os.cpu_count() or 1, 2)  # at once: torch takes a second of a core


class TreeChangedError(Exception):
    """The user's files are not what they were; the text lists them, a line each."""


class Session:
    """Starts arms of a subject; what they leave is cleared when each ends, and again at the end of all."""

    def __init__(
        self,
        subject: Subject,
        scratch: Path,
        patience: Patience,
        note: Callable[[str], None],
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self.subject = subject
        self._given_up = given_up
        self._patience = patience
        self.deadline = math.inf  # of `time.monotonic`: when nobody is waited for any more
        self.note = note
        self.isolation: tuple[str, ...] = ()
        self.device: dict[str, Any] = {}
        self.software: dict[str, Any] = {}
        self.machine: dict[str, Any] = {}
        self.left: dict[str, list[str]] = {}
        self.cleared: set[str] = set()
        self._scratch = scratch
        self._shared = remains.shared_memory()
        self._count = 0

    @property
    def patience(self) -> Patience:
        """How long to wait for an arm, within the time that is left for all."""
        return self._patience.until(self.deadline)

    @patience.setter
    def patience(self, patience: Patience) -> None:
        self._patience = patience

    @property
    def where(self) -> dict[str, Any]:
        """What the processes have said of where they run."""
        return {"device": self.device, "software": self.software, "machine": self.machine}

    @property
    def late(self) -> bool:
        """Whether the time for all has ended."""
        return time.monotonic() >= self.deadline

    @contextlib.contextmanager
    def running(self, arm: Arm, *, seed: int = 0, **options: Any) -> Iterator[Worker]:
        """The arm in a fresh process that has loaded the code. Raises `ArmError`.

        Of `env` those variables are set that the user has not set.
        """
        with self.starting([arm], seed=seed, **options) as (workers, failures):
            if arm.name in failures:
                raise failures[arm.name]
            yield workers[arm.name]

    @contextlib.contextmanager
    def starting(
        self,
        arms: Sequence[Arm],
        *,
        seed: int = 0,
        **options: Any,
    ) -> Iterator[tuple[dict[str, Worker], dict[str, ArmError]]]:
        """The arms in fresh processes that have loaded the code; those that failed to, and why."""
        self._count += 1
        folder = self._scratch / f"{self._count:04d}"
        started: list[_Started] = []
        failures: dict[str, ArmError] = {}
        workers: dict[str, Worker] = {}
        finished = False
        try:
            for index, arm in enumerate(arms):
                # Paths of equal length: what is in an environment or on a stack is as long in every arm.
                started.append(self._start(arm, folder / f"{index:02d}", seed, options))
                if index >= _LOADING:
                    self._loaded(started[index - _LOADING], workers, failures)
            for each in started[-_LOADING:]:
                self._loaded(each, workers, failures)
            yield workers, failures
            finished = True
        finally:
            with _undisturbed():
                for each in started:
                    each.worker.dismiss()
                for each in started:
                    self._end(each, politely=finished)
                remains.remove(folder)

    def captured(self, name: str) -> Path:
        """Where to put a file that outlives the process that writes it."""
        folder = self._scratch / "captures"
        folder.mkdir(exist_ok=True)
        return folder / name

    def forget(self, names: str = "*") -> None:
        """Remove the captures of these names (a pattern, without the suffix), which nothing is compared with again."""
        for file in (self._scratch / "captures").glob(f"{names}{CAPTURE}"):
            file.unlink(missing_ok=True)

    def _compiled(self, name: str) -> Path:
        """What compilers keep of an arm: its next process, which is timed, does not compile it once more.

        Each arm has a folder of its own, whose path is as long as any other's, so that none is warm by another's work.
        """
        folder = self.captured(".").parent / f"compiled-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        for each in COMPILED.values():
            (folder / each).mkdir(parents=True, exist_ok=True)
        return folder

    def _loaded(self, started: _Started, workers: dict[str, Worker], failures: dict[str, ArmError]) -> None:
        """Wait until an arm has loaded the code."""
        try:
            said = started.worker.ready(self.patience.load)
        except ArmError as error:
            failures[started.name] = error
            return
        workers[started.name] = started.worker
        started.held = _held_namespace(started.worker.pid)
        started.trace = remains.trace(started.worker.pid, started.trace.tag)  # now that it is confined
        self.isolation = tuple(said["isolation"])

    def _end(self, started: _Started, *, politely: bool) -> None:
        """End an arm and whatever it has started; what left its session, and so was to outlive it, is noted."""
        worker = started.worker
        self.device = worker.identity.get("device", self.device)
        self.software = worker.identity.get("software", self.software)
        self.machine = worker.identity.get("machine", self.machine)
        try:
            if politely:
                worker.wait()
            away = [number for number in remains.processes(started.trace) if _session_of(number) not in (worker.pid, 0)]
            found = remains.stop(started.trace)
        finally:
            if started.held is not None:
                os.close(started.held)
                started.held = None
        worker.close(politely=False)
        if away:
            count = len(away)
            words = f"{count} process{'es' if count > 1 else ''} that outlived it"
            self.left.setdefault(started.name, []).append(words)
        self.cleared.update(remains.clear_shared_memory(self._shared, found.shared))

    def _start(self, arm: Arm, folder: Path, seed: int, options: dict[str, Any]) -> _Started:
        subject = self.subject
        writable = [*subject.allow_write, self.captured(".").parent]
        placed = place(Tree(subject.root), arm.name, arm.files, folder, allow_write=writable)
        entry = dict(subject.entry)
        if entry["kind"] == "script":
            entry["file"] = str(placed.root / entry["file"])
        confinement = placed.confinement
        caches = self._compiled(arm.name)
        kept = {name: str(caches / folder) for name, folder in COMPILED.items()}
        confinement["environment"] = {**_texts(confinement["environment"]), **kept}
        config = {
            "root": str(placed.root),
            "folder": str(_working_folder(subject, placed.root)),
            "confinement": confinement,
            "entry": entry,
            "device": subject.device,
            "threads": subject.threads,
            "seed": seed,
            **options,
            "env": {name: value for name, value in options.get("env", {}).items() if name not in os.environ}
            | dict(subject.env),
        }
        tag = uuid.uuid4().hex
        worker = Worker(config, placed.scratch, tag=tag, python=subject.python, given_up=self._given_up)
        return _Started(arm.name, worker, remains.Trace(worker.pid, tag))


def _texts(environment: object) -> dict[str, str]:
    assert isinstance(environment, dict)  # as `place` makes it
    return environment


@contextlib.contextmanager
def session(
    subject: Subject,
    note: Callable[[str], None] = lambda _: None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    given_up: Callable[[], bool] = lambda: False,
) -> Iterator[Session]:
    """A run over `subject`. Raises `TreeChangedError` at the end if a file of the user's tree has changed.

    Once it is `given_up`, no arm is waited for any more: each fails at once.
    """
    before = manifest.take(subject.root)
    leftovers.clear()
    scratch = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX))
    try:
        with leftovers.held(scratch):
            yield Session(subject, scratch, patience, note, given_up)
    finally:
        with _undisturbed():
            remains.remove(scratch)
    changed = manifest.changes(before, manifest.take(subject.root))
    if changed:
        raise TreeChangedError("\n".join(changed))


@dataclass(slots=True)
class _Started:
    """An arm's process, and by what it and its descendants are known."""

    name: str
    worker: Worker
    trace: remains.Trace
    held: int | None = None


def _held_namespace(process: int) -> int | None:
    """A descriptor of its mount namespace, while which is open no other process gets a namespace of the same number.

    Linux gives the number of one that is gone to the next: another run's process would be taken for one of ours.
    """
    try:
        return os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _working_folder(subject: Subject, root: Path) -> Path:
    """The folder that paths on the command line are relative to, as the arm sees it; without one of those, `root`."""
    here = Path.cwd()
    if here.is_relative_to(subject.root):
        return root / here.relative_to(subject.root)
    return here if str(subject.entry["kind"]) == "script" else root


def _session_of(number: int) -> int:
    """The session of a process, 0 if it is gone."""
    try:
        return os.getsid(number)
    except OSError:
        return 0


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put Ctrl-C off until what runs inside has come to its end: it clears up after the one before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
