"""Python goes one way or the other by a tensor's value: the CPU waits for the device before it can go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Call, Flag, Message, Node, Rule, Said

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="tensor-truthiness-branch",
    code="TL307",
    group="sync",
    summary="Branching on a GPU tensor synchronizes.",
    since="0.2.0",
    yields_to=(
        "per-step-nan-check",
        "item-in-train-loop",
        "item-in-eval-loop",
        "graph-break-in-compiled",
        "builtin-reduction-on-tensor",
    ),
)
_BRANCHES = Message("branches", "branching on `{condition}` synchronizes with the GPU{often}", help="{advice}")
_COMPARES = Message(
    "compares", "`{condition}` compares in Python and synchronizes with the GPU{often}", help="{advice}"
)


@RULE.on(
    Node("If", (b"if",)),
    Node("IfExp", (b"if",)),
    Node("While", (b"while",)),
    Node("Assert", (b"assert",)),
    Node("UnaryOperation", (b"not",)),
    Node("BooleanOperation", (b"and", b"or")),
    Node("Comparison", (b"in",)),
    Call("bool"),
    Call("any"),
    Call("all"),
    Call("max"),
    Call("min"),
    Call("sorted"),
)
def check(node: cst.CSTNode, context: Context) -> Iterator[Flag]:
    """Flag the first condition whose truth is that of a device tensor, in code that runs at each batch."""
    from torchlint.analyses.sync.implicit_reads import waits  # the model's parts load LibCST

    for condition in waits(node, context, anytime=True):
        from torchlint.analyses.sync.alternatives import instead

        advice = None if _is_left_alone(condition, node, context) else instead(node, condition, context)
        # How often it waits is asked last, since other files may have to say it.
        if advice is not None and any(found is condition for found in waits(node, context)):
            yield Flag(condition, _said(condition, advice, context))
            return


def _is_left_alone(condition: cst.BaseExpression, node: cst.CSTNode, context: Context) -> bool:
    """Whether another rule speaks of it, the data has to decide, or the wait has happened by then."""
    from torchlint.analyses.host.purpose import is_known_already
    from torchlint.analyses.sync.finite_checks import is_check_for_nan
    from torchlint.analyses.sync.implicit_reads import asks_before
    from torchlint.analyses.sync.inherent_branches import (
        decides_by_design,
        is_by_design,
        is_read_turn_by_turn,
        is_told_apart,
    )

    if isinstance(condition, cst.Name) and asks_before(condition, context):
        return True
    return (
        is_by_design(condition, context)
        or decides_by_design(node, condition, context)
        or is_check_for_nan(condition, context)
        or is_told_apart(condition, context)
        or is_known_already(condition, condition, context)
        or (not isinstance(node, cst.While) and is_read_turn_by_turn(condition, context))
    )


def _said(condition: cst.BaseExpression, advice: str, context: Context) -> Said:
    from torchlint.edits.messages import how_often

    match condition:
        case cst.Call(func=cst.Name(value="max" | "min" | "sorted")):
            message = _COMPARES
        case _:
            message = _BRANCHES
    return message.of(condition=context.shown(condition), often=how_often(condition, context), advice=advice)
