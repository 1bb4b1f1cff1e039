"""Reading what a tree names: regular files alone, never waited for, and no more of one than is said."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

# Files of code; of a notebook most are pictures. What is parsed of one is less: `source.MOST_CODE`.
MOST_BYTES = 100_000_000


def read(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file, through links too. Raises `OSError` for anything else, and for more bytes."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size <= most:
            # It may be growing, or of a system that does not know its size.
            data = file.read(most + 1)
            if len(data) <= most:
                return data
    raise OSError(errno.EFBIG, f"more than the {size(most)} that torchlint reads of such a file")


def opened(path: str | Path) -> BinaryIO:
    """A regular file, through links too, for one who reads no more of it than they say. Raises `OSError` for others."""
    descriptor = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb")


def size(count: int) -> str:
    """So many bytes for people."""
    return f"{count / 1_000_000:.3g} MB"


_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY", "O_NOINHERIT"):
    _FLAGS |= getattr(os, _name, 0)
