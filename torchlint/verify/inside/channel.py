"""The line to the controller: JSON lines on two inherited file descriptors that the measured code does not know of."""

from __future__ import annotations

import json
import os
from typing import Any


class Closed(BaseException):
    """The controller has gone, or has asked to end; no `except Exception` of the measured code may stop it."""


class Channel:
    """Commands in, replies out; a reply repeats the command's `id`, which what the code prints cannot."""

    def __init__(self, commands: int, replies: int) -> None:
        """Of two file descriptors, which programs that the measured code starts do not inherit."""
        for descriptor in (commands, replies):
            os.set_inheritable(descriptor, False)
        self._commands = os.fdopen(commands, "r", encoding="utf-8")
        self._replies = replies
        self._owner = os.getpid()
        self._asked: object = None

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that was started, and no forked copy of it."""
        return os.getpid() == self._owner

    def read(self) -> dict[str, Any]:
        """The next command. Raises `Closed` at the end, and in a forked copy of the process."""
        line = self._commands.readline() if self.is_ours else ""
        if not line:
            raise Closed
        command: dict[str, Any] = json.loads(line)
        self._asked = command.pop("id", None)
        return command

    def reply(self, **what: Any) -> None:
        """Answer the command read last; a forked copy of the process stays silent."""
        if not self.is_ours:
            return
        data = json.dumps({"id": self._asked, **what}).encode() + b"\n"
        while data:
            data = data[os.write(self._replies, data) :]

    def close(self) -> None:
        """Close the line of commands."""
        self._commands.close()
