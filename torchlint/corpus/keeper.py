"""Keeps the process that lints: watches what it is at, ends it where that takes too long, and goes on without it."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, NamedTuple, cast

from torchlint.config import Overrides
from torchlint.corpus.inside import (
    OUT_OF_MEMORY,
    Begun,
    Done,
    Kept,
    Limits,
    Order,
    Ready,
    Start,
)
from torchlint.corpus.texts import Checked, Status, Step, Text
from torchlint.framed import receive, send, send_bytes

# Python would look for modules in the folder it is started in, which is the user's.
_START = "import sys; sys.path[:] = filter(None, sys.path); from torchlint.corpus.inside import main; main()"
# A process that waits for a processor takes longer than it computes: by the clock it may take so many times as long.
_LOADED, _AT_LEAST = 20.0, 60.0
# After so many files that a look ends at it may be no file's fault, and the rest is linted one by one.
_LOOKS = 3
_ALONE = "checked without the other files of its repository, which took too much together"


class KeeperError(Exception):
    """The process does not start; the message says how it ended."""


class _Death(NamedTuple):
    """How the process ended, and what it was at; None for nothing of one file."""

    status: Status
    message: str
    at: Begun | None


class Keeper:
    """Lints one repository after another in a process of its own, which is started again whenever it ends."""

    def __init__(self, overrides: Overrides, limits: Limits) -> None:
        self.peak = 0
        self._start = Start(overrides, limits)
        self._process: _Process | None = None
        self._is_stopped = False

    def lint(self, files: Mapping[int, Text]) -> dict[int, Checked]:
        """What is said of each file, by its number. Raises `KeeperError`."""
        together, alone, lost = dict(files), dict[int, Text](), dict[int, Checked]()
        checked: dict[int, Checked] = {}
        known: dict[bytes, bytes] = {}
        while together:
            answer = self._ordered(together, frozenset(lost), known)
            if isinstance(answer, Done):
                checked = answer.checked
                break
            at = answer.at
            if at is not None and at.step is Step.LINT:
                lost[at.number] = Checked(answer.status, answer.message)
            elif at is not None and len(alone) < _LOOKS:
                alone[at.number] = together.pop(at.number)
            else:
                alone |= {number: text for number, text in together.items() if number not in lost}
                together = {}
        for number, text in alone.items():
            checked[number] = self._alone(number, text)
        return checked | lost

    def close(self) -> None:
        """End the process wherever it is: it holds nothing that could be lost."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def stop(self) -> None:
        """End the process for good, from another thread than the one that waits for it."""
        self._is_stopped = True
        process = self._process
        if process is not None:
            process.kill()

    def _alone(self, number: int, text: Text) -> Checked:
        answer = self._ordered({number: text}, frozenset(), {})
        if isinstance(answer, _Death):
            return Checked(answer.status, answer.message)
        checked = answer.checked[number]
        return checked._replace(message=_ALONE) if checked.status is Status.CHECKED else checked

    def _ordered(self, files: Mapping[int, Text], lost: frozenset[int], known: dict[bytes, bytes]) -> Done | _Death:
        """What comes of an order; what is done of it meanwhile is added to what is `known`."""
        if self._process is None:
            self._process = _Process(self._start)
        self._go_on_or_end()  # it may have been stopped while the process started
        answer = self._process.carried_out(files, lost, known)
        self._go_on_or_end()
        if isinstance(answer, _Death) or not answer.goes_on:
            self.close()
        if isinstance(answer, Done):
            self.peak = max(self.peak, answer.peak)
        return answer

    def _go_on_or_end(self) -> None:
        if self._is_stopped:
            self.close()
            raise KeeperError("stopped")


class _Process:
    """A process that lints, and a thread that ends it once it has taken too long over one thing."""

    def __init__(self, start: Start) -> None:
        self._limits = start.limits
        self._patience = max(_AT_LEAST, _LOADED * start.limits.seconds)
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints
        )
        self._orders = cast("BinaryIO", self._process.stdin)
        self._answers = cast("BinaryIO", self._process.stdout)
        self._deadline = float("inf")
        self._is_late = False
        self._is_over = threading.Event()
        self._clock = threading.Thread(target=self._watch, daemon=True)
        self._clock.start()
        self._allow()
        try:
            send(self._orders, start)
            assert isinstance(receive(self._answers), Ready)
        except (OSError, EOFError):
            code, complaint = self._how_it_ended()
            last = (complaint.decode(errors="replace").strip().splitlines() or [""])[-1]
            why = f"it {_ended(code)}{': ' if last else ''}{last}"
            raise KeeperError(f"the process that lints does not start: {why}") from None

    def carried_out(self, files: Mapping[int, Text], lost: frozenset[int], known: dict[bytes, bytes]) -> Done | _Death:
        """What comes of an order."""
        at: Begun | None = None
        try:
            self._allow()
            send(self._orders, Order({number: text.path for number, text in files.items()}, lost, known))
            for text in files.values():
                send_bytes(self._orders, text.data)
            self._orders.flush()
            while True:
                message = receive(self._answers)
                self._allow()
                match message:
                    case Begun():
                        at = message
                    case Kept(name, outcome):
                        known[name] = outcome
                        at = None
                    case Done():
                        self._deadline = float("inf")
                        return message
        except (OSError, EOFError, pickle.UnpicklingError):
            return self._death(at)

    def kill(self) -> None:
        """End it, and have whoever waits for it find out."""
        self._process.kill()

    def end(self) -> None:
        """Leave nothing of it behind."""
        self._is_over.set()
        self._process.kill()
        for stream in (self._orders, self._answers):
            with suppress(OSError):
                stream.close()
        self._process.wait()
        self._clock.join()
        self._complaints.close()

    def _allow(self) -> None:
        self._deadline = time.monotonic() + self._patience

    def _watch(self) -> None:
        while not self._is_over.wait(0.5):
            if time.monotonic() > self._deadline:
                self._is_late = True
                self._process.kill()
                return

    def _how_it_ended(self) -> tuple[int, bytes]:
        """Its status, and what it complained about."""
        self._is_over.set()
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._complaints.seek(0)
        complaint = self._complaints.read(_MOST_COMPLAINT)
        self.end()
        return code, complaint

    def _death(self, at: Begun | None) -> _Death:
        code, complaint = self._how_it_ended()
        if hasattr(signal, "SIGPROF") and code == -signal.SIGPROF:
            return _Death(Status.TIMEOUT, f"it took more than {self._limits.seconds:g} CPU seconds", at)
        if self._is_late:
            return _Death(Status.TIMEOUT, f"it took more than {self._patience:g} seconds by the clock", at)
        if code == OUT_OF_MEMORY or b"memory allocation of" in complaint or b"MemoryError" in complaint:
            return _Death(Status.OUT_OF_MEMORY, f"it took more than {self._limits.bytes >> 20} MiB of memory", at)
        return _Death(Status.CRASHED, f"the process that linted it {_ended(code)}", at)


_MOST_COMPLAINT = 1 << 20


def _ended(code: int) -> str:
    try:
        return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    except ValueError:
        return f"died of signal {-code}"
