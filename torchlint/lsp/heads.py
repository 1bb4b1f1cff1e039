"""The stream that an editor writes to: a head without a right length ends the server with a word, not with a wait."""

from __future__ import annotations

import re
from typing import BinaryIO

# A document of this size is not linted either.
MOST_BYTES = 100_000_000
_LONGEST_HEAD = 10_000
_LENGTH = re.compile(rb"Content-Length: *([0-9]{1,9})[ \t]*\r?\n")


class HeadError(ValueError):
    """What comes can no longer be taken apart into messages; the message says why in one line."""


class Checked:
    """A stream whose heads are looked at as they are read, before anybody makes room for what they announce."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """The next line of a head. Raises `HeadError`."""
        line = self._stream.readline(_LONGEST_HEAD)
        if b"content-length" in line.lower():
            found = _LENGTH.fullmatch(line)
            if found is None or int(found[1]) > MOST_BYTES:
                shown = line[:80].decode(errors="replace").strip()
                raise HeadError(f"`{shown}` is no head of a message of up to {MOST_BYTES // 1_000_000} MB")
        elif len(line) == _LONGEST_HEAD:
            raise HeadError(f"a head has more than {_LONGEST_HEAD} characters")
        return line

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer at the end."""
        return self._stream.read(size)
