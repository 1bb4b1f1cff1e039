"""A controller's side of the line for tests inside one process: it asks from a script and keeps the replies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchlint.verify.inside.channel import Channel


@contextmanager
def line(*messages: dict[str, Any]) -> Iterator[tuple[Channel, list[dict[str, Any]]]]:
    """A channel on which these messages have come and which is then closed; the replies, filled in on leaving.

    Workers that the code leaves behind may hold the other end of the pipe, which then never ends: what is there is read.
    """
    command_read, command_write = os.pipe()
    reply_read, reply_write = os.pipe()
    for number, message in enumerate(messages):
        os.write(command_write, json.dumps({"id": number, **message}).encode() + b"\n")
    os.close(command_write)
    channel = Channel(command_read, reply_write)
    replies: list[dict[str, Any]] = []
    try:
        yield channel, replies
    finally:
        os.close(reply_write)
        channel.close()
        os.set_blocking(reply_read, False)
        data = b""
        with os.fdopen(reply_read, "rb", buffering=0) as file:
            while chunk := file.read():
                data += chunk
        replies += [json.loads(text) for text in data.splitlines()]
