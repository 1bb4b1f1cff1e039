"""The process that looks at texts: it lints one repository after another, and says what it begins before it does.

It imports nothing of Arrow. Time is bounded by a timer of the system that ends the process, in the parser as well, and
memory by a limit on what it may have; whoever started it finds out which file it was at.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from torchlint.config import Overrides
from torchlint.corpus.texts import Checked, Step, Text, Watch, lint
from torchlint.engine import examine
from torchlint.framed import receive, receive_bytes, send
from torchlint.pool import Outcome
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.parsing import own_process

# What it exits with where Python had no memory left: what it holds by then is of no use any more.
OUT_OF_MEMORY = 77


class Limits(NamedTuple):
    """What one file may take: CPU seconds of a step (a lint, a look, an answer), and bytes of the process."""

    seconds: float = 30.0
    bytes: int = 2 << 30


class Start(NamedTuple):
    """What holds for all that is linted."""

    overrides: Overrides
    limits: Limits


class Order(NamedTuple):
    """A repository to lint: the paths of its files by number, and what is known from a process that died of another.

    What the files hold follows, each by itself: a repository may be large, and is not to be there several times.
    """

    paths: Mapping[int, str]
    lost: frozenset[int] = frozenset()
    known: Mapping[bytes, bytes] = {}


class Ready(NamedTuple):
    """It has loaded what it needs."""


class Begun(NamedTuple):
    """It is at a file."""

    number: int
    step: Step


class Kept(NamedTuple):
    """A job is done: its name, and its outcome pickled."""

    name: bytes
    outcome: bytes


class Done(NamedTuple):
    """All that is said of the files, the most memory that the process has had, and whether it goes on."""

    checked: dict[int, Checked]
    peak: int
    goes_on: bool


Message: TypeAlias = "Ready | Begun | Kept | Done"


def main() -> None:
    """Serve on the standard streams, which nothing else can write to from here on."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it, and ends it
    own_process()
    gc.disable()
    with suppress(EOFError, BrokenPipeError):
        _serve(sys.stdin.buffer, answers)


def _serve(orders: BinaryIO, answers: BinaryIO) -> None:
    start = receive(orders)
    assert isinstance(start, Start)
    examine(SourceFile("nothing.py", ""), (), Settings(rules=()))  # loads LibCST, before it says that it is ready
    _bound(start.limits.bytes)
    send(answers, Ready())
    while True:
        order = receive(orders)
        assert isinstance(order, Order)
        files = {number: Text(path, receive_bytes(orders)) for number, path in order.paths.items()}
        checked = _checked(order, files, start, answers)
        del order, files
        gc.collect()
        now, peak = _memory()
        goes_on = now < start.limits.bytes / 4
        send(answers, Done(checked, peak, goes_on))
        if not goes_on:
            return


def _checked(order: Order, files: Mapping[int, Text], start: Start, answers: BinaryIO) -> dict[int, Checked]:
    def begins(number: int, step: Step) -> None:
        send(answers, Begun(number, step))
        _time(start.limits.seconds)

    def keeps(name: bytes, outcome: Outcome) -> None:
        if any("MemoryError" in diagnostic.message for diagnostic in outcome.result.diagnostics):
            os._exit(OUT_OF_MEMORY)
        send(answers, Kept(name, pickle.dumps(outcome, protocol=pickle.HIGHEST_PROTOCOL)))

    known = {name: pickle.loads(outcome) for name, outcome in order.known.items()}  # noqa: S301 - as `receive`
    try:
        return lint(files, start.overrides, Watch(begins, keeps, order.lost, known))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    finally:
        _time(0)


def _time(seconds: float) -> None:
    """End this process once it has taken so much CPU time from now on; 0 for never."""
    if hasattr(signal, "setitimer"):  # elsewhere the clock of who started it ends it
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _bound(most: int) -> None:
    """Let this process have so much memory and no more, where the system can."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _memory() -> tuple[int, int]:
    """The bytes of memory that this process has and the most that it has had; 0 where nobody says."""
    if sys.platform != "linux":
        return 0, 0
    import resource

    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
