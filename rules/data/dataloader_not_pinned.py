"""A loader whose batches are copied to the device from memory that is not pinned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Doubt
from torchlint.rule import Applicability, Call, Context, Flag, Message, NodeEdit, Replace, Rule
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.packages import UNPINNABLE_PACKAGE

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.analyses.data.batch_moves import BatchMove

RULE = Rule(
    name="dataloader-not-pinned",
    code="TL102",
    group="data",
    summary="Batches are copied to the GPU from pageable memory, which blocks the CPU.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="pinned pages cannot be swapped out, and GPU tensors cannot be pinned",
    yields_to=("workers-without-main-guard",),
    doubts=(
        (Doubt.OPTION_DECIDES, ""),
        (Doubt.HOST_BOUND, ""),
        (Doubt.RARE, "what is there to look at batches copies few of them"),
    ),
)
_PAGEABLE = Message(
    "pageable",
    "batches are in pageable memory, so `{copy}` blocks the CPU{often}",
    help="pass `pin_memory=True`, and `non_blocking=True` to the copy",
)
_ALONE = Message(
    "alone",
    "batches are in pageable memory, so `{copy}` blocks the CPU{often}",
    help="load with workers that pin: `num_workers` and `pin_memory=True`, and `non_blocking=True` to the copy",
)
_NEVER = Message(
    "never",
    "`{given}` is always false: batches are in pageable memory, so `{copy}` blocks the CPU{often}",
    help="compare `{device}.type`, since a `torch.device` equals no text",
)


@RULE.on(
    Call("torch.utils.data.DataLoader"),
    Call("torch_geometric.loader.DataLoader"),
    Call("torch_geometric.data.DataLoader"),
    Call("torchdata.stateful_dataloader.StatefulDataLoader"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader that does not pin its batches, though a loop moves them to the device; the moves are its places."""
    from torchlint.analyses.data.batch_moves import Pinned, pinned
    from torchlint.analyses.data.datasets import no_workers

    if pinned(node, context) is not Pinned.NO or _gives_no_host_memory(node, context):
        return
    moves = _moves(node, context)
    if not moves:
        return
    copy, often = context.shown(moves[0].call), _frequency(moves[0], context)
    places = tuple(move.call for move in moves)
    if no_workers(node, context) is not None:
        # The loop itself would have to make the extra copy into pinned memory.
        said = _ALONE.of(copy=copy, often=often)
        yield Flag(node, said, places=places, about=places, doubts=(Doubt.HOST_BOUND, *_doubts(node, context)))
        return
    mistaken = _mistaken(node, context)
    if mistaken is not None:
        given, device = mistaken
        yield Flag(
            node,
            _NEVER.of(given=context.shown(given), device=context.shown(device), copy=copy, often=often),
            title="Compare the type of the device",
            edits=(Replace(device, f"{context.code(device)}.type"),) if context.tree.within(device, node) else (),
            places=places,
            about=places,
            doubts=tuple(_doubts(node, context)),
        )
        return
    yield Flag(
        node,
        _PAGEABLE.of(copy=copy, often=often),
        title="Pass `pin_memory=True`",
        edits=(_pinning(node, context),),
        places=places,
        about=places,
        doubts=(Doubt.HOST_BOUND, *_doubts(node, context)),
    )


def _mistaken(loader: cst.Call, context: Context) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """`device == "cuda"` and the device of it, which is compared with a text, where that decides on pinning."""
    from torchlint.analyses.data.batch_moves import device_compared_with_text
    from torchlint.analyses.data.loaders import option

    given = option(loader, "pin_memory", 7, context).given
    device = device_compared_with_text(given, context) if given is not None else None
    return None if given is None or device is None else (given, device)


def _doubts(loader: cst.Call, context: Context) -> Iterator[Doubt]:
    """Why pinned memory may not be worth having here."""
    from torchlint.analyses.data.loaders import option

    from ._shared.workers import is_zero_by_default

    number = option(loader, "num_workers", 5, context).given
    if number is not None and is_zero_by_default(number, context):
        yield Doubt.OPTION_DECIDES
    if context.frequencies.is_diagnostic(loader):
        yield Doubt.NAMED_RARE


def _moves(loader: cst.Call, context: Context) -> list[BatchMove]:
    """The moves of batches of the loader, of something that can be pinned, in loops that compute with them."""
    from torchlint.analyses.data.batch_moves import is_made_anew, loop_of
    from torchlint.analyses.data.idle_loops import computes_nothing
    from torchlint.analyses.data.loaders import option

    found: list[BatchMove] = []
    is_default = option(loader, "collate_fn", 6, context).given is None
    for move in _moves_of_all(context.tree.module, context).get(loader, ()):
        is_tensor = is_default or context.kinds.is_tensor(move.receiver)
        # A graph of DGL's has no method `pin_memory`, and what its batches hold is such graphs for the most part.
        can_be_pinned = is_tensor or (move.is_part and not UNPINNABLE_PACKAGE.suggests_any(context.names.imported))
        if not can_be_pinned:
            continue
        loop = loop_of(move.call, context)
        if loop is None or not (computes_nothing(loop, context) or is_made_anew(loop, context)):
            found.append(move)
    return found


@query(bottom=None)
def _moves_of_all(_module: cst.Module, context: Context) -> dict[cst.Call, list[BatchMove]]:
    """The moves of batches, by the loaders."""
    from torchlint.analyses.data.loaders import made
    from torchlint.analyses.data.passes import Passes

    found: dict[cst.Call, list[BatchMove]] = {}
    for move in context[Passes].moves:
        for loader in made(move.loader, context).calls:
            found.setdefault(loader, []).append(move)
    return found


def _frequency(move: BatchMove, context: Context) -> str:
    """How often that is: a tuple of the parts of a batch is one batch."""
    from torchlint.edits.messages import every
    from torchlint.finding import Frequency

    return every(min(context.frequency(move.call), Frequency.BATCH))


def _gives_no_host_memory(loader: cst.Call, context: Context) -> bool:
    """Whether samples may be on the device already, or are put there as they are collated."""
    import libcst as cst

    from torchlint.analyses.data.datasets import Work, is_put_on_device, work
    from torchlint.semantics.values.lattice import Device, Kind
    from torchlint.syntax.tree import descendants

    dataset = context.argument(loader, "dataset", 0)
    if dataset is None or work(dataset, context) is Work.ON_DEVICE:
        return True
    collate = context.argument(loader, "collate_fn", 6)
    definition = context.value(collate).definition if collate is not None else None
    if definition is not None and any(is_put_on_device(part, context) for part in descendants(definition)):
        return True
    return any(
        context.value(part).kind is Kind.TENSOR and context.device(part) in (Device.ACCELERATOR, Device.MAYBE)
        for part in descendants(dataset)
        if isinstance(part, cst.BaseExpression)
    )


def _pinning(loader: cst.Call, context: Context) -> NodeEdit:
    from torchlint.analyses.data.loaders import option
    from torchlint.edits.expressions import with_argument
    from torchlint.edits.imports import spelling

    # A program that runs without CUDA too would be warned there that nothing can be pinned.
    asks = "torch.cuda.is_available()"
    code = asks if asks in context.program.code and spelling("torch", loader, context) == "torch" else "True"
    given = option(loader, "pin_memory", 7, context).given
    return Replace(given, code) if given is not None else with_argument(loader, f"pin_memory={code}", context)
