"""Tensors with one row, a batch of one, that nothing is spared for by taking all rows at once; literal tables."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.tensors.element_counts import sizes
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.syntax.literals import integer

_TABLES = ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.LongTensor", "torch.FloatTensor")

# How many calls one after the other are followed.
# Methods that leave the axes as they are.
_SAME = frozenset(
    "cpu cuda to type type_as float double half bfloat16 long int short byte bool detach clone contiguous masked_fill_ "
    "requires_grad_ clamp clamp_ exp exp_ log log_ sigmoid tanh softmax log_softmax abs".split()
)


@query(bottom=False)
def has_one_row(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the first axis of all that the tensor may be is one long: `x.unsqueeze(0)`, `x.view(1, n)`, `x[None]`."""
    return all(_is_single(value, context) for value in context.origins(tensor).nodes)


def _is_single(value: cst.BaseExpression, context: Context) -> bool:
    match value:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="None"))), *_]):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="unsqueeze")), args=[*_, last]):
            return integer(last.value) == 0
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="view" | "reshape")), args=[first, _, *_]):
            return integer(first.value) == 1
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in _SAME:
            return has_one_row(owner, context)
    return False


def written_length(count: cst.BaseExpression, context: Context) -> int | None:
    """How much `len(x)`, `x.size(1)` or `x.shape[-1]` is where the tensor is a literal table; None elsewhere."""
    match count:
        case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=tensor)]):
            return length_along(tensor, 0, context)
        case (
            cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name(value="size")), args=[cst.Arg(value=place)])
            | cst.Subscript(
                value=cst.Attribute(value=tensor, attr=cst.Name(value="shape")),
                slice=[cst.SubscriptElement(slice=cst.Index(value=place))],
            )
        ):
            axis = integer(place)
            return None if axis is None else length_along(tensor, axis, context)
    return None


def length_along(tensor: cst.BaseExpression, axis: int, context: Context) -> int | None:
    """How long the axis of `torch.tensor([[0, 1, 2], [2, 1, 3]])` or `torch.zeros(2, n)` is; None if not literal."""
    found = {_written(value, axis, context) for value in context.origins(tensor).nodes}
    return found.pop() if len(found) == 1 else None


def _written(value: cst.BaseExpression, axis: int, context: Context) -> int | None:
    match value:
        case cst.Call(args=[first, *_]) if context.qualified_name(value.func) in _TABLES:
            axes = list(_axes(first.value))
            return axes[axis] if -len(axes) <= axis < len(axes) else None
    found = sizes(value, context) if isinstance(value, cst.Call) else None
    return found[axis] if found is not None and 0 <= axis < len(found) else None


def _axes(node: cst.BaseExpression) -> Iterator[int]:
    """The lengths of a list of lists, from the outermost."""
    while isinstance(node, (cst.List, cst.Tuple)):
        if not node.elements or any(isinstance(element, cst.StarredElement) for element in node.elements):
            return
        yield len(node.elements)
        node = node.elements[0].value
