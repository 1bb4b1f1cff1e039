"""Parts of one tensor, taken by number one at a time and joined again: `torch.stack([x[i] for i in idx])`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.batching.comprehension_reads import is_listed
from torchlint.analyses.batching.extent import is_sure_tensor, is_worth_batching
from torchlint.analyses.iteration.targets import names_in, picks_one
from torchlint.analyses.tensors.ranks import Numbers, numbers_of
from torchlint.semantics.context import Context
from torchlint.semantics.values.lattice import Kind, item_of
from torchlint.syntax.literals import integer

JOINS = ("torch.stack", "torch.cat", "torch.concat", "torch.concatenate")
_LISTS = frozenset("list sorted".split())


@dataclass(frozen=True, slots=True)
class Stack:
    """`call` joins the parts of `tensor` that the numbers in `indices` name, along the first axis."""

    call: cst.Call
    tensor: cst.BaseExpression
    indices: cst.BaseExpression


def stack(call: cst.Call, context: Context) -> Stack | None:
    """What the call joins; None where the parts are no rows of one tensor, or nothing is to be gained."""
    parts = _parts(call, context)
    if parts is None:
        return None
    match parts.for_in:
        case cst.CompFor(target=cst.Name(value=index), iter=indices, ifs=[], inner_for_in=None, asynchronous=None):
            tensor = _row_of(parts.elt, index, is_cut=context.qualified_name(call.func) != "torch.stack")
        case _:
            return None
    if tensor is None or index in names_in(tensor) or not _are_numbers(indices, context):
        return None
    if not is_sure_tensor(tensor, context):
        return None
    return Stack(call, tensor, indices) if is_worth_batching(call, tensor, context) else None


def is_stacked(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node is what a stack takes in each iteration."""
    above = context.parent(node)
    if not isinstance(above, (cst.ListComp, cst.GeneratorExp)) or above.elt is not node:
        return False
    argument = context.parent(above)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if isinstance(call, cst.Call) and context.qualified_name(call.func) in ("list", "tuple"):
        argument = context.parent(call)
        call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or context.qualified_name(call.func) not in JOINS:
        return False
    return stack(call, context) is not None


def is_all_there_is(step: cst.CSTNode, context: Context) -> bool:
    """Whether what a loop does here to one element is all that a comprehension does: to read it, or to take it."""
    return is_listed(step, context) or is_stacked(step, context)


def is_list(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is a list for certain: a tuple of numbers would say one for each axis."""
    match node:
        case cst.List() | cst.ListComp():
            return True
        case cst.Call(func=cst.Name() as func):
            return context.qualified_name(func) in _LISTS
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="tolist"))):
            return True
        case cst.Name():
            return context.kind(node) is Kind.SEQUENCE and context.origins(node).every(
                lambda value: not isinstance(value, cst.Name) and is_list(value, context)
            )
    return False


def _parts(call: cst.Call, context: Context) -> cst.ListComp | cst.GeneratorExp | None:
    """The comprehension that is joined along the first axis."""
    dim = None
    for place, argument in enumerate(call.args[1:], 1):
        if argument.star or dim is not None or (argument.keyword is None and place != 1):
            return None
        if argument.keyword is not None and argument.keyword.value not in ("dim", "axis"):
            return None
        dim = argument.value
    if not call.args or call.args[0].star or (dim is not None and integer(dim) != 0):
        return None
    keyword, given = call.args[0].keyword, call.args[0].value
    if keyword is not None and keyword.value != "tensors":
        return None
    if isinstance(given, cst.Call) and len(given.args) == 1:
        if context.qualified_name(given.func) not in ("list", "tuple"):
            return None
        given = given.args[0].value
    return given if isinstance(given, (cst.ListComp, cst.GeneratorExp)) else None


def _row_of(part: cst.BaseExpression, index: str, *, is_cut: bool) -> cst.BaseExpression | None:
    """The tensor of which `x[i]` takes a row or, where they are joined end to end, `x[i : i + 1]` and `x[i][None]`."""
    match part:
        case cst.Subscript(value=tensor, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=name)))]):
            if not is_cut:
                return tensor if name == index else None
            return _row_of(tensor, index, is_cut=False) if name == "None" else None
        case cst.Subscript(value=tensor, slice=[cst.SubscriptElement(slice=cst.Slice() as cut)]) if is_cut:
            return tensor if cut.step is None and picks_one(cut, {index}) else None
        case cst.Call(
            func=cst.Attribute(value=row, attr=cst.Name(value="unsqueeze")),
            args=[cst.Arg(value=cst.Integer(value="0"))],
        ) if is_cut:
            return _row_of(row, index, is_cut=False)
    return None


def _are_numbers(indices: cst.BaseExpression, context: Context) -> bool:
    """Whether looping over this gives whole numbers that name rows: no keys, no masks, no lists of numbers."""
    if isinstance(indices, cst.Call) and context.qualified_name(indices.func) == "range":
        return True
    value = context.value(indices)
    if value.kind is Kind.TENSOR:
        is_mask = any(numbers_of(made, context) is Numbers.BOOL for made in context.origins(indices).nodes)
        return is_sure_tensor(indices, context) and not is_mask
    if value.kind is Kind.NDARRAY:
        return True
    return value.kind is Kind.SEQUENCE and item_of(value).kind is Kind.NUMBER
