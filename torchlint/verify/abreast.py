"""Looks at several pairs at once: what is compared and counted, and not timed, may run beside other things."""

from __future__ import annotations

import contextlib
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from torchlint.verify import pairs, placement
from torchlint.verify.looked import Looked
from torchlint.verify.machine import Clerk, Machine
from torchlint.verify.schedule import Piece

_EACH = 3 << 30
"""Bytes of memory that a pair may take: torch with its libraries, twice, and what is captured of it."""


def at_once() -> int:
    """As many pairs as there are cores, each of which runs one process at a time, and as there is memory for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _memory() // _EACH))


@contextlib.contextmanager
def threads(
    order: pairs.Order, machine: Machine, note: Callable[[str], None], known: Callable[[Piece], Looked | None]
) -> Iterator[Threads]:
    """A crew of `order.at_once` threads, each with a clerk of its own; on leaving, nobody waits for them any more."""
    placement.available_tier()  # tried once, and not by each
    with tempfile.TemporaryDirectory(prefix="torchlint-clerks-") as folder:
        crew = Threads(order, machine, note, known, Path(folder))
        try:
            yield crew
        finally:
            crew.give_up()


class Threads:
    """The crew; see `threads`."""

    def __init__(
        self,
        order: pairs.Order,
        machine: Machine,
        note: Callable[[str], None],
        known: Callable[[Piece], Looked | None],
        scratch: Path,
    ) -> None:
        self.at_once = order.at_once
        self._abandoned = threading.Event()
        self._order = replace(order, given_up=self._abandoned.is_set)
        self._machine, self._note, self._known, self._scratch = machine, note, known, scratch
        self._asked: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Piece, pairs.Measured | BaseException]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._at_work: list[str] = []

    def now(self) -> float:
        """Of the clock that deadlines are of."""
        return time.monotonic()

    def begin(self, piece: Piece) -> None:
        """By a thread that has nothing to do, or a new one."""
        self._at_work.append(piece[0].rule.code)
        self._say()
        if len(self._threads) < len(self._at_work):
            number = len(self._threads)
            self._threads.append(threading.Thread(target=self._work, args=(number,), name=f"pairs-{number}"))
            self._threads[-1].start()
        self._asked.put(piece)

    def ended(self) -> tuple[Piece, pairs.Measured]:
        """Raises what measuring raises."""
        piece, result = self._answers.get()
        self._at_work.remove(piece[0].rule.code)
        self._say()
        if isinstance(result, BaseException):
            raise result
        return piece, result

    def give_up(self) -> None:
        """End what is under way: the processes at once, the threads when they have cleared up."""
        self._abandoned.set()
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()

    def _say(self) -> None:
        self._note(f"{len(self._at_work)} at once: {', '.join(self._at_work)}")

    def _work(self, number: int) -> None:
        clerk: Clerk | None = None
        scratch = self._scratch / f"{number:02d}"
        scratch.mkdir()
        try:
            while (piece := self._asked.get()) is not None:
                try:
                    if clerk is None:
                        clerk = Clerk(scratch, self._order.python, self._order.given_up, at_once=self.at_once)
                    measure = partial(pairs.measure, note=_unheard, looked=self._known(piece))
                    result: pairs.Measured | BaseException = measure(*piece, self._order, clerk, self._machine)
                except BaseException as error:  # noqa: BLE001 - who waits for it decides
                    result = error
                self._answers.put((piece, result))
        finally:
            if clerk is not None:
                clerk.close()


def _unheard(text: str) -> None:
    """Of several at once, a line for each step of each would tell nothing."""
    del text


def _memory() -> int:
    """Bytes that are free, or a great many where nobody tells."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 1 << 60
