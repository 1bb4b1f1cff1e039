"""A backward pass that also computes the gradients of a network that it only goes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Context, Doubt, Flag, Message, Method, Rule

if TYPE_CHECKING:
    import libcst as cst

RULE = Rule(
    name="critic-gradients-discarded",
    code="TL419",
    group="autograd",
    summary="The backward pass of an actor or a generator also computes gradients for its critic, which are discarded.",
    since="0.2.0",
    doubts=(
        (Doubt.SMALL, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "A pass that is seldom made is not what anybody waits for."),
    ),
)
_DISCARDED = Message(
    "discarded",
    "`{backward}` also computes gradients for `{critic}`{often}, which `{zeroed}` discards",
    help="call `{critic}.requires_grad_(False)` before `{call}`, and `requires_grad_(True)` after the pass",
)


@RULE.on(Method("backward"), Method("manual_backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass through a critic whose gradients are zeroed before they are used."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often
    from torchlint.finding import Frequency

    from ._shared.adversaries import idlers

    text = context.program.code
    if "zero_grad" not in text or "step(" not in text or context.frequency(node) is Frequency.ONCE:
        return
    for idle in idlers(node, context):
        first = idle.calls[0]
        yield Flag(
            first,
            _DISCARDED.of(
                backward=context.shown(node),
                critic=context.shown(first.func),
                call=context.shown(first),
                zeroed=context.shown(idle.zeroed),
                often=how_often(node, context),
            ),
            doubts=(Doubt.SMALL, *rate_doubts(node, context)),
            places=idle.calls[1:],
        )
