"""Decides from replicates whether a fix made the program faster: the procedure "duet/1".

A replicate is one set of fresh processes, one per arm, driven alternately. Its log ratio is log(T_null / T_arm): above
zero the arm is faster than the null arm, which is the user's code after an edit that does nothing. Only log ratios of
replicates are tested: samples of one process share its memory layout, and are not independent of each other.

The test is a group-sequential one-sided t test. After 4, 6, 8, 12 and 16 replicates it asks once, and spends a part of
an error of 1 % each time. With the noise regimes of `tests/verify/noise.py`, arms that equal the null arm are called
faster in less than 1 % of the runs, and `tests/verify/test_simulation_gate.py` holds it there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median
from typing import Literal

Verdict = Literal["faster", "slower", "no-measurable-difference", "inconclusive"]

LOOKS = (4, 6, 8, 12, 16)
"""After how many replicates the test is made."""

SPEND = (0.0005, 0.0010, 0.0020, 0.0030, 0.0035)
"""The one-sided error spent at each look: 1 % together."""

MIN_EFFECT = 0.01
"""The smallest change of speed that is called one."""

_LATER_LOOKS = (24, 32, 48, 64)
_ERROR = 0.01  # of a wrong "faster", all looks together
_EQUIVALENCE_ERROR = 0.05  # of a wrong "no measurable difference", all looks together
_LAST_BAND = 0.02  # at the last look an interval this wide still says that there is no difference worth an edit
_FIXES_AT_FULL_ERROR = 5
_LARGEST_LOG = 700.0  # the ratio has to fit a float; no clock gives such a ratio


@dataclass(frozen=True, slots=True)
class Decision:
    """What is known of one arm after `n` replicates.

    `ratio` is the speed-up T_null / T_arm, 1.05 being 5 % faster, and `lo` and `hi` the ends of its two-sided
    interval at `level`, the level of the look. Below two replicates there is no interval: 0 and infinity. `verdict`
    is None where the session should go on. `required` is about how many replicates would tell 1 % apart, for an
    inconclusive arm whose noise is the reason.
    """

    verdict: Verdict | None
    ratio: float
    lo: float
    hi: float
    level: float
    n: int
    required: int | None = None


def plan(max_replicates: int = LOOKS[-1]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The looks within `max_replicates`, and the error to spend at each.

    Looks after the sixteenth replicate (24, 32, 48, 64) spend as much as that one does, and everything is scaled to
    sum to 1 % again. Fewer replicates leave out the last looks; what those would have spent is not given to others.

    Raises ValueError if `max_replicates` is below the first look.
    """
    if max_replicates < LOOKS[0]:
        raise ValueError(f"at least {LOOKS[0]} replicates are needed, not {max_replicates}")
    looks = tuple(look for look in (*LOOKS, *_LATER_LOOKS) if look <= max_replicates)
    if len(looks) <= len(LOOKS):
        return looks, SPEND[: len(looks)]
    spend = SPEND + (SPEND[-1],) * (len(looks) - len(LOOKS))
    total = math.fsum(spend)
    return looks, tuple(error * _ERROR / total for error in spend)


def alpha_scale(fixes: int) -> float:
    """What the error of each of `fixes` decisions is scaled by, so that a session of many claims little by chance.

    Up to five fixes each have the full 1 %; more of them share 5 %.
    """
    if fixes < 1:
        raise ValueError(f"a session decides about one fix at least, not {fixes}")
    return min(1.0, _FIXES_AT_FULL_ERROR / fixes)


def replicate(quads: Sequence[Sequence[tuple[float, float]]]) -> float:
    """The log ratio of one replicate, log(T_null / T_arm).

    Each quad holds its two halves, which visit the arms in mirrored order; each half holds the median time of a block
    of the null arm and of the arm, in nanoseconds (any unit does). The mean over the halves cancels what drifts
    linearly; the median over the quads sets aside one that was disturbed.

    Raises ValueError if there is no quad, a quad is empty, or a time is not above zero.
    """
    if not quads or not all(quads):
        raise ValueError("a replicate needs a quad, and a quad its halves")
    times = [time for quad in quads for half in quad for time in half]
    if not all(0 < time < math.inf for time in times):
        raise ValueError(f"block times must be above zero and finite, not {min(times)} to {max(times)}")
    return median(fmean(math.log(null) - math.log(arm) for null, arm in quad) for quad in quads)


def decide(
    log_ratios: Sequence[float],
    look: int,
    *,
    looks: Sequence[int] = LOOKS,
    spend: Sequence[float] = SPEND,
    scale: float = 1.0,
    handicap_seen: bool = True,
) -> Decision:
    """What the replicates so far say at the look of this index.

    An arm is faster or slower if the interval of the look excludes no change and the estimate is 1 % or more. There is
    no measurable difference if the 98 % interval lies within 1 % to either side, at the last look within 2 %, and the
    session has shown that it can see 5 % (`handicap_seen`). `scale` is from `alpha_scale`.

    Raises ValueError if a log ratio is not a finite number, or there is no such look.
    """
    if not 0 <= look < len(looks):
        raise ValueError(f"there is no look {look} among {len(looks)}")
    equivalence = _EQUIVALENCE_ERROR / max(len(LOOKS), len(looks))
    is_last = look == len(looks) - 1
    return _judge(log_ratios, spend[look] * scale, equivalence, is_last=is_last, handicap_seen=handicap_seen)


def stopped(log_ratios: Sequence[float], *, spend: Sequence[float] = SPEND, scale: float = 1.0) -> Decision:
    """The decision about an arm whose session ended before it was decided: inconclusive, whatever the numbers are.

    The interval is that of the last look.
    """
    alpha = spend[-1] * scale
    mean, error = _estimate(log_ratios)
    return _decision("inconclusive", mean, error, alpha, len(log_ratios), required_replicates(log_ratios, alpha))


def handicap_seen(handicap: Decision) -> bool:
    """Whether the arm with the planted 5 % delay was told to be slower than the null arm.

    Where it was not, the session cannot tell a difference of 5 %, and may not say that there is none.
    """
    return handicap.hi < 1.0


def required_replicates(log_ratios: Sequence[float], alpha: float = SPEND[-1]) -> int | None:
    """About how many replicates would resolve 1 % with noise as in these.

    None if it cannot be told from them, or if they would do already.
    """
    count = len(log_ratios)
    _, error = _estimate(log_ratios)
    if count < 2:
        return None
    deviation = error * math.sqrt(count)
    needed = math.ceil((t_quantile(1 - alpha, count - 1) * deviation / math.log1p(MIN_EFFECT)) ** 2)
    return needed if needed > count else None


def detectable_effect(log_ratios: Sequence[float], replicates: int = LOOKS[-1]) -> float:
    """The smallest effect, 0.02 being 2 % faster, that so many replicates find about nineteen times out of twenty.

    For noise as in these, which are those of arms that equal the null arm; infinite below two of them.
    """
    _, error = _estimate(log_ratios)
    if len(log_ratios) < 2:
        return math.inf
    deviation = error * math.sqrt(len(log_ratios))
    df = replicates - 1
    reach = (t_quantile(1 - SPEND[-1], df) + t_quantile(0.95, df)) * deviation / math.sqrt(replicates)
    least = math.log1p(MIN_EFFECT) + t_quantile(0.95, df) * deviation / math.sqrt(replicates)
    return _speedup(max(reach, least)) - 1


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: int) -> float:
    """The value that Student's t with `df` degrees of freedom stays below with probability `p`.

    Exact to 1e-9 for tails down to 1e-12.

    Raises ValueError if `p` is not between 0 and 1, or `df` is below 1.
    """
    if not 0 < p < 1 or df < 1:
        raise ValueError(f"no quantile of t for p={p}, df={df}")
    if p == 0.5:
        return 0.0
    tail = min(p, 1 - p)
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > tail:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:  # until no float lies between
        if _upper_tail(middle, df) > tail:
            low = middle
        else:
            high = middle
    return math.copysign(middle, p - 0.5)


def _judge(
    log_ratios: Sequence[float], alpha: float, equivalence: float, *, is_last: bool, handicap_seen: bool
) -> Decision:
    """The decision from an interval with error `alpha` on either side."""
    count = len(log_ratios)
    mean, error = _estimate(log_ratios)
    required = None
    verdict: Verdict | None = None
    if count >= 2:
        half = t_quantile(1 - alpha, count - 1) * error
        reach = abs(mean) + t_quantile(1 - equivalence, count - 1) * error
        if abs(mean) > half and abs(mean) >= math.log1p(MIN_EFFECT):
            verdict = "faster" if mean > 0 else "slower"
        elif reach < math.log1p(_LAST_BAND if is_last else MIN_EFFECT) and handicap_seen:
            verdict = "no-measurable-difference"
    if verdict is None and is_last:
        verdict = "inconclusive"
        required = required_replicates(log_ratios, alpha)
    return _decision(verdict, mean, error, alpha, count, required)


def _decision(
    verdict: Verdict | None, mean: float, error: float, alpha: float, count: int, required: int | None
) -> Decision:
    level = 1 - 2 * alpha
    if count < 2:
        return Decision(verdict, _speedup(mean), 0.0, math.inf, level, count, required)
    half = t_quantile(1 - alpha, count - 1) * error
    return Decision(verdict, _speedup(mean), _speedup(mean - half), _speedup(mean + half), level, count, required)


def _estimate(log_ratios: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error; not a number where there are too few."""
    if not all(abs(value) <= _LARGEST_LOG for value in log_ratios):
        raise ValueError(f"log ratios must be finite numbers: {', '.join(map(str, log_ratios))}")
    count = len(log_ratios)
    if count < 2:
        return (log_ratios[0] if log_ratios else math.nan), math.nan
    if min(log_ratios) == max(log_ratios):  # where rounding of the mean would leave a spread
        return log_ratios[0], 0.0
    mean = fmean(log_ratios)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in log_ratios) / (count - 1) / count)


def _speedup(log_ratio: float) -> float:
    return math.inf if log_ratio > _LARGEST_LOG else math.exp(log_ratio)


def _upper_tail(t: float, df: int) -> float:
    """P(T > t) for t >= 0: half the regularised incomplete beta function of df / (df + t^2)."""
    square = t * t
    x, rest = df / (df + square), square / (df + square)
    if x < (df / 2 + 1) / (df / 2 + 2.5):
        return _beta(x, rest, df / 2, 0.5) / 2
    return 0.5 - _beta(rest, x, 0.5, df / 2) / 2


def _beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b) for x up to about its mean, with `rest` = 1 - x (DLMF 8.17.22, by the modified Lentz algorithm)."""
    if x == 0:
        return 0.0
    log_factor = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    fraction, c, d = 1.0, 1.0, 0.0
    for term in range(10_000):  # 30 do for the t of a session
        m = term // 2
        if term == 0:
            numerator = 1.0
        elif term % 2:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + numerator * d)
        c = 1 + numerator / c
        fraction *= c * d
        if abs(1 - c * d) < 1e-15:
            break
    return math.exp(log_factor) * (fraction - 1) / a
