"""Which tensors are new: results that share their storage with nothing; and what changes a tensor in place."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.torch_signatures import FUNCTIONAL, MODULES
from torchlint.semantics.names.bindings import dotted, final_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants_in_scope

_REDUCTIONS = frozenset("sum mean norm prod std var".split())
# Functions that write into a tensor they are given.
_WRITERS = frozenset("all_reduce reduce broadcast all_gather reduce_scatter load_state_dict copyto".split())


def makes_new(value: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression computes a tensor that shares its storage with nothing."""
    match value:
        case cst.BinaryOperation():
            return context.kind(value) is Kind.TENSOR
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return context.kind(inner) is Kind.TENSOR
        case cst.Call(func=func):
            if context.argument(value, "out") is not None or context.has_unpacking(value):
                return False
            name = context.qualified_name(func) or ""
            last = name.rpartition(".")[2]
            if name.startswith("torch.nn.functional.") and last in FUNCTIONAL:
                return "loss" in name or "entropy" in name
            if name.startswith("torch.") and name.count(".") == 1:
                return last in _REDUCTIONS
            module = context.value(func)
            if module.kind is Kind.MODULE and module.qualified.startswith("torch.nn."):
                last = module.qualified.rpartition(".")[2]
                return last in MODULES and last.endswith("Loss")
            if isinstance(func, cst.Attribute) and context.kind(func.value) is Kind.TENSOR:
                return func.attr.value in _REDUCTIONS
    return False


def is_in_place(method: str) -> bool:
    """Whether torch's naming says that a method changes its tensor."""
    return method.endswith("_") and not method.endswith("__")


def is_changed_in_place(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the function changes a tensor of this name in place, anywhere, also through a view of it."""
    wanted = dotted(tensor)
    if wanted is None:
        return False
    function = context.function(tensor)
    nodes = list(descendants_in_scope(function.body if function is not None else context.tree.module))
    names = {wanted}
    for node in nodes:
        match node:
            case cst.Assign(targets=targets, value=value) if _root(value) in names:
                names |= {name for target in targets if (name := dotted(target.target)) is not None}
    return any(_changes(node, names) for node in nodes)


def reflects(node: cst.CSTNode) -> bool:
    """Whether the node looks at the names of the function around it: `locals()`, `eval(…)`."""
    match node:
        case cst.Call(func=cst.Name(value="locals" | "vars" | "eval" | "exec" | "dir" | "globals")):
            return True
    return False


def _changes(node: cst.CSTNode, names: set[str]) -> bool:
    match node:
        case cst.AugAssign(target=target):
            return dotted(target) in names
        case cst.AssignTarget(target=cst.Subscript(value=owner)):
            return dotted(owner) in names
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if is_in_place(method):
            return _root(receiver) in names
        case cst.Call(func=func, args=args) if final_part(func) in _WRITERS:
            return any(dotted(argument.value) in names for argument in args)
    return False


def _root(node: cst.CSTNode) -> str | None:
    """The name at the start of `name.view(-1)[0].data`."""
    while True:
        match node:
            case cst.Call(func=cst.Attribute(value=inner)) | cst.Subscript(value=inner):
                node = inner
            case cst.Attribute(value=inner, attr=cst.Name(value="data" | "grad" | "T")):
                node = inner
            case _:
                return dotted(node)
