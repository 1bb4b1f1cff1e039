"""Tensors with one row: a batch of one, that nothing is spared for by taking all rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.numbers import definitions
from torchlint.model.operators import integer

if TYPE_CHECKING:
    from torchlint.model.context import Context

# How many calls one after the other are followed.
_DEEPEST = 4
# Methods that leave the axes as they are.
_SAME = frozenset(
    "cpu cuda to type type_as float double half bfloat16 long int short byte bool detach clone contiguous masked_fill_ "
    "requires_grad_ clamp clamp_ exp exp_ log log_ sigmoid tanh softmax log_softmax abs".split()
)


def has_one_row(tensor: cst.BaseExpression, context: Context, depth: int = 0) -> bool:
    """Whether the first axis of all that the tensor may be is one long: `x.unsqueeze(0)`, `x.view(1, n)`, `x[None]`."""
    return depth < _DEEPEST and all(_is_single(value, context, depth) for value in definitions(tensor, context))


def _is_single(value: cst.BaseExpression, context: Context, depth: int) -> bool:
    match value:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="None"))), *_]):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="unsqueeze")), args=[*_, last]):
            return integer(last.value) == 0
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="view" | "reshape")), args=[first, _, *_]):
            return integer(first.value) == 1
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in _SAME:
            return has_one_row(owner, context, depth + 1)
    return False
