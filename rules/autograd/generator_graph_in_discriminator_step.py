"""A backward pass for the discriminator that goes on through the generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Context, Doubt, Flag, Insert, Message, Method, Rule
from torchlint.semantics.knowledge.conventions.texts import WATCHED_GRAPH

if TYPE_CHECKING:
    import libcst as cst

    from ._shared.adversaries import Stray

RULE = Rule(
    name="generator-graph-in-discriminator-step",
    code="TL406",
    group="autograd",
    summary="The discriminator's backward pass also computes gradients for the generator, which are then discarded.",
    since="0.2.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="gradients of the generator are not accumulated in this step",
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "A pass that is seldom made is not what anybody waits for."),
    ),
)
_WASTED = Message(
    "wasted-gradients",
    "`{backward}` also computes gradients for `{other}`{often}, which `{zeroed}` discards",
    help="pass `{given}.detach()` to `{taker}`",
)


@RULE.on(Method("backward"), Method("manual_backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag each call of the discriminator through which the pass gets to the generator."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often
    from torchlint.finding import Frequency

    from ._shared.adversaries import strays

    text = context.program.code
    if "zero_grad" not in text or "step(" not in text:
        return
    if context.frequency(node) is Frequency.ONCE:
        return  # one pass more is not what anybody waits for
    doubts = rate_doubts(node, context) if context.frequency(node) is Frequency.UNKNOWN else ()
    for stray in strays(node, context):
        given = context.shown(stray.carriers[0])
        yield Flag(
            stray.call,
            _WASTED.of(
                backward=context.shown(node),
                other=context.shown(stray.other),
                zeroed=context.shown(stray.zeroed),
                given=given,
                taker=context.shown(stray.call.func),
                often=how_often(node, context),
            ),
            title=f"Pass `{given}.detach()`",
            edits=tuple(Insert(part, ".detach()") for part in stray.carriers),
            applicability=Applicability.SAFE if _is_unseen(stray, context) else Applicability.UNSAFE,
            doubts=doubts,
        )


def _is_unseen(stray: Stray, context: Context) -> bool:
    """Whether nothing can tell that the generator's part of the pass does not run."""
    from ._shared.adversaries import is_unwatched

    is_quiet = not stray.zeroed.args and not WATCHED_GRAPH.suggests(context.program.code)
    return is_quiet and is_unwatched(stray, context)
