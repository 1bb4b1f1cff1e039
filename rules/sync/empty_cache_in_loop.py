"""The cache of freed device memory returned to the driver at each batch, which asks for it again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, Rule

from ._shared.doubts import CHORE_DOUBTS, weighed

RULE = Rule(
    name="empty-cache-in-loop",
    code="TL318",
    group="sync",
    summary="Emptying the memory cache every batch synchronizes, and the next batch allocates again.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    doubts=CHORE_DOUBTS,
    unsafe="memory may fragment, and other processes do not get what is cached",
)
_EMPTIES = Message(
    "empties",
    "`{call}` synchronizes with the GPU{often} and frees memory that is allocated again",
    help="delete it; it does not lower the peak",
)


@RULE.on(
    Call("torch.cuda.empty_cache"),
    Call("torch.cuda.memory.empty_cache"),
    Call("torch.accelerator.empty_cache"),
    Call("torch.accelerator.memory.empty_cache"),
    Call("torch.xpu.empty_cache"),
    Call("torch.mps.empty_cache"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call that empties the cache, though no memory is short."""
    from torchlint.edits.messages import how_often

    from ._shared.housekeeping import chore_doubts, is_chore, without

    if not is_chore(node, context):
        return
    doubts = weighed(RULE, chore_doubts(node, context))
    yield Flag(
        node,
        _EMPTIES.of(call=context.shown(node), often=how_often(node, context)),
        title=f"Delete `{context.shown(node)}`",
        edits=() if doubts else without(node, context),
        doubts=doubts,
    )
