"""What is put into the elements that a mask selects, and what would put it there without asking where they are."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# Methods and functions that work element by element, and so may as well work on what is not selected.
_ELEMENTWISE = frozenset(
    "abs exp log sqrt sigmoid tanh relu clamp clamp_min clamp_max neg pow square float half long int double bool "
    "to type_as detach round floor ceil sin cos log1p expm1 rsqrt reciprocal add sub mul div".split()
)


class Write(NamedTuple):
    """An assignment to `x[mask]`.

    `others` are the selections by the same mask on its right, which go with it. `keeps_the_shape`: what is assigned has
    the shape of `x` where nothing is selected, or of one element, so that `instead` does the same for certain.
    """

    others: tuple[cst.Subscript, ...]
    instead: str
    keeps_the_shape: bool
    reads_itself: bool

    @classmethod
    def of(cls, node: cst.Subscript, mask: cst.BaseExpression, context: Context) -> Write | None:
        """The assignment to the selection; None where PyTorch fills by the mask, or where it is another statement."""
        if not all(_is_whole(part.slice, mask) for part in node.slice):
            return None  # other indices beside the mask
        target = context.code(node.value)
        by = context.shown(mask)
        match context.parent(node):
            case cst.AugAssign():
                return cls((), f"torch.where({by}, …, {target})", keeps_the_shape=True, reads_itself=True)
            case cst.AssignTarget() as left:
                statement = context.parent(left)
                if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
                    return None
                value = statement.value
            case _:
                return None
        if not _is_on_device(value, context):
            return None
        others = _selected_alike(value, node, context)
        if isinstance(value, cst.Subscript) and value in others:
            source = context.shown(value.value)
            return cls(others, f"torch.where({by}, {source}, {target})", keeps_the_shape=True, reads_itself=False)
        if others:
            if not _is_elementwise(value, others, context):
                return None  # what is done with a selection is reported as such
            itself = any(context.code(other.value) == target for other in others)
            return cls(others, f"torch.where({by}, …, {target})", keeps_the_shape=True, reads_itself=itself)
        if context.value(value).scalar:
            instead = f"torch.where({by}, {context.shown(value)}, {target})"
            return cls((), instead, keeps_the_shape=True, reads_itself=False)
        return cls((), f"{target}.masked_scatter_({by}, …)", keeps_the_shape=False, reads_itself=False)


def _is_whole(part: cst.BaseSlice, mask: cst.BaseExpression) -> bool:
    """Whether this is the mask, `:` or `...`."""
    match part:
        case cst.Slice(lower=None, upper=None, step=None) | cst.Index(value=cst.Ellipsis()):
            return True
        case cst.Index(value=value):
            return value is mask
    return False


def _is_on_device(value: cst.BaseExpression, context: Context) -> bool:
    """Whether a tensor is assigned, and not surely one on the CPU, of which PyTorch would fill one element in."""
    held = context.value(value)
    return held.kind is Kind.TENSOR and held.proven and held.device is not Device.CPU


def _selected_alike(value: cst.BaseExpression, node: cst.Subscript, context: Context) -> tuple[cst.Subscript, ...]:
    """The `y[mask]` within what is assigned to `x[mask]`."""
    index = [context.code(part.slice) for part in node.slice]
    return tuple(
        part
        for part in (value, *descendants(value))
        if isinstance(part, cst.Subscript)
        and [context.code(each.slice) for each in part.slice] == index
        and context.is_tensor(part.value)
    )


def _is_elementwise(value: cst.BaseExpression, selected: tuple[cst.Subscript, ...], context: Context) -> bool:
    """Whether the value is computed of the selections and of numbers, element by element."""
    if value in selected:
        return True
    match value:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            is_product = isinstance(operator, cst.MatrixMultiply)
            return not is_product and all(_is_elementwise(side, selected, context) for side in (left, right))
        case cst.UnaryOperation(expression=inner):
            return _is_elementwise(inner, selected, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=args) if name in _ELEMENTWISE:
            given = [owner] if name in METHODS and context.is_tensor(owner) else []
            parts = [*given, *(argument.value for argument in args)]
            return all(_is_elementwise(part, selected, context) for part in parts)
    return context.value(value).scalar or context.kind(value) in (Kind.NUMBER, Kind.DTYPE, Kind.DEVICE)
