"""Measures the pairs of rules, size by size, and writes what was measured beside them."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from torchlint import evidence
from torchlint.registry import UnknownRuleError, all_rules, find
from torchlint.verify import claims, pairs
from torchlint.verify.journal import Journal
from torchlint.verify.machine import UsageError
from torchlint.verify.workload import Workload, workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torchlint.rule import Rule
    from torchlint.verify.machine import Clerk, Machine

NOTHING_TO_MEASURE = frozenset({"unused-ignore"})
AGAINST = frozenset({"wrong-result", "error", "suspicious", "timeout", "oom"})
"""The verdicts that speak against a fix."""

_FIRST = ("TL3", "TL2", "TL4", "TL1")
"""Whose figures are worth most: waits, copies, gradients, loaders; the others follow."""
_LAST = 3


@dataclass(frozen=True, slots=True)
class Selected:
    """Pairs with the sizes to measure, in the order of their worth, and the folder that evidence goes to, if any."""

    pieces: tuple[tuple[Workload, str], ...]
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears what: `note` what is being done, `show` what was measured, `warn` what was not written, and why."""

    note: Callable[[str], None]
    show: Callable[[pairs.Measured], None]
    warn: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether nothing spoke against a fix, whether all could be written, and how many sizes there was no time for."""

    good: bool = True
    written: bool = True
    left: int = 0


def selected(names: Sequence[str], sizes: Sequence[str], device: str, folder: Path | None) -> Selected:
    """The pairs of the rules of these names or codes, or of `ALL`. Raises `UsageError`."""
    found = [workload(rule) for rule in sorted(_named(names), key=_rank)]
    pieces = [(each, size) for each in found for size in _sizes(each, sizes, device)]
    # Where the fixes should pay comes before where they do not: Python's sort leaves the order of the rules.
    return Selected(tuple(sorted(pieces, key=lambda piece: piece[1].startswith("nohelp"))), folder)


def stale(chosen: Selected, device: str, machine: Machine) -> Selected:
    """Those without evidence of this device that holds of the pair as it is, by this version of torch or a newer one.

    The third number of a version does not count. Raises `UsageError` where there is no folder of evidence, or a
    file in it is damaged.
    """
    if chosen.folder is None:
        raise UsageError("`--stale` looks at what was written before: say where, with `--evidence FOLDER`")
    lacking = [
        (each, size)
        for each, size in chosen.pieces
        if not _is_known(_written(chosen.folder, each.rule, machine.device_name(device)), each, size, machine.torch)
    ]
    journal = Journal.of(chosen.folder, machine.device_name(device))
    # What could not be measured in the slice before would eat this one too: it comes last.
    return replace(chosen, pieces=tuple(sorted(lacking, key=lambda piece: journal.is_broken(*piece))))


def measure(chosen: Selected, order: pairs.Order, clerk: Clerk, machine: Machine, listener: Listener) -> Outcome:
    """Measure one after the other those that are likely to end in time, and write each at once.

    One that took longer when it was last measured than there is time left is passed over, and others are measured. Of
    one that never was, the longest of the last three says how long it may take. A measurement that the end of the time
    cut short is not written, but for the first: it had all the time there is. Raises `UsageError` where a file of
    evidence is damaged.
    """
    outcome = Outcome()
    took: list[float] = []
    journal = Journal.of(chosen.folder, machine.device_name(order.device))
    passed = 0
    for index, (each, size) in enumerate(chosen.pieces):
        begin = time.monotonic()
        left = passed + len(chosen.pieces) - index
        known = journal.seconds(each, size)
        if begin + (max(took[-_LAST:], default=0.0) if known is None else known) > order.limits.deadline:
            if known is None or begin > order.limits.deadline:
                return replace(outcome, left=left)
            passed += 1
            continue
        measured = pairs.measure(each, size, order, clerk, machine, partial(_noted, listener.note, each.rule, size))
        took.append(time.monotonic() - begin)
        journal.note(each, size, None if measured.cut else took[-1], broken=measured.broken)
        listener.show(measured)
        if measured.measurement.verdict.overall in AGAINST:
            outcome = replace(outcome, good=False)
        if measured.late or (measured.cut and index):
            return replace(outcome, left=left)
        for problem in _write(chosen.folder, each, measured) if chosen.folder else ():
            listener.warn(f"{each.rule.name}, {size}: not written: {problem}")
            outcome = replace(outcome, written=False)
    return replace(outcome, left=passed)


def _noted(note: Callable[[str], None], rule: Rule, size: str, text: str) -> None:
    note(f"{rule.code} {rule.name}, {size}: {text}")


def _named(names: Sequence[str]) -> tuple[Rule, ...]:
    if any(name.upper() == "ALL" for name in names):
        return tuple(
            rule for rule in all_rules() if rule.name not in NOTHING_TO_MEASURE and evidence.is_measurable(rule)
        )
    try:
        found = tuple(dict.fromkeys(find(name) for name in names))
    except UnknownRuleError as error:
        raise UsageError(str(error)) from None
    for rule in found:
        if rule.name in NOTHING_TO_MEASURE:
            raise UsageError(f"{rule.name} makes nothing faster: there is nothing to measure")
        if not evidence.is_measurable(rule):
            raise UsageError(
                f"{rule.name} has no pair of files: only the rules that come with torchlint have one; "
                "`torchlint verify PATH` measures its fixes in a program"
            )
    return found


def _rank(rule: Rule) -> tuple[int, str]:
    family = rule.code[:3]
    return (_FIRST.index(family) if family in _FIRST else len(_FIRST), rule.code)


def _sizes(each: Workload, asked: Sequence[str], device: str) -> tuple[str, ...]:
    """The sizes asked for, or what suits the device: the small one where it is not a GPU."""
    if "all" in asked:
        return tuple(each.sizes)
    for size in asked:
        if size not in each.sizes:
            raise UsageError(f"{each.rule.name} has no size `{size}`; it has {', '.join(each.sizes)}")
    if asked:
        return tuple(dict.fromkeys(asked))
    return tuple(size for size in each.sizes if size != "smoke") if device == "cuda" else ("smoke",)


def _is_known(written: evidence.Evidence, each: Workload, size: str, torch: str) -> bool:
    return any(
        found.subject.size == size
        and not evidence.is_stale(found, each.digests)
        and _minor(found.software.torch) >= _minor(torch)
        for found in written.measurements
    )


def _minor(version: str) -> tuple[int, ...]:
    """`2.13.0+cpu` is (2, 13)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _path(folder: Path, rule: Rule, device: str) -> Path:
    return folder / rule.module / evidence.FOLDER / f"{evidence.slug(device)}.json"


def _written(folder: Path, rule: Rule, device: str) -> evidence.Evidence:
    """What was written of a rule on the device of that name. Raises `UsageError` where it is damaged."""
    path = _path(folder, rule, device)
    try:
        return evidence.read(path.read_bytes(), str(path)) if path.exists() else _evidence(rule, device)
    except evidence.EvidenceError as error:
        raise UsageError(str(error)) from None


def _evidence(rule: Rule, device: str, *measurements: evidence.Measurement) -> evidence.Evidence:
    return evidence.Evidence(
        schema="torchlint.evidence/1", rule=rule.name, device=evidence.slug(device), measurements=measurements
    )


def _write(folder: Path, each: Workload, measured: pairs.Measured) -> tuple[str, ...]:
    """Merge a measurement into the rule's file below `folder`; if it may not be committed, why not, and nothing else.

    What the file holds of an earlier pair goes: it is true of nothing any more.
    """
    fresh = measured.measurement
    if measured.broken:  # which says nothing of the pair
        return (fresh.verdict.reason,)
    device = fresh.device.name
    problems = claims.problems(_evidence(each.rule, device, fresh), evidence.slug(device), each.digests)
    if problems:
        return problems
    there = _written(folder, each.rule, device).measurements
    kept = [found for found in there if not evidence.is_stale(found, each.digests)]
    path = _path(folder, each.rule, device)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(evidence.write(evidence.merge(_evidence(each.rule, device, *kept), (fresh,))))
    temporary.replace(path)
    return ()
