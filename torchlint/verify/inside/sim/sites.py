"""What has been counted so far, in total and per line of the user's code."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections import Counter
from enum import Enum
from functools import cache
from pathlib import Path
from types import FrameType

import torch

from torchlint.verify.inside.sim.children import children

KINDS = (
    "syncs",
    "h2d_pageable",
    "h2d_pinned",
    "h2d_bytes",
    "d2h",
    "d2h_bytes",
    "launches",
    "allocations",
    "empty_cache",
)

_WAITS = frozenset({"syncs", "h2d_pageable", "h2d_pinned", "h2d_bytes", "d2h", "d2h_bytes"})
# The function of torch/autograd/graph.py below which the engine runs the nodes of a graph in the thread that calls it.
_ENGINE = "_engine_run_backward"
_ENTRY = re.compile(r'\s*File "([^"]+)", line (\d+)')

_NOBODYS = (f"{Path(torch.__file__).parent}{os.sep}", f"{Path(__file__).parent.parent}{os.sep}")
_STANDARD = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class _Owner(Enum):
    NOBODY = "torch, the standard library or torchlint"
    LIBRARY = "a package that was installed, or text given to `exec`"
    USER = "the user"


class Ledger:
    """Counts of `KINDS` since the last `reset`."""

    __slots__ = ("_sites", "_totals")

    def __init__(self) -> None:
        self._totals: Counter[str] = Counter()
        self._sites: Counter[tuple[str, int, str]] = Counter()

    def reset(self) -> None:
        """Begin again at zero."""
        self._totals.clear()
        self._sites.clear()

    def note(self, kind: str, number: int = 1) -> None:
        """Count `number` of `kind`, at the line of the user's code that runs now.

        A wait or a copy in a backward pass counts for the line whose operation it is the gradient of, where autograd
        has kept it: of an index on the CPU that was copied for `x[rows]`, the gradient copies again.
        """
        children.use()
        self._totals[kind] += number
        file, line = _user_line(of_the_forward_pass=kind in _WAITS)
        self._sites[file, line, kind] += number

    def counts(self) -> dict[str, int]:
        """The totals; every kind is there."""
        return {kind: self._totals[kind] for kind in KINDS}

    def sites(self) -> list[dict[str, str | int]]:
        """The totals by place, ordered by file, line and kind; `file` is absolute, or empty where no line is known."""
        order = {kind: position for position, kind in enumerate(KINDS)}
        return [
            {"file": file, "line": line, "kind": kind, "count": count}
            for (file, line, kind), count in sorted(
                self._sites.items(), key=lambda item: (item[0][0], item[0][1], order[item[0][2]])
            )
            if count
        ]


def _user_line(*, of_the_forward_pass: bool) -> tuple[str, int]:
    """The innermost line of the user's own files; where there is none, of an installed package."""
    frame: FrameType | None = sys._getframe(2)  # the documented way to a stack without a traceback
    library: tuple[str, int] | None = None
    while frame is not None:
        owner, file = _owner(frame.f_code.co_filename)
        if owner is _Owner.USER:
            return file, frame.f_lineno
        if owner is _Owner.LIBRARY and library is None:
            library = file, frame.f_lineno
        if of_the_forward_pass and library is None and frame.f_code.co_name == _ENGINE and (found := _forward_line()):
            return found
        frame = frame.f_back
    return library or ("", 0)


def _forward_line() -> tuple[str, int] | None:
    """The user's line whose operation the engine takes the gradient of, as anomaly mode keeps it with each node."""
    node = torch._C._current_autograd_node()  # what anomaly mode itself asks
    kept = node.metadata.get("traceback_", ()) if node is not None else ()
    for entry in reversed(kept):
        match = _ENTRY.match(entry)
        owner, file = _owner(match[1]) if match is not None else (_Owner.NOBODY, "")
        if match is not None and owner is _Owner.USER:
            return file, int(match[2])
    return None


@cache
def _owner(name: str) -> tuple[_Owner, str]:
    """Whose file this is, and its absolute name."""
    if name.startswith("<"):
        return (_Owner.LIBRARY, name) if name in {"<stdin>", "<string>"} else (_Owner.NOBODY, "")
    file = str(Path(name).absolute())
    if file.startswith(_NOBODYS):
        return _Owner.NOBODY, ""
    if any(part in file for part in _INSTALLED):
        return _Owner.LIBRARY, file
    return (_Owner.NOBODY, "") if file.startswith(_STANDARD) else (_Owner.USER, file)


ledger = Ledger()
