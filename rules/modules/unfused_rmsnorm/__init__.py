"""A root mean square norm written as a formula: a kernel, and a tensor kept, for each of its operations."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Rule
from torchlint.semantics.knowledge.conventions.texts import RMSNORM_KNOWN

RULE = Rule(
    name="unfused-rmsnorm",
    code="TL509",
    group="modules",
    summary="A hand-written RMSNorm launches a kernel per operation and saves every result for backward.",
    since="0.2.0",
    default=False,
    eager=True,
    torch=(2, 9),
)
_UNFUSED = Message(
    "unfused",
    "this hand-written RMSNorm launches a kernel for each operation{often}",
    help="use `torch.nn.functional.rms_norm`, which is one kernel on CUDA",
)


@RULE.on(Call("torch.rsqrt"), Method("rsqrt"))
def check(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the product of a tensor and the root of the mean of its squares, over the last axis."""
    from torchlint.analyses.execution.hot import is_exceptional
    from torchlint.analyses.execution.rarity import is_named_diagnostic
    from torchlint.edits.messages import how_often

    from .._shared.fused_elsewhere import is_fused_elsewhere, is_named_fused
    from .formula import rms_norm

    product = rms_norm(call, context)
    if product is None or RMSNORM_KNOWN.suggests(context.program.code) or is_fused_elsewhere(call, context):
        return
    if context.frequency(product) is Frequency.ONCE or is_exceptional(product, context):
        return
    yield Flag(
        product,
        _UNFUSED.of(often=how_often(product, context)),
        doubts=(
            *((Doubt.NAMED_RARE,) if is_named_diagnostic(product, context) else ()),
            *((Doubt.MEANT,) if is_named_fused(call, context) else ()),
        ),
    )
