"""Reads in a loop whose value no iteration changes: one read before the loop would do."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.tensors.aliasing import is_changed_in_place
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import method_name
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants


def is_the_same_each_time(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether a loop reads what is computed of names alone that are bound before it, and that it does not change."""
    loop = context.loop(tensor)
    if loop is None:
        return False
    names = [node for node in descendants(tensor) if isinstance(node, cst.Name) and context.names.is_read(node)]
    tensors = [name for name in names if context.kind(name) is Kind.TENSOR]
    if not tensors or not all(map(context.binders, names)):
        return False  # of what is bound elsewhere nobody knows who changes it
    if any(context.is_bound_in(name, loop) for name in names) or not _is_computed_of_them(tensor, context):
        return False
    return not any(is_changed_in_place(name, context) or _is_handed_on(name, loop, context) for name in tensors)


def _is_computed_of_them(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether nothing is called but methods of tensors, none of them random."""
    parts = [tensor, *descendants(tensor)]
    if any(isinstance(part, cst.Attribute) and not _is_called(part, context) for part in parts):
        return False
    called = [method_name(part.func) for part in parts if isinstance(part, cst.Call)]
    return all(name in METHODS and name not in _RANDOM and not name.endswith("_") for name in called)


_RANDOM = frozenset({"multinomial", "bernoulli"})


def _is_called(attribute: cst.Attribute, context: Context) -> bool:
    call = context.parent(attribute)
    return isinstance(call, cst.Call) and call.func is attribute


def _is_handed_on(name: cst.Name, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether an iteration gives the tensor to a function that may change it: neither torch's nor a network."""
    for use in context.names.spelt(name.value):
        argument = context.parent(use)
        call = context.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or not context.tree.within(call, loop.body):
            continue
        root, _, rest = (context.qualified_name(call.func) or ".").partition(".")
        is_known = root == "torch" or (root != "" and not rest)  # torch's, or one of Python's own
        if not is_known and context.kind(call.func) is not Kind.MODULE:
            return True
    return False
