"""Functions that move whatever they are handed, through lists and dictionaries, for batches of any shape."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.data.batch_moves import is_to_accelerator
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import ELEMENT, Through
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants

_HELD = (Kind.TENSOR, Kind.UNKNOWN, Kind.OBJECT)


def is_move_of_a_helper(call: cst.Call, context: Context) -> bool:
    """Whether the call moves what its function is handed, and the function is one for all tensors of a nest.

    It calls itself for the parts, is itself handed to what goes through them, `tree_map(lambda t: t.to(d), batch)`, or
    goes through what it is given and asks of each part whether it is a tensor.
    """
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.Name):
        return False
    moved = call.func.value
    function = _taker(moved, context)
    is_of_parts = function is None
    if function is None:
        function = _walker(moved, context)
    if function is None or not is_to_accelerator(call, context) or context.kind(moved) not in _HELD:
        return False
    if is_of_parts:
        if not _is_asked_for_a_tensor(call, moved, context):
            return False
    elif not _calls_itself(function, context) and not _is_handed_on(function, context):
        return False
    return not any(map(_speaks_of_it, descendants(function)))


def parts_moved_with(call: cst.Call, context: Context) -> list[cst.Call]:
    """The moves of parts that a function takes out of one mapping it is handed, `batch["ids"].to(device)`, if several.

    There are none where the function speaks of `non_blocking`: whoever does has thought of it.
    """
    owner, function = _mapping_of(call, context), context.function(call)
    if owner is None or not isinstance(function, cst.FunctionDef):
        return []
    moves = [
        other
        for other in descendants(function.body)
        if isinstance(other, cst.Call)
        and (its := _mapping_of(other, context)) is not None
        and context.holds_the_same(its, owner)
        and is_to_accelerator(other, context)
    ]
    keys = {context.code(other.func.value) for other in moves if isinstance(other.func, cst.Attribute)}
    return [] if len(keys) < 2 or any(map(_speaks_of_it, descendants(function))) else moves


def _mapping_of(call: cst.Call, context: Context) -> cst.Name | None:
    """The `batch` of `batch["ids"].to(device)`, where the function of the call is handed it."""
    match call.func:
        case cst.Attribute(
            value=cst.Subscript(
                value=cst.Name() as owner,
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))],
            ),
            attr=cst.Name(value="to" | "cuda"),
        ) if _taker(owner, context) is not None and context.kind(owner) in (*_HELD, Kind.MAPPING):
            return owner
    return None


def _speaks_of_it(node: cst.CSTNode) -> bool:
    """Whether this names the argument, as it is or for `**kwargs`: whoever does has thought of it."""
    match node:
        case cst.Name(value="non_blocking"):
            return True
        case cst.SimpleString():
            return node.evaluated_value == "non_blocking"
    return False


def _taker(moved: cst.Name, context: Context) -> cst.FunctionDef | cst.Lambda | None:
    """The function that has what is moved as a parameter."""
    parameter = context.parameter(moved)
    if parameter is None or parameter.star or context.function(moved) is None:
        return None
    function = context.tree.function_of_parameter(parameter)
    return function if function is context.function(moved) else None


def _walker(moved: cst.Name, context: Context) -> cst.FunctionDef | None:
    """The function that is handed what a loop takes this out of: `for name, part in batch.items()`."""
    function = context.function(moved)
    taken = context.bound_to(moved, Through.ELEMENTS)
    if not isinstance(function, cst.FunctionDef) or taken.lost or len(taken.found) != 1:
        return None
    if ELEMENT not in taken.found[0].path:
        return None
    match taken.found[0].node:
        case cst.Name() as walked:
            pass
        case cst.Call(func=cst.Attribute(value=cst.Name() as walked, attr=cst.Name(value="items" | "values")), args=[]):
            pass
        case _:
            return None
    parameter = context.parameter(walked)
    if parameter is None or parameter.star:
        return None
    return function if context.tree.function_of_parameter(parameter) is function else None


def _is_asked_for_a_tensor(call: cst.Call, moved: cst.Name, context: Context) -> bool:
    """Whether the call runs only where what it moves is a tensor, or has `to`: other parts are left as they are."""
    return any(outcome and _asks_for_a_tensor(test, moved.value, context) for test, outcome in context.conditions(call))


def _asks_for_a_tensor(test: cst.BaseExpression, name: str, context: Context) -> bool:
    match test:
        case cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=asked)), *others]) if asked == name:
            match context.qualified_name(func), others:
                case "isinstance", [cst.Arg(value=class_)]:
                    return context.qualified_name(class_) == "torch.Tensor"
                case "torch.is_tensor", []:
                    return True
                case "hasattr", [cst.Arg(value=cst.SimpleString() as attribute)]:
                    return attribute.evaluated_value in ("to", "cuda")
    return False


def _calls_itself(function: cst.FunctionDef | cst.Lambda, context: Context) -> bool:
    if not isinstance(function, cst.FunctionDef):
        return False
    return any(context.tree.within(call, function.body) for call in context.calls.callers(function))


def _is_handed_on(function: cst.FunctionDef | cst.Lambda, context: Context) -> bool:
    """Whether a call takes the function, and beside it what the function around was given."""
    handed = [function] if isinstance(function, cst.Lambda) else context.uses.of(function.name.value, function)
    for use in handed:
        argument = context.parent(use)
        call = context.parent(argument) if isinstance(argument, cst.Arg) else None
        if isinstance(call, cst.Call) and any(
            _is_given(other.value, function, context) for other in call.args if other is not argument
        ):
            return True
    return False


def _is_given(node: cst.BaseExpression, inner: cst.FunctionDef | cst.Lambda, context: Context) -> bool:
    """Whether this is a parameter of the function in which another one is written, and holds no module."""
    parameter = context.parameter(node)
    if parameter is None or context.kind(node) not in (*_HELD, Kind.SEQUENCE, Kind.MAPPING):
        return False
    outer = context.tree.function_of_parameter(parameter)
    return outer is not None and outer is not inner and any(part is inner for part in descendants(outer))
