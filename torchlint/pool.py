"""Linting and fixing many files: in this process, or in several where that pays."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from itertools import chain, pairwise
from operator import methodcaller
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchlint.engine import answer, examine, is_applicable
from torchlint.facts import NOTHING, Answers, Asked, Facts
from torchlint.finding import Applicability, Diagnostic, Fault, Result
from torchlint.fixer import Fixed, fix
from torchlint.linter import lint_and_answer
from torchlint.settings import Settings
from torchlint.source import DecodeError, SourceFile, code_of, is_notebook
from torchlint.syntax.parsing import own_process

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

# Below this many lines, processes cost more to start than they save.
LEAST_LINES = 15_000
_MOST_PROCESSES = 61  # what Windows can wait for
# The collector takes 40 % of the parse, so it is off, and called after this much source to keep memory within bounds.
_BYTES_BETWEEN_COLLECTIONS = 8 * 1024 * 1024
_BYTES_BETWEEN_COLLECTIONS_BESIDE_OTHERS = 128 * 1024


class Job(NamedTuple):
    """A file to lint, by the name it is shown under; with a threshold, also to fix.

    `facts` are what other files say of it; `is_final` says that these are all, where a lint asks for more: else some
    may be missing, and some only offered. What it says to what is `asked` is wanted besides; alone, unless it `lints`.
    """

    shown: str
    data: bytes
    settings: Settings
    threshold: Applicability | None = None
    facts: Facts = NOTHING
    is_final: bool = False
    asked: Asked = Asked()
    lints: bool = True


class Outcome(NamedTuple):
    """What linting gave for the file as it is, and what fixing makes of it if anything there is to be fixed.

    A file whose result other files may change is fixed only when that is settled.
    """

    result: Result
    fixed: Fixed | None = None
    answers: Answers | None = None


Outcomes: TypeAlias = "Generator[tuple[Job, Outcome], None, None]"


def work(jobs: Iterable[Job], processes: int | None = None, *, lines: int | None = None) -> Outcomes:
    """Each job with its outcome, in any order. At most that many processes; None for one per processor.

    Jobs are taken as they are needed, so that not all files have to be in memory. They have so many `lines`, or else
    these are counted first. A job that fails, or kills the process it is in, has a diagnostic for an outcome.
    """
    limit = min(processes or _processors(), _MOST_PROCESSES)
    jobs = iter(jobs)
    if limit == 1:
        return _here(jobs)
    if lines is not None:
        return _spread(jobs, limit) if lines >= LEAST_LINES else _here(jobs)
    first: list[Job] = []
    lines = 0
    for job in jobs:
        first.append(job)
        lines += job.data.count(b"\n")
        if lines >= LEAST_LINES and len(first) > 1:
            return _spread(chain(first, jobs), limit)
    return _here(first)


def outcome(job: Job) -> Outcome:
    """Lint one file, and fix it if that is asked. Never raises an `Exception`."""
    try:
        source = SourceFile.from_bytes(job.shown, job.data)
    except DecodeError as error:
        return Outcome(Result(diagnostics=(Diagnostic("E902", "io-error", str(error)),)))
    try:
        if not job.lints:
            return Outcome(Result(), answers=answer(source, job.settings, job.facts, job.asked))
        result, answers = lint_and_answer(source, job.settings, job.facts, job.asked)
        threshold = job.threshold
        if result.questions and not job.is_final:
            return Outcome(result, answers=answers)
        if threshold is None or not any(is_applicable(finding.fix, threshold) for finding in result.findings):
            return Outcome(result, answers=answers)
        # What nothing has asked about was only offered.
        facts = job.facts if job.is_final else NOTHING
        return Outcome(result, fix(source, job.settings, threshold, facts), answers)
    except Exception as error:  # noqa: BLE001 - one file must not cost the user what is found in the others
        return _failure(f"torchlint failed: {_described(error)}; please report this")


def _failure(message: str) -> Outcome:
    return Outcome(Result(diagnostics=(Diagnostic("E000", "internal-error", message, Fault.INTERNAL),)))


def _described(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_code.co_name}, line {trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{place}"


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))  # fewer than `cpu_count` in a container
    return os.cpu_count() or 1


# In this process


def _here(jobs: Iterable[Job], *, alone: bool = False) -> Outcomes:
    """Each job here, but for those that may end this process; `alone` if there is no other one to be had."""
    was_enabled = gc.isenabled()
    gc.disable()
    size = 0
    beside = _Beside()
    try:
        for job in jobs:
            size += len(job.data)
            if size > _BYTES_BETWEEN_COLLECTIONS:
                gc.collect()
                size = len(job.data)
            if alone or not _may_overflow(job.shown, job.data):
                yield job, outcome(job)
            elif (found := beside.outcome(job)) is not None:
                yield job, found
            else:
                yield from _spread((job,), 1)
    finally:
        beside.end()
        if was_enabled:
            gc.enable()


def _may_overflow(name: str, data: bytes) -> bool:
    """Whether a statement may nest deeper than the native stack, which ends a process without an exception.

    LibCST's parser reaches some 3,000 operators, calls or attributes in a row, or branches of one `if`. The answer
    goes by what could be such between the starts of two statements, and of the file where one has enough of it.
    """
    return _is_deep(data) and (not is_notebook(name) or _is_deep(code_of(name, data)))


def _is_deep(data: bytes) -> bool:
    if data.count(b"elif") >= _DEEP:
        return True
    starts = [0, *(match.start() for match in _STATEMENT.finditer(data)), len(data)]
    return any(end - start >= _DEEP and _is_dense(data[start:end]) for start, end in pairwise(starts)) and _nests(data)


def _is_dense(data: bytes) -> bool:
    return len(data.translate(None, _NOT_NESTING)) + sum(map(data.count, _NESTING_WORDS)) >= _DEEP


def _nests(data: bytes) -> bool:
    """Whether so much stands in a row that no comma and no line takes apart, as in tables; so where that is unclear."""
    depth = start = 0  # here, and where the item of the brackets around began
    around: list[tuple[int, int]] = []
    for token in map(methodcaller("group"), _LINKS.finditer(data)):
        if token == b",":
            depth = start
        elif token == b"\n":
            if not around:
                depth = start = 0
        elif token in _CLOSING:
            if not around:
                return True
            depth, start = around.pop()
        elif token in _QUOTES:  # of a string that cannot be read here
            return True
        elif not token.startswith((b"#", b"\\")):
            depth += 1
            if token in _OPENING:
                around.append((depth, start))
            if token in _OPENING or token in (b"lambda", b"for"):  # a comma behind these ends nothing
                start = depth
            if depth >= _DEEP:
                return True
    return False


_DEEP = 1_000
_STATEMENT = re.compile(rb"\n[ \t]*(?:@|(?:class|def|from|import|raise|return|try|with)\b)")
_NESTING_WORDS = (b" and ", b" if ", b" or ", b"await ", b"lambda", b"not ")
_NOT_NESTING = bytes(set(range(256)) - set(b".([{+-*/%@|&^~'\""))
# Strings, those with fields only where these are short and hold none of what ends strings or fields.
_STRING = (
    rb"[fFtT][rR]?Q(?!QQ)(?:[^Q\\\n{}]|\\.|\{\{|\}\}|\{[^Q\n{}]{0,99}\})*Q"
    rb"|(?<![fFtT])(?<![fFtT][rR])(?:QQQ[^\\]*?(?:\\.[^\\]*?)*?QQQ|Q(?!QQ)[^Q\\\n]*(?:\\.[^Q\\\n]*)*Q)"
)
_LINKS = re.compile(
    rb"#[^\n]*|\\\r?\n|"
    + _STRING.replace(b"Q", b'"')
    + b"|"
    + _STRING.replace(b"Q", b"'")
    + rb"|\b(?:and|await|for|if|lambda|not|or)\b|[\n,.()\[\]{}+\-*/%@|&^~\"']",
    re.DOTALL,
)
_OPENING, _CLOSING, _QUOTES = (b"(", b"[", b"{"), (b")", b"]", b"}"), (b"'", b'"')


# In several processes. `concurrent.futures` does not say which job a process died of, and until Python 3.11.5 it may
# wait for ever to write the next jobs to a dead one.


def _spread(jobs: Iterable[Job], processes: int, *, again: bool = False) -> Outcomes:
    """Each job in one of so many processes. A job that kills its process is tried again, beside no other.

    `again` says that these are such jobs.
    """
    crew = _Crew(iter(jobs), processes)
    try:
        yield from crew.outcomes()
    finally:
        crew.end()
    if again:
        message = "the process that linted this file died, of too little memory or a defect; not checked"
        yield from ((job, _failure(message)) for job in chain(crew.suspects, crew.left()))
    else:
        yield from _here(crew.left(), alone=True)
        if crew.suspects:
            yield from _spread(crew.suspects, 1, again=True)


class _Crew:
    """Processes that get one job after another, so that it is known which job one of them dies of: a suspect.

    The next is not looked for before a process is free: what it is may hang on what was found.
    """

    def __init__(self, jobs: Iterator[Job], most: int) -> None:
        self.suspects: list[Job] = []
        self._jobs = jobs
        self._most = most
        self._context = _context()
        self._workers: dict[object, _Worker] = {}

    def outcomes(self) -> Outcomes:
        """The outcome of every job that is no suspect and not left."""
        from multiprocessing.connection import wait

        while True:
            has_grown = self._grow()
            if not self._workers:
                return
            for connection in wait([worker.connection for worker in self._workers.values()], 0 if has_grown else None):
                yield from self._hear(self._workers[connection])

    def left(self) -> Iterator[Job]:
        """The jobs for which no process was to be had."""
        return self._jobs

    def end(self) -> None:
        """Leave no process behind."""
        for worker in self._workers.values():
            worker.end()

    def _grow(self) -> bool:
        """Start one more process, if there is work for it and it can be had."""
        job = next(self._jobs, None) if len(self._workers) < self._most else None
        if job is None:
            return False
        try:
            worker = _Worker(self._context, job)
        except OSError:
            self._most = len(self._workers)
            self._jobs = chain((job,), self._jobs)
            return False
        self._workers[worker.connection] = worker
        return True

    def _hear(self, worker: _Worker) -> Outcomes:
        """What it says: that it is ready, or an outcome, or nothing any more."""
        try:
            said = worker.connection.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return
        if said is not None and worker.job is not None:
            yield worker.job, said
            worker.job = next(self._jobs, None)
        if worker.job is not None:
            worker.send(worker.job)
        else:
            del self._workers[worker.connection]
            worker.end()

    def _bury(self, worker: _Worker) -> None:
        del self._workers[worker.connection]
        worker.end()
        if worker.job is not None and worker.is_at_work:
            self.suspects.append(worker.job)
        else:
            self._most -= 1  # it died before it was ready, and so would the next
            if worker.job is not None:
                self._jobs = chain((worker.job,), self._jobs)


class _Worker:
    """A process and the job that it has not answered, which it gets when it is ready."""

    def __init__(self, context: BaseContext, job: Job) -> None:
        self.connection, theirs = context.Pipe()
        # mypy knows of `Process` in the contexts of single start methods only.
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs,), daemon=True)  # type: ignore[attr-defined]
        self.process.start()
        theirs.close()
        self.job: Job | None = job
        self.is_at_work = False

    def send(self, job: Job) -> None:
        """Hand over the job. Whether it is still there shows when it is listened to."""
        self.is_at_work = True
        with suppress(OSError):
            self.connection.send(job)

    def end(self) -> None:
        """Stop it wherever it is: it holds nothing that could be lost."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class _Beside:
    """One process beside this one, for the jobs that may end the process that does them: made with the first."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None

    def outcome(self, job: Job) -> Outcome | None:
        """What linting gives; None if there is no process to be had, or it has died of the job."""
        try:
            if self._worker is None:
                self._worker = _Worker(_context(), job)
                self._worker.connection.recv()  # it is ready
            self._worker.send(job)
            said: Outcome = self._worker.connection.recv()
        except (EOFError, OSError):
            self.end()
            return None
        return said

    def end(self) -> None:
        """Leave no process behind."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None


def _context() -> BaseContext:
    """How to start a process: by `fork`, the quickest by far, where that is sound; it is not next to a thread."""
    import multiprocessing  # 10 ms that most runs do not need
    import sys
    import threading

    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    if threading.active_count() > 1:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, "libcst"])
        return context
    # Load now what linting loads when it starts, once for all processes that are forked from this one.
    examine(SourceFile("nothing.py", ""), (), Settings(rules=()))
    gc.freeze()
    return multiprocessing.get_context("fork")


def _serve(connection: Connection) -> None:
    """Answer one list of jobs after another, job by job."""
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()
    own_process()
    connection.send(None)
    size = 0
    while True:
        job = connection.recv()
        connection.send(outcome(job))
        size += len(job.data)
        if size > _BYTES_BETWEEN_COLLECTIONS_BESIDE_OTHERS:
            gc.collect()
            size = 0


def _end_with_parent() -> None:
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
