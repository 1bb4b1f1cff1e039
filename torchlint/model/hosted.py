"""What is computed from tensors on the CPU alone, by functions from elsewhere too, lives there as well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.names import final_part
from torchlint.model.numbers import definitions
from torchlint.model.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.model.context import Context

# How many calls one after the other are followed.
_DEEPEST = 4
_MOVES = re.compile(r"cuda|gpu|device|(^|_)to(_|$)|accelerat|prepare", re.IGNORECASE)
_NO_TENSORS = (Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DTYPE)


def is_made_on_host(node: cst.BaseExpression, context: Context) -> bool:
    """Whether all tensors that go into this are known to be on the CPU, and there is one."""
    return _is_hosted(node, context, 0) is True


def _is_hosted(node: cst.BaseExpression, context: Context, depth: int) -> bool | None:
    """Whether a tensor on the CPU is given; None for what is no tensor."""
    value = context.value(node)
    if value.kind in _NO_TENSORS:
        return None
    if value.kind is Kind.TENSOR and value.device is not Device.UNKNOWN:
        return value.device is Device.CPU
    if depth > _DEEPEST:
        return False
    match node:
        case cst.Name():
            found = [each for each in definitions(node, context) if each is not node]
            return _all([_is_hosted(each, context, depth + 1) for each in found]) if found else False
        case cst.BinaryOperation(left=left, right=right):
            return _all([_is_hosted(side, context, depth + 1) for side in (left, right)])
        case cst.Call(func=func, args=args) if not _MOVES.search(final_part(func)):
            given = [argument.value for argument in args]
            if isinstance(func, cst.Attribute) and context.qualified_name(func) is None:
                given.append(func.value)
            return _all([_is_hosted(each, context, depth + 1) for each in given])
    return False


def _all(found: list[bool | None]) -> bool:
    return False not in found and True in found
