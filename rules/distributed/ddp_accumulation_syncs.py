"""Gradients that are summed over all processes for each part of a step, though only the last has to be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Flag, Message, Method, Rule, Status
from torchlint.semantics.knowledge.conventions.conditions import ACCUMULATION_CONDITION
from torchlint.semantics.knowledge.conventions.texts import SYNCING_FRAMEWORK
from torchlint.semantics.knowledge.conventions.values import OPTIMIZER_PREFIX

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="ddp-accumulation-syncs",
    code="TL703",
    group="distributed",
    summary="Gradients are accumulated, but reduced between the processes in every backward pass.",
    since="0.2.0",
    status=Status.PREVIEW,
)
_ALL_REDUCED = Message(
    "all-reduced",
    "every backward pass reduces all gradients, though the optimizer steps once in several",
    help="run all but the last of them under the `no_sync()` of the model",
)
_WRAPPER = "torch.nn.parallel.DistributedDataParallel"
# What empties the gradients, or needs those of all processes.
_LOOKS = ("zero_grad", "unscale_", "clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass of each batch where all steps of the optimizer behind it come at some batches only."""
    loop = context.frequencies.batch_loop(node)
    if loop is None or not _has_wrapper(context) or SYNCING_FRAMEWORK.suggests(context.program.code):
        return
    steps = list(_calls(loop, ("step",), context))
    if not steps or any(not _is_held_back(step, loop, context) for step in steps) or _is_held_back(node, loop, context):
        return
    if any(not _is_held_back(call, loop, context) for call in _calls(loop, _LOOKS, context)):
        return  # each batch begins anew, or does something with the gradients, which have to be those of all then
    others = [call for call in _calls(loop, ("backward",), context) if not _is_held_back(call, loop, context)]
    if others[0] is not node:
        return
    yield Flag(
        node,
        _ALL_REDUCED.of(),
        places=tuple(others[1:]),
    )


def _has_wrapper(context: Context) -> bool:
    """Whether the module wraps a model."""
    text = context.source.text
    return ("DistributedDataParallel" in text) and any(
        context.qualified_name(call.func) == _WRAPPER for call in context.tree.of(cst.Call)
    )


def _calls(loop: cst.For | cst.While, methods: tuple[str, ...], context: Context) -> Iterator[cst.Call]:
    """The calls of these in the loop; a `step` has to be that of an optimizer or a scaler."""
    from torchlint.semantics.values.lattice import Kind
    from torchlint.syntax.tree import descendants_in_scope  # the model's parts load LibCST

    for node in descendants_in_scope(loop.body):
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="step"))) if "step" in methods:
                if context.kind(owner) in (Kind.OPTIMIZER, Kind.SCALER) or _is_called_optimizer(owner):
                    yield node
            case cst.Call(func=func) if _last(func) in methods:
                yield node


def _last(func: cst.BaseExpression) -> str:
    name = func.attr if isinstance(func, cst.Attribute) else func
    return name.value if isinstance(name, cst.Name) else ""


def _is_called_optimizer(owner: cst.BaseExpression) -> bool:
    return OPTIMIZER_PREFIX.suggests(_last(owner).lower())


def _is_held_back(node: cst.CSTNode, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the node runs at some turns of the loop only, by a condition that counts batches."""
    from torchlint.finding import Frequency

    if context.frequency(node) < Frequency.BATCH:
        return True
    return any(
        is_taken and ACCUMULATION_CONDITION.suggests(context.uncommented(test))
        for test, is_taken in context.conditions(node, within=loop)
    )
