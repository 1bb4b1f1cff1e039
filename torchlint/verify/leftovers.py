"""The scratch folders of runs that were killed, which the next run removes; those of living runs are held."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchlint import owned
from torchlint.verify import remains

if sys.platform != "win32":  # where a run clears nothing
    import fcntl

PREFIX = "torchlint-verify-"
HELD = ".held"
_MADE = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")
_HOUR = 3_600


@contextmanager
def held(scratch: Path) -> Iterator[None]:
    """Hold a scratch folder as long as this lasts, and no longer than this process lives."""
    descriptor = owned.opened(scratch / HELD, os.O_RDWR | os.O_CREAT)
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def clear() -> None:
    """Remove the folders that `mkdtemp` made for this user's runs, and that no living one holds."""
    if sys.platform == "win32":
        return
    folder = Path(tempfile.gettempdir())
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                if _MADE.fullmatch(name) and owned.is_own_folder((folder / name).lstat()):
                    _remove_unheld(folder / name)


def _remove_unheld(scratch: Path) -> None:
    """Remove a folder that nobody holds; one that is not held yet is just being made. Raises `OSError`."""
    if sys.platform == "win32":
        return
    try:
        descriptor = owned.opened(scratch / HELD, os.O_RDWR)
    except FileNotFoundError:
        if scratch.lstat().st_mtime < time.time() - _HOUR:
            remains.remove(scratch)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remains.remove(scratch)
    finally:
        os.close(descriptor)
