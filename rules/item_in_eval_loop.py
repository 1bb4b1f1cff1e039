"""One value read back for each batch of an evaluation: the CPU waits instead of preparing the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Flag, Method, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="item-in-eval-loop",
    code="TL302",
    group="sync",
    summary="A value read back for each batch of an evaluation makes the CPU wait for the device.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
)


@RULE.on(Method("item"), Call("float"), Call("int"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a scalar read that runs for each batch without autograd."""
    from torchlint.model.accumulators import deferred
    from torchlint.model.reads import is_avoidable, is_evaluating, is_hot, is_needed_on_host, scalar_read

    tensor = scalar_read(node, context)
    if tensor is None or not is_hot(node, context) or is_needed_on_host(node, context):
        return
    if not is_evaluating(node, context):
        return
    if not is_avoidable(node, tensor, context) or _is_converted(node, context):
        return
    read = context.code(node)
    edits = deferred(node, tensor, context)
    advice = "keep the count on the device and read it once" if edits else "read it once, behind the loop"
    yield Flag(
        node,
        f"`{read}` makes the CPU wait for the device {context.frequency(node)}; {advice}",
        title=f"Accumulate `{context.code(tensor)}` on the device",
        edits=edits,
    )


def _is_converted(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node is `float(…)` around an `.item()`, which is the read that counts."""
    return isinstance(node, cst.Call) and bool(node.args) and "item" in context.code(node.args[0]).rsplit(".", 1)[-1]
