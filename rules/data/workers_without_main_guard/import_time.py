"""Code that runs while its module is imported: at module level, or in what is called from there."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.execution.occasions import is_guarded
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query


@query(bottom=False)
def runs_on_import(node: cst.CSTNode, context: Context) -> bool:
    """Whether importing the module runs the node, unless a branch or a loop around it does not: no guard keeps it."""
    if is_guarded(node, context):
        return False
    function = context.enclosing(node, cst.FunctionDef, cst.Lambda)
    if function is None:
        return True
    if not isinstance(function, cst.FunctionDef):
        return False
    if function.decorators:
        return False  # `@click.command()` and the like: whatever they make of it
    return any(runs_on_import(call, context) for call in context.calls.callers(function))
