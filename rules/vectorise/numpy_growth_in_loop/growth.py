"""Arrays that grow in a loop: each iteration joins what was there with something new, under the same name."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.syntax.tree import Loop, descendants

# What may be asked of an array while it grows.
_MEASURES = frozenset({"shape", "size", "ndim", "dtype"})


def first_part(join: cst.Call, context: Context) -> cst.Name | cst.Attribute | None:
    """The name or attribute that comes first in `np.append(a, b)` or `np.concatenate((a, b))`."""
    if len(join.args) == 0 or context.has_unpacking(join):
        return None
    first = join.args[0].value
    if isinstance(first, (cst.Tuple, cst.List)):
        if len(first.elements) < 2:
            return None
        first = first.elements[0].value
    elif context.qualified_name(join.func) != "numpy.append":
        return None
    return first if isinstance(first, (cst.Name, cst.Attribute)) else None


def grows(grown: cst.Name | cst.Attribute, join: cst.Call, context: Context) -> bool:
    """Whether what was joined becomes what grew, batch after batch, and is read for nothing else meanwhile."""
    statement = _binding(join, context)
    if statement is None or len(statement.targets) != 1:
        return False
    target = statement.targets[0].target
    if isinstance(grown, cst.Attribute):
        is_own = context.classes.is_own(grown)
        return (
            is_own and isinstance(target, cst.Attribute) and target.deep_equals(grown) and _is_all(statement, context)
        )
    if not isinstance(target, cst.Name) or target.value != grown.value:
        return False
    loop = context.frequencies.batch_loop(join)
    if loop is None:
        return False
    binders = context.binders(grown)
    is_carried = any(binder is statement for binder in binders)
    is_from_before = any(not context.tree.within(binder, loop) for binder in binders)
    return is_carried and is_from_before and not _is_used(grown.value, statement, loop, context)


def _binding(join: cst.Call, context: Context) -> cst.Assign | None:
    """`a = join`, `a = join if a.size else b`."""
    parent = context.parent(join)
    while isinstance(parent, cst.IfExp) and parent.test is not join:
        parent = context.parent(parent)
    return parent if isinstance(parent, cst.Assign) else None


def _is_used(name: str, statement: cst.Assign, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the loop does anything with the array but add to it, and ask how large it is."""
    for node in descendants(loop.body):
        if not isinstance(node, cst.Name) or node.value != name or context.tree.within(node, statement):
            continue
        parent = context.parent(node)
        if isinstance(parent, cst.Attribute):
            if parent.attr is node or parent.attr.value in _MEASURES:
                continue
        elif isinstance(parent, cst.AssignTarget):
            if isinstance(context.parent(parent), cst.Assign) and _is_start(parent, loop, context):
                continue
        elif isinstance(parent, cst.Arg) and parent.keyword is node:
            continue
        elif isinstance(parent, cst.Arg) and isinstance(call := context.parent(parent), cst.Call):
            if context.qualified_name(call.func) == "len":
                continue
        elif isinstance(parent, cst.Comparison) and isinstance(parent.comparisons[0].operator, (cst.Is, cst.IsNot)):
            continue
        return True
    return False


def _is_start(target: cst.AssignTarget, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the loop binds the name here only in some iterations: `if step == 0: a = b`, `else: a = join`."""
    nearest = context.enclosing(target, cst.If, cst.Else, cst.ExceptHandler, *Loop, within=loop)
    return nearest is not None and not isinstance(nearest, Loop)


def _is_all(statement: cst.Assign, context: Context) -> bool:
    """Whether the function does nothing else with the attribute."""
    function = context.function(statement)
    target = statement.targets[0].target
    if not isinstance(function, cst.FunctionDef) or function.name.value == "__init__":
        return False
    return not any(
        isinstance(node, cst.Attribute)
        and node.deep_equals(target)
        and not context.tree.within(node, statement)
        and not _is_measured(node, context)
        for node in descendants(function.body)
    )


def _is_measured(node: cst.Attribute, context: Context) -> bool:
    match context.parent(node):
        case cst.Attribute(attr=cst.Name(value=name)):
            return name in _MEASURES
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
            return True
    return False
