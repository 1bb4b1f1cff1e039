"""A loader without workers: the process that drives the device also loads every batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Doubt
from torchlint.rule import Applicability, Call, Context, Flag, Message, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.conventions.comments import WORKER_REASON, WORKERS_NOT_NEEDED
from torchlint.semantics.knowledge.conventions.conditions import WORKER_CONDITION
from torchlint.semantics.knowledge.conventions.counts import WORKER_NUMBER

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.analyses.data.datasets import NoWorkers, Reader, Work

from ._shared import LOADERS

RULE = Rule(
    name="dataloader-no-workers",
    code="TL101",
    group="data",
    summary="A `DataLoader` without workers blocks the loop over its batches while it loads.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    unsafe="workers get copies of the dataset, and random numbers drawn in it differ",
    doubts=(
        (Doubt.MEANT, "who writes why there are no workers has decided so"),
        (Doubt.RARE, "single batches are looked at"),
        (Doubt.SMALL, "what is made up costs nothing, and beside text that is generated loading does not count"),
        (Doubt.OPTION_DECIDES, ""),
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.WORK_UNKNOWN, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.NAMED_OTHERWISE, ""),
    ),
)
_BLOCKS = Message(
    "loading-blocks",
    "{cause}: loading blocks the loop over the batches",
    help="load in worker processes, with `num_workers={workers}`",
)


@RULE.on(*LOADERS, Call("torch_geometric.loader.dataloader.DataLoader"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader that loads, decodes or transforms in the main process while something waits for its batches."""
    from torchlint.analyses.data.datasets import Reader, Work, reader, work

    from ._shared.no_gain import is_collated_here, is_collated_on_device, is_drawn_on_device, is_one_batch

    lack = _lack(node, context)
    dataset = context.argument(node, "dataset", 0)
    if lack is None or dataset is None or _is_impossible(node, lack, context) or is_one_batch(node, context):
        return
    found = work(dataset, context)
    if found not in (Work.UNKNOWN, Work.LOADS) or is_drawn_on_device(node, context):
        return
    by = reader(node, context)
    if by in (Reader.NOBODY, Reader.PEEK) or is_collated_on_device(node, context):
        return
    if found is Work.UNKNOWN and is_collated_here(node, context):
        found = Work.LOADS
    if found is Work.UNKNOWN and (by is Reader.UNSEEN or _costs_nothing(node, dataset, lack, context)):
        return  # nothing in sight makes the samples or takes the batches, or it picks them from memory
    workers = context.settings.dataloader_workers
    yield Flag(
        node,
        _BLOCKS.of(cause=_cause(lack, context), workers=workers or 4),
        title=f"Load with {workers} workers",
        edits=_with_workers(node, lack, workers, context) if workers > 0 else (),
        doubts=tuple(dict.fromkeys(_doubts(node, dataset, lack, found, by, context))),
    )


def _lack(loader: cst.Call, context: Context) -> NoWorkers | None:
    """What leaves the loader without workers, an option of the command line that is 0 among others."""
    from torchlint.analyses.data.datasets import NoWorkers, no_workers

    from ._shared.workers import zero_by_default

    lack = no_workers(loader, context)
    given = context.argument(loader, "num_workers", 5)
    if lack is not None or given is None:
        return lack
    zero = zero_by_default(given, context)
    return None if zero is None else NoWorkers(given, zero, is_option=True)


def _doubts(
    loader: cst.Call, dataset: cst.BaseExpression, lack: NoWorkers, found: Work, by: Reader, context: Context
) -> Iterator[Doubt]:
    """Why workers may not be worth having here."""
    from torchlint.analyses.data.datasets import Reader, Work, is_self_check

    from ._shared.no_gain import is_given_elsewhere, is_made_up, is_named_in_memory, is_on_the_cpu, is_to_look_at

    if _is_chosen(loader, lack, context):
        yield Doubt.MEANT
    if lack.is_option or _is_asked_for(loader, context):
        yield Doubt.OPTION_DECIDES
    if is_on_the_cpu(context) or by is Reader.SHOW:
        yield Doubt.DEVICE_UNKNOWN
    if by is Reader.SLOW and found is Work.UNKNOWN:
        yield Doubt.SMALL
    if is_made_up(loader, dataset, context):
        yield Doubt.NAMED_OTHERWISE
    if context.frequencies.is_diagnostic(loader):
        yield Doubt.NAMED_RARE
    if is_self_check(loader, context) or is_to_look_at(loader, dataset, context):
        yield Doubt.RARE
    if found is Work.UNKNOWN and is_given_elsewhere(dataset, context):
        yield Doubt.WORK_UNKNOWN
    if found is Work.UNKNOWN and is_named_in_memory(loader, dataset, context):
        yield Doubt.NAMED_OTHERWISE


def _cause(lack: NoWorkers, context: Context) -> str:
    if lack.given is None:
        return "`num_workers` is 0 by default"
    if lack.is_option:
        return f"`{context.shown(lack.given)}` is 0 by default"
    return f"`{context.code(lack.given)}` is 0" if lack.is_named else "`num_workers` is 0"


def _is_impossible(loader: cst.Call, lack: NoWorkers, context: Context) -> bool:
    """Whether the loader cannot have workers, or the constructor refuses what it is given without."""
    from torchlint.analyses.data.datasets import NEED_WORKERS

    from ._shared.no_gain import is_in_a_process

    if any(context.argument(loader, option) is not None for option in NEED_WORKERS) and not lack.is_option:
        return True
    return lack.zero is not None and is_in_a_process(loader, context)


def _costs_nothing(loader: cst.Call, dataset: cst.BaseExpression, lack: NoWorkers, context: Context) -> bool:
    """Whether a dataset that is out of sight likely holds its samples, or a 0 is written for single samples of it."""
    from ._shared.no_gain import is_one_by_one, may_cost_nothing

    return may_cost_nothing(loader, dataset, context) or (
        lack.given is not None and not lack.is_option and is_one_by_one(loader, context)
    )


def _is_chosen(loader: cst.Call, lack: NoWorkers, context: Context) -> bool:
    """Whether somebody decided to have no workers, in a comment."""
    from torchlint.analyses.execution.meant import is_meant

    return lack.zero is not None and (
        is_meant(lack.zero, context, behind=WORKER_REASON) or is_meant(loader, context, above=WORKERS_NOT_NEEDED)
    )


def _is_asked_for(loader: cst.Call, context: Context) -> bool:
    """Whether the words of a condition decide on workers: `if args.debug:`."""
    return any(
        WORKER_CONDITION.suggests(context.uncommented(condition.test))
        for condition in context.conditions(loader, across_functions=True)
    )


def _with_workers(call: cst.Call, lack: NoWorkers, workers: int, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import with_argument

    if lack.given is None or lack.zero is None:
        return (with_argument(call, f"num_workers={workers}", context),)
    if lack.is_named and not WORKER_NUMBER.suggests(context.uncommented(lack.given).lower()):
        return ()  # the name may stand for other zeros too
    return (Replace(lack.zero, str(workers)),)
