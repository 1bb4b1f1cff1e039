"""Lists that begin empty and are filled as the code goes on."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context

_ADDING = frozenset({"append", "extend"})


def is_empty_list(node: cst.BaseExpression) -> bool:
    """`[]`."""
    return isinstance(node, cst.List) and not node.elements


def filled_with(name: cst.Name, context: Context) -> list[cst.BaseExpression]:
    """What `append` and `extend` put into the list that a name holds, as it is written in their calls."""
    found: list[cst.BaseExpression] = []
    for binder in context.binders(name):
        for use in context.uses.of(name.value, binder):
            attribute = context.parent(use)
            call = context.parent(attribute) if isinstance(attribute, cst.Attribute) else None
            match call:
                case cst.Call(func=cst.Attribute(attr=cst.Name(value=method)), args=[cst.Arg(value=added)]) if (
                    method in _ADDING and call.func is attribute
                ):
                    found.append(added)
    return found
