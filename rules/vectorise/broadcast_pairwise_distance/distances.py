"""Distances between all pairs of two sets of points, written as a difference that is broadcast and reduced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.batching.extent import is_sure_tensor
from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import method_name
from torchlint.syntax.literals import integer, is_dots, is_whole

# With as many coordinates hardly more is written than the distances themselves.
_FEW = 3
_NORMS = frozenset({"torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm"})


@dataclass(frozen=True, slots=True)
class Distances:
    """`call` gives the distances of order `order` from each of `rows` to each of `columns`, squared if `is_power`.

    `is_certain`: the code writes out which axes there are, and keeps none that it reduces.
    """

    call: cst.Call
    rows: cst.BaseExpression
    columns: cst.BaseExpression
    order: int
    is_power: bool
    is_certain: bool


@dataclass(frozen=True, slots=True)
class _Widened:
    """A tensor that is given a further axis at `place`; `axes` are those that it has, where all are literal."""

    tensor: cst.BaseExpression
    place: int
    axes: int | None


def distances(call: cst.Call, context: Context) -> Distances | None:
    """What the call computes, if it is that."""
    if context.has_unpacking(call):
        return None
    name = context.qualified_name(call.func)
    is_function = name == "torch.sum" or name in _NORMS
    if is_function:
        operand, first = (call.args[0].value if call.args else None), 1
    else:
        operand, first = (call.func.value if isinstance(call.func, cst.Attribute) else None), 0
    if operand is None:
        return None
    is_sum = name == "torch.sum" or (not is_function and method_name(call.func) == "sum")
    dim = context.argument(call, "dim", first) if is_sum else context.argument(call, "dim", first + 1)
    dim = dim if dim is not None else context.argument(call, "axis")
    raised = _raised(operand, context) if is_sum else None
    order = raised[1] if raised is not None else _order(call, first, context)
    difference = raised[0] if raised is not None else operand
    if (is_sum and raised is None) or order is None or dim is None or integer(dim) is None:
        return None
    found = _pair(difference, context)
    if found is None:
        return None
    rows, columns, axes = found
    if any(_is_one_point(points, context) or _is_in_space(points, context) for points in (rows, columns)):
        return None
    last = -1 if axes is None else axes
    if integer(dim) not in (-1, last) or not all(is_sure_tensor(part, context) for part in (rows, columns)):
        return None
    extra = [
        argument for argument in call.args if argument.keyword is not None and argument.keyword.value not in _KNOWN
    ]
    return Distances(call, rows, columns, order, is_sum and order > 1, is_certain=not extra and axes is not None)


def _is_one_point(points: cst.BaseExpression, context: Context) -> bool:
    """Whether all that the name is given is one point: `p.reshape(1, 1, 3)`, `torch.randn(1, 3)`."""
    return isinstance(points, cst.Name) and context.origins(points).every(
        lambda value: any(map(_has_one_row, _chain(value)))
    )


def _is_in_space(points: cst.BaseExpression, context: Context) -> bool:
    """Whether the points have two or three coordinates: `torch.stack((x, y), 1)`, `boxes[:, :2]`."""
    return all(_has_few_columns(value) for value in context.origins(points).nodes)


def _has_few_columns(value: cst.BaseExpression) -> bool:
    match value:
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="stack")),
            args=[cst.Arg(value=cst.Tuple(elements=parts) | cst.List(elements=parts)), cst.Arg(value=axis)],
        ):
            return len(parts) <= _FEW and integer(axis) in (-1, 1)
        case cst.Subscript(slice=[_, *_, cst.SubscriptElement(slice=cst.Slice(lower=low, upper=high, step=None))]):
            start = 0 if low is None else integer(low)
            end = None if high is None else integer(high)
            return start is not None and end is not None and 0 < end - start <= _FEW
        case cst.BinaryOperation(left=left, right=right):
            return _has_few_columns(left) or _has_few_columns(right)
    return False


def _chain(node: cst.BaseExpression) -> Iterator[cst.Call]:
    """The calls in `p.reshape(1, 1, 3).cuda()` and `F.normalize(torch.randn(1, 3))`, outermost first."""
    while isinstance(node, cst.Call):
        yield node
        if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Call):
            node = node.func.value
        elif node.args:
            node = node.args[0].value
        else:
            return


def _has_one_row(call: cst.Call) -> bool:
    """Whether the call gives a shape whose axes but the last are one: `randn(1, 1, 3)`, `view(1, -1)`."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _SHAPED:
        return False
    given = [argument.value for argument in call.args if argument.keyword is None]
    if len(given) == 1 and isinstance(given[0], (cst.Tuple, cst.List)):
        given = [element.value for element in given[0].elements]
    return len(given) > 1 and all(integer(axis) == 1 for axis in given[:-1])


_SHAPED = frozenset({"reshape", "view", "randn", "rand", "zeros", "ones", "empty"})
_KNOWN = ("dim", "axis", "p", "ord")


def _order(call: cst.Call, first: int, context: Context) -> int | None:
    """Of a norm, the order: 2 unless another is given."""
    given = context.argument(call, "p", first)
    given = given if given is not None else context.argument(call, "ord", first)
    number = 2 if given is None else integer(given)
    return number if number in (1, 2) else None


def _raised(node: cst.BaseExpression, context: Context) -> tuple[cst.BaseExpression, int] | None:
    """What is squared, with 2, or what the absolute value is taken of, with 1."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Power(), right=right) if integer(right) == 2:
            return left, 2
        case cst.Call(func=func, args=args):
            name = context.qualified_name(func)
            given = [argument.value for argument in args if argument.keyword is None and not argument.star]
            if name is None and isinstance(func, cst.Attribute):
                given, name = [func.value, *given], f"torch.{func.attr.value}"
            match name, given:
                case "torch.pow", [inner, exponent] if integer(exponent) == 2:
                    return inner, 2
                case "torch.square", [inner]:
                    return inner, 2
                case "torch.abs", [inner]:
                    return inner, 1
    return None


def _pair(
    node: cst.BaseExpression, context: Context
) -> tuple[cst.BaseExpression, cst.BaseExpression, int | None] | None:
    """The points whose differences are taken, and how many axes they have, where that is literal or all the same.

    Counted from the end, whatever stands before is a batch: the number is that of the last axis, which is -1.
    """
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract):
        return None
    left, right = _widened(node.left, context), _widened(node.right, context)
    if left is None or right is None:
        return None
    behind, before = (left, right) if left.place > right.place else (right, left)
    if (behind.place, before.place) == (-2, -3):
        return behind.tensor, before.tensor, -1
    if (behind.place, before.place) not in ((1, 0), (2, 1)):
        return None
    axes = behind.axes if behind.axes == before.axes == before.place + 2 else None
    return behind.tensor, before.tensor, axes


def _widened(node: cst.BaseExpression, context: Context) -> _Widened | None:
    match node:
        case cst.Call(func=func, args=args):
            name = context.qualified_name(func)
            given = [argument.value for argument in args]
            if name is None and isinstance(func, cst.Attribute):
                given, name = [func.value, *given], f"torch.{func.attr.value}"
            place = integer(given[1]) if name == "torch.unsqueeze" and len(given) == 2 else None
            return _Widened(given[0], place, None) if place is not None else None
        case cst.Subscript(value=tensor, slice=parts):
            slices = [part.slice for part in parts]
            nones = [place for place, part in enumerate(slices) if _is(part, "None")]
            dots = [place for place, part in enumerate(slices) if is_dots(part)]
            if len(nones) != 1 or not all(is_whole(part) or _is(part, "None") or is_dots(part) for part in slices):
                return None
            if dots:
                return _Widened(tensor, nones[0] - len(slices), None) if dots == [0] else None
            return _Widened(tensor, nones[0], len(slices) - 1)
    return None


def _is(part: cst.BaseSlice, word: str) -> bool:
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Name) and part.value.value == word
