"""Whether what a loop adds to a total or a list is still there when the loop has ended."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import Binding
from torchlint.semantics.values.lattice import Kind

from .spent_graphs import spent


def outlives(under: cst.BaseExpression, node: cst.CSTNode, loop: cst.CSTNode, context: Context) -> bool:
    """Whether what is kept there is still there when the loop has ended: bound before it, and never cut loose in it."""
    wanted = {Kind.SEQUENCE} if isinstance(node, cst.Call) else {Kind.NUMBER, Kind.TENSOR, Kind.SEQUENCE}
    match under:
        case cst.Name():
            _, bindings = context.names.lookup(under)
            if spent(loop, context) & set(bindings):  # the sum is what the loop goes back through
                return False
            before = [binding for binding in bindings if not context.tree.within(binding.node, loop)]
            inside = [binding for binding in bindings if binding not in before and binding.node is not node]
            return (
                any(context.kinds.binding(binding).kind in wanted for binding in before)
                and all(isinstance(binding.node, cst.AugAssign) for binding in inside)  # nothing there drops the graphs
                and not _is_bounded(before)
            )
        case cst.Attribute(value=cst.Name(value="self")):
            return context.kind(under) in wanted
        case cst.Subscript(value=cst.Name() as owner):
            return context.kind(owner) is Kind.MAPPING and not context.is_bound_in(owner, loop)
    return False


def _is_bounded(bindings: list[Binding]) -> bool:
    """Whether only the last few are kept: `deque(maxlen=20)`."""
    return any(
        isinstance(binding.value, cst.Call)
        and any(arg.keyword and arg.keyword.value == "maxlen" for arg in binding.value.args)
        for binding in bindings
    )
