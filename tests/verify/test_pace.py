"""The code runs as far as it is asked to, unit by unit, and no further."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from asked import line

from torchlint.verify.inside.channel import Channel, Closed
from torchlint.verify.inside.pace import Again, Ended, Pace

if TYPE_CHECKING:
    from torchlint.verify.inside.pace import Handler, Task


class Code:
    """Code that counts its units, and commands that run it."""

    def __init__(self, channel: Channel) -> None:
        self.ran: list[str] = []
        self.seen: list[Any] = []
        handlers: dict[str, Handler] = {"start": self._start, "run": self._run, "all": self._all, "look": self._look}
        self.pace = Pace(channel, handlers)

    def drive(self, units: int | None = None) -> None:
        self.pace.wait()
        self.ran.append("set up")
        self.pace.begin()
        done = 0
        while units is None or done < units:
            done += 1
            self.ran.append(f"unit {done}")
            self.pace.tick(done)

    def _start(self, message: dict[str, Any]) -> Task:
        self.ran.append(f"seed {message['seed']}")
        yield
        return {"set up": True}

    def _run(self, message: dict[str, Any]) -> Task:
        for _ in range(message["units"]):
            self.seen.append((yield))
        return {"units": self.pace.units}

    def _all(self, message: dict[str, Any]) -> Task:
        del message
        done = 0
        try:
            while True:
                yield
                done += 1
        except Ended:
            return {"units": done}

    def _look(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"ran": len(self.ran), **message}


def test_it_runs_as_many_units_as_it_is_asked_for() -> None:
    messages = ({"command": "start", "seed": 1}, {"command": "run", "units": 2}, {"command": "run", "units": 1})
    with line(*messages, {"command": "look", "at": "it"}) as (channel, replies):
        code = Code(channel)
        with pytest.raises(Closed):
            code.drive()
    assert code.ran == ["seed 1", "set up", "unit 1", "unit 2", "unit 3"]
    assert code.seen == [1, 2, 3]
    assert [reply["id"] for reply in replies] == [0, 1, 2, 3]
    assert replies[1]["units"] == 2
    assert replies[3] == {"id": 3, "ok": True, "ran": 5, "at": "it"}


def test_no_unit_at_all_is_answered_at_once() -> None:
    with line({"command": "start", "seed": 1}, {"command": "run", "units": 0}) as (channel, replies):
        code = Code(channel)
        with pytest.raises(Closed):
            code.drive()
    assert code.ran == ["seed 1", "set up"]
    assert replies[1] == {"id": 1, "ok": True, "units": 0}


def test_a_second_start_ends_the_code_before_it_seeds() -> None:
    messages = ({"command": "start", "seed": 1}, {"command": "run", "units": 2}, {"command": "start", "seed": 2})
    with line(*messages, {"command": "run", "units": 1}) as (channel, replies):
        code = Code(channel)
        with pytest.raises(Again):
            code.drive()
        assert code.ran[-1] == "unit 2"
        with pytest.raises(Closed):
            code.drive()
    assert code.ran[4:] == ["seed 2", "set up", "unit 1"]
    assert [reply.get("units") for reply in replies] == [None, 2, None, 1]


def test_a_start_before_the_code_began_is_no_second_one() -> None:
    with line({"command": "look"}, {"command": "start", "seed": 1}) as (channel, replies), pytest.raises(Closed):
        Code(channel).drive()
    assert len(replies) == 2


def test_the_end_of_the_code_is_told_to_the_command_that_waits() -> None:
    with line({"command": "start", "seed": 1}, {"command": "all"}, {"command": "look"}) as (channel, replies):
        code = Code(channel)
        code.drive(units=5)
        with pytest.raises(Closed):
            code.pace.end()
    assert replies[1]["units"] == 5
    assert replies[2]["ok"]


@pytest.mark.parametrize(
    ("units", "words"),
    [
        (0, "the program ended after 1 step, and more are needed; let it run longer"),
        (3, "the program ended after 4 steps, and more are needed; let it run longer"),
    ],
)
def test_a_command_that_needs_more_than_there_is_fails(units: int, words: str) -> None:
    with line({"command": "start", "seed": 1}, {"command": "run", "units": 9}) as (channel, _):
        code = Code(channel)
        code.drive(units=units)
        with pytest.raises(Ended) as error:
            code.pace.end()
    assert str(error.value) == words


def test_a_command_after_the_end_fails_too() -> None:
    messages = ({"command": "start", "seed": 1}, {"command": "run", "units": 2}, {"command": "run", "units": 1})
    with line(*messages) as (channel, replies):
        code = Code(channel)
        code.drive(units=2)
        with pytest.raises(Ended):
            code.pace.end()
    assert len(replies) == 2


def test_a_program_without_a_step_says_so() -> None:
    with line({"command": "start", "seed": 1}) as (channel, _):
        code = Code(channel)
        code.pace.wait()
        with pytest.raises(Ended, match="the program ended without a step"):
            code.pace.end()


def test_other_threads_run_on() -> None:
    with line({"command": "start", "seed": 1}, {"command": "run", "units": 2}) as (channel, replies):
        code = Code(channel)
        code.pace.wait()
        code.pace.begin()
        thread = threading.Thread(target=code.pace.tick, args=("other",))
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        code.pace.tick("first")
        with pytest.raises(Closed):
            code.pace.tick("second")
    assert code.seen == ["first", "second"]
    assert len(replies) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_copy_takes_no_command_and_gives_no_reply() -> None:
    with line({"command": "start", "seed": 1}, {"command": "run", "units": 1}) as (channel, replies):
        code = Code(channel)
        code.pace.wait()
        code.pace.begin()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                code.pace.tick("copy")
                code.pace.begin()
                channel.reply(ok=True)
                channel.read()
            except Closed:
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(Closed):
            code.pace.tick("ours")
    assert code.seen == ["ours"]
    assert len(replies) == 2
