"""A wait for the device at each batch, by hand: the CPU queues nothing meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, Rule
from torchlint.semantics.knowledge.conventions.texts import ORDERED_WORK

from ._shared.doubts import CHORE_DOUBTS, weighed

RULE = Rule(
    name="synchronize-in-loop",
    code="TL317",
    group="sync",
    summary="Synchronizing by hand every batch leaves the GPU idle until the CPU has queued more work.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    doubts=CHORE_DOUBTS,
    unsafe="work on other streams is no longer waited for",
)
_IDLES = Message(
    "idles",
    "`{call}` blocks the CPU{often} until the GPU is idle",
    help="delete it; PyTorch waits where a value is read",
)


@RULE.on(
    Call("torch.cuda.synchronize"),
    Call("torch.accelerator.synchronize"),
    Call("torch.xpu.synchronize"),
    Call("torch.mps.synchronize"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a wait for the device where nothing is timed and nothing depends on it."""
    from torchlint.edits.messages import how_often

    from ._shared.housekeeping import chore_doubts, is_chore, without

    if not is_chore(node, context) or _is_of_use(node, context):
        return
    doubts = weighed(RULE, chore_doubts(node, context))
    yield Flag(
        node,
        _IDLES.of(call=context.shown(node), often=how_often(node, context)),
        title=f"Delete `{context.shown(node)}`",
        edits=() if doubts else without(node, context),
        doubts=doubts,
    )


def _is_of_use(call: cst.Call, context: Context) -> bool:
    """Whether the code around looks at the clock, or orders work that PyTorch does not order by itself."""
    from ._shared.housekeeping import is_timed

    ordered = context.function(call) or context.tree.module
    return is_timed(call, context) or ORDERED_WORK.suggests(context.uncommented(ordered))
