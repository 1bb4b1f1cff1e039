"""What was found of a pair before it is timed, as one run leaves it to the next."""

from __future__ import annotations

import re
from typing import Any

import msgspec


class Looked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That both files compute the same, and what they ask of the device, for each unit of work.

    `numerics` is what the comparison said. `counts` and `memory`, in bytes at the peak, are before and after, None
    where they were not taken (`counted`) or could not be (`uncounted` says why). `flop` and `fetched` are the
    operations of a run and the bytes that it has to fetch, `busy_ns` for how long it keeps the device busy: None where
    others ran beside it, since that is a time. `torch` is the version, and `command` how it was found.
    """

    numerics: dict[str, Any]
    torch: str
    command: str
    counted: bool = False
    counts: tuple[dict[str, float], dict[str, float]] | None = None
    memory: tuple[int, int] | None = None
    flop: tuple[int, int] | None = None
    fetched: tuple[int, int] | None = None
    busy_ns: tuple[float, float] | None = None
    uncounted: str = ""


def read(plain: object) -> Looked | None:
    """What `msgspec.to_builtins` made of it; None for what is damaged."""
    try:
        return msgspec.convert(plain, Looked)
    except msgspec.ValidationError:
        return None


def minor(version: str) -> tuple[int, ...]:
    """`2.13.0+cpu` is (2, 13)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
