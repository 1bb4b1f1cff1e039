"""What an expression may hold: its kind, the device it lives on, what is inside of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum, IntFlag
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import libcst as cst


class Kind(Enum):
    """The kinds of values that rules tell apart."""

    UNKNOWN = "unknown"
    TENSOR = "tensor"
    MODULE = "module"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    LOADER = "loader"
    DATASET = "dataset"
    DEVICE = "device"
    DTYPE = "dtype"
    DISTRIBUTION = "distribution"
    NDARRAY = "ndarray"
    NUMBER = "number"
    STRING = "string"
    NONE = "none"
    SEQUENCE = "sequence"
    MAPPING = "mapping"
    FUNCTION = "function"
    CLASS = "class"
    OBJECT = "object"


class Device(IntFlag):
    """Where a tensor or module may live: a set, of what the ways that lead to it tell.

    UNKNOWN: on one way nothing tells. MAYBE: on an accelerator wherever there is one, or on some ways only.
    """

    CPU = 1
    ACCELERATOR = 2
    UNKNOWN = 4
    MAYBE = CPU | ACCELERATOR

    @property
    def may_be_accelerator(self) -> bool:
        """Whether nothing proves that it is the CPU."""
        return self is not Device.CPU


# What each set comes to in one word: where one way tells of an accelerator, it may be there.
_IN_A_WORD = (
    Device.UNKNOWN,
    Device.CPU,
    Device.ACCELERATOR,
    Device.MAYBE,
    Device.UNKNOWN,
    Device.UNKNOWN,
    Device.MAYBE,
    Device.MAYBE,
)


class Rank(IntEnum):
    """What speaks for a kind, the weakest first.

    CALLED: a convention, such as a name. USED: how it is used, as `x.backward()` shows a tensor. PROVEN: the language
    and what is known of libraries.
    """

    CALLED = 0
    USED = 1
    PROVEN = 2


class Also(IntFlag):
    """What a value may be besides what its kind says.

    NUMBER and NONE give way to a tensor, and NONE to anything (`loss = 0` before `loss = loss + …`). UNTOLD: on one
    way nothing tells what it is. CONFLICT: the ways contradict each other.
    """

    NOTHING = 0
    NONE = 1
    NUMBER = 2
    UNTOLD = 4
    CONFLICT = 8


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value: what the ways that lead to an expression tell of it, together.

    Values form a lattice, with `join` for the ways that meet. `item` is what iterating or indexing gives, `items` the
    parts of a tuple of known length. `qualified` names the class of an instance (`torch.nn.Conv2d`) or the function or
    class itself; `definition` is its node where this file defines it. `batch` marks what a loader yields, `scalar` a
    tensor of one element. All but `also` speak of the values of the kind that is named. What gives way is not looked
    at again: of it nothing but that it is there is kept.
    """

    kind: Kind = Kind.UNKNOWN
    devices: Device = Device.UNKNOWN
    item: Value | None = None
    items: tuple[Value, ...] = ()
    qualified: str = ""
    definition: cst.CSTNode | None = None
    rank: Rank = Rank.PROVEN
    batch: bool = False
    scalar: bool = False
    also: Also = Also.NOTHING

    @property
    def device(self) -> Device:
        """Where it lives in a word: CPU, ACCELERATOR, MAYBE or UNKNOWN."""
        return _IN_A_WORD[self.devices]

    @property
    def untold(self) -> bool:
        """Whether on one way nothing tells what it is."""
        return self.also is not Also.NOTHING and bool(self.also & Also.UNTOLD)

    @property
    def proven(self) -> bool:
        """Whether more than a convention speaks for the kind, and does so on all ways."""
        return self.rank is not Rank.CALLED and not self.untold

    def on(self, devices: Device) -> Value:
        """The same value on other devices."""
        if self.kind is Kind.UNKNOWN or self.devices is devices:
            return self
        return replace(self, devices=devices)

    def likely(self) -> Value:
        """The same value, for which a convention speaks."""
        return self.ranked(Rank.CALLED)

    def ranked(self, rank: Rank) -> Value:
        """The same value, for which no more speaks than this."""
        return self if self.rank <= rank or self.kind is Kind.UNKNOWN else replace(self, rank=rank)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return self.kind is not Kind.UNKNOWN


# The three values of no kind; there are no others, and each is one object. No way leads there, or none is known yet:
BOTTOM = Value()
# One way does, and nothing tells what it gives:
UNKNOWN = Value(also=Also.UNTOLD)
# Several do, and contradict each other:
TOP = Value(also=Also.NONE | Also.NUMBER | Also.UNTOLD | Also.CONFLICT)
NUMBER = Value(Kind.NUMBER)
STRING = Value(Kind.STRING)
NONE = Value(Kind.NONE)
DTYPE = Value(Kind.DTYPE)
NDARRAY = Value(Kind.NDARRAY, Device.CPU)
TENSOR = Value(Kind.TENSOR)
BATCH = Value(Kind.TENSOR, Device.CPU, rank=Rank.CALLED, batch=True)  # what a loader yields


@cache
def tensor(devices: Device = Device.UNKNOWN, *, rank: Rank = Rank.PROVEN, scalar: bool = False) -> Value:
    """A tensor on a device."""
    return Value(Kind.TENSOR, devices, rank=rank, scalar=scalar)


# How many parts of a container are told apart, by the number of containers around it; what is below that is unknown.
# Code can double a value on each line, and no value may grow with the code. The limits go by place and not by size, so
# that `join` needs none: parts at one place are joined with parts at the same place.
MOST_PARTS = (16, 8, 2, 0)


def sequence(*items: Value) -> Value:
    """A tuple or list of known length; of unknown length, if it has more parts than are told apart."""
    if len(items) > MOST_PARTS[0]:
        return sequence_of(join(items))
    items = tuple([_within(item, 1) for item in items])
    return Value(Kind.SEQUENCE, item=join(items) if items else UNKNOWN, items=items)


def sequence_of(item: Value) -> Value:
    """A sequence of unknown length."""
    return Value(Kind.SEQUENCE, item=_within(item, 1))


def mapping_of(item: Value) -> Value:
    """A mapping, by what its values are."""
    return Value(Kind.MAPPING, item=_within(item, 1))


def _within(value: Value, depth: int) -> Value:
    """As much of a value as is told apart where it is inside of so many containers."""
    if value.item is None:
        return value
    if depth == len(MOST_PARTS):
        return replace(value, item=UNKNOWN, items=())
    items = value.items if len(value.items) <= MOST_PARTS[depth] else ()
    item, items = _within(value.item, depth + 1), tuple([_within(part, depth + 1) for part in items])
    return value if item == value.item and items == value.items else replace(value, item=item, items=items)


def join(values: Iterable[Value]) -> Value:
    """What a name holds that holds one of these, depending on the way taken: their least upper bound.

    None and numbers give way to a tensor; a part of which nothing is told leaves the rest likely; kinds that contradict
    each other leave nothing. BOTTOM changes nothing, and TOP everything.
    """
    result = BOTTOM
    for value in values:
        result = _joined(result, value)
    return result


def _joined(one: Value, other: Value) -> Value:
    if one is other or other is BOTTOM:
        return one
    if one is BOTTOM:
        return other
    if one is TOP or other is TOP:
        return TOP
    if one is UNKNOWN or other is UNKNOWN:
        return _also(other if one is UNKNOWN else one, Also.UNTOLD)
    if one == other:
        return one
    also = one.also if one.also is other.also else one.also | other.also
    if one.kind is not other.kind:
        if other.kind is Kind.NONE or (other.kind is Kind.NUMBER and one.kind is Kind.TENSOR):
            one, other = other, one
        if one.kind is Kind.NONE:
            return _also(other, also | Also.NONE)
        if one.kind is Kind.NUMBER and other.kind is Kind.TENSOR:
            return _also(other, also | Also.NUMBER)
        return TOP
    return Value(
        one.kind,
        one.devices if one.devices is other.devices else one.devices | other.devices,
        item=_joined_items(one.item, other.item),
        items=tuple(map(_joined, one.items, other.items)) if len(one.items) == len(other.items) else (),
        qualified=one.qualified if one.qualified == other.qualified else "",
        definition=one.definition if one.definition is other.definition else None,
        rank=min(one.rank, other.rank),
        batch=one.batch or other.batch,
        scalar=one.scalar and other.scalar,
        also=also,
    )


def _joined_items(one: Value | None, other: Value | None) -> Value | None:
    if one is other:
        return one
    return _joined(UNKNOWN if one is None else one, UNKNOWN if other is None else other)


def _also(value: Value, also: Also) -> Value:
    """The value, and what else may be there."""
    if value.also is not Also.NOTHING:
        also |= value.also
    return value if also is value.also else replace(value, also=also)


def item_of(value: Value) -> Value:
    """What indexing or unpacking the value gives: of a number and of None, nothing."""
    return _item_of(value) if value.also is Also.NOTHING else as_far_as_told(value, _item_of(value))


def _item_of(value: Value) -> Value:
    match value.kind:
        case Kind.LOADER:
            return BATCH if value.item is None else value.item
        case Kind.TENSOR:
            if value.batch:
                return _alone(value)
            return tensor(value.devices, rank=value.rank, scalar=value.scalar)
        case Kind.NDARRAY:
            return NDARRAY
        case Kind.STRING:
            return STRING
        case Kind.MODULE:
            return Value(Kind.MODULE, value.devices, rank=value.rank)
        case Kind.SEQUENCE | Kind.MAPPING:
            return value.item if value.item is not None else UNKNOWN
        case Kind.NUMBER | Kind.NONE | Kind.UNKNOWN:
            return BOTTOM
    return UNKNOWN


def as_far_as_told(value: Value, result: Value) -> Value:
    """The result of something done to the value, which nothing tells on the ways on which nothing tells the value."""
    if value is BOTTOM or value is TOP:
        return value
    return _joined(result, UNKNOWN) if value.untold else result


def _alone(value: Value) -> Value:
    """What its kind says, without what else may be there."""
    return value if value.also is Also.NOTHING else replace(value, also=Also.NOTHING)


def turn_of(value: Value) -> Value:
    """What one iteration of a loop over the value gives: of a batch a sample, where unpacking it gives its parts."""
    if value.kind is Kind.TENSOR and value.batch:
        return as_far_as_told(value, tensor(value.devices, rank=value.rank))
    return item_of(value)


def part_of(value: Value, path: tuple[int, ...]) -> Value:
    """What unpacking leads to."""
    for step in path:
        if step == -1:
            value = sequence_of(item_of(value))
        elif step < 0:  # one of those behind a starred target
            value = item_of(value) if len(set(value.items)) <= 1 else UNKNOWN
        elif step < len(value.items):
            value = as_far_as_told(value, value.items[step])
        else:
            value = item_of(value)
    return value


def arithmetic(left: Value, right: Value) -> Value:
    """What an operator gives between the two."""
    if left and right and left.also is right.also is Also.NOTHING:
        return _computed(left, right)
    if left is BOTTOM or right is BOTTOM:
        return BOTTOM
    if left is TOP or right is TOP:
        return TOP
    return join([_computed(one, other) for one in _alternatives(left) for other in _alternatives(right)])


def _alternatives(value: Value) -> Iterator[Value]:
    """All that a value may be, each by itself."""
    if value:
        yield _alone(value)
    if Also.NUMBER in value.also:
        yield NUMBER
    if Also.NONE in value.also:
        yield NONE
    if Also.UNTOLD in value.also:
        yield UNKNOWN


def _computed(left: Value, right: Value) -> Value:
    """What an operator gives between values that are one thing each."""
    kinds = {left.kind, right.kind}
    if Kind.TENSOR in kinds:
        if kinds & {Kind.STRING, Kind.SEQUENCE, Kind.MAPPING, Kind.DEVICE}:
            return UNKNOWN
        operands = [value for value in (left, right) if value.kind is Kind.TENSOR]
        return tensor(
            computed_on([value.devices for value in operands]),
            rank=max(value.rank for value in operands),  # whatever is computed with a tensor gives one
            scalar=all(value.scalar for value in operands) and Kind.UNKNOWN not in kinds,
        )
    if Kind.NDARRAY in kinds:
        return NDARRAY
    if kinds == {Kind.NUMBER}:
        return NUMBER
    if left.kind is Kind.STRING:
        return STRING
    if left.kind is Kind.SEQUENCE and right.kind in (Kind.NUMBER, Kind.SEQUENCE):
        if left.items and right.items:
            return sequence(*left.items, *right.items)
        return sequence_of(join([item_of(left), item_of(right)]) if right.kind is Kind.SEQUENCE else item_of(left))
    return BOTTOM if Kind.NONE in kinds else UNKNOWN


def computed_on(operands: Sequence[Device]) -> Device:
    """Where a result is computed from tensors on these; a CPU operand beside another is a scalar or an index."""
    return reduce(_computed_on, operands) if operands else Device.UNKNOWN


@cache
def _computed_on(one: Device, other: Device) -> Device:
    """For each place that one may be on, and each that the other may be on, where the result is."""
    places = (Device.ACCELERATOR, Device.UNKNOWN, Device.CPU)
    pairs = [(left, right) for left in places if left in one for right in places if right in other]
    return reduce(or_, [next(place for place in places if place in pair) for pair in pairs])


def off_cpu(value: Value) -> Value:
    """What is on the CPU as it is made, and elsewhere when it is used: a module's result, parameter or buffer."""
    if Device.CPU not in value.devices:
        return value
    return value.on(value.devices & ~Device.CPU | Device.UNKNOWN)


def with_tensors(value: Value, change: Callable[[Value], Value]) -> Value:
    """The value with its tensors changed, those inside of tuples, lists and mappings too."""
    if value.kind not in (Kind.SEQUENCE, Kind.MAPPING):
        return change(value) if value.kind is Kind.TENSOR else value
    item = with_tensors(value.item, change) if value.item is not None else None
    items = tuple([with_tensors(part, change) for part in value.items])
    return value if item == value.item and items == value.items else replace(value, item=item, items=items)


def overridable(default: Value) -> Value:
    """A default: `device="cpu"` is there to be given another."""
    if default.kind is Kind.STRING and Device.CPU in default.devices:
        return default.on(default.devices | Device.MAYBE)
    return default
