"""Measures the pairs of rules, size by size, and writes what was measured beside them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from torchlint import evidence
from torchlint.registry import UnknownRuleError, all_rules, find
from torchlint.rule import Rule
from torchlint.verify import claims, pairs, schedule
from torchlint.verify.arms import ON_CPU
from torchlint.verify.journal import Journal
from torchlint.verify.looked import Looked, minor
from torchlint.verify.machine import Clerk, Machine, UsageError
from torchlint.verify.workload import Workload, workload

NOTHING_TO_MEASURE = frozenset({"unused-ignore"})
AGAINST = frozenset({"wrong-result", "error", "suspicious", "timeout", "oom"})
"""The verdicts that speak against a fix."""

_ENDS = AGAINST | {"cannot-run", "not-exercised"}  # after which nothing is timed
_FIRST = ("TL3", "TL2", "TL4", "TL1")
"""Whose figures are worth most: waits, copies, gradients, loaders; the others follow."""
_OF_OTHERS = frozenset({"oom", "timeout"})
"""The verdicts that what runs beside a pair may be the reason of."""
_ESTIMATES = {
    "cuda": {"numerics": 20.0, "counts": 18.0, "time": 55.0},
    "cpu": {"numerics": 16.0, "time": 50.0},
    "sim": {"numerics": 16.0, "counts": 12.0},
}
"""Seconds of a phase, by device, where none was measured there yet: a guess for a GPU, else as two busy cores took."""


@dataclass(frozen=True, slots=True)
class Selected:
    """Pairs with the sizes to measure, in the order of their worth, and the folder that evidence goes to, if any.

    `goes_on`: what an earlier run has found of a pair, and could not time any more, is taken over.
    """

    pieces: tuple[schedule.Piece, ...]
    folder: Path | None
    goes_on: bool = False


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


def stale(chosen: Selected, device: str, machine: Machine, phases: Sequence[str] = pairs.PHASES) -> Selected:
    """Those without evidence of this device that holds of the pair as it is, by this version of torch or a newer one.

    The third number of a version does not count. What was never timed lacks that alone, where `phases` have it. Raises
    `UsageError` where there is no folder of evidence, or a file in it is damaged.
    """
    if chosen.folder is None:
        raise UsageError("`--stale` looks at what was written before: say where, with `--evidence FOLDER`")
    lacking = [
        (each, size)
        for each, size in chosen.pieces
        if not any(
            _holds_of(found, each, size, machine.torch) and _has(found, phases)
            for found in _written(chosen.folder, each.rule, machine.device_name(device)).measurements
        )
    ]
    journal = Journal.of(chosen.folder, machine.device_name(device))
    if "time" not in phases:
        lacking = [piece for piece in lacking if not _is_looked_at(journal.looked(*piece, machine.torch), phases)]
    # What could not be measured in the slice before would eat this one too: it comes last.
    pieces = tuple(sorted(lacking, key=lambda piece: journal.is_broken(*piece)))
    return replace(chosen, pieces=pieces, goes_on=True)


def _is_looked_at(looked: Looked | None, phases: Sequence[str]) -> bool:
    return looked is not None and (looked.counted or "counts" not in phases)


def measure(chosen: Selected, order: pairs.Order, clerk: Clerk, machine: Machine, listener: Listener) -> Outcome:
    """Measure one after the other those that are likely to end in time, and write each at once.

    One that took longer when it was last measured than there is time left is passed over, and others are measured. Of
    one that never was, the longest of the last three says how long it may take. A measurement that the end of the time
    cut short is not written, but for the first: it had all the time there is. What an earlier run, or phase, has found
    of a pair before its time is taken over where `chosen` says so; where it is to be timed alone, one of which nothing
    was found is left. Raises `UsageError` where a file of evidence is damaged.
    """
    pieces, unready = ready(chosen, order, machine)
    crew = _Alone(order, clerk, machine, listener, looked(chosen, order, machine))
    outcome = _done(pieces, crew, chosen, order, machine, listener)
    if unready:
        listener.warn(
            f"{len(unready)} of {len(chosen.pieces)} sizes cannot be timed yet: what they compute was not compared; "
            "`--phase numerics,counts` does that"
        )
    return outcome


def ready(chosen: Selected, order: pairs.Order, machine: Machine) -> tuple[list[schedule.Piece], list[schedule.Piece]]:
    """The pieces that can be measured, and those that cannot be timed yet, since nothing was compared."""
    if set(order.phases) != {"time"}:
        return [*chosen.pieces], []
    known = looked(chosen, order, machine)
    found = [piece for piece in chosen.pieces if known(piece) is not None]
    return found, [piece for piece in chosen.pieces if known(piece) is None]


def looked(chosen: Selected, order: pairs.Order, machine: Machine) -> Callable[[schedule.Piece], Looked | None]:
    """What an earlier run has found of a piece, where it is to be taken over."""
    journal = Journal.of(chosen.folder, machine.device_name(order.device))
    goes_on = chosen.goes_on or set(order.phases) == {"time"}
    return lambda piece: journal.looked(*piece, machine.torch) if goes_on else None


def look(
    chosen: Selected,
    order: pairs.Order,
    crew: schedule.Crew[pairs.Measured],
    clerk: Clerk,
    machine: Machine,
    listener: Listener,
) -> Outcome:
    """Compare and count, several at once, which is evidence, and keep what was found beside it for what times them.

    What fails for want of memory or time, which another beside it may have taken, is looked at again, alone. Raises
    `UsageError` where a file of evidence is damaged.
    """
    crowded: list[schedule.Piece] = []
    outcome = _done(chosen.pieces, crew, chosen, order, machine, listener, crowded)
    if crowded:
        alone = replace(order, at_once=1)
        again = _done(
            crowded, _Alone(alone, clerk, machine, listener, lambda _: None), chosen, alone, machine, listener
        )
        outcome = Outcome(outcome.good and again.good, outcome.written and again.written, outcome.left + again.left)
    return outcome


def expected(chosen: Selected, order: pairs.Order, machine: Machine) -> Callable[[schedule.Piece], tuple[float, bool]]:
    """How many seconds a piece will take, and whether that is remembered of this device.

    Of one that was never measured it is the median of those that were, or else a guess.
    """
    journal = Journal.of(chosen.folder, machine.device_name(order.device))
    estimate = _estimate(journal, order.phases, _ESTIMATES.get(order.device, _ESTIMATES["cuda"]))

    def seconds(piece: schedule.Piece) -> tuple[float, bool]:
        known = journal.seconds(*piece, order.phases)
        return (estimate, False) if known is None else (known, True)

    return seconds


def _estimate(journal: Journal, phases: Sequence[str], guessed: Mapping[str, float]) -> float:
    """What these phases take at the median of all sizes; where they were never done at once, what each does."""
    if known := journal.all_seconds(phases):
        return median(known)
    parts = [[phase for phase in phases if (phase == "time") is timed] for timed in (False, True)]
    if all(parts):
        return sum(_estimate(journal, part, guessed) for part in parts)
    return sum(guessed.get(phase, 0.0) for phase in phases)


def _done(
    pieces: Sequence[schedule.Piece],
    crew: schedule.Crew[pairs.Measured],
    chosen: Selected,
    order: pairs.Order,
    machine: Machine,
    listener: Listener,
    crowded: list[schedule.Piece] | None = None,
) -> Outcome:
    outcome = Outcome()
    journal = Journal.of(chosen.folder, machine.device_name(order.device))
    work = schedule.Scheduled(crew, lambda piece: journal.seconds(*piece, order.phases), order.limits.deadline)
    cut = 0
    with contextlib.closing(work.run(pieces)) as running:
        for index, (piece, seconds, measured) in enumerate(running):
            each, size = piece
            if crowded is not None and _is_crowded(measured):
                crowded.append(piece)
                continue
            unfinished = measured.cut or measured.late
            journal.note(each, size, None if unfinished else seconds, broken=measured.broken, phases=order.phases)
            if not measured.late:
                journal.keep(each, size, measured.looked)
            listener.show(measured)
            if measured.measurement.verdict.overall in AGAINST:
                outcome = replace(outcome, good=False)
            if measured.late or (measured.cut and index):
                cut += 1
                work.stop()
                continue
            for problem in _write(chosen.folder, each, measured) if chosen.folder else ():
                listener.warn(f"{each.rule.name}, {size}: not written: {problem}")
                outcome = replace(outcome, written=False)
    return replace(outcome, left=len(work.left) + cut)


def _is_crowded(measured: pairs.Measured) -> bool:
    """Whether something failed that might not have alone: a process, or the comparison."""
    numerics = measured.measurement.numerics
    uncompared = numerics is not None and numerics.verdict == "not-checked" and not measured.late
    return measured.broken or uncompared or measured.measurement.verdict.overall in _OF_OTHERS


class _Alone:
    """A crew of this process alone, that measures a pair while it is waited for."""

    at_once = 1

    def __init__(
        self,
        order: pairs.Order,
        clerk: Clerk,
        machine: Machine,
        listener: Listener,
        known: Callable[[schedule.Piece], Looked | None],
    ) -> None:
        self._order, self._clerk, self._machine, self._listener = order, clerk, machine, listener
        self._known = known
        self._begun: list[schedule.Piece] = []

    def now(self) -> float:
        return time.monotonic()

    def begin(self, piece: schedule.Piece) -> None:
        self._begun.append(piece)

    def ended(self) -> tuple[schedule.Piece, pairs.Measured]:
        each, size = piece = self._begun.pop()
        note = partial(_noted, self._listener.note, each.rule, size)
        return piece, pairs.measure(each, size, self._order, self._clerk, self._machine, note, self._known(piece))


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
    return tuple(size for size in each.sizes if size != "smoke") if device not in ON_CPU else ("smoke",)


def _holds_of(found: evidence.Measurement, each: Workload, size: str, torch: str) -> bool:
    return (
        found.subject.size == size
        and not evidence.is_stale(found, each.digests)
        and minor(found.software.torch) >= minor(torch)
    )


def _has(found: evidence.Measurement, phases: Sequence[str]) -> bool:
    """Whether these phases would find no more."""
    if found.device.type == "sim" or found.protocol is not None or found.verdict.overall in _ENDS:
        return True
    return "time" not in phases and ("counts" not in phases or found.counts is not None)


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
    if not _has(fresh, pairs.PHASES) and any(
        found.protocol and _holds_of(found, each, fresh.subject.size, fresh.software.torch) for found in kept
    ):
        return ()  # it says less
    path = _path(folder, each.rule, device)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(evidence.write(evidence.merge(_evidence(each.rule, device, *kept), (fresh,))))
    temporary.replace(path)
    return ()
