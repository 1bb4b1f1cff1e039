"""A value that all processes exchange for each batch, so that one of them may log it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt, Frequency
from torchlint.rule import Call, Context, Flag, Message, Method, Node, Rule

RULE = Rule(
    name="collective-every-step-for-logging",
    code="TL706",
    group="distributed",
    summary="All processes synchronize every batch, only to log a value or for nothing.",
    since="0.2.0",
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "a metric that is reduced once in an epoch is what the rule advises"),
        (Doubt.RUNS_ONCE, "one exchange costs nothing"),
        (Doubt.WAITS_ANYWAY, "behind a text that was generated it does not count"),
    ),
)
_REDUCED = Message(
    "reduced-to-log",
    "reducing `{tensor}` to log it or to sum it up synchronizes all processes{often}",
    help="reduce every N batches, or sum up and reduce once after the loop",
)
_BARRIER = Message(
    "barrier",
    "`barrier()` synchronizes all processes and their GPUs{often}",
    help="delete it; a collective waits for the data that it needs",
)
_SYNC_DIST = Message(
    "sync-dist",
    "`sync_dist=True` synchronizes all processes{often}",
    help="pass `on_step=False, on_epoch=True`, which reduces once an epoch",
)


@RULE.on(Call("torch.distributed.all_reduce"), Call("torch.distributed.reduce"))
def check_reduction(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the reduction, in a loop over batches, of a metric that nothing but a log reads behind it."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    from .collectives import is_only_told, uses_behind

    tensor = context.argument(node, "tensor", 0)
    if not isinstance(tensor, cst.Name) or _is_told_where_it_is_called(node, context):
        return
    if not isinstance(context.parent(node), (cst.Expr, cst.Element)) or _is_of_a_network(node, context):
        return  # a handle, to wait for later; or what a network computes with
    uses = list(uses_behind(node, tensor, context))
    told = [use for use in uses if not _is_reduced(use, context)]
    if told and all(is_only_told(use, context) for use in told):
        yield Flag(
            node,
            _REDUCED.of(tensor=tensor.value, often=how_often(node, context)),
            doubts=rate_doubts(node, context),
        )


def _is_of_a_network(node: cst.Call, context: Context) -> bool:
    """Whether a network, or a function of autograd, computes with it: statistics over all processes, no log."""
    function = context.function(node)
    is_pass = isinstance(function, cst.FunctionDef) and function.name.value in ("forward", "backward")
    return is_pass and context.tree.enclosing_class(node) is not None


@RULE.on(Node("Call", (b"reduce", b"_mean")))
def check_function(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the same through a function: `reduce_tensor(loss.data, world_size).item()`."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    from .collectives import is_only_told, is_reduction, keeps_its_sum, uses_behind

    if not node.args or (context.qualified_name(node.func) or "").startswith("torch."):
        return
    first = node.args[0].value
    if not is_reduction(node, context) or not is_only_told(node, context) or keeps_its_sum(node, context):
        return
    # Where it stands alone, it changes what it was given.
    alone = isinstance(context.parent(node), cst.Expr)
    behind = uses_behind(node, first, context) if alone and isinstance(first, cst.Name) else ()
    if all(is_only_told(use, context) for use in behind):
        yield Flag(
            node,
            _REDUCED.of(tensor=context.shown(first), often=how_often(node, context)),
            doubts=rate_doubts(node, context),
        )


@RULE.on(Call("torch.distributed.barrier"))
def check_barrier(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a barrier in a loop over batches."""
    from torchlint.edits.messages import how_often

    from .collectives import is_awaited_for_a_file, is_timed

    if not _is_hot(node, context) or context.has_unpacking(node):
        return
    if not is_timed(node, context) and not is_awaited_for_a_file(node, context):
        yield Flag(
            node,
            _BARRIER.of(often=how_often(node, context)),
        )


@RULE.on(Method("log"), Method("log_dict"))
def check_log(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `self.log(…, sync_dist=True)` in Lightning's `training_step`, where it logs each step unless told not to."""
    from torchlint.edits.messages import how_often

    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or function.name.value != "training_step":
        return
    if not _is(context.argument(node, "sync_dist"), "True") or _is(context.argument(node, "on_step"), "False"):
        return
    value = context.argument(node, "value", 1)
    if isinstance(value, cst.Attribute) or context.has_unpacking(node) or context.frequency(node) < Frequency.BATCH:
        return  # a metric of its own sees to that itself
    yield Flag(
        node,
        _SYNC_DIST.of(often=how_often(node, context)),
    )


def _is_hot(node: cst.Call, context: Context) -> bool:
    """Whether each iteration of a loop over batches of the same function comes to the node."""
    return context.frequencies.batch_loop(node) is not None and context.frequency(node) >= Frequency.BATCH


def _is_told_where_it_is_called(node: cst.Call, context: Context) -> bool:
    """Whether the function is called per batch in this file: there is where somebody can call it less often."""
    function = context.function(node)
    return (
        context.frequencies.batch_loop(node) is None
        and isinstance(function, cst.FunctionDef)
        and context.frequency(node) >= Frequency.BATCH
        and bool(context.calls.callers(function))
    )


def _is_reduced(use: cst.Name, context: Context) -> bool:
    """Whether the tensor is only given to a collective again."""
    argument = context.parent(use)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and (context.qualified_name(call.func) or "").startswith("torch.distributed.")


def _is(node: cst.BaseExpression | None, word: str) -> bool:
    return isinstance(node, cst.Name) and node.value == word
