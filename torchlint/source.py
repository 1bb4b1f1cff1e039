"""The text of one file, and how it goes to and from bytes without a change."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property


class DecodeError(ValueError):
    """The bytes of a file are no text in the encoding that it declares; the message says where."""


@dataclass(frozen=True)
class SourceFile:
    """A path (as shown to people, POSIX separators) and its decoded text, newlines untouched.

    `encoding` is what the file declares (PEP 263) or UTF-8; `bom` says that a UTF-8 byte order mark precedes
    the text, which does not hold it.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> SourceFile:
        """Decode `data` as Python would. Raises `DecodeError`."""
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[len(codecs.BOM_UTF8) :] if bom else data
        encoding = "utf-8"
        if b"coding" in b"\n".join(body.split(b"\n", 2)[:2]):
            try:
                encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            except SyntaxError as error:
                raise DecodeError(str(error)) from None
            if encoding == "utf-8-sig":
                encoding = "utf-8"
        try:
            return cls(path, body.decode(encoding), encoding, bom)
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, error.start) + 1
            raise DecodeError(
                f"not {encoding}: byte 0x{body[error.start]:02x} on line {line}; "
                "save the file as UTF-8 or declare its encoding on the first line"
            ) from None

    def to_bytes(self, text: str) -> bytes:
        """`text` as bytes in this file's encoding, with its byte order mark. Raises `UnicodeEncodeError`."""
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset at which each line starts, lines ending in LF, CR LF or CR as Python has it."""
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    @cached_property
    def newline(self) -> str:
        """The line ending of the first line; LF where there is none."""
        match = _NEWLINE.search(self.text)
        return match[0] if match else "\n"

    def position(self, offset: int) -> tuple[int, int]:
        """Row and column of an offset, both 1-based, columns in code points."""
        row = bisect_right(self.line_starts, offset)
        return row, offset - self.line_starts[row - 1] + 1

    def line(self, row: int) -> str:
        """The text of a 1-based row without its line ending."""
        start = self.line_starts[row - 1]
        end = self.line_starts[row] if row < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


_NEWLINE = re.compile(r"\r\n|\r|\n")
