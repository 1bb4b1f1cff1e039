"""What is being done, on one line of a terminal that is gone at the end."""

from __future__ import annotations

import re
import sys
import time

from torchlint.report.text import crop
from torchlint.run import terminal_width

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Progress:
    """The line, with the time that has passed and what is left of a budget in seconds.

    Nothing is shown where standard error is no terminal.
    """

    def __init__(self, *, quiet: bool, budget: float | None) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._begin = time.monotonic()
        self._budget = budget

    def note(self, text: str) -> None:
        """Show it in the place of what was shown before."""
        if not self._shown:
            return
        gone = time.monotonic() - self._begin
        left = f", at most {_minutes(max(self._budget - gone, 0))} left" if self._budget else ""
        line = f"{_minutes(gone)}{left}  {text}"
        sys.stderr.write(f"\r\x1b[K{crop(line, 0, terminal_width(sys.stderr) - 1)}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def seconds(text: str) -> float:
    """`90`, `90s`, `1.5m` or `1h` in seconds. Raises `ValueError`."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text)
    if found is None or float(found[1]) == 0:
        raise ValueError(f"`{text}` is no length of time; write `90s`, `10m` or `1h`")
    return float(found[1]) * _SECONDS[found[2]]


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}m{int(seconds) % 60:02d}s"
