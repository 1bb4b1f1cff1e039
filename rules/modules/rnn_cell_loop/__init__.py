"""A recurrent cell stepped by a Python loop through inputs that are all there, where one call takes them at once."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Flag, Message, Node, Rule, Status

RULE = Rule(
    name="rnn-cell-loop",
    code="TL510",
    group="modules",
    summary="A Python loop steps a recurrent cell through a sequence that is complete before it begins.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
)
_STEPWISE = Message(
    "stepwise",
    "`{cell}` takes a complete sequence step by step, with kernels for each step",
    help="use `{layer}`, which takes the whole sequence",
)


@RULE.on(Node("For", (b"LSTMCell", b"GRUCell", b"RNNCell")))
def check(loop: cst.For, context: Context) -> Iterator[Flag]:
    """Flag each cell of a network that a loop steps, if no input hangs on an output."""
    from .recurrence import steps

    function = context.function(loop)
    owner = context.classes.owner(function) if function is not None else None
    if owner is None or not context.classes.is_module(owner):
        return
    for step in steps(loop, context):
        yield Flag(
            step.call,
            _STEPWISE.of(cell=context.shown(step.call.func), layer=step.layer),
        )
