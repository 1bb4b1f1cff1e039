"""Convolutions in mixed precision on tensors whose channels come first."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Flag, Message, Method, Rule, Status
from torchlint.semantics.knowledge.conventions.texts import LAYOUT_SETTLED

RULE = Rule(
    name="channels-last-missing",
    code="TL624",
    group="precision",
    summary="Mixed-precision convolutions transpose contiguous tensors to channels-last and back.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
    eager=True,
)
_TRANSPOSED = Message(
    "transposed",
    "16-bit convolutions transpose contiguous tensors to channels-last and back",
    help="convert the model and the images with `.to(memory_format=torch.channels_last)`",
)


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass of a script that trains convolutions under autocast with the channels first."""
    from ._shared.training_script import casts, convolves, is_first_step, is_tiny

    if LAYOUT_SETTLED.suggests(context.program.code):
        return
    if is_first_step(node, context) and casts(context) and convolves(context) and not is_tiny(context):
        yield Flag(
            node,
            _TRANSPOSED.of(),
        )
