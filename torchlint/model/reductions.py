"""Python's own reductions where they are given a tensor: `sum(t)`, `max(t)`, `any(t)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.amounts import amount
from torchlint.model.extent import FEW_IN_ALL, is_sure_tensor, is_worth_batching
from torchlint.model.numbers import definitions
from torchlint.model.values import Device

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
            if not is_sure_tensor(given, context) or context.value(given).scalar or _is_handful(given, context):
                return None
            return given if is_worth_batching(call, given, context) else None
    return None


def _is_handful(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor is made with a few elements on the CPU."""
    numbers = [amount(made, context) for made in definitions(tensor, context) if isinstance(made, cst.Call)]
    few = bool(numbers) and all(number is not None and number <= FEW_IN_ALL for number in numbers)
    return few and context.device(tensor) is Device.CPU
