"""What is made of arms that are the same: false claims are counted, arms that failed are named, time is shared."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import pytest

from torchlint.verify import selfcheck, stats, timing
from torchlint.verify.ablation import HANDICAP, NULL, Stage
from torchlint.verify.arms import Arm, Failure

if TYPE_CHECKING:
    from torchlint.verify.session import Session
    from torchlint.verify.stats import Verdict

LOOKS, SPEND = stats.plan(16)
NAMES = [f"same {number}" for number in range(1, selfcheck.ARMS + 1)]


class Clockwork:
    """Stands for `timing.measure`: gives each arm the verdict that is planned for it, the handicap that it is seen."""

    def __init__(self) -> None:
        self.verdicts: Mapping[str, Verdict] = {}
        self.failures: Mapping[str, str] = {}
        self.handicap = 0.95
        self.replicates = 8
        self.takes = 0.0
        self.now = 1000.0
        self.limits: list[timing.Limits] = []
        self.sizes: list[object] = []

    def measure(
        self,
        session: Session,
        arms: Mapping[str, Arm],
        stage: Stage,
        *,
        metric: str,
        limits: timing.Limits,
        seed: int,
    ) -> timing.Timed:
        contents = {name: arm.files["steps.py"] for name, arm in arms.items()}
        assert set(arms) == {NULL, HANDICAP, *NAMES}
        assert len(set(contents.values())) == len(arms)
        assert len({len(content) for content in contents.values()}) == 1
        session.note("replicate 1")
        self.limits.append(limits)
        self.sizes.append(session.subject.entry["size"])
        self.now += self.takes
        ratios = {asked: [0.001, -0.002] * (self.replicates // 2) for asked in stage.comparisons}
        made = timing.Timed(metric, LOOKS, SPEND, 1.0, seed, ratios, replicates=self.replicates)
        made.baseline_ns = [2e4] * self.replicates
        for asked in stage.comparisons:
            if asked.arm in self.failures:
                made.failures[asked.arm] = Failure("timeout", self.failures[asked.arm])
                continue
            ratio = self.handicap if asked.arm == HANDICAP else 1.0
            found = self.verdicts.get(asked.arm, "no-measurable-difference")
            made.decisions[asked] = stats.Decision(found, ratio, ratio - 0.01, ratio + 0.01, 0.99, self.replicates)
        return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clockwork:
    made = Clockwork()
    monkeypatch.setattr(timing, "measure", made.measure)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


def check(limits: timing.Limits | None = None, device: str = "cpu") -> list[selfcheck.Seen]:
    return selfcheck.check(device, sys.executable, limits or timing.Limits(), 1, print)


def test_equal_arms_that_are_told_to_be_equal(clock: Clockwork) -> None:
    found = check()
    assert [seen.size for seen in found] == clock.sizes == ["short", "middle", "long"]
    assert all(seen.fit for seen in found)
    assert all((seen.arms, seen.faster, seen.slower, seen.failed) == (7, 0, 0, ()) for seen in found)
    assert all(seen.step_us == 20 for seen in found)
    assert found[0].effect is not None
    assert 0.009 < found[0].effect < 0.03
    text = selfcheck.lines(found)
    assert text.count("8 replicates of 7 equal arms: 0 called faster, 0 slower; a delay of 5 % is seen; effects") == 3
    assert text.endswith("false `faster`: 0 of 21\n")


def test_a_false_claim_makes_it_unfit(clock: Clockwork) -> None:
    clock.verdicts = {NAMES[2]: "faster", NAMES[3]: "slower", NAMES[4]: "inconclusive"}
    (short, *_) = found = check()
    assert (short.arms, short.faster, short.slower, short.fit) == (7, 1, 1, False)
    assert "false `faster`: 3 of 21" in selfcheck.lines(found)


def test_a_delay_that_is_not_seen_makes_it_unfit(clock: Clockwork) -> None:
    clock.handicap = 0.995
    (short, *_) = found = check()
    assert not short.fit
    assert "a delay of 5 % is NOT seen" in selfcheck.lines(found)


def test_arms_that_failed_are_named_and_make_it_unfit(clock: Clockwork) -> None:
    """Arms missing among the decided ones are never a riddle."""
    clock.failures = dict.fromkeys(NAMES[:5], "no answer within 60 s")
    (short, *_) = found = check()
    assert (short.arms, len(short.failed), short.fit) == (2, 5, False)
    assert "replicates of 2 equal arms" in selfcheck.lines(found)
    assert "; 5 more FAILED: no answer within 60 s\n" in selfcheck.lines(found)


def test_each_length_has_its_share_of_the_time_that_is_left(clock: Clockwork) -> None:
    clock.takes = 20.0
    check(timing.Limits(16, clock.now + 300))
    assert [round(limits.deadline - 1000) for limits in clock.limits] == [100, 160, 300]
    assert {limits.max_replicates for limits in clock.limits} == {16}
    clock.limits.clear()
    check()
    assert {limits.deadline for limits in clock.limits} == {math.inf}


def test_a_run_without_a_replicate_says_so(clock: Clockwork) -> None:
    clock.replicates = 0
    found = check()
    assert found[0].effect is None
    assert "too few replicates" in selfcheck.lines(found)


@pytest.mark.parametrize(("device", "metric"), [("cpu", "cpu-time"), ("cuda", "wall")])
def test_the_clock_is_the_devices(monkeypatch: pytest.MonkeyPatch, device: str, metric: str) -> None:
    seen: list[str] = []

    def measure(*_: object, metric: str, **__: object) -> timing.Timed:
        seen.append(metric)
        return timing.Timed(metric, LOOKS, SPEND, 1.0, 1, {})

    monkeypatch.setattr(timing, "measure", cast("timing.Timed", measure))
    check(device=device)
    assert seen == [metric] * 3


@pytest.mark.slow
def test_real_processes_on_short_steps() -> None:
    (seen,) = selfcheck.check("cpu", sys.executable, timing.Limits(2), 1, print, sizes=("short",), arms=1)
    assert (seen.size, seen.arms, seen.replicates, seen.failed) == ("short", 1, 2, ())
    assert 1 < seen.step_us < 10_000
    assert seen.effect is not None
