"""A parameter that is moved when it is made, so that what is kept is no parameter any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Flag, Method, NodeEdit, Replace, Rule, Status

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

    from .leaves import LostLeaf

RULE = Rule(
    name="leafness-lost-by-move",
    code="TL207",
    group="transfer",
    summary="A parameter is moved when it is made, so that each backward pass copies its gradient to the CPU.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
)
_LEAVES = (b"requires_grad", b"Parameter")


@RULE.on(Method("cuda", _LEAVES), Method("to", _LEAVES))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the move of a leaf whose result is used as one; the fix moves first, and makes a leaf of that."""
    from .leaves import lost_leaf  # the model's parts load LibCST

    found = lost_leaf(node, context)
    if found is None:
        return
    yield Flag(
        node,
        f"`{context.shown(node)}` gives a copy that is no leaf: each backward pass copies its gradient to the CPU, "
        f"and {found.effect}; move the data first",
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
