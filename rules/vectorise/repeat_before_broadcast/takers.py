"""Whether all that takes a tensor reads a view of it as well, in which elements stand for several."""

from __future__ import annotations

from enum import Enum

import libcst as cst

from torchlint.analyses.tensors.aliasing import is_changed_in_place
from torchlint.semantics.context import Context

# What these give is new, and as large as what broadcasting makes of what they read.
_ELEMENTWISE = frozenset(
    "add sub mul div pow maximum minimum eq ne lt le gt ge where lerp logical_and logical_or masked_fill".split()
)
_INDEXED = frozenset({"gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "take_along_dim"})
_JOINING = frozenset(f"torch.{name}" for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack"))
_ONLY_LOOKED_AT = frozenset({"shape", "device", "dtype", "ndim"})
_ONLY_ASKED = frozenset({"size", "dim", "numel"})


class Reads(Enum):
    """What takes the tensor."""

    UNSEEN = "unseen"
    AS_INDEX = "as an index"  # of a `gather`, which is as large as its result
    AS_OPERAND = "as an operand"


def reads(node: cst.Call, owner: cst.BaseExpression, context: Context) -> Reads:
    """Whether all that takes what a call gives reads a view of `owner` as well."""
    used = context.destinations(node)
    places = [place for place in used.found if not _is_only_looked_at(place.node, context)]
    if used.lost or not places or not all(place.is_alone and not place.path for place in used.found):
        return Reads.UNSEEN
    found = {_taken(place.node, context) for place in places}
    if Reads.UNSEEN in found or _is_changed(owner, context):
        return Reads.UNSEEN
    return Reads.AS_INDEX if found == {Reads.AS_INDEX} else Reads.AS_OPERAND


def _is_changed(owner: cst.BaseExpression, context: Context) -> bool:
    """Whether the function changes what the tensor is made of in place, which a view would show."""
    while True:
        match owner:
            case cst.Call(func=cst.Attribute(value=inner)) if context.qualified_name(owner.func) is None:
                owner = inner
            case cst.Call(args=[first, *_]):
                owner = first.value
            case cst.Subscript(value=inner):
                owner = inner
            case cst.Name():
                bound = context.stands_for(owner)
                if is_changed_in_place(owner, context):
                    return True
                if bound is None or bound is owner or isinstance(bound, cst.Name):
                    return False
                owner = bound
            case cst.Attribute():
                return is_changed_in_place(owner, context)
            case _:
                return False


def _is_only_looked_at(node: cst.BaseExpression, context: Context) -> bool:
    match context.parent(node):
        case cst.Attribute(attr=cst.Name(value=name)) as asked:
            if name in _ONLY_LOOKED_AT:
                return True
            return name in _ONLY_ASKED and isinstance(context.parent(asked), cst.Call)
    return False


def _taken(node: cst.BaseExpression, context: Context) -> Reads:
    match context.parent(node):
        case cst.BinaryOperation(operator=operator) if not isinstance(operator, cst.MatrixMultiply):
            return Reads.AS_OPERAND
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            is_ordered = not isinstance(operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot))
            return Reads.AS_OPERAND if is_ordered else Reads.UNSEEN
        case cst.ComparisonTarget(operator=operator):
            is_ordered = not isinstance(operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot))
            return Reads.AS_OPERAND if is_ordered else Reads.UNSEEN
        case cst.UnaryOperation(operator=(cst.Minus() | cst.BitInvert())):
            return Reads.AS_OPERAND
        case cst.Element() as element:
            return Reads.AS_OPERAND if _is_joined(element, context) else Reads.UNSEEN
        case cst.Attribute(attr=cst.Name(value=name)) as method:
            call = context.parent(method)
            is_called = isinstance(call, cst.Call) and call.func is method
            is_read = name in _ELEMENTWISE or name == "gather"
            return Reads.AS_OPERAND if is_called and is_read else Reads.UNSEEN
        case cst.Arg() as argument:
            return _passed(argument, context)
    return Reads.UNSEEN


def _is_joined(element: cst.Element, context: Context) -> bool:
    """Whether it is one of the tensors that `torch.cat([…])` joins, which copies them anyway."""
    parts = context.parent(element)
    argument = context.parent(parts) if isinstance(parts, (cst.List, cst.Tuple)) else None
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or not call.args or call.args[0] is not argument or len(parts.elements) < 2:  # type: ignore[union-attr]
        return False
    return context.qualified_name(call.func) in _JOINING


def _passed(argument: cst.Arg, context: Context) -> Reads:
    call = context.parent(argument)
    if not isinstance(call, cst.Call) or argument.star:
        return Reads.UNSEEN
    name = context.qualified_name(call.func)
    if name is None:
        if not isinstance(call.func, cst.Attribute) or not context.is_tensor(call.func.value):
            return Reads.UNSEEN
        last = call.func.attr.value
        index_place = 1
    else:
        package, _, last = name.rpartition(".")
        if package != "torch":
            return Reads.UNSEEN
        index_place = 2
    if last in _INDEXED:
        is_index = context.argument(call, "index", index_place) is argument.value
        return Reads.AS_INDEX if is_index else Reads.AS_OPERAND
    return Reads.AS_OPERAND if last in _ELEMENTWISE else Reads.UNSEEN
