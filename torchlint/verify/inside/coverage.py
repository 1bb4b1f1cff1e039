"""Which of some lines ran, also in processes that the code forks."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


@contextlib.contextmanager
def watched(lines: Mapping[str, Sequence[int]], record: str) -> Iterator[None]:
    """Note in the file `record` each of `lines` (by absolute path) that runs inside, once, as `line path`.

    Only frames of these files are traced, line by line; all others cost one look-up a call.
    """
    wanted = {os.path.realpath(path): frozenset(numbers) for path, numbers in lines.items()}
    paths: dict[str, frozenset[int]] = {}
    seen: set[tuple[str, int]] = set()
    descriptor = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def in_frame(frame: Any, event: str, _: object) -> Any:  # a trace function's
        if event == "line":
            place = (frame.f_code.co_filename, frame.f_lineno)
            if place not in seen and place[1] in paths[place[0]]:
                seen.add(place)
                os.write(descriptor, f"{place[1]} {os.path.realpath(place[0])}\n".encode())
        return in_frame

    def at_call(frame: Any, _event: str, _: object) -> Any:  # a trace function's
        name = frame.f_code.co_filename
        if name not in paths:
            paths[name] = wanted.get(os.path.realpath(name), frozenset())
        return in_frame if paths[name] else None

    before = sys.gettrace()
    threading.settrace(at_call)
    sys.settrace(at_call)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(before)
        os.close(descriptor)


def ran(record: str) -> list[tuple[str, int]]:
    """What `watched` has noted: paths and lines, sorted."""
    try:
        with open(record, encoding="utf-8") as file:  # noqa: PTH123 - a string from JSON
            rows = [line.rstrip("\n").partition(" ") for line in file]
    except FileNotFoundError:
        return []
    return sorted({(path, int(number)) for number, _, path in rows})
