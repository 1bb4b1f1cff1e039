"""Inputs marked `volatile`, which no longer keeps the model from recording a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, NodeEdit, Replace, Rule

if TYPE_CHECKING:
    from .._shared.evaluation import Evaluation

RULE = Rule(
    name="volatile-has-no-effect",
    code="TL402",
    group="autograd",
    summary="`volatile=True` no longer turns autograd off: the model builds a graph that is never used.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="outputs no longer require gradients",
)
_VOLATILE = Message(
    "volatile",
    "`volatile` has had no effect since PyTorch 0.4: `{model}(…)` builds an autograd graph that {uses}",
    help="run it under `torch.no_grad()`",
)
_VARIABLE = "torch.autograd.Variable"


@RULE.on(Call(_VARIABLE))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a variable that is volatile, and so meant for inference, where a model with autograd on takes it."""
    from torchlint.semantics.names.bindings import dotted

    from .._shared.evaluation import Evaluations
    from .._shared.no_grad import without_grad

    if _volatile(node, context) is None or not (runs := _runs(node, context)):
        return
    uses = "the backward pass may use" if context[Evaluations].trains_with(runs[0]) else "is never used"
    evaluation = _evaluation(runs, context)
    instead = _plain(node, evaluation, context)
    title, edits = without_grad(evaluation, context, instead)
    yield Flag(
        node,
        _VOLATILE.of(model=dotted(runs[0].func) or "the model", uses=uses),
        title=title,
        edits=(*edits, *_outside(instead, edits, context)) if edits else (),
        about=tuple(runs),
    )


def _volatile(node: cst.Call, context: Context) -> cst.Arg | None:
    """The argument that makes the variable volatile for certain."""
    from torchlint.analyses.provenance.constants import constant

    value = context.argument(node, "volatile", 2)
    if value is None:
        return None
    given = constant(value, context)
    if not isinstance(given, cst.Name) or given.value != "True":
        return None
    return next((argument for argument in node.args if argument.value is value), None)


def _runs(node: cst.Call, context: Context) -> list[cst.Call]:
    """The calls of models that take the variable with autograd on."""
    from torchlint.semantics.execution.grad_mode import GradMode

    from .._shared.evaluation import Evaluations
    from .passed_to import takers

    calls = (call for call in takers(node, context) if context[Evaluations].is_model_call(call))
    return [call for call in calls if context.grad(call) is GradMode.ON]


def _evaluation(runs: list[cst.Call], context: Context) -> Evaluation:
    """What to run without autograd: the evaluation that the calls are a part of, or the lines that hold them."""
    from .._shared.evaluation import Evaluation, Evaluations, lines_of

    unit = context.function(runs[0])
    if not isinstance(unit, cst.Lambda):
        for evaluation in context[Evaluations].within(unit if unit is not None else context.tree.module):
            if all(call in evaluation.calls for call in runs):
                return evaluation
    line = context.tree.line(runs[0])
    block = context.parent(line) if line is not None else None
    beside = lines_of(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else ()
    lines = (other for other in beside if any(context.tree.within(call, other) for call in runs))
    return Evaluation(tuple(lines), tuple(runs))


def _plain(node: cst.Call, evaluation: Evaluation, context: Context) -> dict[cst.Call, cst.Call]:
    """All volatile variables of the function that models take in the evaluation, each with how it reads without."""
    home = context.function(node)
    found = {}
    for call in context.tree.of(cst.Call):
        if context.qualified_name(call.func) == _VARIABLE and context.function(call) is home:
            plain = _without_volatile(call, context)
            if plain is not None and any(
                context.tree.within(run, line) for run in _runs(call, context) for line in evaluation.lines
            ):
                found[call] = plain
    return found


def _without_volatile(node: cst.Call, context: Context) -> cst.Call | None:
    """The call without the argument; None where a comment would go with it."""
    argument = _volatile(node, context)
    if argument is None or "#" in context.code(node):
        return None
    kept = [other for other in node.args if other is not argument]
    if kept and node.args[-1] is argument:
        kept[-1] = kept[-1].with_changes(comma=argument.comma, whitespace_after_arg=argument.whitespace_after_arg)
    return node.with_changes(args=kept)


def _outside(instead: dict[cst.Call, cst.Call], edits: tuple[NodeEdit, ...], context: Context) -> Iterator[NodeEdit]:
    """The edits for calls that stand in nothing that is written again."""
    written = [edit.node for edit in edits if isinstance(edit, Replace)]
    for old, new in instead.items():
        if not any(context.tree.within(old, node) for node in written):
            yield Replace(old, context.code(new))
