"""What a loop goes over, as it is written."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.knowledge.conventions.counts import BATCH_SIZE
from torchlint.semantics.knowledge.conventions.functions import BAR_CALL
from torchlint.semantics.knowledge.conventions.values import LOADER
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import descendants

_PASSING = frozenset({"enumerate", "zip", "reversed", "list", "sorted"})


def iterables(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a loop goes over, without what only passes it on: `x` of `enumerate(x)`, `x` and `y` of `zip(x, y)`."""
    match node:
        case cst.Call(func=cst.Name(value=name), args=args) if name in _PASSING or BAR_CALL.suggests(name):
            for argument in args[: 1 if len(args) == 1 or name != "zip" else None]:
                yield from iterables(argument.value)
        case _:
            yield node


def walked(value: cst.BaseExpression, path: tuple[int, ...]) -> tuple[cst.BaseExpression, tuple[int, ...]]:
    """What the part of a loop's target at this path runs over: `y` for `b` of `for a, b in zip(x, y)`.

    With the path that is left in what one iteration gives of it.
    """
    match value, path:
        case cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=first), *_]), (1, *rest):
            return walked(first, tuple(rest))
        case cst.Call(func=cst.Name(value="zip"), args=args), (place, *rest) if 0 <= place < len(args):
            if not any(argument.star for argument in args):
                return walked(args[place].value, tuple(rest))
    return value, path


def length_of(node: cst.BaseExpression) -> cst.BaseExpression:
    """`x` of `range(len(x))`; anything else as it is."""
    match node:
        case cst.Call(
            func=cst.Name(value="range"),
            args=[cst.Arg(value=cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=of)]))],
        ):
            return of
    return node


def takes_loaders(target: cst.CSTNode) -> bool:
    """Whether what a loop binds is a loader by its name: `for name, loader in loaders` goes over no batches."""
    return any(isinstance(node, cst.Name) and LOADER.suggests(node.value) for node in descendants(target))


def is_short(iterated: cst.BaseExpression) -> bool:
    """Whether what a loop goes over is literal, or ends with something that is."""
    return any(
        isinstance(part, (cst.List, cst.Tuple)) and all(isinstance(element, cst.Element) for element in part.elements)
        for part in iterables(iterated)
    )


def is_one_turn(iterated: cst.BaseExpression) -> bool:
    """`range(1)`: a loop left over from trying things out."""
    match iterated:
        case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=cst.Integer(value="1"))]):
            return True
    return False


def walks_keys(loop: cst.CSTNode) -> bool:
    """`for k in found: found[k]`: what is walked is a dict, whatever it looked like."""
    match loop:
        case cst.For(target=cst.Name(value=key), iter=cst.Name(value=walked), body=body):
            return any(_is_entry(node, walked, key) for node in descendants(body))
    return False


def _is_entry(node: cst.CSTNode, walked: str, key: str) -> bool:
    match node:
        case cst.Subscript(
            value=cst.Name(value=owner),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=index)))],
        ):
            return owner == walked and index == key
    return False


def is_size(node: cst.BaseExpression) -> bool:
    """`len(x)`, `x.size(0)`, `x.shape[0]`, or a name for the size of a batch."""
    match node:
        case cst.Call(func=cst.Name(value="len")) | cst.Call(func=cst.Attribute(attr=cst.Name(value="size"))):
            return True
        case cst.Subscript(value=owner):
            return is_shape(owner)
        case cst.Name() | cst.Attribute():
            return BATCH_SIZE.suggests((dotted(node) or "").rpartition(".")[2])
        case cst.BinaryOperation(left=left, right=right):
            return is_size(left) or is_size(right)
    return False


def is_of_a_later_axis(node: cst.BaseExpression) -> bool:
    """`x.shape[1]`, `x.size(-1)`: samples lie along the first axis."""
    match node:
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=axis))]) if is_shape(owner):
            return _is_later(axis)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[cst.Arg(value=axis)]):
            return _is_later(axis)
    return False


def _is_later(axis: cst.BaseExpression) -> bool:
    match axis:
        case cst.Integer(value=number):
            return int(number) > 0
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer()):
            return True
    return False


def asks_for_a_list(test: cst.BaseExpression, iterated: cst.BaseExpression) -> bool:
    """Whether it is `isinstance(x, list)` for an `x` of what a loop goes over: several of what is else one batch."""
    asked = asked_for_a_list(test)
    named = [iterated, *descendants(iterated)]
    return isinstance(asked, cst.Name) and any(
        isinstance(part, cst.Name) and part.value == asked.value for part in named
    )


def asked_for_a_list(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The `x` of `isinstance(x, (list, tuple))`."""
    match test:
        case cst.Call(func=cst.Name(value="isinstance"), args=[cst.Arg(value=asked), cst.Arg(value=of)]):
            kinds = [of, *descendants(of)]
            is_list = any(isinstance(part, cst.Name) and part.value in ("list", "tuple") for part in kinds)
            return asked if is_list else None
    return None


def is_shape(node: cst.BaseExpression) -> bool:
    """`x.shape`, or `x.size()`."""
    match node:
        case cst.Attribute(attr=cst.Name(value="shape")):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[]):
            return True
    return False
