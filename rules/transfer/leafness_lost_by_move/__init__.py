"""A parameter that is moved when it is made, so that what is kept is no parameter any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Context, Flag, Message, Method, NodeEdit, Replace, Rule, Status

if TYPE_CHECKING:
    import libcst as cst

    from .leaves import LostLeaf

RULE = Rule(
    name="leafness-lost-by-move",
    code="TL207",
    group="transfer",
    summary="A leaf is moved as it is created: the result is a non-leaf tensor, whose `.grad` is not populated.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="the tensor is trained and saved from then on",
)
_NON_LEAF = Message(
    "non-leaf", "`{move}` is a non-leaf tensor: {effect}", help="move the data first, and make a leaf of that"
)
_LEAVES = (b"requires_grad", b"Parameter")


@RULE.on(Method("cuda", _LEAVES), Method("to", _LEAVES))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the move of a leaf whose result is used as one; the fix moves first, and makes a leaf of that."""
    from .leaves import lost_leaf

    found = lost_leaf(node, context)
    if found is None:
        return
    yield Flag(
        node,
        _NON_LEAF.of(move=context.shown(node), effect=found.effect),
        title="Move the data first",
        edits=_edits(found, context),
    )


def _edits(found: LostLeaf, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import as_argument, as_owner, in_place_of

    whole, made = context.code(found.moved), context.code(found.made)
    if whole.count("#") or found.moved.lpar or found.made.lpar:
        return ()
    move = whole.removeprefix(made)  # `.cuda()`
    if found.data is not None:
        given = [
            as_owner(found.data, context) + move if argument.value is found.data else as_argument(argument, context)
            for argument in found.made.args
        ]
        if found.made.args[0].keyword is not None:
            return ()
        return (Replace(found.moved, f"{context.code(found.made.func)}({', '.join(given)})"),)
    kept = [
        argument
        for argument in found.made.args
        if argument.keyword is None or argument.keyword.value != "requires_grad"
    ]
    code = ", ".join(as_argument(argument, context) for argument in kept)
    made = f"{context.code(found.made.func)}({code}){move}.requires_grad_()"
    return (Replace(found.moved, in_place_of(found.moved, made, context)),)
