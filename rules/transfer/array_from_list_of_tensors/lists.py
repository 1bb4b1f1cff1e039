"""Lists of tensors of the device that are handed to a function which reads them on the CPU, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.host.reads import is_device_tensor
from torchlint.analyses.provenance.network import is_with_the_network
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import ARRAYS_OF_LISTS, OF_LISTS
from torchlint.semantics.values.lattice import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

# What brings a tensor to the CPU, and what may stand in between.
_READS = frozenset("cpu numpy item tolist".split())
_SAME = frozenset("detach float double view reshape flatten squeeze unsqueeze data".split())
_REDUCTIONS = frozenset("sum mean max min std var norm prod any all amax amin median".split())


@dataclass(frozen=True, slots=True)
class Gathered:
    """A call that reads the tensors of a list one by one; `count` is how many, 0 where that is not written out.

    `is_read` says that each is brought to the CPU by a method; else the call itself does it.
    """

    call: cst.Call
    count: int
    is_read: bool


def gathered(call: cst.Call, context: Context) -> Gathered | None:
    """The list of tensors that the call reads, if it has more than one and all are on the device."""
    name = context.qualified_name(call.func)
    data = call.args[0].value if call.args and not call.args[0].star else None
    match data:
        case cst.List(elements=elements) | cst.Tuple(elements=elements) if name in OF_LISTS and len(elements) > 1:
            parts = [element.value for element in elements if isinstance(element, cst.Element)]
            if len(parts) < len(elements) or not all(_is_scalar_on_device(part, context) for part in parts):
                return None
            return Gathered(call, len(parts), is_read=False)
        case cst.ListComp(elt=element, for_in=for_in) if name in (*OF_LISTS, *ARRAYS_OF_LISTS):
            return _of_comprehension(call, element, for_in, context, is_array=name in ARRAYS_OF_LISTS)
    return None


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
    if not (is_there and context.program.mentions_accelerator if is_read else _is_scalar_on_device(node, context)):
        return None
    return Gathered(call, 0, is_read=is_read)


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
