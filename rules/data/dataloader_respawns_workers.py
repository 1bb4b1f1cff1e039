"""A loader whose workers end with each pass over it, and are started again for the next."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Applicability, Context, Flag, Message, Rule

from ._shared import LOADERS

RULE = Rule(
    name="dataloader-respawns-workers",
    code="TL103",
    group="data",
    summary="The workers of a `DataLoader` are respawned every epoch.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="workers that live on do not see later changes of the dataset",
    yields_to=("workers-without-main-guard",),
    doubts=(
        (Doubt.OPTION_DECIDES, ""),
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.ONCE_AN_EPOCH, ""),
        (Doubt.RARE, "what is there to look at batches goes over few of them"),
    ),
)
_RESPAWNED = Message("respawned", "{workers} respawned {again}", help="pass `persistent_workers={kept}`")


@RULE.on(*LOADERS)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader with workers that a loop over epochs goes over again and again."""
    from torchlint.analyses.data.loaders import option
    from torchlint.edits.expressions import with_argument

    from ._shared.no_gain import is_on_the_cpu
    from ._shared.workers import (
        EVERY_EPOCH,
        configured_workers,
        is_named_for_epochs,
        needs_new_workers,
        starts_again,
        workers,
    )

    kept = option(node, "persistent_workers", None, context)
    if kept.given is not None or not kept.known:
        return
    known = workers(node, context)
    found = known or configured_workers(node, context)
    again = starts_again(node, context) if found is not None else None
    if found is None or again is None or needs_new_workers(node, context):
        return
    doubts = () if known is not None else (Doubt.OPTION_DECIDES,)
    doubts = (*doubts, Doubt.DEVICE_UNKNOWN) if is_on_the_cpu(context) else doubts
    doubts = (*doubts, Doubt.ONCE_AN_EPOCH) if again == EVERY_EPOCH else doubts
    if context.frequencies.is_diagnostic(node):
        doubts = (*doubts, Doubt.NAMED_RARE)
    is_told = is_named_for_epochs(node, context)
    if is_told:
        doubts = (*doubts, Doubt.NAMED_OTHERWISE)
    code = found.condition or "True"
    yield Flag(
        node,
        _RESPAWNED.of(workers=found.words, again=again, kept=code),
        title="Pass `persistent_workers`",
        edits=() if is_told else (with_argument(node, f"persistent_workers={code}", context),),
        doubts=doubts,
    )
