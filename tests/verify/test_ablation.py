"""Which fixes are kept: the plan and the rule on given verdicts, and whole sessions on the virtual GPU."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from random import Random

import pytest
from virtual_gpu import Machine, Process, Program, measure, train_step

from torchlint.verify.ablation import (
    Comparison,
    Judgement,
    Stage,
    Version,
    applicable_together,
    judge,
    stage_a,
    stage_b,
    stage_c,
)
from torchlint.verify.stats import Decision, Verdict

RATIOS = {"faster": 1.1, "slower": 0.9}


def decision(verdict: Verdict | None, ratio: float | None = None) -> Decision:
    speedup = RATIOS.get(str(verdict), 1.0) if ratio is None else ratio
    return Decision(verdict, speedup, speedup - 0.01, speedup + 0.01, 0.99, 8)


def questions(stage: Stage | None) -> list[tuple[str, str, str, str]]:
    assert stage is not None
    return [(asked.question, asked.arm, asked.against, asked.unit) for asked in stage.comparisons]


def outcomes(judgements: Iterable[Judgement]) -> dict[str, tuple[str, str]]:
    return {judgement.unit: (judgement.action, judgement.reason) for judgement in judgements}


def test_stage_a_measures_all_of_them_and_the_controls() -> None:
    stage = stage_a(("a", "b", "c"))
    assert stage.arms == (Version("null"), Version("original"), Version("handicap"), Version("all", ("a", "b", "c")))
    assert questions(stage) == [
        ("bias", "original", "null", ""),
        ("handicap", "handicap", "null", ""),
        ("together", "all", "null", ""),
    ]
    assert stage.claims == 1


@pytest.mark.parametrize("units", [(), ("a", "a")])
def test_units_have_names_of_their_own(units: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="units must be named, once each"):
        stage_a(units)


def test_stage_b_measures_each_alone_and_all_without_it() -> None:
    stage = stage_b(("a", "b", "c"), "faster")
    assert stage is not None
    assert stage.arms == (
        Version("null"),
        Version("handicap"),
        Version("all", ("a", "b", "c")),
        Version("add a", ("a",)),
        Version("add b", ("b",)),
        Version("add c", ("c",)),
        Version("without a", ("b", "c")),
        Version("without b", ("a", "c")),
        Version("without c", ("a", "b")),
    )
    assert questions(stage)[1:] == [
        *(("alone", f"add {unit}", "null", unit) for unit in "abc"),
        *(("without", f"without {unit}", "all", unit) for unit in "abc"),
    ]
    assert stage.claims == 6


def test_of_two_units_one_is_what_is_left_without_the_other() -> None:
    stage = stage_b(("a", "b"), "slower")
    assert stage is not None
    assert [arm.name for arm in stage.arms] == ["null", "handicap", "all", "add a", "add b"]
    assert questions(stage)[1:] == [
        ("alone", "add a", "null", "a"),
        ("alone", "add b", "null", "b"),
        ("without", "add b", "all", "a"),
        ("without", "add a", "all", "b"),
    ]


@pytest.mark.parametrize("together", ["faster", "slower", "no-measurable-difference", "inconclusive", None])
def test_a_single_fix_was_measured_alone_already(together: Verdict | None) -> None:
    assert stage_b(("a",), together) is None


@pytest.mark.parametrize("together", ["no-measurable-difference", "inconclusive", None])
def test_where_all_of_them_make_no_difference_there_is_nothing_to_tell_apart(together: Verdict | None) -> None:
    assert stage_b(("a", "b", "c"), together) is None


def test_units_that_overlap_are_not_applied_together() -> None:
    units, conflicts = ("a", "b", "c", "d"), [{"a", "b"}, {"b", "c"}, {"c", "d", "x"}]
    assert applicable_together(units, conflicts) == ("a", "c")
    assert stage_a(units, conflicts).arms[-1] == Version("all", ("a", "c"))
    stage = stage_b(units, "faster", conflicts)
    assert stage is not None
    assert Version("add b", ("b",)) in stage.arms
    assert [asked.unit for asked in stage.comparisons if asked.question == "without"] == ["a", "c"]
    for arm in stage.arms:
        assert not any(len(conflict.intersection(arm.units)) > 1 for conflict in conflicts)


def test_a_unit_that_overlaps_the_only_other_is_measured_whatever_that_one_does() -> None:
    stage = stage_b(("a", "b"), "no-measurable-difference", [{"a", "b"}])
    assert questions(stage)[1:] == [("alone", "add b", "null", "b")]


def verdicts(**units: tuple[Verdict | None, Verdict | None]) -> Mapping[Comparison, Decision]:
    """Decisions after stage B: alone, and all without the unit."""
    decisions = {Comparison("all", "null", "together"): decision("faster")}
    for unit, (alone, without) in units.items():
        decisions[Comparison(f"add {unit}", "null", "alone", unit)] = decision(alone)
        decisions[Comparison(f"without {unit}", "all", "without", unit)] = decision(without)
    return decisions


@pytest.mark.parametrize(
    ("alone", "without", "outcome"),
    [
        ("faster", "slower", ("keep", "faster")),
        ("faster", "no-measurable-difference", ("keep", "faster")),
        ("faster", "inconclusive", ("keep", "faster")),
        ("faster", None, ("keep", "faster")),
        ("no-measurable-difference", "slower", ("keep", "faster (masked alone)")),
        ("inconclusive", "slower", ("keep", "faster (masked alone)")),
        ("slower", "no-measurable-difference", ("drop", "slower")),
        ("slower", "slower", ("drop", "slower")),
        ("slower", "faster", ("drop", "slower")),
        ("faster", "faster", ("drop", "slower (beside the others)")),
        ("no-measurable-difference", "faster", ("drop", "slower (beside the others)")),
        ("no-measurable-difference", "no-measurable-difference", ("leave", "no measurable difference")),
        ("no-measurable-difference", "inconclusive", ("leave", "inconclusive")),
        ("inconclusive", None, ("leave", "inconclusive")),
    ],
)
def test_the_rule(alone: Verdict | None, without: Verdict | None, outcome: tuple[str, str]) -> None:
    decisions = verdicts(a=(alone, without), b=("faster", "slower"), c=("faster", "slower"))
    assert outcomes(judge(("a", "b", "c"), decisions))["a"] == outcome


def test_a_judgement_carries_its_measurements() -> None:
    (first, _) = judge(("a", "b"), verdicts(a=("inconclusive", "slower"), b=("faster", "slower")))
    assert (first.alone, first.without) == (decision("inconclusive"), decision("slower"))


@pytest.mark.parametrize(
    ("together", "single", "several"),
    [
        ("faster", ("keep", "faster"), None),
        ("slower", ("drop", "slower"), None),
        (
            "no-measurable-difference",
            ("leave", "no measurable difference"),
            ("leave", "no measurable difference (all together)"),
        ),
        ("inconclusive", ("leave", "inconclusive"), ("leave", "inconclusive (all together)")),
    ],
)
def test_after_stage_a(together: Verdict, single: tuple[str, str], several: tuple[str, str] | None) -> None:
    decisions = {Comparison("all", "null", "together"): decision(together)}
    (judgement,) = judge(("a",), decisions)
    assert (judgement.action, judgement.reason) == single
    assert judgement.alone == decision(together)
    if several is not None:
        assert outcomes(judge(("a", "b"), decisions)) == {"a": several, "b": several}


def test_what_was_not_measured_is_left() -> None:
    assert outcomes(judge(("a", "b"), {})) == {"a": ("leave", "not measured"), "b": ("leave", "not measured")}


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(1.2, 1.1, "a"), (1.1, 1.2, "b"), (1.1, 1.1, "a"), (0.9, 1.1, "b")]
)
def test_of_units_that_overlap_the_faster_is_kept(first: float, second: float, kept: str) -> None:
    decisions = {
        Comparison("all", "null", "together"): decision("faster" if first > 1 else "slower", first),
        Comparison("add b", "null", "alone", "b"): decision("faster", second),
    }
    judgements = judge(("a", "b"), decisions, [{"a", "b"}])
    assert [judgement.unit for judgement in judgements] == ["a", "b"]
    assert [judgement.unit for judgement in judgements if judgement.action == "keep"] == [kept]
    if first > 1:
        assert {judgement.reason for judgement in judgements} == {"faster", f"overlaps {kept}"}


def test_stage_c_measures_what_is_kept_once_more() -> None:
    judgements = judge(
        ("a", "b", "c"),
        verdicts(a=("faster", "slower"), b=("slower", "faster"), c=("inconclusive", "slower")),
    )
    stage = stage_c(judgements)
    assert stage is not None
    assert stage.arms == (Version("null"), Version("handicap"), Version("kept", ("a", "c")))
    assert questions(stage) == [("handicap", "handicap", "null", ""), ("together", "kept", "null", "")]


def test_where_nothing_is_kept_there_is_nothing_to_confirm() -> None:
    assert stage_c(judge(("a",), {})) is None


# Sessions on the virtual GPU. A step takes about 0.24 ms while it waits for the loss, 0.19 ms where it does not.


def training(arm: Version) -> Program:
    """A loop that waits for the loss twice in a step; what the fixes do to it is in their names."""
    waits = 2 - sum(unit in arm.units for unit in ("item", "print"))
    slow = 25.0 if "slow" in arm.units else 0.0
    return train_step(syncs=waits, python=60.0 + slow)


def session(
    units: tuple[str, ...], machine: Machine, conflicts: Collection[frozenset[str]] = ()
) -> tuple[Judgement, ...]:
    """Stages A and B."""
    decisions = dict(measure(stage_a(units, conflicts), training, machine))
    stage = stage_b(units, decisions[Comparison("all", "null", "together")].verdict, conflicts)
    if stage is not None:
        decisions |= measure(stage, training, machine)
    return judge(units, decisions, conflicts)


def machine(seed: int, **changes: float) -> Machine:
    return Machine(Random(seed), **changes)  # noqa: S311 - noise is no secret


def test_the_virtual_gpu_masks_one_sync_by_another() -> None:
    still = machine(0, noise=0.0, layout=0.0)
    times = {waits: Process(still).time(train_step(syncs=waits), 50) for waits in (0, 1, 2)}
    assert times[2] / times[1] < 1.01
    assert times[2] / times[0] > 1.2


def test_the_virtual_gpu_hides_host_work_behind_the_device() -> None:
    still = machine(0, noise=0.0, layout=0.0)
    short, long = (Process(still).time(train_step(kernel=40.0, python=python), 200) for python in (10.0, 200.0))
    assert math.isclose(short, long, rel_tol=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_syncs_that_mask_each_other_are_both_kept(seed: int) -> None:
    masked = ("keep", "faster (masked alone)")
    judgements = session(("item", "print"), machine(seed))
    assert outcomes(judgements) == {"item": masked, "print": masked}
    for judgement in judgements:
        assert judgement.alone is not None
        assert judgement.alone.hi < 1.02


@pytest.mark.parametrize("seed", range(3))
def test_a_slow_fix_is_dropped_and_one_without_effect_is_left(seed: int) -> None:
    outcome = outcomes(session(("item", "slow", "nothing", "print"), machine(seed)))
    assert outcome["item"][0] == outcome["print"][0] == "keep"
    assert outcome["slow"] == ("drop", "slower")
    assert outcome["nothing"][0] == "leave"


def test_a_fix_that_makes_everything_slower_is_named() -> None:
    outcome = outcomes(session(("slow", "nothing"), machine(1)))
    assert outcome["slow"] == ("drop", "slower")
    assert outcome["nothing"] == ("leave", "no measurable difference")


def test_units_that_overlap_are_measured_apart() -> None:
    conflicts = [frozenset({"slow", "item"})]
    outcome = outcomes(session(("slow", "item"), machine(1), conflicts))
    assert outcome == {"slow": ("drop", "slower"), "item": ("leave", "no measurable difference")}


def test_what_is_kept_is_confirmed_on_fresh_replicates() -> None:
    stage = stage_c(session(("item", "slow", "print"), machine(2)))
    assert stage is not None
    assert stage.arms[-1] == Version("kept", ("item", "print"))
    confirmed = measure(stage, training, machine(3))[stage.comparisons[-1]]
    assert confirmed.verdict == "faster"
    assert 1.2 < confirmed.lo < confirmed.hi < 1.4


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"drift": 10.0},  # a session lasts about 0.15 virtual seconds, a block a thousandth
        {"step_at": 0.05, "step": 0.1},
        {"noise": 0.05, "layout": 0.01},
    ],
    ids=["quiet", "drift", "clock step", "noisy"],
)
def test_sessions_that_change_nothing_claim_nothing(changes: dict[str, float]) -> None:
    judgements = [session(("nothing",), machine(seed, **changes))[0] for seed in range(12)]
    assert {judgement.action for judgement in judgements} == {"leave"}
    if "noise" not in changes:
        assert {judgement.reason for judgement in judgements} == {"no measurable difference"}


@pytest.mark.parametrize("changes", [{"drift": 10.0}, {"step_at": 0.05, "step": 0.1}], ids=["drift", "clock step"])
def test_masked_syncs_are_found_while_the_clock_changes(changes: dict[str, float]) -> None:
    outcome = outcomes(session(("item", "print"), machine(4, **changes)))
    assert {action for action, _ in outcome.values()} == {"keep"}


def test_a_biased_harness_shows_in_the_original_and_not_in_the_fixes() -> None:
    stage = stage_a(("nothing",))
    for seed in range(5):
        decisions = {
            asked.question: found for asked, found in measure(stage, training, machine(seed), bias=0.05).items()
        }
        assert decisions["bias"].verdict == "slower"
        assert decisions["together"].verdict == "no-measurable-difference"


def test_a_session_that_cannot_see_the_handicap_does_not_say_that_there_is_no_difference() -> None:
    stage = stage_a(("nothing",))
    deaf = {asked.question: found for asked, found in measure(stage, training, machine(7, layout=0.2)).items()}
    assert deaf["handicap"].verdict == "inconclusive"
    assert deaf["together"].verdict == "inconclusive"
