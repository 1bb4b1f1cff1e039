"""Decides whether a fixed program computes what the slow one did, by the class of numerics that the fix declares."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torchlint.verify.inside import distribution
from torchlint.verify.inside import noise as noises
from torchlint.verify.inside.capture import Capture
from torchlint.verify.inside.classes import CLASSES, MANY, Demand, Four, Judgement, Rounding, judge
from torchlint.verify.inside.distance import Tolerance, measure, tolerance
from torchlint.verify.inside.noise import Floor
from torchlint.verify.inside.statemap import matches
from torchlint.verify.inside.structure import (
    changed_gradients,
    printed_differences,
    sharing_differences,
    structural_differences,
)

SAME, WITHIN, WRONG, NOT_CHECKED = "same", "same-within-class", "wrong", "not-checked"

_Repeated = tuple[Capture, Capture | None]
"""A run, and a second one with the same seed."""
_ANY = Tolerance(0.0, 1.0, 0.0)
_PRINTED = 1e-3
_ROUNDED = frozenset({"close", "lower-precision", "mapped-state", "stdout", "alias", "shape", "rng"})
"""The classes whose complaints float64 may answer."""
_STEP = re.compile(r"^(step\d+|moved|last)")


def compare(  # noqa: PLR0913 - every run that may shed light
    before: Capture,
    after: Capture,
    numerics_class: str,
    *,
    again: Capture | None = None,
    after_again: Capture | None = None,
    noisy: Sequence[_Repeated] = (),
    fp64: tuple[Capture, Capture] | None = None,
    nudged: Sequence[Capture] = (),
    dropped: Sequence[str] = (),
    free: Sequence[str] = (),
    shape_slices: Mapping[str, Sequence[int | None]] | None = None,
) -> dict[str, Any]:
    """What became of the numbers of `before` in `after`, as a dict for JSON; `verdict` and `reason` say it in words.

    `again` and `after_again` are second runs with the same seed: what a program differs from itself by. `noisy` are
    other runs with their repetitions, of the slow program and of the fixed one, which say it where these were run only
    once. `fp64` are both programs in float64, and `nudged` runs of the slow one from parameters that are off by a unit
    in the last place. `dropped` and `free` are patterns of names that the fix removes, and whose values it leaves open.
    `shape_slices` maps patterns to how many leading elements of each dimension count (None: all). For class `rng` the
    programs should have drawn all their numbers on the CPU (`DrawOnCpu`): then they must agree as in class `close`, and
    only otherwise distributions are compared. ValueError for an unknown class.

    Keys: `class`; `verdict`: `same` (bit for bit, and nothing else differs), `same-within-class`, `wrong`, or
    `not-checked` where nothing can be said; `reason`; `tensors`, and how many of them are `bit_equal`;
    `worst_over_tolerance`, the largest error as a multiple of what is allowed (None: no number says how far), at
    `worst_tensor`; `aa_bit_equal`, whether the slow program repeats itself; `rng_stream`: `same` or `differs`;
    `aliased`, `stdout`, `requires_grad`, `degenerate` and `skipped`: shared memory, printed lines and gradients that
    differ, values that can hardly show an error, and what was not compared.
    """
    if numerics_class not in CLASSES:
        raise ValueError(f"no class of numerics is called {numerics_class!r}")
    demand = Demand(numerics_class, tuple(dropped), tuple(free), dict(shape_slices or {}))
    noise = _noise(demand, (before, again), (after, after_again), noisy=noisy)
    slack = _slack(before, again, after, after_again) if numerics_class == "nondeterministic" else noises.slack(noise)
    found = _look(before, after, demand, slack, fp64, nudged)
    found.noise = noise
    found.wrong += _beyond(found, before, exact=demand.name == "exact")
    _look_around(found, before, after, demand, again)
    verdict, reason = _decide(found)
    drawn_alike = all(run.host_draws and not run.escaped for run in (before, after))
    if verdict == WRONG and demand.name == "rng" and not found.others and not drawn_alike:
        verdict, reason = _compare_distributions(found, before, after)
    unstable = _unstable(before, again, demand, noise)
    if unstable:
        verdict, reason = NOT_CHECKED, f"the slow program differs from itself: {unstable}"
    elif verdict in (SAME, WITHIN):
        unstable = _unstable(after, after_again, demand, noise)
        if unstable:
            verdict, reason = WRONG, f"the fixed program differs from itself: {unstable}"
    skipped = sorted({*before.skipped, *after.skipped})
    if skipped and verdict in (SAME, WITHIN):
        reason += f"; not compared: {_some(skipped)}"
    worst = max(found.judged, key=lambda judgement: judgement.over, default=None)
    return {
        "class": demand.name,
        "verdict": verdict,
        "reason": reason,
        "tensors": len(found.judged),
        "bit_equal": sum(judgement.distance.equal for judgement in found.judged),
        "worst_over_tolerance": worst.over if worst and math.isfinite(worst.over) else None if worst else 0.0,
        "worst_tensor": worst.path if worst and worst.over else None,
        "aa_bit_equal": None if again is None else _bit_equal(before, again),
        "rng_stream": "same" if found.same_stream else "differs",
        "aliased": found.aliased,
        "stdout": found.printed,
        "requires_grad": changed_gradients(before, after),
        "degenerate": {judgement.path: judgement.degenerate for judgement in found.judged if judgement.degenerate},
        "skipped": skipped,
    }


def can_fail(
    before: Capture,
    other_seed: Capture,
    scaled: Capture,
    numerics_class: str,
    **declared: Any,  # typed by `blind_to`
) -> bool:
    """Whether the comparison finds both another seed and parameters off by one per cent wrong."""
    return not blind_to(before, other_seed, scaled, numerics_class, **declared)


def blind_to(
    before: Capture,
    other_seed: Capture | None,
    scaled: Capture | None,
    numerics_class: str,
    *,
    again: Capture | None = None,
    free: Sequence[str] = (),
) -> list[str]:
    """What the comparison of values does not see, of `another seed` and `parameters off by 1 %`; None: not run.

    That the random streams differ is not asked, since under another seed they always do. Another seed is no difference
    by the definition of class `rng`, whose runs are compared as `close` here.
    """
    demand = Demand("close" if numerics_class == "rng" else numerics_class, (), tuple(free))
    slack = (
        _slack(before, again, before, None)
        if numerics_class == "nondeterministic"
        else noises.slack(_noise(demand, (before, again)))
    )
    controls = {"another seed": other_seed, "parameters off by 1 %": scaled}
    looks = {what: _look(before, run, demand, slack) for what, run in controls.items() if run is not None}
    return [what for what, found in looks.items() if not found.wrong and not found.others]


def main(config: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the captures whose files `config` names; with a control given, say if the comparison could fail.

    Keys: `class`, `before`, `after`; where they exist `again`, `after_again`, `noisy` (pairs of files), `fp64` (two
    files) with `nudged` (files), `dropped`, `free`, `shape_slices`, and the controls `other_seed` and `scaled`. Adds
    `blind_to`, and
    `independent`: the values that another seed leaves as they are.
    """
    before, after = Capture.load(config["before"]), Capture.load(config["after"])
    declared: dict[str, Any] = {key: config[key] for key in ("dropped", "free", "shape_slices") if config.get(key)}
    runs: dict[str, Any] = {key: Capture.load(config[key]) for key in ("again", "after_again") if config.get(key)}
    if config.get("noisy"):
        runs["noisy"] = [(Capture.load(first), Capture.load(second)) for first, second in config["noisy"]]
    if config.get("fp64"):
        first, second = config["fp64"]
        runs["fp64"] = (Capture.load(first), Capture.load(second))
        runs["nudged"] = [Capture.load(file) for file in config.get("nudged") or ()]
    result = compare(before, after, config["class"], **declared, **runs)
    other_seed, scaled = (Capture.load(config[key]) if config.get(key) else None for key in ("other_seed", "scaled"))
    if other_seed or scaled:
        result["blind_to"] = blind_to(
            before, other_seed, scaled, config["class"], again=runs.get("again"), free=config.get("free") or ()
        )
        if other_seed:
            result["independent"] = sorted(path for path in before.values if _equal_at(path, before, other_seed))
        if result["blind_to"] and result["verdict"] in (SAME, WITHIN):
            result["verdict"] = NOT_CHECKED
            result["reason"] = f"the comparison cannot fail: it does not see {' or '.join(result['blind_to'])}"
    return result


@dataclass(slots=True)
class _Findings:
    """`wrong` are complaints about values, `others` about everything else.

    `excused` of the values differ by rounding alone, which the worst of both programs is off by so many tolerances
    (`rounding`); `more_than_rounding` is why that cannot be said of them.
    """

    judged: list[Judgement] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    aliased: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    missing: int = 0
    padded: int = 0
    texts: int = 0
    same_stream: bool = True
    excused: set[str] = field(default_factory=set)
    rounding: tuple[float, float] = (0.0, 0.0)
    more_than_rounding: str = ""
    noise: Mapping[str, Floor] = field(default_factory=dict)


def _look(
    before: Capture,
    after: Capture,
    demand: Demand,
    slack: Mapping[str, float],
    fp64: tuple[Capture, Capture] | None = None,
    nudged: Sequence[Capture] = (),
) -> _Findings:
    """What the values say."""
    found = _Findings(others=list(structural_differences(before, after, demand)))
    found.missing = len(before.facts.keys() ^ after.facts.keys())
    found.texts = len(before.texts)
    for path, expected in before.values.items():
        actual, fact = after.values.get(path), before.facts[path]
        if actual is None:
            continue
        comparable = (
            fact.kind == after.facts[path].kind
            and demand.judges(path, fact)
            and demand.allows_type(expected.dtype, actual.dtype)
            and demand.allows_shape(path, expected.shape, actual.shape)
        )
        if not comparable:
            continue
        found.padded += expected.shape != actual.shape
        judgement = judge(path, fact, expected, actual, demand, slack=slack.get(path, 0.0))
        found.judged.append(judgement)
    if fp64 is not None and demand.name in _ROUNDED and any(each.complaint or each.hidden for each in found.judged):
        _excuse(found, before, after, fp64, nudged)
    found.wrong = [judgement.complaint for judgement in found.judged if judgement.complaint]
    return found


def _excuse(
    found: _Findings, before: Capture, after: Capture, fp64: tuple[Capture, Capture], nudged: Sequence[Capture]
) -> None:
    """Take back what is complained of floating numbers if it is rounding by the runs in float64."""
    rounding = Rounding()
    if any(
        _steps_that_differ(run, exact) or len(run.rng) != len(exact.rng)
        for run, exact in zip((before, after), fp64, strict=True)
    ):
        rounding.complaint = "in float64 other random numbers are drawn"
    for path in [judgement.path for judgement in found.judged if not rounding.complaint]:
        expected, actual = before.values[path], after.values[path]
        if not noises.is_inexact(expected):
            continue
        if not all(path in run.values for run in fp64):
            rounding.complaint = f"{path}: in float64 there is none"
            break
        values = (expected, actual, fp64[0].values[path], fp64[1].values[path])
        others = tuple(run.values[path] for run in nudged if path in run.values)
        rounding.add(path, Four(before.facts[path].kind, *values, nudged=others))
    rounding.done()
    if rounding.complaint:
        found.more_than_rounding = rounding.complaint
        return
    found.rounding = (rounding.old, rounding.new)
    for index, each in enumerate(found.judged):
        hidden = each.hidden and each.distance.size >= MANY
        if (each.complaint or hidden) and noises.is_inexact(before.values[each.path]):
            found.excused.add(each.path)
            found.judged[index] = Judgement(each.path, each.distance, 1.0, degenerate=each.degenerate)


def _look_around(found: _Findings, before: Capture, after: Capture, demand: Demand, again: Capture | None) -> None:
    """What the streams, the memory and the printed lines say."""
    steps = _steps_that_differ(before, after)
    found.same_stream = not steps and len(before.rng) == len(after.rng)
    if len(before.rng) != len(after.rng):
        found.others.append(f"{len(after.rng)} steps were run, {len(before.rng)} before")
    repeatable = again is None or again.rng == before.rng
    if steps and repeatable and demand.keeps_the_stream():
        found.others.append(f"other random numbers are drawn: the streams differ after step {steps[0]}")
    found.aliased = sharing_differences(before, after, demand)
    if demand.keeps_memory_apart():
        found.others += found.aliased
    if before.stdout is None or after.stdout is None:
        return
    # A program that prints other numbers each time, such as how long it took, says nothing by them.
    repeated = again is None or again.stdout in (None, before.stdout)
    tolerance = {"exact": 0.0, "stdout": 0.0, "close": _PRINTED}.get(demand.name) if repeated else None
    found.printed = printed_differences(before.stdout, after.stdout, tolerance=tolerance)
    if found.printed and demand.name != "stdout":
        found.others.append(f"other lines are printed: {found.printed[0]!r:.80}")


def _steps_that_differ(before: Capture, after: Capture) -> list[int]:
    """The steps after which the random streams are at other places."""
    pairs = enumerate(zip(before.rng, after.rng, strict=False))
    # A stream that only one of them has loaded is numpy's, or that of a device which nothing was drawn on.
    return [step for step, (old, new) in pairs if any(old[name] != new[name] for name in old.keys() & new.keys())]


def _decide(found: _Findings) -> tuple[str, str]:
    complaints = found.others + found.wrong
    if complaints:
        return WRONG, _some(complaints) + (f"; {found.more_than_rounding}" if found.more_than_rounding else "")
    if not found.judged and not found.texts:
        return NOT_CHECKED, "the program returns nothing that can be compared"
    hidden = [judgement.path for judgement in found.judged if judgement.hidden]
    if hidden:
        return NOT_CHECKED, f"the values are too small for the tolerance to see an error of 1 %: {_some(hidden)}"
    numbers = [judgement for judgement in found.judged if judgement.distance.size]
    if numbers and not any(judgement.distance.finite for judgement in numbers):
        return NOT_CHECKED, "no value is finite"
    count, equal = len(found.judged), sum(judgement.distance.equal for judgement in found.judged)
    aside = [*found.aliased, *([f"{len(found.printed)} printed lines differ"] if found.printed else [])]
    if found.missing:
        aside.append("entries of the state are dropped or new, as declared")
    if found.padded:
        aside.append(f"{found.padded} tensors are padded, as declared")
    if not found.same_stream:
        aside.append("later random numbers differ")
    if found.noise:
        floor = max(found.noise.values(), key=lambda floor: floor.largest)
        aside.append(
            f"the slow program differs from itself in {len(found.noise)} values, by at most {floor.largest:.2g}, "
            f"{noises.TIMES} times which is allowed"
        )
    behind = f"; {_some(aside)}" if aside else ""
    if not count:
        return (WITHIN if aside else SAME), f"the texts are equal{behind}"
    if equal == count:
        return (WITHIN if aside else SAME), f"all {count} values are bit-equal{behind}"
    if found.excused:
        old, new = found.rounding
        return WITHIN, (
            f"{count} values agree in float64; {len(found.excused)} of them differ by rounding that grows: "
            f"the fixed program is {new:.3g} times the tolerance from float64, the slow one {old:.3g}{behind}"
        )
    worst = max(found.judged, key=lambda judgement: judgement.over)
    return WITHIN, f"{count} values agree, {equal} bit-equal, the worst at {worst.over:.2g} of what is allowed{behind}"


def _compare_distributions(found: _Findings, before: Capture, after: Capture) -> tuple[str, str]:
    """The decision where other random numbers were drawn; the values of one name are taken over all steps."""
    pools: defaultdict[str, list[tuple[torch.Tensor, torch.Tensor]]] = defaultdict(list)
    for judgement in found.judged:
        if not judgement.distance.equal:
            path = judgement.path
            pools[_STEP.sub("step*", path)].append((before.values[path], after.values[path]))
    complaints, few = distribution.differences(pools)
    if complaints:
        return WRONG, _some(complaints)
    if few:
        return NOT_CHECKED, f"too few values to compare distributions: {_some(few)}"
    return WITHIN, "other random numbers of the same distribution"


def _slack(before: Capture, again: Capture | None, after: Capture, after_again: Capture | None) -> dict[str, float]:
    """Three times the most that a run differs from its repetition, for each value."""
    slack: defaultdict[str, float] = defaultdict(float)
    for run, repetition in ((before, again), (after, after_again)):
        for path, tensor in run.values.items():
            other = repetition and repetition.values.get(path)
            if isinstance(other, torch.Tensor) and other.shape == tensor.shape:
                slack[path] = max(slack[path], 3 * measure(tensor, other, _ANY).largest)
    return slack


def _noise(demand: Demand, slow: _Repeated, *fixed: _Repeated, noisy: Sequence[_Repeated] = ()) -> dict[str, Floor]:
    """What the slow program differs from itself by, and the fixed one if that one does, by the value.

    A program that repeats itself bit for bit has no noise, and a fix may bring none.
    """
    if demand.name in ("rng", "nondeterministic", "lower-precision"):
        return {}
    free = frozenset(path for path in slow[0].values if matches(path, demand.free))
    own = noises.floors(slow, free=free)
    if own:
        return noises.floors(slow, *fixed, free=free)
    if not noisy or not noises.floors(noisy[0], free=free):
        return {}
    worst: dict[str, Floor] = {}
    for path, floor in noises.floors(*noisy, free=free).items():
        name = _STEP.sub("", path)
        if name not in worst or worst[name].largest < floor.largest:
            worst[name] = floor
    return {path: worst[_STEP.sub("", path)] for path in slow[0].values if _STEP.sub("", path) in worst}


def _beyond(found: _Findings, before: Capture, *, exact: bool) -> list[str]:
    """Complaints of tensors that differ by more than noise on the whole, though in no element."""
    complaints = []
    for each in found.judged:
        floor, apart = found.noise.get(each.path), each.distance
        if floor is None or each.complaint or each.path in found.excused or apart.size < MANY:
            continue
        allowed = tolerance(before.values[each.path].dtype, before.facts[each.path].kind)
        most = noises.TIMES * floor.typical + (0 if exact else allowed.absolute + allowed.relative * apart.scale)
        if apart.difference > most:
            complaints.append(
                f"{each.path}: differs by {apart.difference:.2g} on the whole, and from itself by {floor.typical:.2g}"
            )
    return complaints


def _unstable(run: Capture, repetition: Capture | None, demand: Demand, noise: Mapping[str, Floor]) -> str:
    """How a program differs from itself by more than its class allows and noise is."""
    if repetition is None or demand.name in ("rng", "nondeterministic"):
        return ""
    own = Demand(demand.name, (), demand.free) if demand.name != "shape" else Demand("close", (), demand.free)
    found = _look(run, repetition, own, noises.slack(noise))
    differs = any(judgement.distance.count and judgement.path in noise for judgement in found.judged)
    return _some(
        found.others + found.wrong + [floor.complaint for floor in noise.values() if differs and floor.complaint]
    )


def _bit_equal(run: Capture, repetition: Capture) -> bool:
    same = run.values.keys() == repetition.values.keys() and run.texts == repetition.texts
    return same and all(_equal_at(path, run, repetition) for path in run.values)


def _equal_at(path: str, first: Capture, second: Capture) -> bool:
    one, two = first.values[path], second.values.get(path)
    return two is not None and one.shape == two.shape and measure(one, two, _ANY).equal


def _some(lines: Sequence[str]) -> str:
    """The first three."""
    return "; ".join(lines[:3]) + (f"; and {len(lines) - 3} more" if len(lines) > 3 else "")
