"""Functions that move whatever they are handed, through lists and dictionaries, for batches of any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data.batch_moves import is_to_accelerator
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

_HELD = (Kind.TENSOR, Kind.UNKNOWN, Kind.OBJECT)


def is_move_of_a_helper(call: cst.Call, context: Context) -> bool:
    """Whether the call moves what its function is handed, and the function is one for all tensors of a nest.

    It calls itself for the parts, or is itself handed to what goes through them: `tree_map(lambda t: t.to(d), batch)`.
    """
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.Name):
        return False
    function = _taker(call.func.value, context)
    if function is None or not is_to_accelerator(call, context) or context.kind(call.func.value) not in _HELD:
        return False
    if not _calls_itself(function, context) and not _is_handed_on(function, context):
        return False
    return not any(map(_speaks_of_it, descendants(function)))


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
