"""Running again whenever a file changes: `check --watch`."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable

from torchlint.config import FILE_NAMES, Configs
from torchlint.configfile import ConfigError
from torchlint.discover import discover
from torchlint.report.text import visible
from torchlint.run import FAILED, Order, OutputError, check, write_out

# A look takes some microseconds a file. At a large tree it is taken less often: nine tenths of the time are sleep.
_INTERVAL = 0.5
_SHARE = 9
_CLEAR = "\x1b[2J\x1b[H"

Stamps = dict[str, tuple[int, int]]


def watch(order: Order, sleep: Callable[[float], None] = time.sleep, times: int | None = None) -> int:
    """Check, and again behind each change, until Ctrl-C; the last exit status. Raises `ConfigError` of the first run.

    With `times`, that often and no more.
    """
    seen: Stamps | None = None
    status, done = 0, 0
    while times is None or done < times:
        started = time.monotonic()
        now = stamps(order)
        if now == seen:
            sleep(max(_INTERVAL, (time.monotonic() - started) * _SHARE))
            continue
        status, done = _once(order, is_first=done == 0), done + 1
        # What a run fixes is no news; what changes while it checks is.
        seen = stamps(order) if _writes(order) else now
    return status


def _once(order: Order, *, is_first: bool) -> int:
    if sys.stdout.isatty():
        write_out(_CLEAR, sys.stdout)
    try:
        status = check(order)
    except (ConfigError, OutputError) as error:
        # It is being written: the next change may mend it.
        if is_first:
            raise
        write_out(f"error: {visible(str(error))}\n", sys.stderr)
        status = FAILED
    gc.collect()  # nobody else does in a process of ours
    write_out(f"{time.strftime('%H:%M:%S')} Watching for changes. Ctrl-C ends it.\n", sys.stderr)
    return status


def stamps(order: Order) -> Stamps:
    """The size and time of each file that a run would read, and of what configures it."""
    paths = {str(order.cwd / value) for value in order.overrides.config}
    try:
        files, _ = discover(order.paths, Configs(order.overrides, order.cwd), order.cwd)
    except ConfigError:
        files = []  # until the configuration changes
    paths |= {str(file.path) for file in files}
    folders = {order.cwd, *order.cwd.parents, *(file.path.parent for file in files)}
    paths |= {str(folder / name) for folder in folders for name in FILE_NAMES}
    return {path: stamp for path in paths if (stamp := _stamp(path)) is not None}


def _writes(order: Order) -> bool:
    try:
        return order.fix_only or Configs(order.overrides, order.cwd).for_directory(order.cwd).fix
    except ConfigError:
        return False


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 -- asked of each file, twice a second
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns
