"""Sessions on a card with memory, contexts, a clock that ramps and code that compiles in its first calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from virtual_gpu import CONTEXT, GIB, MILLISECOND, SECOND, Card, Code, timed_on

from torchlint.verify.ablation import HANDICAP, NULL
from torchlint.verify.timing import BaselineError, Limits, Timed

if TYPE_CHECKING:
    from torchlint.verify.stats import Decision

COMPILES = (20.0 * SECOND, 3.0 * SECOND, 3.0 * SECOND)
"""What a first call takes, and the two that record graphs after it."""


def decided(timed: Timed) -> dict[str, Decision]:
    return {asked.arm: found for asked, found in timed.decisions.items()}


def verdicts(timed: Timed) -> dict[str, str | None]:
    return {arm: found.verdict for arm, found in decided(timed).items() if arm != HANDICAP}


# What a start costs


@pytest.mark.parametrize("arm", ["fast", NULL])
def test_code_that_compiles_is_timed_once_it_is_compiled(arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {NULL: Code(), "fast": Code(16.0 * MILLISECOND)}
    codes[arm] = Code(codes[arm].unit, COMPILES)
    timed, _ = timed_on(Card(), codes, monkeypatch)
    assert verdicts(timed) == {"fast": "faster"}
    assert decided(timed)["fast"].ratio == pytest.approx(1.25, rel=0.01)
    assert decided(timed)[HANDICAP].ratio == pytest.approx(1 / 1.05, rel=0.005)
    assert timed.later("fast") == pytest.approx(20 if arm == "fast" else -20, abs=0.1)
    assert timed.inner <= 2, "of what takes about as long as a sample"


# The clock


def test_a_card_that_was_idle_is_not_calibrated_at_its_idle_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is planted, and how long a sample is, is a share of what a unit takes while it is measured."""
    card = Card(idle_mhz=345.0, ramp_ns=2 * SECOND)
    codes = {NULL: Code(1.0 * MILLISECOND), "fast": Code(0.8 * MILLISECOND)}
    timed, _ = timed_on(card, codes, monkeypatch)
    assert decided(timed)[HANDICAP].ratio == pytest.approx(1 / 1.05, rel=0.005)
    assert timed.inner * 1.0 * MILLISECOND >= 20 * MILLISECOND
    assert verdicts(timed) == {"fast": "faster"}
    assert decided(timed)["fast"].ratio == pytest.approx(1.25, rel=0.01)
    assert timed.unsettled == 0


def test_a_clock_that_rises_while_it_is_measured_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(idle_mhz=345.0, ramp_ns=60 * SECOND)
    codes = {NULL: Code(400.0 * MILLISECOND), "same": Code(400.0 * MILLISECOND)}
    timed, _ = timed_on(card, codes, monkeypatch, limits=Limits(16))
    assert verdicts(timed)["same"] in ("no-measurable-difference", "inconclusive"), "and never faster or slower"
    assert timed.unsettled > 0


def test_an_arm_under_a_limit_of_power_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does more at a time, at a lower clock: by nature, and each time."""
    codes = {NULL: Code(), "fast": Code(10.0 * MILLISECOND, power=0.8)}
    timed, session = timed_on(Card(), codes, monkeypatch, limits=Limits(4))
    blocks = sum(command == "block" for _, command in session.asked)
    assert blocks == 4 * 4 * 3
    assert decided(timed)["fast"].ratio == pytest.approx(1.6, rel=0.01)
    assert timed.clocks_of["fast"] == [1584.0] * 16


def test_of_equal_arms_none_is_called_faster_and_the_delay_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty-four of them, on a card that is idle before each replicate, with first calls that compile."""
    found: list[str | None] = []
    for seed in range(4):
        codes = {name: Code(5.0 * MILLISECOND, COMPILES) for name in (NULL, *(f"same {n}" for n in range(6)))}
        timed, _ = timed_on(Card(idle_mhz=345.0), codes, monkeypatch, seed=seed)
        assert timed.handicap_seen
        found += verdicts(timed).values()
    assert len(found) == 24
    assert not {"faster", "slower"} & set(found)


# Memory


@pytest.mark.parametrize(
    ("memory", "at_once"), [(80 * GIB, 5), (4 * (10 * GIB + CONTEXT), 4), (2 * (10 * GIB + CONTEXT) + 1, 2)]
)
def test_as_many_arms_are_resident_as_fit_with_their_contexts(
    memory: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(memory=memory)
    codes = {
        name: Code(unit * MILLISECOND, needs=10 * GIB)
        for name, unit in ((NULL, 20.0), ("a", 16.0), ("b", 20.0), ("c", 25.0))
    }
    timed, session = timed_on(card, codes, monkeypatch)
    assert timed.failures == {}
    assert verdicts(timed) == {"a": "faster", "b": "no-measurable-difference", "c": "slower"}
    assert timed.handicap_seen
    assert max(map(len, session.started[1:])) <= at_once
    assert (card.most <= memory, card.refused) == (True, 0), "it is known before any arm runs out of memory"


def test_a_program_of_which_no_two_fit_is_measured_one_process_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(memory=24 * GIB, idle_mhz=345.0)
    codes = {NULL: Code(needs=20 * GIB), "fast": Code(16.0 * MILLISECOND, COMPILES, needs=18 * GIB)}
    codes["large"] = Code(10.0 * MILLISECOND, needs=24 * GIB)
    timed, session = timed_on(card, codes, monkeypatch)
    assert timed.alone
    assert {name: failure.kind for name, failure in timed.failures.items()} == {"large": "oom"}
    assert verdicts(timed) == {"fast": "faster"}
    assert decided(timed)["fast"].ratio == pytest.approx(1.25, rel=0.02)
    assert timed.handicap_seen
    assert [len(names) for names in session.started[4:]] == [1] * len(session.started[4:])


def test_a_program_that_does_not_fit_at_all_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BaselineError, match="out of memory"):
        timed_on(Card(memory=8 * GIB), {NULL: Code(needs=8 * GIB), "fast": Code()}, monkeypatch)
