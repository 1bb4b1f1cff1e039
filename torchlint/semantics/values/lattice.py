"""What an expression may hold: its kind, the device it lives on, what is inside of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


class Device(Enum):
    """Where a tensor or module lives. MAYBE: a device that is an accelerator wherever there is one."""

    UNKNOWN = "unknown"
    CPU = "cpu"
    MAYBE = "maybe"
    ACCELERATOR = "accelerator"

    @property
    def may_be_accelerator(self) -> bool:
        """Whether nothing proves that it is the CPU."""
        return self is not Device.CPU


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value.

    `item` is what iterating or indexing gives, `items` the parts of a tuple of known length. `qualified` names the
    class of an instance (`torch.nn.Conv2d`) or the function or class itself; `definition` is its node where this
    file defines it. `proven` is False where only a conventional name or a likely shape speaks for the kind. `batch`
    marks what a loader yields.
    """

    kind: Kind = Kind.UNKNOWN
    device: Device = Device.UNKNOWN
    item: Value | None = None
    items: tuple[Value, ...] = ()
    qualified: str = ""
    definition: cst.CSTNode | None = None
    proven: bool = True
    batch: bool = False
    scalar: bool = False

    def on(self, device: Device) -> Value:
        """The same value on another device."""
        return replace(self, device=device)

    def likely(self) -> Value:
        """The same value, no longer proven."""
        return replace(self, proven=False) if self.proven else self

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return self.kind is not Kind.UNKNOWN


UNKNOWN = Value()
NUMBER = Value(Kind.NUMBER)
STRING = Value(Kind.STRING)
NONE = Value(Kind.NONE)
DTYPE = Value(Kind.DTYPE)
NDARRAY = Value(Kind.NDARRAY, Device.CPU)
TENSOR = Value(Kind.TENSOR)
BATCH = Value(Kind.TENSOR, Device.CPU, proven=False, batch=True)  # what a loader yields


def tensor(device: Device = Device.UNKNOWN, *, proven: bool = True, scalar: bool = False) -> Value:
    """A tensor on a device."""
    return Value(Kind.TENSOR, device, proven=proven, scalar=scalar)


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


def join_device(devices: list[Device]) -> Device:
    """The device of a result computed from tensors on these (a CPU operand must then be a scalar or an index)."""
    for device in (Device.ACCELERATOR, Device.MAYBE, Device.UNKNOWN):
        if device in devices:
            return device
    return devices[0] if devices else Device.UNKNOWN


def merge_device(devices: list[Device]) -> Device:
    """The device of a name that holds a value on one of these, depending on the way taken."""
    if all(device is devices[0] for device in devices):
        return devices[0]
    if Device.ACCELERATOR in devices or Device.MAYBE in devices:
        return Device.MAYBE
    return Device.UNKNOWN


def join(values: tuple[Value, ...] | list[Value]) -> Value:
    """What a name holds that holds one of these.

    None and numbers give way to a tensor (`loss = 0` before `loss = loss + …`); an unknown part leaves the rest
    likely; parts that contradict each other leave nothing.
    """
    known = [value for value in values if value]
    if not known:
        return UNKNOWN
    if len(values) == 1:
        return known[0]
    strong = [value for value in known if value.kind is not Kind.NONE] or known
    kinds = {value.kind for value in strong}
    if kinds == {Kind.TENSOR, Kind.NUMBER}:
        strong = [value for value in strong if value.kind is Kind.TENSOR]
    elif len(kinds) > 1:
        return UNKNOWN
    first = strong[0]
    if all(value == first for value in strong[1:]):
        result = first
    else:
        items = first.items if all(len(value.items) == len(first.items) for value in strong) else ()
        inner = [value.item for value in strong if value.item is not None]
        same_class = len({(value.qualified, id(value.definition)) for value in strong}) == 1
        result = Value(
            first.kind,
            merge_device([value.device for value in strong]),
            item=join(inner) if inner else None,
            items=tuple(join([value.items[place] for value in strong]) for place in range(len(items))),
            qualified=first.qualified if same_class else "",
            definition=first.definition if same_class else None,
            proven=all(value.proven for value in strong),
            batch=any(value.batch for value in strong),
            scalar=all(value.scalar for value in strong),
        )
    return result if len(known) == len(values) else result.likely()


def item_of(value: Value) -> Value:
    """What indexing or unpacking the value gives."""
    match value.kind:
        case Kind.LOADER:
            return BATCH
        case Kind.TENSOR:
            if value.batch:
                return value
            return tensor(value.device, proven=value.proven, scalar=value.scalar)
        case Kind.NDARRAY:
            return NDARRAY
        case Kind.STRING:
            return STRING
        case Kind.MODULE:
            return Value(Kind.MODULE, value.device, proven=value.proven)
        case Kind.SEQUENCE | Kind.MAPPING:
            return value.item if value.item is not None else UNKNOWN
    return UNKNOWN


def turn_of(value: Value) -> Value:
    """What one turn of a loop over the value gives: of a batch a sample, where unpacking it gives its parts."""
    if value.kind is Kind.TENSOR and value.batch:
        return tensor(value.device, proven=value.proven)
    return item_of(value)


def part_of(value: Value, path: tuple[int, ...]) -> Value:
    """What unpacking leads to."""
    for step in path:
        if step >= 0 and step < len(value.items):
            value = value.items[step]
        elif value.items and step >= 0:
            value = UNKNOWN  # an annotation with fewer parts than there are
        elif step == -1:
            value = sequence_of(item_of(value))
        else:
            value = item_of(value)
    return value


def arithmetic(left: Value, right: Value) -> Value:
    """What an operator gives between the two."""
    kinds = {left.kind, right.kind}
    if Kind.TENSOR in kinds:
        if kinds & {Kind.STRING, Kind.SEQUENCE, Kind.MAPPING, Kind.DEVICE}:
            return UNKNOWN
        operands = [value for value in (left, right) if value.kind is Kind.TENSOR]
        unknown = Kind.UNKNOWN in kinds
        return tensor(
            join_device([value.device for value in operands]),
            proven=any(value.proven for value in operands) if unknown else all(value.proven for value in operands),
            scalar=all(value.scalar for value in operands) and not unknown,
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
    return UNKNOWN


def off_cpu(value: Value) -> Value:
    """What is on the CPU as it is made, and elsewhere when it is used: a module's result, parameter or buffer."""
    return value if value.device is not Device.CPU else value.on(Device.UNKNOWN)


def overridable(default: Value) -> Value:
    """A default: `device="cpu"` is there to be given another."""
    return default.on(Device.MAYBE) if default.kind is Kind.STRING and default.device is Device.CPU else default
