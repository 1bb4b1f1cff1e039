"""A NumPy array that grows by one batch at a time, and is copied as a whole each time."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Call, Context, Flag, Message, Rule, Status

RULE = Rule(
    name="numpy-growth-in-loop",
    code="TL906",
    group="vectorise",
    summary="A NumPy array grows in a loop over batches, and all of it is copied every time.",
    since="0.2.0",
    status=Status.PREVIEW,
)
_GROWS = Message("grows", "`{join}` copies all of `{grown}`{often}, and it grows", help="{advice}")


@RULE.on(
    Call("numpy.append"),
    Call("numpy.concatenate"),
    Call("numpy.vstack"),
    Call("numpy.hstack"),
    Call("numpy.dstack"),
    Call("numpy.row_stack"),
    Call("numpy.column_stack"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call that joins an array with something of this batch and binds the result to the array's own name."""
    from torchlint.edits.messages import how_often

    from .growth import first_part, grows

    grown = first_part(node, context)
    if grown is None or not grows(grown, node, context) or context.frequency(node) < Frequency.BATCH:
        return
    advice = (
        "collect the tensors in a list, and concatenate and copy them once after the loop"
        if _reads_a_tensor(node, context)
        else "append to a list and concatenate once after the loop"
    )
    yield Flag(
        node,
        _GROWS.of(
            join=context.shown(node.func), grown=context.shown(grown), advice=advice, often=how_often(node, context)
        ),
    )


def _reads_a_tensor(call: cst.Call, context: Context) -> bool:
    """Whether what is added comes from a tensor there and then: `preds.cpu().numpy()`."""
    from torchlint.syntax.tree import descendants

    return any(
        isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value in ("cpu", "numpy")
        for part in descendants(call)
    )
