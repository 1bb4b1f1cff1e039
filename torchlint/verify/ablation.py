"""Plans which combinations of fixes are measured, and decides from the results which fixes are kept.

A fix is measured alone, and by taking it out of all of them, because either view misses something. Where two lines
wait for the device, removing one of the waits gains nothing while the other is left: alone, both look useless.
Where two fixes do the same work, taking one of them out loses nothing.

Stage A measures all fixes together against the null arm. Stage B tells the fixes apart, if there is anything to tell
apart. Stage C measures what is kept once more, on fresh replicates, so that the number reported is not that of a lucky
session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal

from torchlint.verify.stats import Decision, Verdict

NULL = "null"
ORIGINAL = "original"
HANDICAP = "handicap"
ALL = "all"
KEPT = "kept"

Question = Literal["bias", "handicap", "together", "alone", "without"]
Action = Literal["keep", "drop", "leave"]


@dataclass(frozen=True, slots=True)
class Version:
    """A program to build and measure: the user's code with these units applied.

    `null` is the code with an edit that does nothing, `original` the untouched tree, `handicap` the null arm with a
    delay of 5 %; the other arms go through the same pipeline as the null arm.
    """

    name: str
    units: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """A question about the time of one arm over that of another, log(T_against / T_arm).

    "without" asks about all fixes but `unit` against all of them: slower means that the unit is needed.
    """

    arm: str
    against: str
    question: Question
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """Arms that are measured in the same rounds, and what is asked of them."""

    arms: tuple[Version, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def claims(self) -> int:
        """How many answers may say that a fix is worth something: they share the error, see `stats.alpha_scale`."""
        return sum(comparison.question in {"together", "alone", "without"} for comparison in self.comparisons)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What happens to one unit, and why in words.

    A unit is dropped where it was proven to be slower, and left where nothing was proven. `alone` and `without` are
    the measurements, where there are any.
    """

    unit: str
    action: Action
    reason: str
    alone: Decision | None = None
    without: Decision | None = None


_CONTROLS = (Version(NULL), Version(HANDICAP))
_HANDICAP = Comparison(HANDICAP, NULL, "handicap")
_TOGETHER = Comparison(ALL, NULL, "together")


def applicable_together(units: Sequence[str], conflicts: Iterable[AbstractSet[str]] = ()) -> tuple[str, ...]:
    """The units of the full set: in the order given, each that overlaps none before it.

    Of every set in `conflicts`, at most one unit can be applied.
    """
    rivals = _rivals(conflicts)
    together: list[str] = []
    for unit in units:
        if not rivals.get(unit, frozenset()).intersection(together):
            together.append(unit)
    return tuple(together)


def stage_a(units: Sequence[str], conflicts: Iterable[AbstractSet[str]] = ()) -> Stage:
    """All fixes together, and the controls. A single fix is thereby measured alone.

    Raises ValueError if there is no unit, or one twice.
    """
    if not units or len(set(units)) < len(units):
        raise ValueError(f"units must be named, once each: {', '.join(units) or 'none'}")
    arms = (Version(NULL), Version(ORIGINAL), Version(HANDICAP), Version(ALL, applicable_together(units, conflicts)))
    return Stage(arms, (Comparison(ORIGINAL, NULL, "bias"), _HANDICAP, _TOGETHER))


def stage_b(units: Sequence[str], together: Verdict | None, conflicts: Iterable[AbstractSet[str]] = ()) -> Stage | None:
    """Each fix alone, and all without it; None where that would tell nothing more.

    That is so where all of them together make no difference, and where there is only one. Where they are slower, the
    one to blame is looked for. Units that overlap one of the full set are measured alone in any case. An arm that
    serves two questions is built once: of two units, one is what is left without the other.
    """
    full = applicable_together(units, conflicts)
    differs = together in {"faster", "slower"}
    names: dict[frozenset[str], str] = {frozenset(full): ALL}
    arms = [*_CONTROLS]
    comparisons = [_HANDICAP]

    def ask(chosen: tuple[str, ...], name: str, against: str, question: Question, unit: str) -> None:
        key = frozenset(chosen)
        if key not in names:
            names[key] = name
            arms.append(Version(name, chosen))
        comparisons.append(Comparison(names[key], against, question, unit))

    if differs and len(full) > 1:
        arms.append(Version(ALL, full))
        for unit in full:
            ask((unit,), f"add {unit}", NULL, "alone", unit)
        for unit in full:
            ask(tuple(other for other in full if other != unit), f"without {unit}", ALL, "without", unit)
    for unit in units:
        if unit not in full:
            ask((unit,), f"add {unit}", NULL, "alone", unit)
    return Stage(tuple(arms), tuple(comparisons)) if len(comparisons) > 1 else None


def stage_c(judgements: Sequence[Judgement]) -> Stage | None:
    """The kept units together, to be measured with a new seed; None if there are none."""
    kept = tuple(judgement.unit for judgement in judgements if judgement.action == "keep")
    if not kept:
        return None
    return Stage((*_CONTROLS, Version(KEPT, kept)), (_HANDICAP, Comparison(KEPT, NULL, "together")))


def judge(
    units: Sequence[str], decisions: Mapping[Comparison, Decision], conflicts: Iterable[AbstractSet[str]] = ()
) -> tuple[Judgement, ...]:
    """What to do with each unit after stage A, or after stages A and B.

    A unit is kept if it is faster alone or all of them are slower without it. It is dropped, whatever else speaks for
    it, if it is slower alone or all of them are faster without it. Of units that overlap, one is kept: the faster.
    """
    conflicts = tuple(conflicts)
    full = applicable_together(units, conflicts)
    asked = {(comparison.question, comparison.unit): decision for comparison, decision in decisions.items()}
    together = asked.get(("together", ""))
    judgements = []
    for unit in units:
        alone = together if full == (unit,) else asked.get(("alone", unit))
        without = asked.get(("without", unit))
        action, reason = _weigh(alone, without, together if unit in full else None)
        judgements.append(Judgement(unit, action, reason, alone, without))
    return _without_rivals(judgements, _rivals(conflicts))


def _weigh(alone: Decision | None, without: Decision | None, together: Decision | None) -> tuple[Action, str]:
    verdicts = [decision.verdict for decision in (alone, without) if decision is not None]
    if alone is not None and alone.verdict == "slower":
        return "drop", "slower"
    if without is not None and without.verdict == "faster":
        return "drop", "slower (beside the others)"
    if alone is not None and alone.verdict == "faster":
        return "keep", "faster"
    if without is not None and without.verdict == "slower":
        return "keep", "faster (masked alone)"
    if verdicts:
        same = all(verdict == "no-measurable-difference" for verdict in verdicts)
        return "leave", "no measurable difference" if same else "inconclusive"
    if together is None:
        return "leave", "not measured"
    same = together.verdict == "no-measurable-difference"
    return "leave", f"{'no measurable difference' if same else 'inconclusive'} (all together)"


def _without_rivals(judgements: Sequence[Judgement], rivals: Mapping[str, AbstractSet[str]]) -> tuple[Judgement, ...]:
    """Leaves each unit that overlaps a faster one; among equals, the first stays."""
    kept: list[str] = []
    overlapped: dict[str, str] = {}
    for judgement in sorted(judgements, key=_speedup_alone, reverse=True):
        if judgement.action == "keep":
            winner = next((unit for unit in kept if unit in rivals.get(judgement.unit, ())), None)
            if winner is None:
                kept.append(judgement.unit)
            else:
                overlapped[judgement.unit] = winner
    return tuple(
        replace(judgement, action="leave", reason=f"overlaps {overlapped[judgement.unit]}")
        if judgement.unit in overlapped
        else judgement
        for judgement in judgements
    )


def _speedup_alone(judgement: Judgement) -> float:
    return judgement.alone.ratio if judgement.alone is not None else 0.0


def _rivals(conflicts: Iterable[AbstractSet[str]]) -> dict[str, frozenset[str]]:
    """For each unit those that it overlaps."""
    rivals: dict[str, frozenset[str]] = {}
    for conflict in conflicts:
        for unit in conflict:
            rivals[unit] = rivals.get(unit, frozenset()) | (frozenset(conflict) - {unit})
    return rivals
