"""A wait for the device at each batch, by hand: the CPU queues nothing meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Flag, Rule
from torchlint.semantics.knowledge.conventions.texts import ORDERED_WORK

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

RULE = Rule(
    name="synchronize-in-loop",
    code="TL317",
    group="sync",
    summary="Waiting for the device by hand at each batch lets it run dry until the CPU has queued the next.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
)


@RULE.on(
    Call("torch.cuda.synchronize"),
    Call("torch.accelerator.synchronize"),
    Call("torch.xpu.synchronize"),
    Call("torch.mps.synchronize"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a wait for the device at each batch where nothing is timed and nothing depends on it."""
    from ._shared.housekeeping import is_chore_per_batch, without  # the model's parts load LibCST

    if not is_chore_per_batch(node, context) or _is_of_use(node, context):
        return
    yield Flag(
        node,
        f"`{context.shown(node)}` makes the CPU wait {context.frequency(node)} until the device is idle; "
        "delete it: PyTorch waits by itself where a value is read",
        title=f"Delete `{context.shown(node)}`",
        edits=without(node, context),
    )


def _is_of_use(call: cst.Call, context: Context) -> bool:
    """Whether the code around looks at the clock, or orders work that PyTorch does not order by itself."""
    from ._shared.housekeeping import is_timed

    ordered = context.function(call) or context.tree.module
    return is_timed(call, context) or ORDERED_WORK.suggests(context.uncommented(ordered))
