"""A network of convolutions or attention that is trained in float32 from end to end."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Flag, Message, Method, Rule, Status

RULE = Rule(
    name="no-mixed-precision",
    code="TL603",
    group="precision",
    summary="A training loop computes in float32 throughout, without autocast.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
)
_FLOAT32 = Message(
    "float32",
    "every step multiplies matrices in float32",
    help="run the forward pass and the loss under `torch.autocast(device_type, dtype=torch.bfloat16)`",
)


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass of a script that trains such a network on a device and never speaks of precision."""
    from ._shared.training_script import (
        attends,
        convolves,
        has_settled_on_a_precision,
        is_first_step,
        optimizes_inputs,
        refuses_autocast,
        takes_no_step,
    )

    if not is_first_step(node, context) or has_settled_on_a_precision(context):
        return
    if refuses_autocast(context) or optimizes_inputs(context) or takes_no_step(context):
        return
    if attends(context) or convolves(context):
        yield Flag(
            node,
            _FLOAT32.of(),
        )
