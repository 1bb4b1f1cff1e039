"""Which axes of a tensor have one element, as far as the code that makes it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import libcst as cst

from torchlint.analyses.tensors.ranks import has_one_axis
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.syntax.literals import integer

# What gives a tensor of the same axes.
_KEEPING = frozenset("float half double long int bool to type cuda cpu detach clone contiguous type_as".split())
_KEEPING_FUNCTIONS = frozenset(f"torch.{name}" for name in ("sigmoid", "exp", "tanh", "relu"))
_REDUCTIONS = frozenset("sum mean amax amin max min norm prod std var any all argmax argmin logsumexp".split())


class Axes(Enum):
    """Whether what is repeated along an axis is one element, or nothing yet."""

    YES = "yes"
    LIKELY = "likely"  # unless `repeat` is given more numbers than the tensor has axes
    NO = "no"


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of the axes of a tensor.

    `rank` is how many it has, where that is known, and `least` how many at least. Those with one element are counted
    from the first on, in `front`, or with negative numbers from the last on, in `back`.
    """

    rank: int | None = None
    least: int = 0
    front: frozenset[int] = frozenset()
    back: frozenset[int] = frozenset()

    def is_single(self, place: int, numbers: int) -> Axes:
        """Whether what the number at this place, of so many, repeats is one element, or is repeated as a whole."""
        rank = self.rank if self.rank is not None else numbers if self.least >= numbers else None
        if rank is not None:
            axis = place - (numbers - rank)
            return Axes.YES if axis < 0 or axis in self.front or axis - rank in self.back else Axes.NO
        if place - numbers in self.back or (place == 0 and 0 in self.front):
            return Axes.YES
        return Axes.LIKELY if place in self.front else Axes.NO

    def is_new(self, place: int, numbers: int) -> bool:
        """Whether the tensor is known to have no axis for the number at this place, so that `repeat` adds one."""
        return self.rank is not None and place < numbers - self.rank

    def with_axis(self, place: int) -> Shape:
        """The same with a further axis of one element at this place of the result."""
        rank = None if self.rank is None else self.rank + 1
        least = max(self.least + 1, place + 1 if place >= 0 else -place)
        if place >= 0:
            front = frozenset(axis if axis < place else axis + 1 for axis in self.front) | {place}
            return Shape(rank, least, front, self.back if self.rank is None and place == 0 else frozenset())
        back = frozenset(axis if axis > place else axis - 1 for axis in self.back) | {place}
        front = frozenset() if self.rank is None else self.front
        return Shape(rank, least, front if place == -1 else frozenset(), back)


def numbers(call: cst.Call, context: Context) -> tuple[cst.BaseExpression, ...] | None:
    """How often each axis is repeated: `repeat(1, n)`, `repeat([1, n])`; None where that is not literal."""
    if not call.args or context.has_unpacking(call) or any(argument.keyword is not None for argument in call.args):
        return None
    match call.args:
        case [cst.Arg(value=(cst.List(elements=elements) | cst.Tuple(elements=elements)))]:
            if any(isinstance(element, cst.StarredElement) for element in elements):
                return None
            return tuple(element.value for element in elements)
        case [cst.Arg(value=only)] if integer(only) is None:
            return None  # a number, or all numbers
    return tuple(argument.value for argument in call.args)


@query(bottom=Shape())
def axes_of(node: cst.BaseExpression, context: Context) -> Shape:
    """What is known of the axes of what an expression holds."""
    match node:
        case cst.Name():
            bound = context.stands_for(node)
            if bound is not None and bound is not node:
                return axes_of(bound, context)
            return Shape(1, 1) if has_one_axis(node, context) else Shape()
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))):
            name = context.qualified_name(node.func)
            if name is None:
                return _of_method(node, owner, method, context)
            return _of_function(node, name, context)
        case cst.Subscript(value=owner, slice=parts):
            return _of_parts(node, owner, parts, context)
        case cst.Attribute(value=cst.Call() as inner, attr=cst.Name(value="values" | "indices")):
            return axes_of(inner, context)
    return Shape()


def _of_method(call: cst.Call, owner: cst.BaseExpression, method: str, context: Context) -> Shape:
    if method in _KEEPING:
        return axes_of(owner, context)
    if method == "unsqueeze":
        return _unsqueezed(owner, context.argument(call, "dim", 0), context)
    if method in ("view", "reshape"):
        sizes = numbers(call, context)
        return _of_sizes(sizes) if sizes is not None else Shape()
    if method in _REDUCTIONS:
        return _reduced(call, 0, context)
    return Shape(1, 1) if has_one_axis(call, context) else Shape()


def _of_function(call: cst.Call, name: str, context: Context) -> Shape:
    package, _, last = name.rpartition(".")
    if package != "torch" or not call.args:
        return Shape()
    if name in _KEEPING_FUNCTIONS:
        return axes_of(call.args[0].value, context)
    if last == "unsqueeze":
        return _unsqueezed(call.args[0].value, context.argument(call, "dim", 1), context)
    if last in _REDUCTIONS:
        return _reduced(call, 1, context)
    return Shape(1, 1) if last in ("arange", "linspace") or has_one_axis(call, context) else Shape()


def _unsqueezed(owner: cst.BaseExpression, place: cst.BaseExpression | None, context: Context) -> Shape:
    number = integer(place) if place is not None else None
    return Shape() if number is None else axes_of(owner, context).with_axis(number)


def _of_sizes(sizes: tuple[cst.BaseExpression, ...]) -> Shape:
    ones = frozenset(axis for axis, size in enumerate(sizes) if integer(size) == 1)
    return Shape(len(sizes), len(sizes), ones)


def _reduced(call: cst.Call, first: int, context: Context) -> Shape:
    """`x.mean(1, keepdim=True)`: the axis stays, with one element."""
    kept = context.argument(call, "keepdim", first + 1)
    place = context.argument(call, "dim", first)
    number = integer(place) if place is not None else None
    if number is None or not (isinstance(kept, cst.Name) and kept.value == "True"):
        return Shape()
    if number >= 0:
        return Shape(None, number + 1, frozenset({number}))
    return Shape(None, -number, back=frozenset({number}))


def _of_parts(
    node: cst.Subscript, owner: cst.BaseExpression, parts: Sequence[cst.SubscriptElement], context: Context
) -> Shape:
    """`x[:, None]` and `x[..., None]`; the first of what `max(1, keepdim=True)` gives."""
    kept = axes_of(owner, context)
    if len(parts) == 1 and isinstance(parts[0].slice, cst.Index) and integer(parts[0].slice.value) in (0, 1):
        return kept if _gives_several(owner, context) else Shape()
    axes: list[bool] = []
    is_open = False
    for part in parts:
        match part.slice:
            case cst.Slice():
                axes.append(False)
            case cst.Index(value=cst.Name(value="None")):
                axes.append(True)
            case cst.Index(value=cst.Ellipsis()) if not is_open and not axes:
                is_open = True
            case _:
                return Shape()
    if is_open:
        return Shape(None, len(axes), back=frozenset(at - len(axes) for at, one in enumerate(axes) if one))
    return Shape(None, len(axes), frozenset(axis for axis, one in enumerate(axes) if one))


def _gives_several(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a call that gives values and indices: `x.max(1, keepdim=True)`."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="max" | "min"))):
            place = 0 if context.qualified_name(node.func) is None else 1
            return context.argument(node, "dim", place) is not None
    return False
