"""Python's own reductions where they are given a tensor: `sum(t)`, `max(t)`, `any(t)`."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.batching.extent import FEW_IN_ALL, is_sure_tensor, is_worth_batching
from torchlint.analyses.tensors.element_counts import amount
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.values.lattice import Device

_CASTS = frozenset("int long short byte bool float double half".split())
BUILTINS = ("sum", "max", "min", "any", "all", "sorted")
# What a tensor may be the value of; most calls are given a list or a generator.
_GIVEN = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BinaryOperation, cst.Comparison)


def reduced(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The tensor that a builtin goes over row by row, as its only argument; None where nothing is to be gained.

    A tensor without an axis would be an error there, so this one has some.
    """
    match call:
        case cst.Call(func=cst.Name(value=name) as func, args=[cst.Arg(value=given, keyword=None, star="")]):
            if name not in BUILTINS or not isinstance(given, _GIVEN) or context.qualified_name(func) != name:
                return None
            if not is_sure_tensor(given, context) or context.value(given).scalar or _is_handful(given, context):
                return None
            return given if is_worth_batching(call, given, context) else None
    return None


def _is_handful(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor is made with a few elements on the CPU, or of a list that Python has been over as well."""
    if context.device(tensor) is not Device.CPU:
        return False
    found = _made(tensor, context)
    return bool(found) and all(_is_repeated(call, context) or _is_short(call, context) for call in found)


@query(bottom=())
def _made(tensor: cst.BaseExpression, context: Context) -> tuple[cst.Call, ...]:
    """The calls that make the tensor, before it is cast or compared."""
    found: list[cst.Call] = []
    for value in context.origins(tensor).nodes:
        match value:
            case cst.Comparison(left=inner):
                found += _made(inner, context)
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=[]) if name in _CASTS:
                found += _made(inner, context)
            case cst.Call():
                found.append(value)
    return tuple(found)


def _is_short(call: cst.Call, context: Context) -> bool:
    number = amount(call, context)
    return number is not None and number <= FEW_IN_ALL


def _is_repeated(call: cst.Call, context: Context) -> bool:
    """`torch.tensor([each] * classes)`."""
    match call.args:
        case [cst.Arg(value=cst.BinaryOperation(left=cst.List(), operator=cst.Multiply())), *_]:
            return context.qualified_name(call.func) in ("torch.tensor", "torch.as_tensor")
    return False
