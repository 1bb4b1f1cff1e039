"""Gradients that are summed over all processes for each part of a step, though only the last has to be."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Context, Flag, Message, Method, Rule
from torchlint.semantics.knowledge.conventions.conditions import ACCUMULATION_CONDITION
from torchlint.semantics.knowledge.conventions.texts import SYNCING_FRAMEWORK

RULE = Rule(
    name="ddp-accumulation-syncs",
    code="TL703",
    group="distributed",
    summary="Gradients are accumulated, but reduced between the processes in every backward pass.",
    since="0.2.0",
    doubts=((Doubt.COSTS_MEMORY, ""), (Doubt.BY_CONVENTION, "")),
)
_ALL_REDUCED = Message(
    "all-reduced",
    "every backward pass reduces all gradients, though the optimizer steps once in several",
    help="run all but the last of them under the `no_sync()` of the model",
)
# Without an exchange, shards of gradients become whole ones.
_SHARDING = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
)
_WRAPPERS = ("torch.nn.parallel.DistributedDataParallel", *_SHARDING)
# What empties the gradients, or needs those of all processes.
_LOOKS = ("zero_grad", "unscale_", "clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward passes of the parts of a step, where the optimizer steps once for several of them."""
    wrapper = _wrapper(context)
    if wrapper is None or SYNCING_FRAMEWORK.suggests(context.program.code):
        return
    if _is_in_a_context_of_the_model(node, context):
        return
    sharded = (Doubt.COSTS_MEMORY,) if wrapper in _SHARDING else ()
    inner = context.loop(node)
    loop = context.frequencies.batch_loop(node)
    if inner is not None and _holds_no_step(inner, node, context):
        if not _is_stepped_behind(inner, context):
            return
        yield Flag(node, _ALL_REDUCED.of(), doubts=sharded)
    elif loop is not None:
        steps = list(_calls(loop, ("step",), context))
        if not steps or any(not _is_held_back(call, loop, context) for call in steps):
            return
        if any(not _is_held_back(call, loop, context) for call in _calls(loop, _LOOKS, context)):
            return  # each batch begins again, or does something with the gradients, which have to be those of all then
        others = [call for call in _calls(loop, ("backward",), context) if not _is_held_back(call, loop, context)]
        if others and others[0] is node:
            yield Flag(node, _ALL_REDUCED.of(), places=tuple(others[1:]), doubts=sharded)


def _is_in_a_context_of_the_model(node: cst.Call, context: Context) -> bool:
    """Whether a `with` around it is given a model, and may hold the exchange back: `with ddp_sync(model, is_last):`."""
    from torchlint.semantics.values.lattice import Kind

    return any(
        isinstance(item.item, cst.Call)
        and any(context.kind(argument.value) is Kind.MODULE for argument in item.item.args)
        for block in context.around(node, cst.With)
        for item in block.items
    )


def _holds_no_step(loop: cst.For | cst.While, node: cst.Call, context: Context) -> bool:
    """Whether the loop only adds up gradients: it steps no optimizer, and does nothing else with them.

    Of several backward passes in it, in branches, the first stands for all.
    """
    if not isinstance(loop, cst.For) or any(True for _ in _calls(loop, ("step", *_LOOKS), context)):
        return False
    return next(_calls(loop, ("backward",), context), None) is node


def _head(loop: cst.For | cst.While) -> Iterator[cst.CSTNode]:
    from torchlint.syntax.tree import descendants

    if isinstance(loop, cst.For):
        yield from (loop.target, *descendants(loop.target), *descendants(loop.iter))


def _is_stepped_behind(loop: cst.For | cst.While, context: Context) -> bool:
    """Whether an optimizer steps after the loop, in the block around it."""
    block = context.parent(loop)
    return block is not None and any(context.is_above(loop, call) for call in _calls_in(block, ("step",), context))


def _wrapper(context: Context) -> str | None:
    """What the module wraps a model in, so that each backward pass exchanges gradients."""
    text = context.source.text
    if not any(name.rpartition(".")[2] in text for name in _WRAPPERS):
        return None
    names = {context.qualified_name(call.func) for call in context.tree.of(cst.Call)}
    return next((name for name in _WRAPPERS if name in names), None)


def _calls(loop: cst.For | cst.While, methods: tuple[str, ...], context: Context) -> Iterator[cst.Call]:
    """The calls of these in the loop; a `step` has to be that of an optimizer or a scaler."""
    yield from _calls_in(loop.body, methods, context)


def _calls_in(body: cst.CSTNode, methods: tuple[str, ...], context: Context) -> Iterator[cst.Call]:
    from torchlint.semantics.names.bindings import final_part
    from torchlint.semantics.values.lattice import Kind
    from torchlint.syntax.tree import descendants_in_scope

    for node in descendants_in_scope(body):
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="step"))) if "step" in methods:
                if context.kind(owner) in (Kind.OPTIMIZER, Kind.SCALER):
                    yield node
            case cst.Call(func=func) if final_part(func) in methods:
                yield node


def _is_held_back(node: cst.CSTNode, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the node runs in some iterations of the loop only, by a condition that counts batches."""
    from torchlint.finding import Frequency

    if context.frequency(node) < Frequency.BATCH or context.frequencies.is_every_nth_step(node):
        return True
    return any(
        is_taken and ACCUMULATION_CONDITION.suggests(context.uncommented(test))
        for test, is_taken in context.conditions(node, within=loop)
    )
