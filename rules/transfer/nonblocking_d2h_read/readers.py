"""What reads a tensor that is still being copied to the CPU, with nothing before it that waits for the device."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.syntax.tree import descendants_in_scope

# Methods that look at no value.
_VIEWS = frozenset(
    "detach view reshape squeeze unsqueeze flatten permute transpose t contiguous requires_grad_".split()
)
_LOOKS = frozenset(
    "size dim shape dtype device numel ndim pin_memory is_pinned to cuda record_stream data_ptr stride is_contiguous "
    "element_size untyped_storage storage register_hook retain_grad".split()
)


def early_read(node: cst.Call, context: Context) -> cst.BaseExpression | None:
    """What reads the values: in the same expression, or the next thing that is done with the name that they get."""
    found = _reading(node, context)
    if found is not None:
        whole = context.tree.statement(node)
        if isinstance(whole, cst.BaseSmallStatement) and _may_have_waited(whole, found, context, since=node):
            return None
        return found
    statement = context.parent(node)
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            pass
        case _:
            return None
    line = context.parent(statement)
    block = context.parent(line) if line is not None else None
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    small, lines = list(line.body), list(block.body)
    for other in (*small[small.index(statement) + 1 :], *lines[lines.index(line) + 1 :]):
        if not isinstance(other, (cst.SimpleStatementLine, cst.BaseSmallStatement)):
            return None
        for part in descendants_in_scope(other):
            if isinstance(part, cst.Name) and part.value == name and not context.uses.is_target(part):
                found = _reading(part, context)
                if found is not None:
                    return None if _may_have_waited(other, found, context) else found
        if any(isinstance(part, cst.Call) and not _goes_on(part) for part in descendants_in_scope(other)):
            return None
    return None


def _reading(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """The expression around that needs the values: a method such as `numpy()`, arithmetic, `float(…)`, text."""
    while True:
        parent = context.parent(node)
        match parent:
            case cst.Attribute(attr=cst.Name(value=name)):
                call = context.parent(parent)
                if not isinstance(call, cst.Call) or call.func is not parent or name in _LOOKS:
                    return None
                if name not in _VIEWS:
                    return call
                node = call
            case cst.BinaryOperation() | cst.Comparison():
                return parent
            case cst.Arg():
                call = context.parent(parent)
                is_read = isinstance(call, cst.Call) and context.qualified_name(call.func) in (
                    "float", "int", "bool", "print", "str", "numpy.array", "numpy.asarray", "torch.save",
                )  # fmt: skip
                return call if is_read and isinstance(call, cst.Call) else None
            case _:
                return None


def _may_have_waited(
    statement: cst.CSTNode, read: cst.BaseExpression, context: Context, since: cst.CSTNode | None = None
) -> bool:
    """Whether anything else that the statement calls may run before the read, and behind `since`."""
    start = -1 if since is None else context.tree.place(since)
    return any(
        isinstance(part, cst.Call)
        and not context.tree.within(read, part)
        and (since is None or not context.tree.within(part, since))
        and context.tree.place(part) > start
        and not _goes_on(part)
        and not (isinstance(part.func, cst.Attribute) and part.func.attr.value in _VIEWS)
        for part in descendants_in_scope(statement)
    )


def _goes_on(call: cst.Call) -> bool:
    """Whether a call surely does not wait for the device: another copy of the kind, or the name of a device."""
    return isinstance(call.func, cst.Attribute) and (
        call.func.attr.value == "device"
        or any(argument.keyword is not None and argument.keyword.value == "non_blocking" for argument in call.args)
    )
