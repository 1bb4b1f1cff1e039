"""Convolutions in mixed precision on tensors whose channels come first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Flag, Method, Rule, Status
from torchlint.semantics.knowledge.conventions.texts import LAYOUT_SETTLED

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

RULE = Rule(
    name="channels-last-missing",
    code="TL624",
    group="precision",
    summary="Convolutions in mixed precision take tensors with the channels last; others are copied at each layer.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
    eager=True,
)


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass of a script that trains convolutions under autocast with the channels first."""
    from ._shared.training_script import casts, convolves, is_first_step, is_tiny  # the model's parts load LibCST

    if LAYOUT_SETTLED.suggests(context.program.code):
        return
    if is_first_step(node, context) and casts(context) and convolves(context) and not is_tiny(context):
        yield Flag(
            node,
            "convolutions in 16 bits want the channels last, and transpose what comes otherwise on the way in and out; "
            "`model.to(memory_format=torch.channels_last)`, and the same for the images, saves that",
        )
