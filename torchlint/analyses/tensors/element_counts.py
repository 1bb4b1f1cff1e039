"""How many elements a factory makes, as far as its sizes are literal."""

from __future__ import annotations

import math
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.apis import LEGACY_TENSORS

# The sizes of the axes, None for one that is not literal.
Sizes: TypeAlias = "list[int | None]"

_SIZED = frozenset("zeros ones empty rand randn".split())
# Of the others, where the size stands: by position, and as a keyword.
_PLACED = {
    **dict.fromkeys("randperm eye".split(), (0, "n")),
    **dict.fromkeys("linspace logspace".split(), (2, "steps")),
    **dict.fromkeys("bartlett blackman hamming hann kaiser".split(), (0, "window_length")),
    "full": (0, "size"),
    "normal": (2, "size"),
}


def sizes(call: cst.Call, context: Context) -> Sizes | None:
    """The sizes of what a factory of torch makes; None where even the number of its axes is not in sight."""
    root, _, name = (context.qualified_name(call.func) or "").rpartition(".")
    if root != "torch" or context.has_unpacking(call):
        return None
    plain = [argument.value for argument in call.args if argument.keyword is None]
    if (name == "tensor" or name in LEGACY_TENSORS) and len(call.args) == 1 and _is_data(plain):
        return _items(plain[0])
    if name in _SIZED or name in LEGACY_TENSORS:
        given = context.argument(call, "size")
        return _axes([given] if given is not None else plain)
    if name == "randint":
        given = context.argument(call, "size") or (plain[-1] if len(plain) > 1 else None)
        return _axes([given]) if isinstance(given, (cst.Tuple, cst.List)) else None
    if name == "arange":
        return [_steps(plain)] if len(plain) == len(call.args) or len(plain) == 1 else [None]
    place = _PLACED.get(name.removesuffix("_window"))
    if place is None:
        return None
    size = context.argument(call, place[1], place[0])
    if size is None:
        return None
    if name == "eye":
        return _axes([size, context.argument(call, "m", 1) or size])
    return _axes([size])


def amount(call: cst.Call, context: Context) -> int | None:
    """The number of elements of what a factory makes; None where a size is not literal and none is 0."""
    found = sizes(call, context)
    if found is None:
        return None
    if 0 in found:
        return 0
    known = [size for size in found if size is not None]
    return math.prod(known) if len(known) == len(found) else None


def _is_data(given: list[cst.BaseExpression]) -> bool:
    return len(given) == 1 and isinstance(given[0], (cst.Tuple, cst.List))


def _items(data: cst.BaseExpression) -> Sizes | None:
    """The length of a list of numbers; a list of anything else may be one of rows."""
    assert isinstance(data, (cst.Tuple, cst.List))
    numbers = (cst.BaseNumber, cst.UnaryOperation)
    return [len(data.elements)] if all(isinstance(element.value, numbers) for element in data.elements) else None


def _axes(given: list[cst.BaseExpression]) -> Sizes:
    if len(given) == 1 and isinstance(given[0], (cst.Tuple, cst.List)):
        given = [element.value for element in given[0].elements]
    return [_literal(size) for size in given]


def _steps(given: list[cst.BaseExpression]) -> int | None:
    bounds = [_literal(bound) for bound in given]
    known = [bound for bound in bounds if bound is not None]
    return len(range(*known)) if 0 < len(known) == len(bounds) <= 3 and known[2:] != [0] else None


def _literal(node: cst.BaseExpression) -> int | None:
    match node:
        case cst.Integer():
            return int(node.evaluated_value)
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() as inner):
            return -int(inner.evaluated_value)
    return None
