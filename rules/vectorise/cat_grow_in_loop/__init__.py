"""A tensor that grows in a loop: in each iteration all that there is so far is copied."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Rule

RULE = Rule(
    name="cat-grow-in-loop",
    code="TL905",
    group="vectorise",
    summary="A tensor grows in a loop by `torch.cat`, which copies all of it in every iteration.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="a part that is changed in place later changes the result",
    doubts=((Doubt.NAMED_RARE, ""), (Doubt.SIZE_UNKNOWN, "")),
)
_GROWS = Message(
    "grows",
    "`{name}` grows, and every iteration copies all that it holds so far",
    help="append to a list and concatenate once after the loop",
)
_JOINS = ("cat", "concat", "concatenate", "vstack", "row_stack", "hstack", "dstack", "column_stack")


@RULE.on(*(Call(f"torch.{name}") for name in _JOINS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `acc = torch.cat((acc, x))` in a loop that doesn't look at `acc`; the fix collects the parts in a list."""
    from torchlint.analyses.execution.rarity import named_rare

    from .growth import growth, is_for_a_picture, listed

    found = growth(node, context)
    if found is None:
        return
    name = found.name.value
    doubts = [*named_rare(node, context)]
    if not doubts and is_for_a_picture(node, context):
        doubts.append(Doubt.NAMED_RARE)
    if not found.is_surely_long:
        doubts.append(Doubt.SIZE_UNKNOWN)
    yield Flag(
        node,
        _GROWS.of(name=name),
        title=f"Collect the parts of `{name}` in a list",
        edits=listed(found, context),
        doubts=tuple(doubts),
    )
