"""Lists of tensors of the device that are handed to a function which reads them on the CPU, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.host.reads import is_device_tensor, scalar_read
from torchlint.analyses.provenance.network import is_with_the_network
from torchlint.analyses.tensors.host_computed import is_computed_on_host
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import ARRAYS_OF_LISTS, OF_LISTS
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# What brings a tensor to the CPU, and what may stand in between.
_READS = frozenset("cpu numpy item tolist".split())
_SAME = frozenset("detach float double view reshape flatten squeeze unsqueeze data".split())
_REDUCTIONS = frozenset("sum mean max min std var norm prod any all amax amin median".split())


@dataclass(frozen=True, slots=True)
class Gathered:
    """A call that reads the tensors of a list one by one; `count` is how many, 0 where that is not literal.

    `is_read` says that each is brought to the CPU by a method; else the call itself does it. `is_there` says that they
    are on a device for certain.
    """

    call: cst.Call
    count: int
    is_read: bool
    is_there: bool = True


def gathered(call: cst.Call, context: Context) -> Gathered | None:
    """The list of tensors that the call reads, if it has more than one and all are on the device."""
    name = context.qualified_name(call.func)
    data = call.args[0].value if call.args and not call.args[0].star else None
    match data:
        case cst.List(elements=elements) | cst.Tuple(elements=elements) if name in OF_LISTS and len(elements) > 1:
            parts = [element.value for element in elements if isinstance(element, cst.Element)]
            if len(parts) < len(elements) or not all(_may_be_read(part, context) for part in parts):
                return None
            is_there = all(_is_scalar_on_device(part, context) for part in parts)
            return Gathered(call, len(parts), is_read=False, is_there=is_there)
        case cst.Name() | cst.Subscript(value=cst.Name()) if name in OF_LISTS:
            kept = list(_collected(data, context))
            if not kept or not all(part is not None and _may_be_read(part, context) for part in kept):
                return None
            is_there = all(part is not None and _is_on_device(part, context) for part in kept)
            return Gathered(call, 0, is_read=False, is_there=is_there)
        case cst.ListComp(elt=element, for_in=for_in) if name in (*OF_LISTS, *ARRAYS_OF_LISTS):
            return _of_comprehension(call, element, for_in, context, is_array=name in ARRAYS_OF_LISTS)
    return None


def _collected(data: cst.Name | cst.Subscript, context: Context) -> Iterator[cst.BaseExpression | None]:
    """What is appended to a list that begins empty, or to any of those in a dictionary; None for what is not known."""
    name = data if isinstance(data, cst.Name) else data.value
    assert isinstance(name, cst.Name)
    origins = context.origins(name)
    # `torch.stack(b) if b else torch.tensor(b)`: there is nothing in it.
    for test, holds in context.conditions(data):
        if not holds and any(isinstance(part, cst.Name) and part.value == name.value for part in descendants(test)):
            yield None
    if not origins.every(_holds_nothing if data is name else lambda each: _holds_lists(each, context)):
        yield None
    for use in context.readers(name):
        kept: cst.CSTNode = use
        if data is not name:
            subscript = context.parent(use)
            if not isinstance(subscript, cst.Subscript) or subscript.value is not use:
                continue
            kept = subscript
        match above := context.parent(kept):
            case cst.Attribute(attr=cst.Name(value=method)) if above.value is kept:
                call = context.parent(above)
                if isinstance(call, cst.Call) and call.func is above and len(call.args) == 1:
                    yield call.args[0].value if method == "append" else None
            case cst.AssignTarget() | cst.AugAssign() | cst.Del():
                yield None


def _holds_nothing(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.List) and not node.elements


def _holds_lists(node: cst.BaseExpression, context: Context) -> bool:
    """`defaultdict(list)`."""
    match node:
        case cst.Call(func=func, args=[cst.Arg(value=cst.Name(value="list"))]):
            return context.qualified_name(func) == "collections.defaultdict"
    return False


@query(bottom=False)
def _may_be_read(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is surely a tensor, and not one of the CPU: with one element, as it is made a part of another."""
    value = context.value(node)
    if _is_scalar_on_device(node, context):
        return True
    if context.origins(node, Through.PARAMETERS).some(lambda made: scalar_read(made, context) is not None):
        return False  # `loss.data[0]` was a number
    return value.kind is Kind.TENSOR and not _is_of_the_cpu(node, context) and context.kinds.is_tensor(node)


def _is_of_the_cpu(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor is on the CPU, or a batch that may be; the file need not say a word of another device."""
    value = context.value(node)
    return value.device is Device.CPU or value.batch or is_computed_on_host(node, context)


def _of_comprehension(
    call: cst.Call, element: cst.BaseExpression, for_in: cst.CompFor, context: Context, *, is_array: bool
) -> Gathered | None:
    """`[t.cpu().numpy() for t in tensors]`, where `tensors` is a list: of a tensor the elements need not be read."""
    is_read = False
    node = element
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not node.args:
        method = node.func.attr.value
        if method in _READS:
            is_read = True
        elif method not in _SAME:
            break
        node = node.func.value
    if (is_array and not is_read) or for_in.inner_for_in is not None or for_in.ifs:
        return None
    if context.kind(for_in.iter) is Kind.TENSOR:
        return None
    # Who calls `.cpu()` or `.item()` of a tensor takes it to be on a device.
    is_there = context.kind(node) is Kind.TENSOR and is_device_tensor(node, context)
    if is_read:
        return Gathered(call, 0, is_read=True) if is_there and context.program.mentions_accelerator else None
    if not _may_be_read(node, context):
        return None
    return Gathered(call, 0, is_read=False, is_there=_is_scalar_on_device(node, context))


@query(bottom=False)
def _is_scalar_on_device(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is a tensor with one element for certain: what a reduction of a tensor gives."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=[]) if name in _REDUCTIONS:
            return _is_on_device(owner, context)
        case cst.IfExp(body=body, orelse=other):
            # `mask.sum() if mask is not None else n`: a tensor one way, and maybe a number the other.
            return _is_scalar_on_device(body, context) or _is_scalar_on_device(other, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="detach" | "float")), args=[]):
            return _is_scalar_on_device(owner, context)
        case cst.Name():
            if context.origins(node).every(
                lambda each: isinstance(each, cst.Call) and _is_scalar_on_device(each, context)
            ):
                return True
            return context.value(node).scalar and _is_on_device(node, context)
        case cst.Call() | cst.BinaryOperation():
            return context.value(node).scalar and _is_on_device(node, context)
    return False


def _is_on_device(node: cst.BaseExpression, context: Context) -> bool:
    value = context.value(node)
    if value.kind is not Kind.TENSOR or value.device is Device.CPU or not context.kinds.is_tensor(node):
        return False
    if value.device is not Device.UNKNOWN:
        return True
    return context.program.mentions_accelerator and is_with_the_network(node, context)
