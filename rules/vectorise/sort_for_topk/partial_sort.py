"""Sorts of which only the first or the last few places are used: what is sorted, along which axis, and how many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.batching.extent import is_sure_tensor
from torchlint.analyses.tensors.ranks import has_one_axis
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.conventions.counts import CAP
from torchlint.semantics.names.bindings import Binder
from torchlint.syntax.literals import integer, is_dots, is_whole
from torchlint.syntax.tree import descendants

# From this share of all on.
_LARGE = 0.25
_DRAWING = frozenset(f"torch.{name}" for name in ("rand", "randn", "rand_like", "randn_like", "randint", "randperm"))


@dataclass(frozen=True, slots=True)
class Part:
    """`node` is what is kept of the sort: its first `count` places along the axis, or its last.

    `field` is `values` or `indices`; `is_certain`: the axis of the slice is the one that is sorted, whatever the shape.
    """

    node: cst.Subscript
    field: str
    count: cst.BaseExpression
    is_last: bool
    is_certain: bool


@dataclass(frozen=True, slots=True)
class Sort:
    """`call` sorts `tensor` along `axis`; `parts` are all that is used of it.

    `is_bound`: the names say that their number may be as large as that of what is sorted.
    """

    call: cst.Call
    tensor: cst.BaseExpression
    axis: cst.BaseExpression | None
    is_descending: bool
    parts: tuple[Part, ...]
    is_bound: bool


def partial_sort(call: cst.Call, context: Context) -> Sort | None:
    """What the call sorts, if a few places of it are all that is used."""
    named = context.qualified_name(call.func) in ("torch.sort", "torch.argsort", "torch.msort")
    if not call.args and named:
        return None
    match call.func:
        case _ if named:
            tensor, first = call.args[0].value, 1
            if call.args[0].keyword is not None:
                return None
        case cst.Attribute(value=tensor):
            first = 0
        case _:
            return None
    axis = context.argument(call, "dim", first)
    descending = context.argument(call, "descending", first + 1)
    if context.has_unpacking(call) or any(
        argument.keyword is not None and argument.keyword.value not in ("dim", "descending") for argument in call.args
    ):
        return None  # `stable=True`, `out=`, a key
    if axis is not None and integer(axis) is None:
        return None
    if descending is not None and not (isinstance(descending, cst.Name) and descending.value in ("True", "False")):
        return None
    parts = tuple(_parts(call, tensor, axis, context))
    if not parts or _is_drawn(tensor, context) or any(_is_large(part.count, context) for part in parts):
        return None
    if any(context.loop(part.node) is not context.loop(call) for part in parts):
        return None  # sorted once, and cut in each iteration
    if len({(context.code(part.count), part.is_last) for part in parts}) > 1 or not is_sure_tensor(tensor, context):
        return None
    is_descending = isinstance(descending, cst.Name) and descending.value == "True"
    is_bound = any(CAP.suggests(context.uncommented(part.count)) for part in parts)
    return Sort(call, tensor, axis, is_descending, parts, is_bound)


def _is_large(count: cst.BaseExpression, context: Context) -> bool:
    """Whether the number is a large share of all: `int(len(x) * 0.5)`."""
    return any(_is_share(part) for value in context.origins(count).nodes for part in (value, *descendants(value)))


def _is_share(node: cst.CSTNode) -> bool:
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            shares = [side.evaluated_value for side in (left, right) if isinstance(side, cst.Float)]
            return any(_LARGE <= share < 1 for share in shares)
        case cst.BinaryOperation(operator=cst.FloorDivide() | cst.Divide(), right=cst.Integer() as parts):
            return int(parts.evaluated_value) <= 1 / _LARGE
    return False


def _is_drawn(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether a random order is asked for, `torch.rand(n).argsort()`: that is one of all elements."""
    return any(
        isinstance(part, cst.Call) and (context.qualified_name(part.func) or "") in _DRAWING
        for part in _written(tensor, context)
    )


def _written(tensor: cst.BaseExpression, context: Context) -> Iterator[cst.CSTNode]:
    written = [tensor]
    if isinstance(tensor, cst.Name):
        written += [origin.node for origin in context.bound_to(tensor, Through.PARTS).found]
    return (part for whole in written for part in descendants(whole))


def _parts(
    call: cst.Call, tensor: cst.BaseExpression, axis: cst.BaseExpression | None, context: Context
) -> Iterator[Part]:
    """What is taken of the sort, if that is slices along its axis and nothing else."""
    found: list[Part | None] = []
    if _is_argsort(call):
        found = [_part(node, "indices", tensor, axis, context) for node in _taken(call, context)]
    else:
        above = context.parent(call)
        field = _field(above, call)
        if isinstance(above, cst.BaseExpression) and field is not None:
            found = [_part(node, field, tensor, axis, context) for node in _taken(above, context)]
        elif isinstance(above, cst.Assign) and len(above.targets) == 1:
            target = above.targets[0].target
            if isinstance(target, cst.Tuple) and len(target.elements) == 2:
                for element, name in zip(target.elements, ("values", "indices"), strict=True):
                    if not isinstance(element.value, cst.Name):
                        return
                    uses = context.uses.of(element.value.value, above)
                    found += [_part(use, name, tensor, axis, context) for use in uses]
    if None not in found:
        yield from (part for part in found if part is not None)


def _is_argsort(call: cst.Call) -> bool:
    func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return isinstance(func, cst.Name) and func.value.startswith("arg")


def _field(above: cst.CSTNode | None, call: cst.Call) -> str | None:
    """`values` of `sort(…)[0]` and `sort(…).values`."""
    match above:
        case cst.Attribute(attr=cst.Name(value="values" | "indices" as name)):
            return name
        case cst.Subscript(
            value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0" | "1" as place)))]
        ) if value is call:
            return ("values", "indices")[int(place)]
    return None


def _taken(node: cst.BaseExpression, context: Context) -> list[cst.BaseExpression]:
    """The expression itself, or the reads of the one name that it is bound to."""
    above = context.parent(node)
    match above:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            bindings = context.names.lookup(name)[1]
            if all(binding.binder is Binder.ASSIGN for binding in bindings):
                return list(context.uses.of(name.value, above))
    return [node]


def _part(
    node: cst.BaseExpression,
    field: str,
    tensor: cst.BaseExpression,
    axis: cst.BaseExpression | None,
    context: Context,
) -> Part | None:
    above = context.parent(node)
    if not isinstance(above, cst.Subscript) or above.value is not node:
        return None
    if isinstance(context.parent(above), (cst.AssignTarget, cst.AugAssign, cst.Del)):
        return None
    *before, last = [element.slice for element in above.slice]
    is_from_end = bool(before) and all(map(is_dots, before))
    if not isinstance(last, cst.Slice) or last.step is not None or not (is_from_end or all(map(is_whole, before))):
        return None
    place = integer(axis) if axis is not None else -1
    if is_from_end:
        if place != -1:
            return None
        is_certain = True
    elif place == len(before):
        is_certain = True
    elif place == -1:
        # `[:, :k]` of what is sorted along its last axis: nobody counts the axes of something else.
        is_certain = bool(before) if axis is not None else not before and has_one_axis(tensor, context)
    else:
        return None
    match last:
        case cst.Slice(lower=None | cst.Integer(value="0"), upper=cst.BaseExpression() as count):
            return (
                None
                if isinstance(count, cst.UnaryOperation)
                else Part(above, field, count, is_last=False, is_certain=is_certain)
            )
        case cst.Slice(lower=cst.UnaryOperation(operator=cst.Minus(), expression=count), upper=None):
            return Part(above, field, count, is_last=True, is_certain=is_certain)
    return None
