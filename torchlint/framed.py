"""Messages between a process and one that it started: each behind its length, as the pipe between them holds bytes."""

from __future__ import annotations

import pickle
import struct
from typing import BinaryIO

_LENGTH = struct.Struct("<Q")


def send(stream: BinaryIO, message: object) -> None:
    """Write a message."""
    send_bytes(stream, pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))
    stream.flush()


def send_bytes(stream: BinaryIO, data: bytes) -> None:
    """Write bytes, which may not be sent until a message is."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)


def receive(stream: BinaryIO) -> object:
    """The next message. Raises `EOFError` where there is none."""
    return pickle.loads(receive_bytes(stream))  # noqa: S301 - from the other end of a pipe that nobody else holds


def receive_bytes(stream: BinaryIO) -> bytes:
    """The next bytes. Raises `EOFError` where there are none."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data
