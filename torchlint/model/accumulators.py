"""Running totals of values read from the device, and how to keep them there until the loop has ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.grad import GradMode
from torchlint.model.names import Binder, Scope
from torchlint.model.tree import Comprehension, descendants_in_scope
from torchlint.rule import NodeEdit, Replace

if TYPE_CHECKING:
    from torchlint.model.context import Context


def deferred(read: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> tuple[NodeEdit, ...]:
    """The edits that let `total += loss.item()` add up on the device and read the total where it is used.

    Empty where that can't be done for certain: the total is used at each turn, leaves the function by another way
    than a plain read, or the read is not simply added.
    """
    target = _accumulator(read, context)
    loop = context.frequencies.batch_loop(read)
    if target is None or loop is None or not isinstance(read, cst.Call):
        return ()
    scope, bindings = context.names.lookup(target)
    if scope is None or scope is not context.names.scope_of(read) or target.value in scope.globals:
        return ()
    initial = [binding for binding in bindings if binding.binder is not Binder.AUGMENTED]
    if not initial or not all(
        binding.binder is Binder.ASSIGN and not binding.path and isinstance(binding.value, (cst.Integer, cst.Float))
        for binding in initial
    ):
        return ()
    additions = [binding.node for binding in bindings if binding.binder is Binder.AUGMENTED]
    uses = list(_uses(target.value, scope, context))
    if len(additions) != 1 or any(not _may_wrap(use, loop, context) for use in uses):
        return ()
    if context.names.scope_of(loop) is not scope or _is_captured(target.value, scope, context):
        return ()
    conversion = "int" if _counts(tensor, context) and _starts_at_integer(initial) else "float"
    edits: list[NodeEdit] = [Replace(read, _on_device(read, tensor, loop, context))]
    edits += [Replace(use, f"{conversion}({use.value})") for use in uses]
    return tuple(edits)


def _starts_at_integer(initial: list) -> bool:  # type: ignore[type-arg]
    return all(isinstance(binding.value, cst.Integer) for binding in initial)


def _accumulator(read: cst.CSTNode, context: Context) -> cst.Name | None:
    """The name that the read is added to, through products and sums with numbers only."""
    child = read
    for above in context.ancestors(read):
        match above:
            case cst.BinaryOperation(operator=cst.Multiply() | cst.Divide() | cst.Add() | cst.Subtract()):
                if isinstance(above.operator, cst.Divide) and child is not above.left:
                    return None
            case cst.AugAssign(target=cst.Name() as name, operator=cst.AddAssign(), value=value) if value is child:
                return name
            case _:
                return None
        child = above
    return None


def _uses(name: str, scope: Scope, context: Context) -> Iterator[cst.Name]:
    """The places that read the total."""
    for node in context.tree.of(cst.Name):
        if node.value != name or context.names.lookup(node)[0] is not scope or not context.names.is_read(node):
            continue
        yield node


def _may_wrap(use: cst.Name, loop: cst.CSTNode, context: Context) -> bool:
    """Whether reading the total here costs nothing at each turn of the loop."""
    if not context.tree.within(use, loop):
        return True
    return context.frequencies.is_rate_limited(use)


def _is_captured(name: str, scope: Scope, context: Context) -> bool:
    """Whether a function inside reads the total: it may do so at any time."""
    return any(
        node.value == name
        and context.names.lookup(node)[0] is scope
        and context.names.scope_of(node) is not scope
        and not isinstance(context.names.scope_of(node).node, Comprehension)
        for node in context.tree.of(cst.Name)
    )


def _counts(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor is a count: the sum of a comparison."""
    match tensor:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sum")), args=[]):
            return isinstance(inner, cst.Comparison) or (
                isinstance(inner, cst.Call)
                and isinstance(inner.func, cst.Attribute)
                and inner.func.attr.value in ("eq", "ne", "gt", "lt", "ge", "le")
            )
    return False


def _on_device(read: cst.Call, tensor: cst.BaseExpression, loop: cst.CSTNode, context: Context) -> str:
    code = context.code(tensor)
    if not isinstance(tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) and not tensor.lpar:
        code = f"({code})"
    if context.grad(read) is GradMode.OFF:
        kept = code
    elif isinstance(tensor, (cst.Name, cst.Attribute)) and _is_written(context.code(tensor), loop, context):
        # `loss /= steps` would change what was added: `detach` shares the storage.
        return f"{code}.detach().clone()"
    else:
        kept = f"{code}.detach()"
    if isinstance(tensor, (cst.Name, cst.Attribute)) and kept == code and _is_written(code, loop, context):
        return f"{code}.clone()"
    return kept


def _is_written(code: str, loop: cst.CSTNode, context: Context) -> bool:
    """Whether the tensor of this name is changed in place anywhere in the loop."""
    for node in descendants_in_scope(loop):
        match node:
            case cst.AugAssign(target=target) if context.code(target) == code:
                return True
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))):
                if method.endswith("_") and not method.endswith("__") and context.code(receiver) == code:
                    return True
            case cst.Call(args=args) if any(context.code(argument.value) == code for argument in args):
                if _last_name(node.func) in ("all_reduce", "reduce", "broadcast"):
                    return True
    return False


def _last_name(node: cst.CSTNode) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")
