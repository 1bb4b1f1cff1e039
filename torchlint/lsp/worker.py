"""The process that analyses documents, and how the server gives it orders.

It is started afresh and never forked, reads no document itself, and when code is too much for the parser it is this
process that dies of it, and is started again.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, BinaryIO, cast

from torchlint.facts import Facts
from torchlint.framed import receive, send
from torchlint.lsp.analysis import Analyst, Explain, Inquire, Lint, Linted, Order, Repair, Rest
from torchlint.source import SourceFile
from torchlint.syntax.parsing import own_process

# Python would look for modules in the folder it is started in, which is the user's.
_START = f"import sys; sys.path[:] = filter(None, sys.path); from {__name__} import main; main()"
# Seconds after which nobody waits for a document any more, or for a project.
_PATIENCE = 20.0
_PATIENCE_WITH_PROJECTS = 600.0
# Collected garbage is little, and looking for it takes as long as a lint: so mostly while nobody waits.
_LINTS_BETWEEN_COLLECTIONS = 500


class AnalysisError(Exception):
    """An order that was not carried out; the message says why."""


class Worker:
    """A process that carries out one order at a time; started with the first, and again after one that killed it."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def process_id(self) -> int | None:
        """The process, where it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    async def lint(self, order: Lint) -> Linted:
        """What is found in a document. Raises `AnalysisError`."""
        return cast("Linted", await self._ask(order))

    async def inquire(self, order: Inquire) -> Facts:
        """What other files say. Raises `AnalysisError`."""
        return cast("Facts", await self._ask(order, _PATIENCE_WITH_PROJECTS))

    async def repair(self, order: Repair) -> SourceFile:
        """A source with all safe fixes applied. Raises `AnalysisError`."""
        return cast("SourceFile", await self._ask(order))

    async def explain(self, order: Explain) -> str:
        """Why nothing is reported of a line. Raises `AnalysisError`."""
        return cast("str", await self._ask(order))

    async def rest(self) -> None:
        """Make it ready for the next order."""
        with suppress(AnalysisError):
            await self._ask(Rest())

    def close(self) -> None:
        """End the process wherever it is: it holds nothing that could be lost."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()  # whoever waits for its answer has none
        self._thread.shutdown(cancel_futures=True)
        if self._process is not None:
            _bury(self._process)

    async def _ask(self, order: Order, seconds: float | None = None) -> object:
        import asyncio  # not in the process that analyses

        try:
            future: Future[object] = self._thread.submit(self._exchange, order, seconds or _PATIENCE)
        except RuntimeError:
            raise AnalysisError("the server is closing") from None
        return await asyncio.wrap_future(future)

    def _exchange(self, order: Order, seconds: float) -> object:
        process = self._started()
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        watch = threading.Timer(seconds, give_up)
        watch.start()
        try:
            send(cast("BinaryIO", process.stdin), order)
            is_done, answer = cast("tuple[bool, Any]", receive(cast("BinaryIO", process.stdout)))
        except (OSError, EOFError, ValueError):
            with self._lock:
                self._process = None
            status = _bury(process)
            why = f"was given up after {seconds:.0f} s" if late.is_set() else f"ended with status {status}"
            raise AnalysisError(f"the process that analyses {why}") from None
        finally:
            watch.cancel()
        if not is_done:
            raise AnalysisError(answer)
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise AnalysisError("the server is closing")
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(  # noqa: S603 - ourselves
                    [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            return self._process


def _bury(process: subprocess.Popen[bytes]) -> int:
    """End a process, and leave nothing of it behind; its status."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    return process.wait()


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Carry out one order after another, until there are no more."""
    analyst = Analyst()
    gc.disable()
    lints = 0
    while True:
        try:
            order = receive(orders)
        except EOFError:
            return
        try:
            answer = True, _carried_out(analyst, order)
        except Exception as error:  # noqa: BLE001 - the next order is another one
            answer = False, _described(error)
        lints += 1
        try:
            send(answers, answer)
        except OSError:
            return  # nobody listens any more
        if isinstance(order, Inquire) or lints % _LINTS_BETWEEN_COLLECTIONS == 0:
            gc.collect()


def _carried_out(analyst: Analyst, order: object) -> object:
    match order:
        case Lint():
            return analyst.lint(order)
        case Inquire():
            return analyst.inquire(order)
        case Repair():
            return analyst.repair(order)
        case Explain():
            return analyst.explain(order)
        case Rest():
            analyst.rest()
            gc.collect()
    return None


def _described(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_code.co_name}, line {trace.tb_lineno})" if trace else ""
    return f"torchlint failed: {type(error).__name__}: {error}{place}; please report this"


def main() -> None:
    """Serve on the standard streams, which nothing else can write to from here on."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    own_process()
    with suppress(KeyboardInterrupt):  # the server's to hear
        serve(sys.stdin.buffer, answers)
