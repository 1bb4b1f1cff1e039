"""Python's garbage collector run by hand at each batch: it walks all objects there are, and finds nothing of use."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, Rule, Status

from ._shared.doubts import CHORE_DOUBTS, weighed

RULE = Rule(
    name="gc-collect-in-loop",
    code="TL322",
    group="sync",
    summary="Collecting garbage by hand every batch walks all Python objects while the GPU waits.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    doubts=CHORE_DOUBTS,
    unsafe="tensors in reference cycles live longer",
)
_COLLECTS = Message(
    "collects",
    "`{call}` walks all Python objects{often} while the GPU waits",
    help="delete it; a tensor is freed with the last reference to it",
)


@RULE.on(Call("gc.collect"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a full collection, though tensors are freed without it and no generation is named."""
    from torchlint.edits.messages import how_often

    from ._shared.housekeeping import chore_doubts, is_chore, is_timed, without

    if node.args or _collects_by_hand(context) or not {"torch", "lightning"} & context.names.imported:
        return
    if not is_chore(node, context) or is_timed(node, context):
        return
    doubts = weighed(RULE, chore_doubts(node, context))
    yield Flag(
        node,
        _COLLECTS.of(call=context.shown(node), often=how_often(node, context)),
        title=f"Delete `{context.shown(node)}`",
        edits=() if doubts else without(node, context),
        doubts=doubts,
    )


def _collects_by_hand(context: Context) -> bool:
    """Whether the module switches Python's own collections off, and so has to do them."""
    import libcst as cst

    return any(context.qualified_name(call.func) in ("gc.disable", "gc.freeze") for call in context.tree.of(cst.Call))
