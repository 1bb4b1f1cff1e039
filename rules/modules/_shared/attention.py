"""Hand-written attention: `softmax(q @ k.transpose(-2, -1)) @ v`, over statements and names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Kind

_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax"})
_PRODUCTS = frozenset({"torch.matmul", "torch.bmm"})
_DROPOUT = frozenset({"torch.dropout", "torch.nn.functional.dropout"})
# Methods that leave the scores, or the weights, what they are.
_SAME = frozenset(
    {"to", "float", "half", "bfloat16", "double", "type", "type_as", "contiguous", "view", "reshape", "view_as"}
)
_RESHAPED = frozenset({"view", "reshape", "view_as"})
_TURNS = frozenset({"transpose", "permute", "swapaxes", "swapdims", "t", "movedim"})
_TURNED = frozenset({"mT", "T"})
_FILLS = frozenset({"masked_fill", "masked_fill_"})
_SCALES = frozenset({"mul", "mul_", "div", "div_", "add", "add_"})
# What is read of a tensor without its values.
_SHAPE = frozenset({"shape", "size", "dim", "ndim", "dtype", "device", "numel", "new_zeros", "new_ones", "is_cuda"})
_LAST = "-1"
_EQUATION = re.compile(r"(?:\.\.\.)?([A-Za-z]+),(?:\.\.\.)?([A-Za-z]+)->(?:\.\.\.)?([A-Za-z]+)")
# `b (h c) x y -> b h c (x y)`: all places of an image on one axis, the last.
_PLACES_LAST = re.compile(r"\([^()]+ [^()]+\)\s*$")


class Product(NamedTuple):
    """A product of two tensors over one axis, and its equation if it is an `einsum`."""

    left: cst.BaseExpression
    right: cst.BaseExpression
    equation: str = ""


@dataclass(frozen=True, slots=True)
class Attention:
    """The products before and behind a softmax over their scores, and what is done to them between."""

    scores: cst.BaseExpression
    output: cst.BaseExpression
    is_masked: bool


@dataclass(slots=True)
class _Trail:
    """What was met between the products."""

    products: dict[int, tuple[cst.BaseExpression, Product]] = field(default_factory=dict)
    names: dict[int, cst.Name] = field(default_factory=dict)
    binders: dict[int, tuple[str, cst.CSTNode]] = field(default_factory=dict)
    is_masked: bool = False
    is_scaled: bool = False
    is_reshaped: bool = False
    # The names that lead elsewhere, or are looked at right now: what is computed from itself is no product.
    dead: set[int] = field(default_factory=set)


class _LostError(Exception):
    """Something else is done to the scores or the weights, or with them."""


def attention(softmax: cst.Call, context: Context) -> Attention | None:
    """The attention whose weights this call computes; None if it does not, or if they are used for more than that."""
    normalised = _normalised(softmax, context)
    if normalised is None:
        return None
    scores, dim = normalised
    before, behind = _Trail(), _Trail()
    try:
        _before(scores, before, context)
        if len(before.products) != 1:
            return None
        ((product, made),) = before.products.values()
        if not _is_last(dim) and (before.is_reshaped or not _has_three_axes(product, made, context)):
            return None
        if not _is_of_queries_and_keys(made, context) or not _are_only_scores(before, context):
            return None
        if not before.is_scaled and _is_unit(made.left, context) and _is_unit(made.right, context):
            return None  # a cosine alone hardly tells one from another: who attends scales it, and this blends a few
        _behind(softmax, behind, context, turned=False)
    except _LostError:
        return None
    if len(behind.products) != 1:
        return None
    ((output, _),) = behind.products.values()
    return Attention(product, output, before.is_masked)


def product(node: cst.CSTNode, context: Context) -> Product | None:
    """The factors of `a @ b`, `torch.matmul(a, b)`, `torch.bmm(a, b)`, `a.matmul(b)`, and of an `einsum` of two."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
            return Product(left, right)
        case cst.Call(
            func=cst.Attribute(value=left, attr=cst.Name(value="matmul" | "bmm")), args=[cst.Arg(value=right)]
        ):
            if context.qualified_name(node.func) is None:
                return Product(left, right)
        case cst.Call(args=[cst.Arg(value=left, star=""), cst.Arg(value=right, star="")]):
            if context.qualified_name(node.func) in _PRODUCTS:
                return Product(left, right)
        case cst.Call(args=[cst.Arg(value=cst.SimpleString() as equation), cst.Arg(value=left), cst.Arg(value=right)]):
            if context.qualified_name(node.func) == "torch.einsum":
                return Product(left, right, str(equation.evaluated_value).replace(" ", ""))
    return None


# The softmax


def _normalised(call: cst.Call, context: Context) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """What a softmax over what may be the last axis is computed of, and the axis."""
    name = context.qualified_name(call.func)
    scores = dim = None
    if name in _SOFTMAX:
        scores, dim = context.argument(call, "input", 0), context.argument(call, "dim", 1)
    elif name is None and not context.has_unpacking(call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "softmax":
            scores, dim = call.func.value, context.argument(call, "dim", 0)
        if not _may_be_last(dim) and len(call.args) == 1:
            made = _layer(call.func, "Softmax", context)
            if made is not None:
                scores, dim = call.args[0].value, context.argument(made, "dim", 0)
    return (scores, dim) if scores is not None and dim is not None and _may_be_last(dim) else None


def _may_be_last(dim: cst.BaseExpression | None) -> bool:
    return _is_last(dim) or (isinstance(dim, cst.Integer) and dim.value == "2")


def _is_last(dim: cst.BaseExpression | None) -> bool:
    match dim:
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="1")):
            return True
        case cst.Integer(value="3"):  # of batch, heads, queries and keys
            return True
    return False


def _has_three_axes(node: cst.BaseExpression, made: Product, context: Context) -> bool:
    """Whether a product is known to: that of `bmm` is, and so is one whose equation says so."""
    if made.equation:
        found = _EQUATION.fullmatch(made.equation)
        return found is not None and "." not in made.equation and len(found[3]) == len("bqk")
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="bmm"))):
            return True
        case cst.Call(func=func):
            return context.qualified_name(func) == "torch.bmm"
    return False


def _layer(node: cst.BaseExpression, kind: str, context: Context) -> cst.Call | None:
    """The call that made the `torch.nn` layer that an expression holds."""
    from torchlint.semantics.flow.instances import EscapeError

    if not isinstance(node, (cst.Name, cst.Attribute, cst.Call)):
        return None
    try:
        calls = context.constructions.of(node)
    except EscapeError:
        return None
    made = [call for call in calls if (context.qualified_name(call.func) or "") == f"torch.nn.{kind}"]
    return made[0] if len(made) == len(calls) == 1 else None


# From the softmax back to the product of queries and keys


def _before(node: cst.BaseExpression, trail: _Trail, context: Context) -> None:
    """Walk back over scales, biases and masks. Raises `_LostError` at anything else."""
    made = product(node, context)
    if made is not None:
        trail.products[id(node)] = (node, made)
        return
    match node:
        case cst.Name():
            _before_name(node, trail, context)
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            _before_operator(left, operator, right, trail, context)
        case cst.Call():
            _before_call(node, trail, context)
        case _:
            raise _LostError


def _before_name(name: cst.Name, trail: _Trail, context: Context) -> None:
    if id(name) in trail.names:
        return
    if id(name) in trail.dead:
        raise _LostError
    trail.names[id(name)] = name
    trail.dead.add(id(name))
    binders = context.binders(name)
    if not binders:
        raise _LostError
    for binder in binders:
        trail.binders[id(binder)] = (name.value, binder)
        match binder:
            case cst.AugAssign(target=target, operator=augmented, value=value):
                operator = {
                    cst.MultiplyAssign: cst.Multiply(), cst.DivideAssign: cst.Divide(),
                    cst.AddAssign: cst.Add(), cst.SubtractAssign: cst.Subtract(),
                }.get(type(augmented))  # fmt: skip
                _before_operator(target, operator, value, trail, context)
            case cst.Assign() | cst.NamedExpr() | cst.AnnAssign(value=cst.BaseExpression()):
                pass
            case _:
                raise _LostError
    for value, path in context.bound_to(name, Through.PARTS).found:
        if path:
            raise _LostError
        _before(value, trail, context)
    trail.dead.discard(id(name))


def _before_operator(
    left: cst.CSTNode,
    operator: cst.CSTNode | None,
    right: cst.BaseExpression,
    trail: _Trail,
    context: Context,
) -> None:
    """`scores * scale`, `scale * scores`, `scores / math.sqrt(d)`, `scores + mask`."""
    if not isinstance(left, cst.BaseExpression):
        raise _LostError
    sides = [(left, right), (right, left)] if isinstance(operator, (cst.Multiply, cst.Add)) else [(left, right)]
    for side, other in sides:
        part = _Trail(dead=trail.dead)
        try:
            _before(side, part, context)
        except _LostError:
            continue
        if isinstance(operator, (cst.Multiply, cst.Divide)):
            if context.kind(other) is Kind.TENSOR:
                raise _LostError  # a scale that is learnt, or a mask that is no mask
            trail.is_scaled = True
        elif isinstance(operator, (cst.Add, cst.Subtract)):
            if _holds_product(other, context):
                raise _LostError  # scores of positions, computed for each query
            trail.is_masked = True
        else:
            raise _LostError
        trail.products |= part.products
        trail.names |= part.names
        trail.binders |= part.binders
        trail.is_masked |= part.is_masked
        trail.is_scaled |= part.is_scaled
        trail.is_reshaped |= part.is_reshaped
        return
    raise _LostError


def _holds_product(node: cst.BaseExpression, context: Context) -> bool:
    try:
        trail = _Trail()
        _before(node, trail, context)
    except _LostError:
        return False
    return bool(trail.products)


def _before_call(call: cst.Call, trail: _Trail, context: Context) -> None:
    name = context.qualified_name(call.func)
    if name == "torch.where" and len(call.args) == 3:
        for argument in call.args[1:]:
            try:
                _before(argument.value, trail, context)
            except _LostError:
                continue
            trail.is_masked = True
            return
    elif isinstance(call.func, cst.Attribute) and name is None:
        method = call.func.attr.value
        if method in _FILLS:
            trail.is_masked = True
        elif method not in _SAME and not (method in _SCALES and len(call.args) == 1):
            raise _LostError
        if method in _SCALES:
            operator = cst.Add() if method.startswith("add") else cst.Divide()
            _before_operator(call.func.value, operator, call.args[0].value, trail, context)
        else:
            trail.is_reshaped |= method in _RESHAPED
            _before(call.func.value, trail, context)
        return
    raise _LostError


def _are_only_scores(trail: _Trail, context: Context) -> bool:
    """Whether nothing else looks at the values of the scores."""
    for name, binder in trail.binders.values():
        for use in context.uses.of(name, binder):
            if id(use) not in trail.names and not _is_harmless(use, trail, context):
                return False
    return True


def _is_harmless(use: cst.Name, trail: _Trail, context: Context) -> bool:
    """`scores.shape`, `scores.masked_fill_(…)` as a statement, `scores += bias`."""
    parent = context.parent(use)
    match parent:
        case cst.Attribute(attr=cst.Name(value=attribute)) if attribute in _SHAPE:
            return True
        case cst.Attribute(attr=cst.Name(value="masked_fill_")):
            trail.is_masked = True
            return True
        case cst.AugAssign(target=target):
            return target is use
    return False


# Whether the product is one of queries and keys


def _is_of_queries_and_keys(made: Product, context: Context) -> bool:
    """Whether each row of one factor meets each row of the other: pairs of places, not of channels."""
    if _is_kept(made.left, context) or _is_kept(made.right, context):
        return False
    if made.equation:
        found = _EQUATION.fullmatch(made.equation)
        if found is None:
            return False
        first, second, result = (set(letters) for letters in found.groups())
        inner = (first & second) - result
        is_pairs = len(inner) == len(first - second) == len(second - first) == 1 and result == first ^ second | (
            first & second - inner
        )
        last = found[1][-1] in inner and found[2][-1] in inner
        return is_pairs and (last or not _has_places_last(made.left, context)) and found[3][-1] not in first & second
    if _is_turned(made.right, context):
        return not _has_places_last(made.left, context) and not _is_turned(made.left, context)
    return _is_turned(made.left, context) and _has_places_last(_unturned(made.left, context), context)


def _is_kept(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a factor is an attribute, and so mostly a parameter: a memory with a slot for each row."""
    node = _unturned(node, context)
    return isinstance(node, cst.Attribute) and (dotted(node) or "").startswith("self.")


def _is_turned(node: cst.BaseExpression, context: Context) -> bool:
    return _unturned(node, context) is not node


def _unturned(node: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """`k` for `k.transpose(-2, -1)`, also over names and scales; the node itself if it is not turned."""
    return _turned(node, context) or node


@query(bottom=None)
def _turned(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """What was turned around to give a tensor, if anything was."""
    current = context.stands_for(node)
    match current:
        case cst.Attribute(value=owner, attr=cst.Name(value=name)) if name in _TURNED:
            return owner
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))):
            if context.qualified_name(current.func) == "torch.transpose":
                return current.args[0].value
            if method in _TURNS:
                return owner
            return _turned(owner, context) if method in _SAME - _RESHAPED else None
        case cst.BinaryOperation(left=left, operator=cst.Multiply() | cst.Divide()):
            return _turned(left, context)
    return None


@query(bottom=False)
def _has_places_last(node: cst.BaseExpression, context: Context) -> bool:
    """`x.view(b, c, -1)`, `x.flatten(2)` and `rearrange(x, "… -> b c (h w)")`: channels first, then all places."""
    current = context.stands_for(node)
    match current:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="view" | "reshape")), args=[*_, cst.Arg(value=last)]):
            return context.code(last) == _LAST or isinstance(last, cst.BinaryOperation)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="flatten")), args=args):
            return bool(args) and context.code(args[0].value) in ("2", "-2")
        case cst.Call(args=[_, cst.Arg(value=cst.SimpleString() as pattern), *_]):
            return _PLACES_LAST.search(str(pattern.evaluated_value)) is not None
        case cst.Call(args=[cst.Arg(value=first), *_]) if _is_norm(current, context):
            return _has_places_last(first, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _SAME:
            return _has_places_last(owner, context)
        case cst.BinaryOperation(left=left, operator=cst.Multiply() | cst.Divide()):
            return _has_places_last(left, context)
    return False


def _is_unit(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a factor is `F.normalize(x)`, turned or not."""
    made = context.stands_for(_unturned(node, context))
    return isinstance(made, cst.Call) and _is_norm(made, context)


def _is_norm(call: cst.Call, context: Context) -> bool:
    return context.qualified_name(call.func) == "torch.nn.functional.normalize"


# From the softmax on to the product with the values


def _behind(node: cst.BaseExpression, trail: _Trail, context: Context, *, turned: bool) -> None:
    """Walk on over dropout and changes of type. Raises `_LostError` at anything else."""
    parent = context.parent(node)
    match parent:
        case cst.BinaryOperation():
            _behind_product(parent, node, trail, context, turned=turned)
        case cst.Arg(star=""):
            call = context.parent(parent)
            if not isinstance(call, cst.Call):
                raise _LostError
            if product(call, context) is not None:
                _behind_product(call, node, trail, context, turned=turned)
            elif call.args[0] is parent and _is_dropout(call, context):
                _behind(call, trail, context, turned=turned)
            else:
                raise _LostError
        case cst.Attribute():
            _behind_method(parent, trail, context, turned=turned)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value) if value is node:
            for use in context.uses.of(name, parent):
                if id(use) not in trail.names:
                    trail.names[id(use)] = use
                    _behind(use, trail, context, turned=turned)
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
            if left is not node:
                raise _LostError
        case _:
            raise _LostError


def _behind_method(attribute: cst.Attribute, trail: _Trail, context: Context, *, turned: bool) -> None:
    method = attribute.attr.value
    if method in _SHAPE:
        return
    if method in _TURNED:
        _behind(attribute, trail, context, turned=True)
        return
    call = context.parent(attribute)
    if not isinstance(call, cst.Call) or call.func is not attribute:
        raise _LostError
    if product(call, context) is not None:
        _behind_product(call, attribute.value, trail, context, turned=turned)
    elif method in _TURNS:
        _behind(call, trail, context, turned=True)
    elif method in _SAME:
        _behind(call, trail, context, turned=turned)
    else:
        raise _LostError


def _behind_product(
    node: cst.BaseExpression, factor: cst.CSTNode, trail: _Trail, context: Context, *, turned: bool
) -> None:
    """`weights @ v`, or `v @ weights.transpose(-2, -1)`."""
    made = product(node, context)
    if made is None or (made.left is factor) is (made.right is factor):
        raise _LostError
    if made.equation:
        found = _EQUATION.fullmatch(made.equation)
        if found is None:
            raise _LostError
        own = found[1 if made.left is factor else 2]
        first, second, result = (set(letters) for letters in found.groups())
        if (first & second) - result != {own[-1]}:
            raise _LostError
    elif (made.right is factor) is not turned:
        raise _LostError
    trail.products[id(node)] = (node, made)


def _is_dropout(call: cst.Call, context: Context) -> bool:
    name = context.qualified_name(call.func)
    if name is not None:
        return name in _DROPOUT
    return context.value(call.func).qualified == "torch.nn.Dropout"
