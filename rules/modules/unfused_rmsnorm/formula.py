"""Root mean square norms written by hand: `x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)`."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context

_CASTS = frozenset({"float", "double", "to", "type", "type_as"})


def rms_norm(call: cst.Call, context: Context) -> cst.BinaryOperation | None:
    """The product that norms a tensor over its last axis, of which a call of `rsqrt` is a part."""
    inside = _of_one(call, "rsqrt", context)
    if inside is None:
        return None
    root: cst.BaseExpression = call
    product = context.parent(call)
    match product:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            uses = context.uses.of(name, product)
            if len(uses) != 1:
                return None
            root, product = uses[0], context.parent(uses[0])
    if not isinstance(product, cst.BinaryOperation) or not isinstance(product.operator, cst.Multiply):
        return None
    variable = product.right if product.left is root else product.left
    match _bound(inside, context):
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            for mean in (left, right):
                squared = _squared(mean, context)
                if squared is not None and _is_same(squared, variable, context):
                    return product
    return None


def _bound(node: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """What a name stands for that is bound once, as far as names lead."""
    match context.origins(node).nodes:
        case [found] if not isinstance(found, cst.BaseNumber):
            return found
    return node


def _of_one(call: cst.CSTNode, name: str, context: Context) -> cst.BaseExpression | None:
    """`x` of `torch.rsqrt(x)` and of `x.rsqrt()`."""
    match call:
        case cst.Call(func=func, args=[cst.Arg(value=first)]) if context.qualified_name(func) == f"torch.{name}":
            return first
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)), args=[]) if method == name:
            return owner if context.qualified_name(call.func) is None else None
    return None


def _squared(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """`x` of the mean of its squares over the last axis, which stays as one of length one."""
    node = _bound(node, context)
    if not isinstance(node, cst.Call):
        return None
    is_function = context.qualified_name(node.func) == "torch.mean"
    if is_function:
        squares = context.argument(node, "input", 0)
    else:
        match node.func:
            case cst.Attribute(value=owner, attr=cst.Name(value="mean")):
                squares = owner
            case _:
                return None
    dim, keepdim = context.argument(node, "dim", int(is_function)), context.argument(node, "keepdim", 1 + is_function)
    if squares is None or dim is None or context.code(dim) not in ("-1", "(-1,)", "[-1]"):
        return None
    return _root(squares, context) if isinstance(keepdim, cst.Name) and keepdim.value == "True" else None


def _root(squares: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """`x` of `x.pow(2)`, `x**2`, `x * x`, `x.square()`."""
    squares = _bound(_uncast(squares), context)
    match squares:
        case cst.BinaryOperation(left=left, operator=cst.Power(), right=cst.Integer(value="2")):
            return left
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right) if left.deep_equals(right):
            return left
        case cst.Call(func=func, args=[cst.Arg(value=first), cst.Arg(value=cst.Integer(value="2"))]):
            return first if context.qualified_name(func) == "torch.pow" else None
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="pow")), args=[cst.Arg(value=power)]):
            return owner if context.code(power) in ("2", "2.0") else None
    return _of_one(squares, "square", context)


def _uncast(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _CASTS:
        node = node.func.value
    return node


def _is_same(squared: cst.BaseExpression, variable: cst.BaseExpression, context: Context) -> bool:
    """Whether both are the same tensor, be it in another type."""
    squared, variable = _uncast(squared), _uncast(variable)
    if not isinstance(squared, (cst.Name, cst.Attribute)) or not squared.deep_equals(variable):
        return False
    if isinstance(squared, cst.Name) and isinstance(variable, cst.Name):
        return context.holds_the_same(squared, variable)
    return True
