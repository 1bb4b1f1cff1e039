"""A loader with workers that is made again in each iteration of a loop, and always the same."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Context, Flag, Message, Rule, Status

from ._shared import LOADERS

RULE = Rule(
    name="dataloader-built-in-loop",
    code="TL105",
    group="data",
    summary="A `DataLoader` and its workers are recreated in every iteration of a loop from the same arguments.",
    since="0.2.0",
    status=Status.PREVIEW,
    doubts=((Doubt.RARE, "what is there to measure or to look at does so on purpose"),),
)
_RECREATED = Message(
    "recreated",
    "this loader is recreated with its workers from the same arguments{often}",
    help="create it once before the loop, with `persistent_workers=True`",
)

# What the arguments of a loader may call and be the same in each iteration: no set of data, and nothing that draws.
_SAME = frozenset({"len", "int", "min", "max", "bool", "dict", "os.cpu_count", "multiprocessing.cpu_count"})
_SAMPLERS = frozenset({"RandomSampler", "SequentialSampler", "BatchSampler", "DistributedSampler"})


@RULE.on(*LOADERS)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader with workers that a loop over epochs or batches makes of things that it does not change."""
    from torchlint.edits.messages import how_often

    loop = context.loop(node)
    if loop is None or not _is_plain_turn(node, loop, context):
        return
    from torchlint.analyses.data.loaders import option

    from ._shared.workers import is_named_for_epochs, needs_new_workers, workers

    if workers(node, context) is None or not option(node, "persistent_workers", None, context).known:
        return
    if not _is_gone_over(node, loop, context) or not _is_the_same(node, loop, context):
        return
    if needs_new_workers(node, context):
        return
    yield Flag(
        node,
        _RECREATED.of(often=how_often(node, context)),
        doubts=(
            *((Doubt.NAMED_RARE,) if context.frequencies.is_diagnostic(node) else ()),
            *((Doubt.NAMED_OTHERWISE,) if is_named_for_epochs(node, context) else ()),
        ),
    )


def _is_plain_turn(node: cst.Call, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether each iteration of a loop over epochs or batches gets there, and nobody decides on it."""
    from torchlint.semantics.execution.frequency import LoopKind

    others = (cst.If, cst.IfExp, cst.Try, cst.Lambda, cst.ListComp, cst.DictComp, cst.GeneratorExp)
    if context.enclosing(node, *others, within=loop) is not None:
        return False
    return context.frequencies.loop_kind(loop) in (LoopKind.BATCH, LoopKind.EPOCH)


def _is_gone_over(node: cst.Call, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the loader is read in the same iteration, directly or by a function that it is given to."""
    from torchlint.analyses.data.passes import Passes

    for reading, _ in context[Passes].of(node):
        if context.tree.within(reading, loop.body):
            inner = context.loop(reading)
            return inner is loop
        if context.function(reading) is not context.function(node):
            return True
    return False


def _is_the_same(node: cst.Call, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether nothing that the loader is made of is bound or made in the loop."""
    from torchlint.semantics.names.bindings import dotted
    from torchlint.syntax.tree import descendants

    assigned = {
        dotted(part.target)
        for part in descendants(loop.body)
        if isinstance(part, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)) and isinstance(part.target, cst.Attribute)
    }
    for argument in node.args:
        for part in descendants(argument.value):
            if isinstance(part, cst.Call) and part is not node and not _is_pure(part, context):
                return False
            if isinstance(part, (cst.Lambda, cst.NamedExpr)) or dotted(part) in assigned - {None}:
                return False
            if isinstance(part, cst.Name) and context.is_bound_in(part, loop):
                return False
    return True


def _is_pure(call: cst.Call, context: Context) -> bool:
    name = context.qualified_name(call.func) or ""
    return name in _SAME or (name.startswith("torch.utils.data.") and name.rpartition(".")[2] in _SAMPLERS)
