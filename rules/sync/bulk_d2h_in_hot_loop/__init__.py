"""A whole tensor copied to the CPU at each step, or piece by piece within one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Flag, Message, Method, Rule
from torchlint.semantics.knowledge.conventions.values import HYPOTHESES
from torchlint.semantics.values.lattice import Kind

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="bulk-d2h-in-hot-loop",
    code="TL305",
    group="sync",
    summary="A tensor is copied to the CPU in every training step, or piece by piece within one batch.",
    since="0.1.0",
    yields_to=("device-round-trip",),
)
_PIECEWISE = Message(
    "piecewise",
    "`{copy}` copies piece by piece, and each copy synchronizes with the GPU",
    help="copy once for the whole batch",
)
_COPIED = Message(
    "copied", "`{copy}` copies the tensor to the CPU{often} and waits for it", help="keep it on the GPU until you log"
)


@RULE.on(Method("cpu"), Method("numpy"), Method("tolist"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a copy to the host in a training loop, in an inner loop over a batch, or into a running average."""
    from torchlint.analyses.batching.comprehension_reads import is_listed
    from torchlint.analyses.execution.hot import is_hot
    from torchlint.analyses.execution.training_steps import trains
    from torchlint.analyses.host.purpose import is_averaged, is_copied_before, is_measured, purpose
    from torchlint.analyses.host.reads import bulk_read, is_needed_on_host
    from torchlint.analyses.round_trips.trips import Trips
    from torchlint.edits.messages import how_often
    from torchlint.facts import Purpose

    from .dependence import is_cut_to_measure  # the model's parts load LibCST
    from .offloads import is_offloaded, is_saved, saves_as_it_goes

    tensor = bulk_read(node, context)
    if tensor is None or context.loop(node) is None or is_needed_on_host(node, context):
        return
    whole = _chain(node, context)
    if purpose(whole, context) is Purpose.NEEDED or is_listed(node, context):
        return
    if not is_hot(node, context) or context[Trips].of(node) is not None or is_offloaded(node, whole, context):
        return
    if is_saved(node, context):
        return
    code = context.shown(node)
    loop = context.frequencies.batch_loop(node)
    if _is_piecewise(node, context):
        if not is_cut_to_measure(node, context) and not saves_as_it_goes(node, context):
            yield Flag(node, _PIECEWISE.of(copy=code))
    elif is_measured(whole, context):
        return
    elif loop is not None and (
        trains(loop, context)
        or (is_averaged(node, context) and not is_copied_before(node, context))
        or _feeds_a_loss(node, context)
    ):
        yield Flag(
            node,
            _COPIED.of(copy=code, often=how_often(node, context)),
        )


def _chain(node: cst.CSTNode, context: Context) -> cst.CSTNode:
    """The whole of `t.cpu().numpy()[0]`: what is used of the copy."""
    parent = context.parent(node)
    while isinstance(parent, (cst.Attribute, cst.Call, cst.Subscript)) and node in (
        getattr(parent, "value", None),
        getattr(parent, "func", None),
    ):
        node, parent = parent, context.parent(parent)
    return node


def _is_piecewise(node: cst.Call, context: Context) -> bool:
    """Whether an inner loop over a part of the batch copies what depends on the turn: one copy could do for all."""
    from .dependence import depends_on_turn

    loop = context.loop(node)
    if loop is None or loop is context.frequencies.batch_loop(node) or _is_over_a_list(loop, context):
        return False
    return depends_on_turn(node, loop, context)


def _is_over_a_list(loop: cst.CSTNode, context: Context) -> bool:
    """`for wave in waves:`, where `waves[0].device` is asked for: tensors of any length, which no one copy brings.

    So are the hypotheses of a search, each of which runs the network.
    """
    match loop:
        case cst.For(iter=(cst.Name() | cst.Attribute()) as walked):
            code = context.code(walked)
            return f"{code}[0].device" in context.program.code or HYPOTHESES.suggests(code)
    return False


def _feeds_a_loss(node: cst.Call, context: Context) -> bool:
    """Whether a loss is computed from the copy on the CPU."""
    argument = context.parent(node)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return False
    loss = context.value(call.func)
    return loss.kind is Kind.MODULE and context.value(call).scalar
