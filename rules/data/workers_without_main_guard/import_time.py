"""Code that runs while its module is imported: at module level, or in what is called from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.execution.occasions import is_guarded

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

_CALLS_DEEP = 4


def runs_on_import(node: cst.CSTNode, context: Context, depth: int = 0) -> bool:
    """Whether importing the module runs the node, unless a branch or a loop around it does not: no guard keeps it."""
    if is_guarded(node, context):
        return False
    function = next(
        (above for above in context.ancestors(node) if isinstance(above, (cst.FunctionDef, cst.Lambda))), None
    )
    if function is None:
        return True
    if isinstance(function, cst.Lambda) or depth == _CALLS_DEEP:
        return False
    if function.decorators:
        return False  # `@click.command()` and the like: whatever they make of it
    return any(runs_on_import(call, context, depth + 1) for call in context.calls.callers(function))
