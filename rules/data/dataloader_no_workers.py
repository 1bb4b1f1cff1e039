"""A loader without workers: the process that drives the device also loads every batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Flag, Message, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.conventions.comments import WORKER_REASON, WORKERS_NOT_NEEDED
from torchlint.semantics.knowledge.conventions.conditions import WORKER_CONDITION
from torchlint.semantics.knowledge.conventions.counts import WORKER_NUMBER

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.analyses.data.datasets import NoWorkers
    from torchlint.semantics.context import Context

RULE = Rule(
    name="dataloader-no-workers",
    code="TL101",
    group="data",
    summary="A `DataLoader` without workers blocks the loop over its batches while it loads.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    unsafe="workers get copies of the dataset, and random numbers drawn in it differ",
)
_BLOCKS = Message(
    "loading-blocks",
    "{cause}: loading blocks the loop over the batches",
    help="load in worker processes, with `num_workers={workers}`",
)


@RULE.on(
    Call("torch.utils.data.DataLoader"),
    Call("torch_geometric.loader.DataLoader"),
    Call("torch_geometric.data.DataLoader"),
    Call("torchdata.stateful_dataloader.StatefulDataLoader"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader that loads, decodes or transforms in the main process while something waits for its batches."""
    from torchlint.analyses.data.datasets import Reader, Work, no_workers, reader, work  # the model's parts load LibCST

    from ._shared.no_gain import (
        is_collated_on_device,
        is_drawn_on_device,
        is_made_up,
        is_on_the_cpu,
        is_one_batch,
        is_one_by_one,
        is_to_look_at,
        may_cost_nothing,
    )

    lack = no_workers(node, context)
    if lack is None or _is_meant(node, lack, context):
        return
    dataset = context.argument(node, "dataset", 0)
    if dataset is None or is_one_batch(node, context):
        return
    found = work(dataset, context)
    if found not in (Work.UNKNOWN, Work.LOADS):
        return
    if is_on_the_cpu(context) or (found is Work.UNKNOWN and may_cost_nothing(node, dataset, context)):
        return
    if found is Work.UNKNOWN and lack.given is not None and is_one_by_one(node, context):
        return  # somebody has written the 0 for it
    if is_made_up(node, dataset, context) or is_drawn_on_device(node, context) or is_to_look_at(node, dataset, context):
        return
    by = reader(node, context)
    if by in (Reader.NOBODY, Reader.PEEK, Reader.SHOW):
        return
    if (by in (Reader.UNSEEN, Reader.SLOW) and found is Work.UNKNOWN) or is_collated_on_device(node, context):
        return
    workers = context.settings.dataloader_workers
    yield Flag(
        node,
        _BLOCKS.of(cause=_cause(lack, context), workers=workers or 4),
        title=f"Load with {workers} workers",
        edits=_with_workers(node, lack, workers, context) if workers > 0 else (),
    )


def _cause(lack: NoWorkers, context: Context) -> str:
    if lack.given is None:
        return "`num_workers` is 0 by default"
    return f"`{context.code(lack.given)}` is 0" if lack.is_named else "`num_workers` is 0"


def _is_meant(call: cst.Call, lack: NoWorkers, context: Context) -> bool:
    """Whether somebody chose to have no workers, or the loader is there to be looked at."""
    from torchlint.analyses.data.datasets import NEED_WORKERS, is_self_check
    from torchlint.analyses.execution.meant import is_meant

    from ._shared.no_gain import is_in_a_process

    if any(context.argument(call, option) is not None for option in NEED_WORKERS):
        return True
    if context.frequencies.is_diagnostic(call) or is_self_check(call, context):
        return True
    if any(
        WORKER_CONDITION.suggests(context.uncommented(condition.test))
        for condition in context.conditions(call, across_functions=True)
    ):
        return True
    return lack.zero is not None and (
        is_meant(lack.zero, context, behind=WORKER_REASON)
        or is_meant(call, context, above=WORKERS_NOT_NEEDED)
        or is_in_a_process(call, context)
    )


def _with_workers(call: cst.Call, lack: NoWorkers, workers: int, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import with_argument

    if lack.given is None or lack.zero is None:
        return (with_argument(call, f"num_workers={workers}", context),)
    if lack.is_named and not WORKER_NUMBER.suggests(context.uncommented(lack.given).lower()):
        return ()  # the name may stand for other zeros too
    return (Replace(lack.zero, str(workers)),)
