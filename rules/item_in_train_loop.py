"""One value read back at each training step: the CPU waits for all that it has queued."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Flag, Method, Node, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="item-in-train-loop",
    code="TL301",
    group="sync",
    summary="A value read back at each training step makes the CPU wait for the device.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
)


@RULE.on(
    Method("item"),
    Call("float"),
    Call("int"),
    Call("math.sqrt"),
    Call("math.log"),
    Call("math.exp"),
    Call("math.isnan"),
    Call("math.isfinite"),
    Node("Subscript", (b".data[0]",)),
)
def check(node: cst.Call | cst.Subscript, context: Context) -> Iterator[Flag]:
    """Flag a scalar read that runs at each step with autograd on."""
    from torchlint.model.accumulators import deferred
    from torchlint.model.reads import is_avoidable, is_evaluating, is_hot, is_needed_on_host, scalar_read

    tensor = scalar_read(node, context)
    if tensor is None or not is_hot(node, context) or is_evaluating(node, context) or is_needed_on_host(node, context):
        return
    if not is_avoidable(node, tensor, context) or _is_converted(node, context):
        return
    read, value = context.code(node), context.code(tensor)
    edits = deferred(node, tensor, context)
    advice = f"accumulate `{value}.detach()` and read it when you log" if edits else "read it when you log"
    yield Flag(
        node,
        f"`{read}` makes the CPU wait for the device {context.frequency(node)}; {advice}",
        title=f"Accumulate `{value}` on the device",
        edits=edits,
    )


def _is_converted(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node is `float(…)` around an `.item()`, which is the read that counts."""
    return isinstance(node, cst.Call) and bool(node.args) and "item" in context.code(node.args[0]).rsplit(".", 1)[-1]
