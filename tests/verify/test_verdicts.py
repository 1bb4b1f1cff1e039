"""One verdict for each combination of figures, and the line that says why."""

from __future__ import annotations

from typing import Any

import pytest

from torchlint.verify.arms import Failure
from torchlint.verify.stats import Decision, Verdict
from torchlint.verify.verdicts import Figures, memory_verdict, overall

SAME = {"verdict": "same", "reason": "all 3 values are bit-equal"}
WRONG = {"verdict": "wrong", "reason": "step0: 4 of 4 elements differ"}
MIB = 1 << 20


def decided(verdict: Verdict) -> Decision:
    return Decision(verdict, 1.1, 1.05, 1.15, 0.99, 8)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"cannot": "needs 2 CUDA devices"}, ("cannot-run", "needs 2 CUDA devices")),
        ({"executed": False}, ("not-exercised", "the lines that the fix changes do not run from this entry")),
        ({"failure": Failure("timeout", "no answer within 5 s")}, ("timeout", "no answer within 5 s")),
        ({"failure": Failure("oom", "MemoryError")}, ("oom", "MemoryError")),
        ({"failure": Failure("crash", "killed by SIGSEGV")}, ("error", "killed by SIGSEGV")),
        ({"failure": Failure("exception", "ValueError: x")}, ("error", "ValueError: x")),
        ({"failure": Failure("protocol", "sent what is no reply")}, ("error", "sent what is no reply")),
        ({"numerics": WRONG}, ("wrong-result", "step0: 4 of 4 elements differ")),
        (
            {"numerics": {"verdict": "not-checked", "reason": "it cannot fail"}},
            ("inconclusive", "the results could not be compared: it cannot fail"),
        ),
        ({"suspicious": "works on"}, ("suspicious", "the fixed code works on")),
        ({"time": decided("faster")}, ("faster", "")),
        ({"time": decided("slower")}, ("slower", "")),
        ({"time": decided("no-measurable-difference")}, ("no-measurable-difference", "")),
        ({"time": decided("inconclusive")}, ("inconclusive", "")),
        ({"memory": (2 * MIB, MIB)}, ("saves-memory", "")),
        ({"memory": (2 * MIB, MIB), "time": decided("no-measurable-difference")}, ("saves-memory", "")),
        ({"memory": (2 * MIB, MIB), "time": decided("faster")}, ("faster", "")),
        ({"memory": (2 * MIB, MIB), "time": decided("slower")}, ("slower", "")),
        (
            {"memory": (2 * MIB, MIB), "time": decided("slower"), "metric": "memory"},
            ("saves-memory", "it takes more time for it"),
        ),
        ({"counts": ({"syncs": 8}, {"syncs": 1})}, ("fewer-syncs", "")),
        ({"counts": ({"syncs": 8}, {"syncs": 1}), "memory": (2 * MIB, MIB)}, ("fewer-syncs", "")),
        (
            {"counts": ({"syncs": 8}, {"syncs": 1}), "memory": (2 * MIB, MIB), "metric": "memory"},
            ("saves-memory", ""),
        ),
        ({"counts": ({"syncs": 8}, {"syncs": 1}), "time": decided("inconclusive")}, ("fewer-syncs", "")),
        ({"counts": ({"syncs": 8}, {"syncs": 1}), "time": decided("slower")}, ("slower", "")),
        (
            {"counts": ({"syncs": 1, "launches": 800, "d2h": 1}, {"syncs": 1, "launches": 3, "d2h": 1.5})},
            ("inconclusive", "launches 800 -> 3, d2h 1 -> 1.5; time was not measured"),
        ),
        (
            {"counts": ({"launches": 3, "h2d_bytes": 0}, {"launches": 2})},  # torch did not tell the bytes of a copy
            ("inconclusive", "launches 3 -> 2; time was not measured"),
        ),
        (
            {"counts": ({"syncs": 1}, {"syncs": 1})},
            ("inconclusive", "nothing that is counted has changed; time was not measured"),
        ),
        ({}, ("inconclusive", "nothing that is counted has changed; time was not measured")),
    ],
)
def test_figures_come_to_a_verdict(figures: dict[str, Any], expected: tuple[str, str]) -> None:
    assert overall(Figures(**{"numerics": SAME, **figures})) == expected


FEWER = {"launches": 3.0, "d2h": 1.0, "d2h_bytes": 64.0, "syncs": 0.0}
MORE = {"launches": 50.0, "d2h": 8.0, "d2h_bytes": 64.0, "syncs": 0.0}
UNDECIDED = decided("no-measurable-difference")


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        ({"metric": "copies"}, "fewer-copies"),
        ({"metric": "launches"}, "fewer-launches"),
        ({"metric": "launches", "memory": (2 * MIB, MIB)}, "fewer-launches"),
        ({"metric": "launches", "time": decided("faster")}, "faster"),
        ({"metric": "launches", "time": decided("slower")}, "slower"),
        ({"metric": "time"}, "no-measurable-difference"),
        ({"metric": "copies", "counts": (MORE, {**MORE, "d2h_bytes": 32.0})}, "fewer-copies"),
        ({"metric": "copies", "counts": (MORE, {**FEWER, "d2h_bytes": 128.0})}, "no-measurable-difference"),
        ({"metric": "copies", "counts": (MORE, {**FEWER, "syncs": 1.0})}, "no-measurable-difference"),
        ({"metric": "launches", "counts": (MORE, {**FEWER, "syncs": 1.0})}, "no-measurable-difference"),
        ({"metric": "launches", "counts": (MORE, {**FEWER, "d2h": 9.0})}, "no-measurable-difference"),
        ({"metric": "launches", "counts": ({**MORE, "syncs": 2.0}, FEWER)}, "fewer-syncs"),
    ],
)
def test_fewer_copies_and_launches_are_gains_of_rules_about_them(figures: dict[str, Any], verdict: str) -> None:
    known: dict[str, Any] = {"numerics": SAME, "counts": (MORE, FEWER), "time": UNDECIDED}
    assert overall(Figures(**known | figures)) == (verdict, "")


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        ({"cannot": "no device", "executed": False}, "cannot-run"),
        ({"executed": False, "failure": Failure("crash", "")}, "not-exercised"),
        ({"failure": Failure("crash", ""), "numerics": WRONG}, "error"),
        ({"numerics": WRONG, "suspicious": "works on"}, "wrong-result"),
        ({"numerics": {"verdict": "not-checked", "reason": ""}, "suspicious": "works on"}, "suspicious"),
        ({"suspicious": "works on", "time": decided("faster")}, "suspicious"),
        ({"numerics": {"verdict": "not-checked", "reason": ""}, "time": decided("faster")}, "inconclusive"),
    ],
)
def test_what_makes_a_gain_worthless_comes_first(figures: dict[str, Any], verdict: str) -> None:
    assert overall(Figures(**figures))[0] == verdict


@pytest.mark.parametrize(
    ("memory", "verdict"),
    [
        ((100 * MIB, 99 * MIB), "same"),
        ((100 * MIB, 99 * MIB - 1), "less"),
        ((100 * MIB, 101 * MIB), "same"),
        ((100 * MIB, 101 * MIB + 1), "more"),
        ((8192, 4096), "same"),
        ((8192, 4095), "less"),
        ((0, 0), "same"),
        ((0, 8192), "more"),
    ],
)
def test_memory_differs_by_more_than_a_hundredth_and_a_page(memory: tuple[int, int], verdict: str) -> None:
    assert memory_verdict(memory) == verdict
