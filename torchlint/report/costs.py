"""What the findings cost each step of a loop: the events of a step, by rule, and the sheet that adds them up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from torchlint.finding import Doubt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchlint.report.measured import Cost, Profile
    from torchlint.rule import Rule


class Event(Enum):
    """An operation that costs, the worst first; the value is how a machine knows it."""

    WAIT = "wait"
    COPY = "copy"
    LOAD = "load"
    LAUNCH = "launch"
    ALLOCATE = "allocate"
    COMMUNICATE = "communicate"
    COMPUTE = "compute"
    OTHER = "other"

    def words(self, count: int) -> str:
        """So many of it: `1 copy`, `2 copies`."""
        one, many = _WORDS[self]
        return f"{count} {one if count == 1 else many}"


_WORDS = {
    Event.WAIT: ("synchronization", "synchronizations"),
    Event.COPY: ("copy", "copies"),
    Event.LOAD: ("blocking load", "blocking loads"),
    Event.LAUNCH: ("series of launches one by one", "series of launches one by one"),
    Event.ALLOCATE: ("allocation", "allocations"),
    Event.COMMUNICATE: ("collective", "collectives"),
    Event.COMPUTE: ("needless computation", "needless computations"),
    Event.OTHER: ("delay on the CPU", "delays on the CPU"),
}
_OF_GROUP = {
    "sync": Event.WAIT,
    "transfer": Event.COPY,
    "data": Event.LOAD,
    "vectorise": Event.LAUNCH,
    "optimizer": Event.LAUNCH,
    "modules": Event.LAUNCH,
    "autograd": Event.ALLOCATE,
    "precision": Event.COMPUTE,
    "distributed": Event.COMMUNICATE,
}
# Rules that are about another event than most of their group.
_OF_RULE = {
    "gc-collect-in-loop": Event.OTHER,
    "bulk-d2h-in-hot-loop": Event.COPY,
    "legacy-type-cast": Event.COPY,
    "leafness-lost-by-move": Event.OTHER,
    "load-without-map-location": Event.OTHER,
    "cast-after-creation": Event.ALLOCATE,
    "tensor-from-list-of-arrays": Event.OTHER,
    "array-from-list-of-tensors": Event.WAIT,
    "dataloader-not-pinned": Event.COPY,
    "float-preprocess-on-cpu": Event.COPY,
    "item-comprehension": Event.WAIT,
    "cat-grow-in-loop": Event.ALLOCATE,
    "numpy-growth-in-loop": Event.ALLOCATE,
    "broadcast-pairwise-distance": Event.ALLOCATE,
    "joined-pieces": Event.ALLOCATE,
    "repeat-before-broadcast": Event.ALLOCATE,
    "inverse-then-matmul": Event.COMPUTE,
    "diag-of-matmul": Event.COMPUTE,
    "elementwise-fill": Event.COMPUTE,
    "scaling-by-matmul": Event.COMPUTE,
    "sort-for-topk": Event.COMPUTE,
    "gradscaler-step-syncs": Event.WAIT,
    "bias-before-batchnorm": Event.COMPUTE,
    "module-built-in-forward": Event.ALLOCATE,
    "mha-weights-discarded": Event.ALLOCATE,
    "naive-attention": Event.ALLOCATE,
    "mask-rebuilt-per-call": Event.ALLOCATE,
    "one-hot-matmul": Event.COMPUTE,
    "tensor-attribute-not-buffer": Event.COPY,
    "generator-graph-in-discriminator-step": Event.COMPUTE,
    "mode-toggle-per-batch": Event.OTHER,
    "reentrant-checkpoint": Event.COMPUTE,
    "requires-grad-typo": Event.COMPUTE,
    "no-grad-around-inference": Event.OTHER,
    "stabiliser-with-gradient": Event.COMPUTE,
    "anomaly-detection-on": Event.OTHER,
    "debug-env-in-code": Event.WAIT,
    "graph-break-in-compiled": Event.LAUNCH,
    "hf-slow-defaults": Event.OTHER,
    "data-parallel": Event.COPY,
}
# What the program does with the value stays, whatever is done about the finding.
_STAYS = frozenset({Doubt.VALUE_DECIDES, Doubt.HOST_NEEDS_IT, Doubt.WAITS_ANYWAY, Doubt.WAITS_TOO, Doubt.MEANT})


def event_of(rule: Rule) -> Event:
    """What a rule's findings cost, first of all."""
    return _OF_RULE.get(rule.name) or _OF_GROUP.get(rule.group, Event.OTHER)


@dataclass(frozen=True, slots=True)
class Item:
    """What one finding costs a step: where, how often, and what to do.

    `times` is how often in a step, None for once per element or layer, or where it is not known. `doubts` say why it
    may not be worth acting on.
    """

    event: Event
    path: str
    row: int
    code: str
    finding: str
    message: str
    help: str
    often: str
    times: int | None
    doubts: tuple[Doubt, ...] = ()
    measured: Cost | None = None

    @property
    def stays(self) -> bool:
        """Whether the program needs it, as far as is known."""
        return not _STAYS.isdisjoint(self.doubts)

    @property
    def doubtful(self) -> str:
        """Its doubts in words."""
        return "; ".join(doubt.sentence for doubt in self.doubts)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over batches: where, its head, in which function, whether it trains, and what a step of it costs."""

    path: str
    row: int
    head: str
    function: str
    trains: bool
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """All loops of the files, the worst first, and what stands in none that is in sight.

    `errors` are files that could not be read, one line each. `alone` says that no file was asked that was not named:
    what functions of others do, and how often they call, is not known then.
    """

    command: str
    loops: tuple[Loop, ...]
    others: tuple[Item, ...]
    files: int
    errors: tuple[str, ...] = ()
    profile: Profile | None = None
    alone: bool = False


_EVENTS = tuple(Event)


def worst_first(items: Iterable[Item]) -> tuple[Item, ...]:
    """What was measured most, then what is certain, then what happens for each element, then by event."""
    return tuple(
        sorted(
            items,
            key=lambda item: (
                -item.measured.total if item.measured is not None else 0.0,
                bool(item.doubts),
                item.times is not None,
                _EVENTS.index(item.event),
                item.path,
                item.row,
                item.finding,
            ),
        )
    )


def weight(loop: Loop) -> tuple[float, int, int, int, str, int]:
    """The order of loops: what was measured most, those that train, then by what is certain and by what there is."""
    measured = sum(item.measured.total for item in loop.items if item.measured is not None)
    certain = sum(not item.doubts for item in loop.items)
    return -measured, not loop.trains, -certain, -len(loop.items), loop.path, loop.row


def tally(items: Iterable[Item]) -> list[tuple[Event, int, bool, int]]:
    """By event: how often a step is sure of it, whether more often than can be counted, and how many are doubtful."""
    found: dict[Event, list[int]] = {}
    for item in items:
        sums = found.setdefault(item.event, [0, 0, 0])
        if item.doubts:
            sums[2] += item.times or 1
        else:
            sums[0] += item.times or 1
            sums[1] += item.times is None
    return [(event, found[event][0], bool(found[event][1]), found[event][2]) for event in _EVENTS if event in found]
