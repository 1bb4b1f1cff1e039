"""Data that goes from the device to the CPU and back, though torch could have done on the device what is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.analyses.execution.hot import rate_doubts
from torchlint.analyses.round_trips.equivalents import DATA_FACTORIES
from torchlint.analyses.round_trips.paths import Way, is_on_device, tensor_read
from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.apis import LEGACY_TENSORS
from torchlint.semantics.knowledge.conventions.conditions import CUDA_CONDITION, DEVICE_LIMIT
from torchlint.semantics.names.bindings import dotted, last_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

_UP = frozenset({"cuda", "to", "type_as"})
# Between the two, what takes the room that the data leaves on the device.
_ROOM = frozenset({"empty_cache", "collect", "synchronize", "barrier"})


class Trip(NamedTuple):
    """`reads` bring tensors to the CPU, `back` takes to the device what was made of them.

    `done` are the functions of torch, in order, that make the same of the tensors where they are. `doubts` say why it
    may not be made at each batch.
    """

    reads: tuple[cst.Call, ...]
    back: cst.Call
    done: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()


class Trips:
    """The trips in one module."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._known: dict[cst.CSTNode | None, dict[cst.Call, Trip]] = {}

    def of(self, read: cst.Call) -> Trip | None:
        """The trip that begins with this call, alone or with others; None where the CPU needs the data, or may."""
        tensor = tensor_read(read, self.context)
        if tensor is None or not is_on_device(tensor, self.context):
            return None
        function = self.context.function(read)
        if isinstance(function, cst.Lambda):
            return None
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = self._within(function)
        trip = found.get(read)
        if trip is None:
            return None
        doubts = (doubt for node in (read, trip.back) for doubt in rate_doubts(node, self.context))
        is_limit = any(
            DEVICE_LIMIT.suggests(self.context.uncommented(test).lower()) for test in _tests(read, self.context)
        )
        named = (Doubt.MEANT,) if is_limit else ()
        return trip._replace(doubts=tuple(dict.fromkeys((*named, *doubts))))

    def _within(self, function: cst.FunctionDef | None) -> dict[cst.Call, Trip]:
        context = self.context
        ways = list(_ways(context.tree.module if function is None else function.body, context))
        while True:
            passed = {id(name) for _, way in ways for name in way.passed}
            kept = [(back, way) for back, way in ways if way.keeps_nothing(_gate(back, context), passed)]
            if len(kept) == len(ways):
                break
            ways = kept  # what shares its data with a way that is none stays on the CPU too
        found: dict[cst.Call, Trip] = {}
        for back, way in ways:
            reads = sorted(way.reads, key=context.tree.place)
            if not any(_is_on_purpose(read, back, context) for read in reads):
                trip = Trip(tuple(reads), back, tuple(dict.fromkeys(way.done)))
                for read in reads:
                    found.setdefault(read, trip)
        return found


def _ways(region: cst.CSTNode, context: Context) -> Iterator[tuple[cst.Call, Way]]:
    """The calls that take to the device what was read from it, each with its way."""
    for call in descendants_in_scope(region):
        taken = _taken_up(call, context) if isinstance(call, cst.Call) else None
        if isinstance(call, cst.Call) and taken is not None:
            way = Way(context)
            if way.leads_back(taken) and way.reads and _is_to_device(call, way, context):
                yield call, way


# The way up


def _gate(back: cst.Call, context: Context) -> cst.If | None:
    """The condition that lets the data go back where there is a GPU: what uses it below does so where there is none."""
    line = context.tree.line(back)
    block = context.parent(line) if line is not None else None
    gate = context.parent(block) if block is not None else None
    if not isinstance(gate, cst.If) or gate.body is not block or gate.orelse is not None:
        return None
    if not CUDA_CONDITION.suggests(context.uncommented(gate.test).lower()):
        return None
    match line:
        case cst.SimpleStatementLine(body=[*_, cst.Return()]):
            return gate
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
            is_own = any(isinstance(part, cst.Name) and part.value == name for part in descendants(back))
            return gate if is_own else None
    return None


def _taken_up(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """What the call would take to the device, if it goes there: the receiver of a move, the data of a factory."""
    func = call.func
    if not isinstance(func, cst.Attribute) or context.has_unpacking(call):
        return None
    method = func.attr.value
    if method in _UP:
        return func.value if call.args or method == "cuda" else None
    data = context.argument(call, "data", 0)
    if method == "new_tensor":
        return data
    if method in DATA_FACTORIES and context.argument(call, "device") is not None:
        return data if context.qualified_name(func) == f"torch.{method}" else None
    if method in LEGACY_TENSORS and context.qualified_name(func) == f"torch.cuda.{method}":
        return data
    return None


def _is_to_device(call: cst.Call, way: Way, context: Context) -> bool:
    assert isinstance(call.func, cst.Attribute)
    match call.func.attr.value:
        case "cuda":
            device = context.argument(call, "device", 0)
            return device is None or _is_accelerator(device, way, context)
        case "to":
            device = context.argument(call, "device", 0)
            return device is not None and _is_accelerator(device, way, context)
        case "type_as":
            other = context.argument(call, "other", 0)
            return other is not None and is_on_device(other, context)
        case "new_tensor":
            return is_on_device(call.func.value, context)
    device = context.argument(call, "device")
    return device is None or _is_accelerator(device, way, context)


def _is_accelerator(node: cst.BaseExpression, way: Way, context: Context) -> bool:
    """Whether the expression names the device where the tensors were: another's memory may be out of reach."""
    if isinstance(node, (cst.Integer, cst.SimpleString)):
        return context.code(node).strip("'\"") in ("cuda", "cuda:0", "0", "mps", "xpu")
    value = context.value(node)
    if value.kind is Kind.TENSOR:
        return is_on_device(node, context)
    if value.kind not in (Kind.DEVICE, Kind.NUMBER, Kind.STRING) or value.device is Device.CPU:
        return False
    if isinstance(node, cst.Attribute) and node.attr.value == "device" and value.device is Device.UNKNOWN:
        owner = dotted(node.value)
        tensors = [tensor_read(read, context) for read in way.reads]
        is_own = owner is not None and any(
            dotted(part) == owner for tensor in tensors if tensor for part in descendants(tensor)
        )
        return is_own or is_on_device(node.value, context)
    return value.kind is not Kind.STRING or value.device is not Device.UNKNOWN


# Reasons


def _tests(node: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """The conditions under which the function runs the node."""
    yield from (condition.test for condition in context.conditions(node))


def _asks_for_a_device(test: cst.BaseExpression) -> bool:
    """`if x.device.type == "mps":`, `if x.is_cuda:`."""
    return any(
        (isinstance(part, cst.SimpleString) and part.evaluated_value in _DEVICES)
        or (isinstance(part, cst.Attribute) and part.attr.value == "is_cuda")
        for part in descendants(test)
    )


_DEVICES = frozenset({"cuda", "cpu", "mps", "xpu"})


def _is_on_purpose(read: cst.Call, back: cst.Call, context: Context) -> bool:
    """Whether the author seems to know: the device cannot do it, or the data makes room for something else there."""
    if any(map(_asks_for_a_device, _tests(read, context))):
        return True
    first, last = context.tree.line(read), context.tree.line(back)
    if first is last or first is None or last is None:
        return False
    start, end = context.tree.place(first), context.tree.place(last)
    return start > end or any(
        context.kind(call.func) is Kind.MODULE or last_part(call.func) in _ROOM
        for call in context.tree.of(cst.Call)
        if start < context.tree.place(call) < end and not context.tree.within(call, first)
    )
