"""Formulas that somebody else fuses, or whose author says what autograd keeps of them."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.functions import FUSING_DECORATOR


def is_fused_elsewhere(node: cst.CSTNode, context: Context) -> bool:
    """Whether the code is scripted, or is that of a `torch.autograd.Function`, or called by one."""
    for function in context.around(node, cst.FunctionDef):
        fused = any(_fuses(item.decorator, context) for item in function.decorators)
        if fused or any(_is_in_function(caller, context) for caller in (function, *context.calls.callers(function))):
            return True
    return False


def _fuses(decorator: cst.BaseExpression, context: Context) -> bool:
    name = context.qualified_name(decorator.func if isinstance(decorator, cst.Call) else decorator) or ""
    return name in ("torch.jit.script", "torch.jit.trace")


def is_named_fused(node: cst.CSTNode, context: Context) -> bool:
    """Whether a decorator of a function around the node compiles it, by its name: `@jit_fuser`."""
    decorators = (item.decorator for function in context.around(node, cst.FunctionDef) for item in function.decorators)
    called = (each.func if isinstance(each, cst.Call) else each for each in decorators)
    return any(
        FUSING_DECORATOR.suggests((context.qualified_name(each) or context.uncommented(each)).rpartition(".")[2])
        for each in called
    )


def _is_in_function(node: cst.CSTNode, context: Context) -> bool:
    class_ = context.tree.enclosing_class(node)
    return class_ is not None and "torch.autograd.Function" in context.classes.lineage(class_)
