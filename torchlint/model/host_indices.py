"""Indices that are made on the CPU and index tensors on a device, to which each of them is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.factories import Factory, factory
from torchlint.model.names import Binder, Binding
from torchlint.model.origins import is_with_the_network
from torchlint.model.values import Device, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.model.context import Context

FACTORIES = ("arange", "randperm", "randint")
# Methods that give an index again; what else is asked of it needs none of its values.
_RESHAPING = frozenset(
    "unsqueeze squeeze view reshape flatten expand expand_as repeat repeat_interleave t transpose long int contiguous "
    "flip chunk split".split()
)
_SHAPE = frozenset({"size", "dim", "numel", "shape", "ndim", "dtype"})
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class HostIndex:
    """A factory whose tensor only indexes tensors on a device; `indexed` are those, with the subscripts."""

    made: Factory
    indexed: tuple[cst.Subscript, ...]


def host_index(call: cst.Call, context: Context) -> HostIndex | None:
    """The index that the call makes on the CPU, if it is used for nothing but to index tensors on a device."""
    if not isinstance(context.parent(call), (cst.Index, cst.Assign, cst.Attribute, cst.Subscript, cst.BinaryOperation)):
        return None
    made = factory(call, context)
    if made is None:
        return None
    found: list[cst.Subscript] = []
    for subscript in _indexed(call, context, 0):
        if subscript is None or _is_moved(subscript, context) or not _is_on_device(subscript.value, context):
            return None
        found.append(subscript)
    return HostIndex(made, tuple(found)) if found else None


def device(index: HostIndex, context: Context) -> str | None:
    """The code for the device of a tensor that is indexed, if one has a name and is there before the index is made."""
    made = index.made.call
    if context.code(made).count("#") or context.has_unpacking(made):
        return None
    for subscript in index.indexed:
        tensor = subscript.value
        if isinstance(tensor, cst.Name) and (context.tree.within(made, subscript) or _is_there(tensor, made, context)):
            return f"{tensor.value}.device"
    return None


def is_sure(index: HostIndex, context: Context) -> bool:
    """Whether the index indexes one tensor only, and that is one for certain."""
    codes = {context.code(subscript.value) for subscript in index.indexed}
    return len(codes) == 1 and all(context.kinds.is_tensor(subscript.value) for subscript in index.indexed)


def _is_moved(subscript: cst.Subscript, context: Context) -> bool:
    """Whether what the index picks is moved to a device, so that it is not there."""
    above = context.parent(subscript)
    return isinstance(above, cst.Attribute) and above.attr.value in ("to", "cuda", "pin_memory", "numpy")


def _is_on_device(node: cst.BaseExpression, context: Context) -> bool:
    value = context.value(node)
    if value.kind is not Kind.TENSOR or value.device is Device.CPU:
        return False
    if value.device is not Device.UNKNOWN:
        return True
    if not context.program.mentions_accelerator or _is_given_to_no_network(node, context):
        return False
    return is_with_the_network(node, context) and context.kinds.is_tensor(node)


def _is_given_to_no_network(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a function that is no `forward` is given the tensor: callers may keep it wherever they like."""
    if not isinstance(node, cst.Name):
        return False
    function = context.function(node)
    is_forward = isinstance(function, cst.FunctionDef) and function.name.value == "forward"
    return not is_forward and any(binding.binder is Binder.PARAMETER for binding in context.reaching(node))


def _indexed(node: cst.BaseExpression, context: Context, depth: int) -> Iterator[cst.Subscript | None]:
    """The subscripts in which the expression is an index; None for any other use of its values."""
    while True:
        parent = context.parent(node)
        match parent:
            case cst.Index():
                subscript = context.parent(context.parent(parent) or parent)
                yield subscript if isinstance(subscript, cst.Subscript) else None
                return
            case cst.Attribute(attr=cst.Name(value=name)) if name in _SHAPE:
                return
            case cst.Attribute(attr=cst.Name(value=name)) if name in _RESHAPING:
                call = context.parent(parent)
                if not isinstance(call, cst.Call) or call.func is not parent:
                    yield None
                    return
                node = call
            case cst.Subscript(value=value) if value is node and _is_part(parent):
                node = parent
            case cst.BinaryOperation(left=left, right=right):
                if context.kind(right if left is node else left) is not Kind.NUMBER:
                    yield None
                    return
                node = parent
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) if depth < _DEEPEST:
                yield from _uses(parent, name, context, depth)
                return
            case _:
                yield None
                return


def _is_part(node: cst.Subscript) -> bool:
    """`t[a:b]` or `t[:, None]`, which is an index again."""
    return all(
        isinstance(element.slice, cst.Slice)
        or (isinstance(element.slice, cst.Index) and isinstance(element.slice.value, (cst.Name, cst.Ellipsis)))
        for element in node.slice
    ) and any(isinstance(element.slice, cst.Slice) for element in node.slice)


def _uses(statement: cst.Assign, name: str, context: Context, depth: int) -> Iterator[cst.Subscript | None]:
    binding = _binding(statement, name, context)
    uses = context.names.uses(binding) if binding is not None else []
    if not uses:
        yield None
    for use in uses:
        if context.reaching(use) != (binding,):
            yield None
        else:
            yield from _indexed(use, context, depth + 1)


def _binding(statement: cst.Assign, name: str, context: Context) -> Binding | None:
    for binding in context.names.scope_of(statement).bindings.get(name, ()):
        if binding.node is statement and binding.binder is Binder.ASSIGN:
            return binding
    return None


def _is_there(use: cst.Name, place: cst.CSTNode, context: Context) -> bool:
    """Whether the name holds at the place what it holds at its use."""
    if context.function(use) is not context.function(place):
        return False
    bindings = context.reaching(use)
    return len(bindings) == 1 and bindings[0].effect < context.tree.place(place)
