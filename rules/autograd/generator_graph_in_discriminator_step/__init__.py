"""A backward pass for the discriminator that goes on through the generator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Flag, Insert, Method, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

    from .adversaries import Stray

RULE = Rule(
    name="generator-graph-in-discriminator-step",
    code="TL406",
    group="autograd",
    summary="The discriminator's backward pass goes on through the generator, whose gradients are then zeroed.",
    since="0.2.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
)
# What may see that the generator's backward pass does not run: hooks, recomputation, wrappers that reduce gradients,
# whoever reads gradients or asks what has any, and graphs that are kept.
_WATCHING = re.compile(
    r"_hook|checkpoint\(|DistributedDataParallel|DDP\(|fabric|ccelerat|deepspeed|FullySharded|retain_graph"
    r"|create_graph|\.grad\b|clip_grad|grad_fn|is_leaf|autograd\.(?!Variable)|def backward|param_groups|unscale_"
    r"|detect_anomaly|getattr\(|requires_grad(?:_|\s*=(?!=))|(?<!\bp\.)(?<!\bparam\.)requires_grad\b"
)


@RULE.on(Method("backward"), Method("manual_backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag each call of the discriminator through which the pass gets to the generator."""
    from torchlint.finding import Frequency

    from .adversaries import strays

    text = context.source.text
    if "zero_grad" not in text or "step(" not in text or "add_param_group" in text:
        return
    if context.frequency(node) in (Frequency.ONCE, Frequency.UNKNOWN):
        return
    for stray in strays(node, context):
        given = context.shown(stray.carriers[0])
        yield Flag(
            stray.call,
            f"`{context.shown(node)}` goes back through `{context.shown(stray.other)}` {context.frequency(node)}, for "
            f"gradients that `{context.shown(stray.zeroed)}` throws away; pass `{given}.detach()` to "
            f"`{context.shown(stray.call.func)}`",
            title=f"Pass `{given}.detach()`",
            edits=tuple(Insert(part, ".detach()") for part in stray.carriers),
            applicability=Applicability.SAFE if _is_unseen(stray, context) else Applicability.UNSAFE,
        )


def _is_unseen(stray: Stray, context: Context) -> bool:
    """Whether nothing can tell that the generator's part of the pass does not run."""
    from .adversaries import is_unwatched

    is_quiet = not stray.zeroed.args and _WATCHING.search(context.source.text) is None
    return is_quiet and is_unwatched(stray, context)
