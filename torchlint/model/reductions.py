"""Python's own reductions where they are given a tensor: `sum(t)`, `max(t)`, `any(t)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.extent import is_sure_tensor, is_worth_batching

if TYPE_CHECKING:
    from torchlint.model.context import Context

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
            if not is_sure_tensor(given, context) or context.value(given).scalar:
                return None
            return given if is_worth_batching(call, given, context) else None
    return None
