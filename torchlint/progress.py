"""How far a run has come, on a line of the terminal that is gone when it ends."""

from __future__ import annotations

import time
from typing import TextIO

# A run that is over before says nothing.
_PATIENCE = 1.0
_INTERVAL = 0.1
_CLEAR = "\r\x1b[K"


class Progress:
    """Counts files: those of which the answer was known, and those that were linted.

    It shows so on `stream`, a terminal, or not at all if that is None.
    """

    def __init__(self, total: int, stream: TextIO | None) -> None:
        self.known = 0
        self.linted = 0
        self._total = total
        self._stream = stream
        self._next = time.monotonic() + _PATIENCE
        self._is_shown = False

    def advance(self, *, linted: bool) -> None:
        """One file more is done."""
        if linted:
            self.linted += 1
        else:
            self.known += 1
        if self._stream is not None and (now := time.monotonic()) >= self._next:
            self._next = now + _INTERVAL
            self._is_shown = True
            self._stream.write(f"{_CLEAR}{self.known + self.linted} of {self._total} files")
            self._stream.flush()

    def clear(self) -> None:
        """Leave nothing on the line."""
        if self._stream is not None and self._is_shown:
            self._is_shown = False
            self._stream.write(_CLEAR)
            self._stream.flush()
