"""Decisions about replicates: quantiles against tables, looks, each verdict, and laws that hold for any numbers."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.verify import stats
from torchlint.verify.stats import LOOKS, SPEND, Decision, decide, t_quantile

LAST = len(LOOKS) - 1
RATIOS = st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=16)
LOOK = st.integers(0, LAST)

steady = settings(max_examples=200, deadline=None, derandomize=True)

# Percentage points of Student's t as tables print them.
TABLE = {
    1: (3.078, 12.706, 31.821, 63.657, 636.619),
    2: (1.886, 4.303, 6.965, 9.925, 31.599),
    3: (1.638, 3.182, 4.541, 5.841, 12.924),
    5: (1.476, 2.571, 3.365, 4.032, 6.869),
    7: (1.415, 2.365, 2.998, 3.499, 5.408),
    11: (1.363, 2.201, 2.718, 3.106, 4.437),
    15: (1.341, 2.131, 2.602, 2.947, 4.073),
    31: (1.309, 2.040, 2.453, 2.744, 3.633),
}
PROBABILITIES = (0.9, 0.975, 0.99, 0.995, 0.9995)


def around(mean: float, spread: float, count: int) -> list[float]:
    """`count` log ratios, an even number, of this mean and sample standard deviation."""
    step = spread * math.sqrt((count - 1) / count)
    return [mean + step * (1 if place % 2 else -1) for place in range(count)]


def upper_tail(t: float, df: int) -> float:
    """P(T > t) by the finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term, total = cosine if odd else 1.0, 0.0
    for k in range(odd, df - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return (1 - inside) / 2


@pytest.mark.parametrize("df", TABLE)
def test_quantiles_are_those_of_the_tables(df: int) -> None:
    assert [round(t_quantile(p, df), 3) for p in PROBABILITIES] == list(TABLE[df])


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 7, 8, 11, 15, 31, 32, 63, 1000])
@pytest.mark.parametrize("p", [0.6, 0.9, 0.95, 0.975, 0.99, 0.995, *(1 - error for error in SPEND), 1 - SPEND[0] / 20])
def test_quantiles_are_exact(p: float, df: int) -> None:
    assert math.isclose(upper_tail(t_quantile(p, df), df), 1 - p, rel_tol=1e-10)


@pytest.mark.parametrize("tail", [0.3, 0.01, 0.0005, 1e-6, 1e-12])
def test_quantiles_have_their_closed_forms(tail: float) -> None:
    assert math.isclose(t_quantile(tail, 1), -1 / math.tan(math.pi * tail), rel_tol=1e-12)
    assert math.isclose(t_quantile(tail, 2), (2 * tail - 1) / math.sqrt(2 * tail * (1 - tail)), rel_tol=1e-12)


def test_quantiles_become_those_of_the_normal_distribution() -> None:
    assert math.isclose(t_quantile(0.975, 10**7), 1.959963984540054, rel_tol=1e-6)


@pytest.mark.parametrize(("p", "df"), [(0.0, 3), (1.0, 3), (-0.1, 3), (math.nan, 3), (0.9, 0)])
def test_a_quantile_that_does_not_exist_is_refused(p: float, df: int) -> None:
    with pytest.raises(ValueError, match="no quantile of t"):
        t_quantile(p, df)


@steady
@given(st.floats(1e-9, 1 - 1e-9), st.integers(1, 100))
def test_quantiles_mirror_and_grow_with_p_and_towards_few_degrees(p: float, df: int) -> None:
    t = t_quantile(p, df)
    assert math.isclose(t, -t_quantile(1 - p, df), rel_tol=1e-6, abs_tol=1e-6)
    assert t_quantile(p + (1 - p) / 2, df) > t
    assert abs(t_quantile(p, df + 1)) <= abs(t) * (1 + 1e-9)


def test_the_default_looks_spend_one_percent() -> None:
    assert stats.plan() == stats.plan(16) == stats.plan(23) == (LOOKS, SPEND)
    assert math.isclose(sum(SPEND), 0.01)


def test_fewer_replicates_leave_looks_out() -> None:
    assert stats.plan(4) == ((4,), SPEND[:1])
    assert stats.plan(11) == ((4, 6, 8), SPEND[:3])


@pytest.mark.parametrize("most", [24, 32, 48, 1000])
def test_more_replicates_spend_the_same_one_percent(most: int) -> None:
    looks, spend = stats.plan(most)
    assert looks == tuple(look for look in (4, 6, 8, 12, 16, 24, 32, 48, 64) if look <= most)
    assert len(spend) == len(looks)
    assert math.isclose(math.fsum(spend), 0.01)
    assert all(ours < usual for ours, usual in zip(spend, SPEND, strict=False))
    assert list(spend) == sorted(spend)


def test_too_few_replicates_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 4 replicates are needed, not 3"):
        stats.plan(3)


def test_more_than_five_fixes_share_five_percent() -> None:
    assert [stats.alpha_scale(fixes) for fixes in (1, 5, 10, 20)] == [1, 1, 0.5, 0.25]
    with pytest.raises(ValueError, match="one fix at least"):
        stats.alpha_scale(0)


def test_a_replicate_is_the_log_of_the_null_arm_over_the_arm() -> None:
    assert math.isclose(stats.replicate([[(2e6, 1e6), (2e6, 1e6)]]), math.log(2))


def test_mirrored_halves_cancel_a_linear_drift() -> None:
    start, later = 1.0, 1.1
    halves = [(100 * start, 90 * later), (100 * later, 90 * start)]  # null arm first, then last
    assert math.isclose(stats.replicate([halves]), math.log(100 / 90))


def test_a_disturbed_quad_is_set_aside() -> None:
    quiet = [(100.0, 80.0), (100.0, 80.0)]
    assert math.isclose(stats.replicate([quiet, [(900.0, 80.0), (100.0, 80.0)], quiet]), math.log(100 / 80))


@pytest.mark.parametrize(
    "quads", [[], [[]], [[(1.0, 1.0)], []], [[(0.0, 1.0)]], [[(1.0, math.nan)]], [[(math.inf, 1.0)]]]
)
def test_a_replicate_without_times_is_refused(quads: list[list[tuple[float, float]]]) -> None:
    with pytest.raises(ValueError, match=r"needs a quad|above zero and finite"):
        stats.replicate(quads)


@pytest.mark.parametrize(
    ("log_ratios", "look", "verdict"),
    [
        (around(0.20, 0.01, 4), 0, "faster"),
        (around(-0.20, 0.01, 4), 0, "slower"),
        (around(0.20, 0.05, 4), 0, None),  # t for 3 degrees and 0.05 % is 12.9
        (around(0.20, 0.05, 6), 1, "faster"),
        (around(0.0, 0.001, 4), 0, "no-measurable-difference"),
        (around(0.0099, 0.0001, 4), 0, None),  # excludes no change, is below 1 %, and is not within it
        (around(0.0099, 0.0001, 16), LAST, "no-measurable-difference"),  # within 2 %
        (around(0.0, 0.02, 8), 2, None),
        (around(0.0, 0.02, 16), LAST, "no-measurable-difference"),
        (around(0.0, 0.05, 16), LAST, "inconclusive"),
        (around(0.03, 0.05, 16), LAST, "inconclusive"),
        (around(math.log(1.0101), 0.0, 4), 0, "faster"),
        (around(math.log(1.0099), 0.0, 4), 0, "no-measurable-difference"),
    ],
)
def test_verdicts(log_ratios: list[float], look: int, verdict: str | None) -> None:
    assert decide(log_ratios, look).verdict == verdict


def test_a_decision_tells_the_interval_of_its_look() -> None:
    log_ratios = [0.05, 0.07, 0.06, 0.08, 0.05, 0.06]
    decision = decide(log_ratios, 1, scale=0.5)
    half = t_quantile(1 - 0.0005, 5) * stdev(log_ratios) / math.sqrt(6)
    assert decision.n == 6
    assert math.isclose(decision.level, 0.999)
    assert math.isclose(decision.ratio, math.exp(fmean(log_ratios)))
    assert math.isclose(decision.lo, math.exp(fmean(log_ratios) - half))
    assert math.isclose(decision.hi, math.exp(fmean(log_ratios) + half))
    assert decision.required is None


def test_no_difference_needs_a_session_that_sees_the_handicap() -> None:
    same = around(0.0, 0.001, 16)
    assert decide(same[:4], 0, handicap_seen=False).verdict is None
    last = decide(same, LAST, handicap_seen=False)
    assert (last.verdict, last.required) == ("inconclusive", None)
    assert decide(around(0.2, 0.01, 4), 0, handicap_seen=False).verdict == "faster"


def test_an_inconclusive_arm_says_how_many_replicates_would_do() -> None:
    required = decide(around(0.0, 0.05, 16), LAST).required
    assert required == math.ceil((t_quantile(1 - SPEND[-1], 15) * 0.05 / math.log(1.01)) ** 2)
    assert required > 16


def test_a_longer_plan_goes_on_where_the_usual_one_ends() -> None:
    looks, spend = stats.plan(32)
    assert decide(around(0.0, 0.05, 16), 4, looks=looks, spend=spend).verdict is None
    assert decide(around(0.0, 0.05, 32), 6, looks=looks, spend=spend).verdict == "inconclusive"


@pytest.mark.parametrize("look", [-1, len(LOOKS)])
def test_a_look_that_is_not_planned_is_refused(look: int) -> None:
    with pytest.raises(ValueError, match="there is no look"):
        decide([0.0] * 4, look)


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 1e6])
def test_numbers_that_no_clock_gives_are_refused(strange: float) -> None:
    log_ratios = [0.0, strange, 0.1, 0.2]
    with pytest.raises(ValueError, match=r"log ratios must be finite numbers: 0\.0, "):
        decide(log_ratios, 0)
    with pytest.raises(ValueError, match=r"log ratios must be finite numbers: 0\.0, "):
        stats.stopped(log_ratios)


@pytest.mark.parametrize("log_ratios", [[], [0.3]])
@pytest.mark.parametrize(("look", "verdict"), [(0, None), (LAST, "inconclusive")])
def test_too_few_replicates_decide_nothing(log_ratios: list[float], look: int, verdict: str | None) -> None:
    decision = decide(log_ratios, look)
    assert (decision.verdict, decision.lo, decision.hi, decision.required) == (verdict, 0.0, math.inf, None)
    assert math.isnan(decision.ratio) if not log_ratios else decision.ratio == math.exp(0.3)


def test_equal_replicates_have_an_interval_without_width() -> None:
    decision = decide([0.1] * 6, 1)  # their mean is not 0.1 to the last bit
    assert decision == Decision("faster", math.exp(0.1), math.exp(0.1), math.exp(0.1), decision.level, 6)


def test_a_session_that_was_stopped_claims_nothing() -> None:
    decision = stats.stopped(around(0.2, 0.01, 6), scale=0.5)
    assert (decision.verdict, decision.n, decision.level) == ("inconclusive", 6, 1 - SPEND[-1])
    assert 1 < decision.lo < decision.ratio < decision.hi
    assert stats.stopped([]).verdict == "inconclusive"


def test_the_handicap_is_seen_where_its_interval_is_below_one() -> None:
    assert stats.handicap_seen(decide(around(-0.049, 0.005, 4), 0))
    assert stats.handicap_seen(decide(around(-0.009, 0.0001, 4), 0)), "seen, though below 1 %"
    assert not stats.handicap_seen(decide(around(-0.049, 0.08, 16), LAST))
    assert not stats.handicap_seen(decide([-0.049], 0))


def test_what_can_be_detected_follows_from_the_noise() -> None:
    noisy = stats.detectable_effect(around(0.0, 0.02, 100))
    assert math.isclose(noisy, math.expm1((t_quantile(1 - SPEND[-1], 15) + t_quantile(0.95, 15)) * 0.02 / 4))
    assert stats.detectable_effect(around(0.0, 0.02, 100), 32) < noisy
    assert math.isclose(stats.detectable_effect([0.0] * 8), 0.01)
    assert stats.detectable_effect([0.0]) == math.inf


@steady
@given(RATIOS, LOOK)
def test_what_is_faster_one_way_is_slower_the_other(log_ratios: list[float], look: int) -> None:
    there, back = decide(log_ratios, look), decide([-value for value in log_ratios], look)
    mirrored = {"faster": "slower", "slower": "faster"}
    assert back.verdict == mirrored.get(str(there.verdict), there.verdict)
    assert math.isclose(back.ratio, 1 / there.ratio)
    assert math.isclose(back.lo, 1 / there.hi)
    assert back.required == there.required


@steady
@given(RATIOS, LOOK, st.floats(1e-6, 0.5))
def test_a_larger_effect_is_not_judged_worse(log_ratios: list[float], look: int, more: float) -> None:
    rank = {"slower": 0, "no-measurable-difference": 1, None: 1, "inconclusive": 1, "faster": 2}
    less, larger = decide(log_ratios, look), decide([value + more for value in log_ratios], look)
    assert rank[larger.verdict] >= rank[less.verdict]
    assert larger.lo >= less.lo
    assert larger.hi >= less.hi


@steady
@given(RATIOS, LOOK, st.integers(1, 100), st.randoms(use_true_random=False))
def test_more_fixes_widen_the_interval_and_order_does_not_count(
    log_ratios: list[float], look: int, fixes: int, random: Random
) -> None:
    full, shared = decide(log_ratios, look), decide(log_ratios, look, scale=stats.alpha_scale(fixes))
    assert shared.lo <= full.lo <= full.ratio * (1 + 1e-12)
    assert full.ratio <= full.hi * (1 + 1e-12) <= shared.hi * (1 + 1e-12)
    if shared.verdict in {"faster", "slower"}:
        assert full.verdict == shared.verdict
    assert decide(random.sample(log_ratios, len(log_ratios)), look).verdict == full.verdict


@steady
@given(st.lists(st.floats(), max_size=20), LOOK)
def test_any_numbers_are_judged_or_refused(log_ratios: list[float], look: int) -> None:
    if all(abs(value) <= 700 for value in log_ratios):
        decision = decide(log_ratios, look)
        assert (decision.verdict is not None) or look != LAST
        assert _ordered(decision) or len(log_ratios) == 0
    else:
        with pytest.raises(ValueError, match="finite"):
            decide(log_ratios, look)


def _ordered(decision: Decision) -> bool:
    return decision.lo <= decision.ratio <= decision.hi
