"""Linting and fixing many files: in this process, or in several where that pays."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchlint.engine import examine, is_applicable
from torchlint.finding import Applicability, Diagnostic, Result, Severity
from torchlint.fixer import Fixed, fix
from torchlint.linter import lint
from torchlint.settings import Settings
from torchlint.source import DecodeError, SourceFile

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

# Below this many lines, processes cost more to start than they save.
LEAST_LINES = 15_000
_CHUNK_BYTES = 128 * 1024
_MOST_PROCESSES = 61  # what Windows can wait for
# The collector takes 40 % of the parse, so it is off, and called after this much source to keep memory within bounds.
_BYTES_BETWEEN_COLLECTIONS = 1024 * 1024


class Job(NamedTuple):
    """A file to lint, by the name it is shown under; with a threshold, also to fix."""

    shown: str
    data: bytes
    settings: Settings
    threshold: Applicability | None = None


class Outcome(NamedTuple):
    """What linting gave for the file as it is, and what fixing makes of it if anything there is to be fixed."""

    result: Result
    fixed: Fixed | None = None


Outcomes: TypeAlias = "Generator[tuple[Job, Outcome], None, None]"


def work(jobs: Iterable[Job], processes: int | None = None) -> Outcomes:
    """Each job with its outcome, in any order. At most that many processes; None for one per processor.

    Jobs are taken as they are needed, so that not all files have to be in memory. A job that fails, or kills the
    process it is in, has a diagnostic for an outcome.
    """
    limit = min(processes or _processors(), _MOST_PROCESSES)
    jobs = iter(jobs)
    if limit == 1:
        return _here(jobs)
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
        result = lint(source, job.settings)
        threshold = job.threshold
        if threshold is None or not any(is_applicable(finding.fix, threshold) for finding in result.findings):
            return Outcome(result)
        return Outcome(result, fix(source, job.settings, threshold))
    except Exception as error:  # noqa: BLE001 - one file must not cost the user what is found in the others
        return _failure(f"torchlint failed: {_described(error)}; please report this")


def _failure(message: str) -> Outcome:
    return Outcome(Result(diagnostics=(Diagnostic("E000", "internal-error", message, Severity.INTERNAL),)))


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
    try:
        for job in jobs:
            size += len(job.data)
            if size > _BYTES_BETWEEN_COLLECTIONS:
                gc.collect()
                size = len(job.data)
            if not alone and _may_overflow(job.data):
                yield from _spread((job,), 1)
            else:
                yield job, outcome(job)
    finally:
        if was_enabled:
            gc.enable()


def _may_overflow(data: bytes) -> bool:
    """Whether a statement may nest deeper than the native stack, which ends a process without an exception.

    LibCST's parser reaches some 3,000 operators, calls or attributes in a row, or branches of one `if`. The answer
    goes by what could be such between the starts of two statements; a large table of numbers looks the same.
    """
    if data.count(b"elif") >= _DEEP:
        return True
    starts = [0, *(match.start() for match in _STATEMENT.finditer(data)), len(data)]
    return any(end - start >= _DEEP and _is_dense(data[start:end]) for start, end in pairwise(starts))


def _is_dense(data: bytes) -> bool:
    return len(data.translate(None, _NOT_NESTING)) + sum(map(data.count, _NESTING_WORDS)) >= _DEEP


_DEEP = 1_000
_STATEMENT = re.compile(rb"\n[ \t]*(?:@|(?:class|def|from|import|raise|return|try|with)\b)")
_NESTING_WORDS = (b" and ", b" if ", b" or ", b"await ", b"lambda", b"not ")
_NOT_NESTING = bytes(set(range(256)) - set(b".([{+-*/%@|&^~'\""))


# In several processes


def _spread(jobs: Iterable[Job], processes: int) -> Outcomes:
    """With one process, one job at a time, so that it is known which of them kills it."""
    from concurrent.futures.process import BrokenProcessPool  # 20 ms that most runs do not need

    chunks = _chunks(jobs, 1 if processes == 1 else _CHUNK_BYTES)
    while True:
        pending: dict[Future[list[Outcome]], list[Job]] = {}
        try:
            yield from _feed(chunks, pending, processes)
        except BrokenProcessPool:
            suspects = [job for chunk in pending.values() for job in chunk]
            if processes > 1:
                yield from _spread(suspects, 1)
            else:
                message = "the process that linted this file died, of too little memory or a defect; not checked"
                yield from ((job, _failure(message)) for job in suspects)
        except (ImportError, NotImplementedError, OSError):  # a system that lends no processes, or no more of them
            yield from _here(chain.from_iterable(chain(pending.values(), chunks)), alone=True)
        else:
            return


def _chunks(jobs: Iterable[Job], size: int) -> Iterator[list[Job]]:
    chunk: list[Job] = []
    held = 0
    for job in jobs:
        chunk.append(job)
        held += len(job.data)
        if held >= size:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


def _feed(chunks: Iterator[list[Job]], pending: dict[Future[list[Outcome]], list[Job]], processes: int) -> Outcomes:
    """Outcomes as they come. A chunk stays in `pending` until it is done, whatever is raised."""
    from concurrent.futures import FIRST_COMPLETED, Future, wait

    executor: ProcessPoolExecutor | None = None
    at_once = True
    try:
        while True:
            while len(pending) < (2 * processes if processes > 1 else 1) and (chunk := next(chunks, None)):
                unsent: Future[list[Outcome]] = Future()
                pending[unsent] = chunk
                executor = executor or _executor(processes)
                future = executor.submit(_outcomes, chunk)
                pending[future] = pending.pop(unsent)
            if not pending:
                break
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                outcomes = future.result()
                yield from zip(pending.pop(future), outcomes, strict=True)
        at_once = False
    finally:
        if executor is not None:
            _end(executor, at_once=at_once)


def _executor(processes: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor

    context = _context()
    if context.get_start_method() == "fork":
        _load()
        gc.freeze()
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_start)


def _load() -> None:
    """Load now what linting loads when it starts, once for all processes that are forked from this one."""
    examine(SourceFile("nothing.py", ""), (), Settings(rules=()))


def _context() -> BaseContext:
    """How to start a process: by `fork`, the quickest by far, where that is sound; it is not next to a thread."""
    import multiprocessing
    import sys
    import threading

    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    if threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "libcst"])
    return context


def _start() -> None:
    """Make this process one that ends with its parent, and at Ctrl-C without a word."""
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()


def _end_with_parent() -> None:
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _outcomes(jobs: list[Job]) -> list[Outcome]:
    outcomes = [outcome(job) for job in jobs]
    gc.collect()
    return outcomes


def _end(executor: ProcessPoolExecutor, *, at_once: bool) -> None:
    if at_once:
        from multiprocessing import active_children

        for process in active_children():
            process.kill()
    executor.shutdown(wait=True, cancel_futures=True)
