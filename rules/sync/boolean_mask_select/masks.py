"""Which tensors are masks for certain: what comparing tensors gives, and what is made of that."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.iteration.targets import rows_of
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import Binder, Binding, dotted, last_part
from torchlint.semantics.values.lattice import Kind

_COMPARED = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_MADE = frozenset(
    "bool eq ne gt ge lt le isnan isinf isfinite logical_and logical_or logical_not logical_xor isin isclose".split()
)
# What keeps a mask a mask.
_KEPT = frozenset(
    "to cuda cpu detach clone view reshape squeeze unsqueeze flatten contiguous expand expand_as view_as repeat "
    "transpose permute flip roll t".split()
)
# Whether it holds along a dimension: truth values, whatever is asked.
_REDUCED = frozenset({"any", "all"})
# What puts masks together to one.
_JOINED = frozenset(f"torch.{name}" for name in "cat concat stack hstack vstack".split())
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
    if binding.binder in (Binder.PARAMETER, Binder.LOOP) or (binding.path and type(binding.value) is cst.Call):
        return True
    return binding.value is not None and type(binding.value) is not cst.Name and _looks_like_one(binding.value)


def _looks_like_one(node: cst.CSTNode) -> bool:
    match node:
        case cst.Comparison() | cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr() | cst.BitXor()):
            return True
        case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
            return _looks_like_one(left) and _looks_like_one(right)
        case cst.UnaryOperation(operator=operator):
            return isinstance(operator, cst.BitInvert)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args):
            return (
                name in _MADE
                or name in _KEPT
                or name in _REDUCED
                or f"torch.{name}" in _JOINED
                or any(last_part(argument.value) == "bool" for argument in args)
            )
        case cst.Subscript(value=cst.Name()):
            return True
    return False


# Methods that only arrays have.
_OF_ARRAYS = frozenset({"reshape", "view", "flatten", "ravel", "squeeze", "unsqueeze", "permute", "transpose"})


def _is_array(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a tensor, or what a method gives that nothing but tensors and arrays of NumPy has."""
    kind = context.kind(node)
    if kind is Kind.UNKNOWN and isinstance(node, cst.Call):
        return last_part(node.func) in _OF_ARRAYS
    return kind is Kind.TENSOR


@query(bottom=False)
def is_mask(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is a tensor of truth values for certain."""
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            return isinstance(operator, _COMPARED) and (_is_array(left, context) or _is_array(right, context))
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return is_mask(inner, context)
        case cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr() | cst.BitXor(), left=left, right=right):
            return is_mask(left, context) or is_mask(right, context)
        case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
            return is_mask(left, context) and is_mask(right, context)
        case cst.Call() if _is_joined(node, context):
            return True
        case cst.Call() if _is_made_of_truth_values(node, context):
            return True
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))):
            if name in _MADE or (name in _REDUCED and _is_along_a_dimension(node, context)):
                return context.kind(node) is Kind.TENSOR
            if name in ("to", "type") and any(last_part(argument.value) == "bool" for argument in node.args):
                return context.kind(node) is Kind.TENSOR
            if name == "to" and not all(last_part(argument.value) in _PLACES for argument in node.args):
                return False  # `mask.to(torch.float32)`, `mask.to(x)`; `mask.to(x.device)` stays one
            return name in _KEPT and is_mask(owner, context)
        case cst.Subscript(value=owner):
            return context.kind(owner) is Kind.TENSOR and is_mask(owner, context)  # a row of a mask
        case cst.Name():
            made = context.origins(node, Through.UPDATES | Through.PARTS | Through.CALLS)
            if made.every(lambda value: is_mask(value, context)):
                return True
            return any(of(node, context) for of in (_is_row_of_a_mask, _is_taken_as_mask, _is_given_a_mask))
    return False


def _is_joined(call: cst.Call, context: Context) -> bool:
    """`torch.cat([first, second])` of masks."""
    if context.qualified_name(call.func) not in _JOINED or not call.args:
        return False
    match call.args[0].value:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return bool(elements) and all(is_mask(element.value, context) for element in elements)
        case cst.Name() as collected:
            return _is_list_of_masks(collected, context)
    return False


def _is_list_of_masks(collected: cst.Name, context: Context) -> bool:
    """`masks = []`, to which nothing but masks is appended."""
    if not context.origins(collected).every(lambda made: isinstance(made, cst.List) and not made.elements):
        return False
    owners = (context.parent(use) for use in context.names.spelt(collected.value))
    methods = [owner for owner in owners if isinstance(owner, (cst.Attribute, cst.Subscript, cst.AugAssign))]
    calls = [context.parent(method) for method in methods]
    return bool(calls) and all(
        isinstance(call, cst.Call)
        and last_part(call.func) == "append"
        and len(call.args) == 1
        and is_mask(call.args[0].value, context)
        for call in calls
    )


def _is_along_a_dimension(call: cst.Call, context: Context) -> bool:
    """`x.any(1)`, `torch.all(x, dim=-1)`: not `x.any()`, which is one value."""
    is_function = (context.qualified_name(call.func) or "").startswith("torch.")
    return len(call.args) > is_function


def _is_row_of_a_mask(name: cst.Name, context: Context) -> bool:
    """`mask` of `for row, mask in zip(rows, masks)`, where `masks` is one itself."""
    masks = rows_of(name, context)
    return bool(masks) and all(context.kind(each) is Kind.TENSOR and is_mask(each, context) for each in masks)


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
