"""The measured process: confines itself, loads one arm, and serves the controller until it closes the line."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any

from torchlint.verify.inside.channel import Channel, Closed
from torchlint.verify.inside.confine import confine

_OUT_OF_MEMORY = ("out of memory", "allocate memory", "bad_alloc")
_KINDS = {"Ended": "ended", "EntryError": "entry", "ExitedError": "exit", "StateMapError": "entry"}


def main(commands: int, replies: int) -> None:
    """Serve one arm over two file descriptors; the first line is its configuration. Any error is a reply."""
    channel = Channel(commands, replies)
    try:
        config = channel.read()
        held = confine(config["confinement"])
        os.chdir(config.get("folder", config["root"]))
        if config["entry"]["kind"] != "script":  # Python puts a script's folder on the path, and no other
            sys.path.insert(0, config["root"])
        with contextlib.ExitStack() as stack:
            from torchlint.verify.inside import synthetic
            from torchlint.verify.inside.commands import Arm  # torch reads the environment and starts threads

            synthetic.replace_datasets()
            Arm(channel, config, held, stack).serve()
    except Closed:
        pass
    except BaseException as error:  # noqa: BLE001 - the measured code may raise anything
        channel.reply(ok=False, **describe(error))
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)  # threads and exit handlers of the measured code are not waited for


def describe(error: BaseException) -> dict[str, Any]:
    """An error as a reply: `kind` (oom, ended, entry, exit, exception), one line, and the end of the traceback."""
    name = type(error).__name__
    try:
        text = " ".join(str(error).split())
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # noqa: BLE001 - the error is the measured code's own, and so is what it says
        text, trace = "", ""
    ours = type(error).__module__.startswith("torchlint.verify.inside.")
    kind = _KINDS.get(name, "exception") if ours else "exception"
    if isinstance(error, MemoryError) or any(words in text for words in _OUT_OF_MEMORY):
        kind = "oom"
    line = text if kind in ("ended", "entry", "exit") else f"{name}: {text}" if text else name
    return {"kind": kind, "error": line[:500], "trace": trace[-3000:]}
