"""Whether code takes training steps, or only evaluates."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.applied import applied
from torchlint.syntax.tree import Loop, descendants_in_scope


def is_evaluating(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node runs in code that takes no step: without autograd, or in a loop over batches after `eval()`."""
    node = _run_by(node, context)
    loop = context.frequencies.batch_loop(node)
    if loop is not None and trains(loop, context):
        return False
    if context.grad(node) is GradMode.OFF:
        return loop is not None or not is_part_of_a_step(node, context)
    if loop is None:
        return False
    scope = context.function(node) or context.tree.module
    return any(
        isinstance(found, cst.Call) and isinstance(found.func, cst.Attribute) and found.func.attr.value == "eval"
        for found in descendants_in_scope(scope.body if isinstance(scope, cst.FunctionDef) else scope)
    )


@query(bottom=False)
def is_part_of_a_step(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node, its function, or one that calls it with autograd on, takes a training step."""
    if is_in_training(node, context):
        return True
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    is_called_by_one = any(is_part_of_a_step(call, context) for call in context.calls.callers(function))
    # Last, since the callers in other files may have to be asked.
    return is_called_by_one and context.grads.function(function) is not GradMode.OFF


def trains(loop: cst.For | cst.While, context: Context) -> bool:
    """Whether a backward pass or an optimizer's step is taken in the loop, directly or one call away."""
    if context.frequencies.steps(loop.body):
        return True
    for node in descendants_in_scope(loop.body):
        if isinstance(node, Loop) and context.frequencies.steps(node.body):
            return True
        if isinstance(node, cst.Call):
            target = context.calls.target(node)
            if target is not None and context.frequencies.steps(target.body):
                return True
    return False


def is_in_training(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in a loop, or in a function outside of a module, that takes training steps.

    What a file does outside of functions is like a function that is called once.
    """
    node = _run_by(node, context)
    loop = context.frequencies.batch_loop(node)
    if loop is not None:
        return trains(loop, context)
    function = context.function(node)
    if function is None:
        return context.frequencies.steps(context.tree.module)
    if not isinstance(function, cst.FunctionDef):
        return False
    return context.frequencies.steps(function.body) or context.classes.is_training_method(function)


def _run_by(node: cst.CSTNode, context: Context) -> cst.CSTNode:
    """The node, or the call that runs the lambda around it for each element: `map(lambda t: …, tensors)`."""
    while isinstance(function := context.function(node), cst.Lambda):
        found = applied(function, context.tree, context.names)
        if found is None:
            break
        node = found.call
    return node
