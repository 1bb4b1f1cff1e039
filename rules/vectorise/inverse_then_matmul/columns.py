"""Tensors that are one vector for each matrix they meet: with one axis, or with a last axis of one place."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.iteration.targets import names_in, picks_one
from torchlint.analyses.tensors.ranks import has_one_axis
from torchlint.semantics.context import Context
from torchlint.syntax.literals import integer

_FACTORIES = frozenset({"torch.ones", "torch.zeros", "torch.randn", "torch.rand", "torch.empty"})


def is_one_column(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor is a vector, or a matrix with one column, whatever it is made from."""
    return has_one_axis(node, context) or all(_has_column(value, context) for value in context.origins(node).nodes)


def _has_column(value: cst.BaseExpression, context: Context) -> bool:
    match value:
        case cst.Call(func=func, args=[*_, cst.Arg(value=last, star="")] as args):
            name = context.qualified_name(func)
            if name == "torch.unsqueeze":
                return integer(last) == -1
            if name in _FACTORIES:
                sizes = [argument.value for argument in args if argument.keyword is None]
                return bool(sizes) and integer(sizes[-1]) == 1 and len(sizes) > 1
            if name is None and isinstance(func, cst.Attribute):
                match func.attr.value:
                    case "unsqueeze":
                        return integer(last) == -1
                    case "reshape" | "view":
                        return len(args) > 1 and integer(last) == 1
        case cst.Subscript(slice=[*before, cst.SubscriptElement(slice=last)]) if before:
            return _is_one_place(last)
    return False


def _is_one_place(part: cst.BaseSlice) -> bool:
    """`None`, `-1:`, `:1`, `i : i + 1`."""
    match part:
        case cst.Index(value=cst.Name(value="None")):
            return True
        case cst.Slice(lower=cst.UnaryOperation() as lower, upper=None, step=None):
            return integer(lower) == -1
        case cst.Slice(lower=None | cst.Integer(value="0"), upper=cst.Integer(value="1"), step=None):
            return True
        case cst.Slice(lower=cst.Integer(value=low), upper=cst.Integer(value=high), step=None):
            return int(high, 0) - int(low, 0) == 1
        case cst.Slice(lower=cst.Name() as low, step=None):
            return picks_one(part, names_in(low))
    return False
