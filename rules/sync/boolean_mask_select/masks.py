"""Which tensors are masks for certain: what comparing tensors gives, and what is made of that.

And what is put into the elements that they select, and what would put it there without asking where they are.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import Binder, Binding, dotted, last_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

_COMPARED = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_MADE = frozenset(
    "bool eq ne gt ge lt le isnan isinf isfinite logical_and logical_or logical_not logical_xor isin isclose".split()
)
# What keeps a mask a mask.
_KEPT = frozenset("to cuda cpu detach clone view reshape squeeze unsqueeze flatten contiguous expand expand_as".split())
# What `to` may be given that changes no type.
_PLACES = frozenset({"device", "cuda", "cpu"})


def mask_of(node: cst.Subscript, context: Context) -> cst.BaseExpression | None:
    """The mask by which `x[mask]` picks elements."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=index, star=None))]:
            return index if is_mask(index, context) else None
    return None


def mask_among(node: cst.Subscript, context: Context) -> cst.BaseExpression | None:
    """The mask among the indices of `x[i, mask, :]`."""
    for part in node.slice:
        match part.slice:
            case cst.Index(value=index, star=None) if _may_be_mask(index, context) and is_mask(index, context):
                return index
    return None


def _may_be_mask(index: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression, or what a name for it is bound to, has the shape of a mask: cheap to ask."""
    match index:
        case cst.Name():
            return any(map(_may_bind_one, context.names.lookup(index)[1])) or _is_taken_as_mask(index, context)
    return _looks_like_one(index)


def _may_bind_one(binding: Binding) -> bool:
    if binding.binder is Binder.PARAMETER:
        return True
    return binding.value is not None and type(binding.value) is not cst.Name and _looks_like_one(binding.value)


def _looks_like_one(node: cst.CSTNode) -> bool:
    match node:
        case cst.Comparison() | cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr() | cst.BitXor()):
            return True
        case cst.UnaryOperation(operator=operator):
            return isinstance(operator, cst.BitInvert)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args):
            return name in _MADE or name in _KEPT or any(last_part(argument.value) == "bool" for argument in args)
    return False


@query(bottom=False)
def is_mask(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is a tensor of truth values for certain."""
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            return isinstance(operator, _COMPARED) and Kind.TENSOR in (context.kind(left), context.kind(right))
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return is_mask(inner, context)
        case cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr() | cst.BitXor(), left=left, right=right):
            return is_mask(left, context) or is_mask(right, context)
        case cst.Call() if _is_made_of_truth_values(node, context):
            return True
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))):
            if name in _MADE:
                return context.kind(node) is Kind.TENSOR
            if name in ("to", "type") and any(last_part(argument.value) == "bool" for argument in node.args):
                return context.kind(node) is Kind.TENSOR
            if name == "to" and not all(last_part(argument.value) in _PLACES for argument in node.args):
                return False  # `mask.to(torch.float32)`, `mask.to(x)`; `mask.to(x.device)` stays one
            return name in _KEPT and is_mask(owner, context)
        case cst.Name():
            if context.origins(node, Through.UPDATES).every(lambda value: is_mask(value, context)):
                return True
            return _is_taken_as_mask(node, context) or _is_given_a_mask(node, context)
    return False


def _is_made_of_truth_values(call: cst.Call, context: Context) -> bool:
    """`torch.eye(n, dtype=torch.bool)`."""
    return any(
        argument.keyword is not None and argument.keyword.value == "dtype" and last_part(argument.value) == "bool"
        for argument in call.args
    ) and (context.qualified_name(call.func) or "").startswith("torch.")


# Methods whose first argument PyTorch takes only if it holds truth values.
_MASKED = frozenset({"masked_fill", "masked_fill_", "masked_select", "masked_scatter", "masked_scatter_"})


def _is_taken_as_mask(name: cst.Name, context: Context) -> bool:
    """Whether `x.masked_fill(mask, 0)` or `torch.where(mask, x, y)` is called with it: of anything else they raise."""
    return any(
        context.holds_the_same(use, name) and (owner is None or context.is_tensor(owner))
        for use, owner in context[_Taken].as_masks.get(name.value, ())
    )


class _Taken:
    """The names that a module passes where only truth values are taken, with the tensor whose method it is, if any."""

    def __init__(self, context: Context) -> None:
        self.as_masks: dict[str, list[tuple[cst.Name, cst.BaseExpression | None]]] = {}
        for call in context.tree.of(cst.Call):
            match call:
                case cst.Call(func=func, args=[first, _, _]) if context.qualified_name(func) == "torch.where":
                    self._add(first, None)
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)), args=[first, *_]):
                    if method in _MASKED and first.keyword is None:
                        self._add(first, owner)

    def _add(self, argument: cst.Arg, owner: cst.BaseExpression | None) -> None:
        match argument.value:
            case cst.Name() as use:
                pass
            case cst.Subscript(value=cst.Name() as use) if _keeps_values(argument.value):
                pass
            case _:
                return
        self.as_masks.setdefault(use.value, []).append((use, owner))


def _keeps_values(node: cst.Subscript) -> bool:
    """Whether it is `mask[..., None]`, which holds the same values as `mask`."""
    return all(
        isinstance(part.slice, cst.Slice)
        or (isinstance(part.slice, cst.Index) and isinstance(part.slice.value, cst.Ellipsis))
        or (isinstance(part.slice, cst.Index) and dotted(part.slice.value) == "None")
        for part in node.slice
    )


def _is_given_a_mask(name: cst.Name, context: Context) -> bool:
    """Whether the parameter is a mask by its annotation, or by what each caller in this file passes."""
    parameter = context.parameter(name)
    if parameter is None:
        return False
    if parameter.annotation is not None:
        return _is_annotated_as_mask(parameter.annotation.annotation, context)
    function = context.tree.function_of_parameter(parameter)
    if not isinstance(function, cst.FunctionDef):
        return False
    given = [context.calls.argument_for(call, function, parameter) for call in context.calls.callers(function)]
    return bool(given) and all(mask is not None and is_mask(mask, context) for mask in given)


def _is_annotated_as_mask(annotation: cst.BaseExpression, context: Context) -> bool:
    """`torch.BoolTensor`, and `Bool[Tensor, "batch"]` of jaxtyping."""
    outer = annotation.value if isinstance(annotation, cst.Subscript) else annotation
    return context.qualified_name(outer) in ("torch.BoolTensor", "jaxtyping.Bool")


_FINITE = frozenset("isnan isinf isfinite".split())


@query(bottom=False)
def is_for_gaps(mask: cst.BaseExpression, context: Context) -> bool:
    """Whether the mask tells what is not a number: `x == x`, `~torch.isnan(x)`.

    What it leaves out would poison the gradients of a loss that is taken of all, whatever is chosen of it in the end.
    """
    match mask:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            return context.code(left) == context.code(right)
        case cst.UnaryOperation(expression=inner):
            return is_for_gaps(inner, context)
        case cst.BinaryOperation(left=left, right=right):
            return is_for_gaps(left, context) or is_for_gaps(right, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))):
            return name in _FINITE or is_for_gaps(owner, context)
        case cst.Name():
            return any(
                isinstance(binder, cst.AugAssign) and is_for_gaps(binder.value, context)
                for binder in context.binders(mask)
            ) or context.origins(mask, Through.UPDATES).some(lambda value: is_for_gaps(value, context))
    return False


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
