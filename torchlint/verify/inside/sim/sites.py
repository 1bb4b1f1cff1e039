"""What has been counted so far, in total and per line of the user's code."""

from __future__ import annotations

import os
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
        """Count `number` of `kind`, at the line of the user's code that runs now."""
        children.use()
        self._totals[kind] += number
        file, line = _user_line()
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


def _user_line() -> tuple[str, int]:
    """The innermost line of the user's own files; where there is none, of an installed package."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the documented way to a stack without a traceback
    library: tuple[str, int] | None = None
    while frame is not None:
        owner, file = _owner(frame.f_code.co_filename)
        if owner is _Owner.USER:
            return file, frame.f_lineno
        if owner is _Owner.LIBRARY and library is None:
            library = file, frame.f_lineno
        frame = frame.f_back
    return library or ("", 0)


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
