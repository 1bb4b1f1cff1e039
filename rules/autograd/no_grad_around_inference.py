"""A loop that only runs a model under `torch.no_grad()`, where `torch.inference_mode()` does less bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Node, Rule
from torchlint.semantics.knowledge.conventions.texts import SHARDED_MODEL

if TYPE_CHECKING:
    from ._shared.evaluation import Line, Unit

RULE = Rule(
    name="no-grad-around-inference",
    code="TL417",
    group="autograd",
    summary="Pure inference under `torch.no_grad()` counts versions and tracks views; `inference_mode` does not.",
    since="0.2.0",
    doubts=((Doubt.HOST_BOUND, ""), (Doubt.RARE, ""), (Doubt.NAMED_RARE, "")),
)
_TRACKED = Message(
    "tracked",
    "`torch.no_grad()` around pure inference still tracks views and versions of tensors{often}",
    help="use `torch.inference_mode()`, unless the model keeps tensors of these calls that training reads",
)
# What makes a number or an array of a tensor. What anything else makes of a tensor is one that autograd cannot take.
_LEAVING = frozenset("item tolist numpy size dim numel get_device is_cuda".split())


@RULE.on(Node("Decorator", (b"no_grad",)), Node("WithItem", (b"no_grad",)))
def check(node: cst.Decorator | cst.WithItem, context: Context) -> Iterator[Flag]:
    """Flag `torch.no_grad()` around a loop that runs a model and lets none of its outputs out."""
    from torchlint.analyses.execution.rarity import named_rare, runs_rarely
    from torchlint.edits.messages import how_often

    from ._shared.evaluation import lines_of

    manager = node.decorator if isinstance(node, cst.Decorator) else node.item
    name = context.qualified_name(manager.func if isinstance(manager, cst.Call) else manager)
    block = context.parent(node)
    if name != "torch.no_grad" or not isinstance(block, (cst.With, cst.FunctionDef)):
        return
    if not isinstance(block.body, cst.IndentedBlock) or SHARDED_MODEL.suggests(context.program.code):
        return
    first = _first_pass(block, context)
    if first is None or _lets_out(lines_of(block.body.body), context):
        return
    doubts = (*((Doubt.RARE,) if runs_rarely(first, context) else ()), *named_rare(first, context), Doubt.HOST_BOUND)
    yield Flag(manager, _TRACKED.of(often=how_often(first, context)), doubts=doubts)


def _first_pass(block: cst.With | cst.FunctionDef, context: Context) -> cst.Call | None:
    """The first call in a loop within the block that runs a model, itself or in a function of this file."""
    from torchlint.syntax.tree import descendants_in_scope

    for call in descendants_in_scope(block.body):
        if not isinstance(call, cst.Call) or context.enclosing(call, cst.For, cst.While, within=block.body) is None:
            continue
        if _runs_a_model(call, context):
            return call
    return None


def _runs_a_model(call: cst.Call, context: Context) -> bool:
    """Whether a call runs a model, or calls a function of this file that does."""
    from torchlint.syntax.tree import descendants_in_scope

    from ._shared.evaluation import Evaluations

    if context[Evaluations].is_model_call(call):
        return True
    target = context.calls.target(call)
    return target is not None and any(
        isinstance(inner, cst.Call) and context[Evaluations].is_model_call(inner)
        for inner in descendants_in_scope(target.body)
    )


def _lets_out(lines: tuple[Line, ...], context: Context) -> bool:
    """Whether autograd may meet what the lines compute: they take a gradient, or an output leaves as a tensor."""
    from torchlint.semantics.values.lattice import Kind

    from ._shared.evaluation import Evaluations, lines_of
    from ._shared.output_flow import Flow

    evaluations = context[Evaluations]
    if any(evaluations.takes_gradients(line) for line in lines):
        return True
    unit: Unit | cst.Lambda = context.function(lines[0]) or context.tree.module
    if isinstance(unit, cst.Lambda) or not isinstance(unit.body, (cst.IndentedBlock, tuple)):
        return True
    inside = {call for line in lines for call in _calls(line)}

    def is_source(call: cst.Call) -> bool:
        if call not in inside:
            return False
        is_method = isinstance(call.func, cst.Attribute) and context.kind(call.func.value) is Kind.MODULE
        return is_method or _runs_a_model(call, context)

    flow = Flow(context, is_source, _LEAVING, is_strict=True)
    flow.run(lines_of(unit.body if isinstance(unit.body, tuple) else unit.body.body))
    return flow.escapes or evaluations.is_used_elsewhere(flow, lines, unit)


def _calls(line: cst.CSTNode) -> Iterator[cst.CSTNode]:
    from torchlint.syntax.tree import descendants

    return (node for node in descendants(line) if isinstance(node, cst.Call))
