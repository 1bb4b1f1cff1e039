"""Lets the measured code run as far as the controller asks, unit of work by unit of work, and stops it in between.

The code calls `tick` at the end of each unit: the loop over a workload's `run` does, and in a script the hook on the
optimizer's step. A command is a generator that gets the outputs of a unit at each `yield`, or a function where it needs
no unit; while no command needs the code to run, `tick` does not return.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlint.verify.inside.channel import Channel

Reply = dict[str, Any]
Task = Generator[None, Any, Reply]
Handler = Callable[[dict[str, Any]], Task | Reply]


class Again(BaseException):
    """The controller wants the code set up again; only code that has a set-up hears it."""


class Ended(Exception):  # noqa: N818 - an event in the code's life, which a command may make the best of
    """The code came to its end while a command wanted more of it. `fails` is why it runs no second time."""

    def __init__(self, steps: int, wanted: int = 0, fails: str = "") -> None:
        self.steps = steps
        self.fails = fails
        more = f"{wanted} in a row" if wanted else "more"
        ended = f"ended after {steps} step{'s' if steps > 1 else ''}, and {more} are needed"
        again = f", and run again it fails: {fails}" if fails else "; let it run longer"
        super().__init__(f"the program {ended}{again}" if steps else "the program ended without a step")


class Pace:
    """The commands of one process and how far each has come.

    `units` are those done since the set-up. Ticks of forked copies of the process, and of threads other than the first
    that ticks, are none: that code runs on.
    """

    def __init__(self, channel: Channel, handlers: Mapping[str, Handler]) -> None:
        self._channel = channel
        self._handlers = handlers
        self._task: Task | None = None
        self._next: Task | None = None
        self._thread = 0
        self.units = 0
        self.began = False

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that was started, and no forked copy of it."""
        return self._channel.is_ours

    def wait(self) -> None:
        """Carry out commands until one needs the code to run. Raises `Closed` at the end, `Again` for a new set-up."""
        while self._task is None:
            if self._next is not None:
                self._task, self._next = self._next, None
                self._advance(None, first=True)
                continue
            message = self._channel.read()
            name = message.pop("command")
            outcome = self._handlers[name](message)
            if isinstance(outcome, dict):
                self._channel.reply(ok=True, **outcome)
                continue
            self._next = outcome
            if name == "start" and self.began:
                self.began = False  # what tears down may draw random numbers: before the command seeds them
                raise Again

    def begin(self) -> None:
        """The code is set up and about to run its first unit."""
        if not self.is_ours:
            return
        self.began = True
        self.units = 0
        self._thread = threading.get_ident()
        self._advance(None)
        self.wait()

    def tick(self, outputs: object = None) -> None:
        """A unit of work is done."""
        if threading.get_ident() != self._thread or not self.is_ours:
            return
        self.units += 1
        self._advance(outputs)
        self.wait()

    def end(self, fails: str = "") -> None:
        """The code has run to its end: tell the command that waits for it, and any that comes. Ends by `Closed`.

        Returns where one goes on with another run. Raises `Ended` for one that cannot do without more.
        """
        while True:
            if self._task is not None:
                ended = Ended(self.units + self.began, fails=fails)  # the first step ends the set-up
                try:
                    self._task.throw(ended)
                except StopIteration as done:
                    self._task = None
                    self._channel.reply(ok=True, **done.value)
                else:
                    self.units = -self.began
                    return
            self.wait()

    def _advance(self, outputs: object, *, first: bool = False) -> None:
        if self._task is None:
            return
        try:
            if first:
                next(self._task)
            else:
                self._task.send(outputs)
        except StopIteration as done:
            self._task = None
            self._channel.reply(ok=True, **done.value)
