"""What is computed from tensors on the CPU alone, by functions from elsewhere too, lives there as well."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import MOVING_NAME
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import final_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# Through how many calls and names a result is followed back to what it is computed from.
_MOVES = ("to", "cuda", "type_as", "new_tensor")
_NUMBERS = (Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DTYPE)


@query(bottom=False)
def is_computed_on_host(node: cst.BaseExpression, context: Context) -> bool:
    """Whether functions alone, and no networks, have made this of tensors that are on the CPU: `iou(x.cpu(), y.cpu())`.

    What comes straight from a loader does not count: it may be moved before it gets there.
    """
    value = context.value(node)
    if value.kind is Kind.TENSOR and value.device is not Device.UNKNOWN:
        return value.device is Device.CPU and (not value.batch or _is_call_of(node, "cpu"))
    match node:
        case cst.Call(func=cst.Attribute(value=cst.BaseExpression() as owner, attr=cst.Name(value=method))) if (
            context.qualified_name(node.func) is None
        ):
            is_own = method not in _MOVES and (value.kind is Kind.TENSOR or method in METHODS)
            return is_own and is_computed_on_host(owner, context)
        case cst.Call(args=args) if _is_plain_function(node, context):
            given = [argument.value for argument in args if context.kind(argument.value) not in _NUMBERS]
            there = [part for part in given if is_computed_on_host(part, context)]
            return bool(there) and all(part in there or _goes_along(part, context) for part in given)
        case cst.BinaryOperation(left=left, right=right):
            sides = [side for side in (left, right) if context.kind(side) not in _NUMBERS]
            return bool(sides) and all(is_computed_on_host(side, context) for side in sides)
        case cst.Subscript(value=owner):
            return is_computed_on_host(owner, context)
        case cst.Name():
            origins = context.origins(node, Through.PARTS)
            return origins.is_complete and all(is_computed_on_host(origin.node, context) for origin in origins.found)
    return False


def _is_call_of(node: cst.BaseExpression, method: str) -> bool:
    return isinstance(node, cst.Call) and final_part(node.func) == method


def _is_plain_function(call: cst.Call, context: Context) -> bool:
    """Whether a function is called, of this file or imported, that does not move what it is given."""
    called = context.value(call.func)
    if isinstance(called.definition, cst.FunctionDef):
        parts = (part for part in descendants(called.definition.body) if isinstance(part, (cst.Name, cst.Attribute)))
        return called.kind is Kind.FUNCTION and not any(MOVING_NAME.suggests(final_part(part)) for part in parts)
    if any(argument.star or MOVING_NAME.suggests(context.uncommented(argument)) for argument in call.args):
        return False
    return called.kind is Kind.UNKNOWN and context.qualified_name(call.func) is not None


def _goes_along(node: cst.BaseExpression, context: Context) -> bool:
    """Whether an argument beside a tensor on the CPU is a part of a batch, or a name of which nothing is known."""
    value = context.value(node)
    return value.device is Device.CPU if value else isinstance(node, (cst.Name, cst.Attribute))
