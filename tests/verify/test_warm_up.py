"""Code that compiles in its first call and records graphs in the next two is warm before it is timed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from torchlint.verify.inside import commands, devices
from torchlint.verify.replicate import SAMPLE_NS, WARM

S = 1_000_000_000


@dataclass
class Code:
    """What a call takes, by its number: twenty seconds, three, three, and then a millisecond."""

    now: int = 0
    calls: int = 0

    def run(self) -> None:
        costs = (20 * S, 3 * S, 3 * S)
        self.now += costs[self.calls] if self.calls < len(costs) else S // 1000
        self.calls += 1

    def answer(self, task: Iterator[None]) -> dict[str, Any]:
        next(task)
        while True:
            self.run()
            try:
                next(task)
            except StopIteration as done:
                return dict(done.value)


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Code:
    made = Code()
    monkeypatch.setattr(commands, "perf_counter_ns", lambda: made.now)
    return made


@pytest.fixture
def arm() -> commands.Arm:
    made = commands.Arm.__new__(commands.Arm)
    made._device, made._reran = devices.Cpu(), 0  # noqa: SLF001 - all that these commands need
    return made


def test_warm_up_goes_on_until_the_graphs_are_recorded(code: Code, arm: commands.Arm) -> None:
    said = code.answer(arm._warm({"inner": 1, "most_ns": 2 * S}))  # noqa: SLF001 - the command
    assert said["first_ns"] == 20 * S
    assert code.calls > 3
    before = code.now
    code.run()
    assert code.now - before == S // 1000, "what is timed next is steady"


def test_calibration_is_of_code_that_is_warm(code: Code, arm: commands.Arm) -> None:
    said = code.answer(arm._calibrate({"min_ns": SAMPLE_NS, "warm": WARM}))  # noqa: SLF001 - the command
    assert (said["first_ns"], said["ns"]) == (20 * S, S / 1000)
    assert said["inner"] >= SAMPLE_NS // (S // 1000)
