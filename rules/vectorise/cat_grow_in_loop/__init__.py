"""A tensor that grows in a loop: at each turn all that there is so far is copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Flag, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

RULE = Rule(
    name="cat-grow-in-loop",
    code="TL905",
    group="vectorise",
    summary="A tensor that grows in a loop by `torch.cat`; each turn copies all that there is so far.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
)
_JOINS = ("cat", "concat", "concatenate", "vstack", "row_stack", "hstack", "dstack", "column_stack")


@RULE.on(*(Call(f"torch.{name}") for name in _JOINS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `acc = torch.cat((acc, x))` in a loop that doesn't look at `acc`; the fix collects the parts in a list."""
    from .growth import growth, listed  # the model's parts load LibCST

    found = growth(node, context)
    if found is None:
        return
    name = found.name.value
    yield Flag(
        node,
        f"`{name}` grows, and each turn of the loop copies all that it holds so far; append the parts to a list and "
        "join them once behind the loop",
        title=f"Collect the parts of `{name}` in a list",
        edits=listed(found, context),
    )
