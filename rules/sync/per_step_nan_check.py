"""A check for NaN or infinity whose answer Python waits for at each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Call, Flag, Message, Node, Rule

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="per-step-nan-check",
    code="TL308",
    group="sync",
    summary="Checking for NaN or infinity in every step synchronizes with the GPU.",
    since="0.2.0",
    yields_to=("graph-break-in-compiled",),
)
_CHECKED = Message("checked", "checking `{condition}` synchronizes with the GPU{often}", help="{advice}")
_TOKENS = (b"isnan", b"isinf", b"isfinite")


@RULE.on(
    Node("If", _TOKENS),
    Node("IfExp", _TOKENS),
    Node("CompIf", _TOKENS),
    Node("While", _TOKENS),
    Node("Assert", _TOKENS),
    Node("UnaryOperation", _TOKENS),
    Node("BooleanOperation", _TOKENS),
    Call("any"),
    Call("all"),
    Call("bool"),
)
def check(node: cst.CSTNode, context: Context) -> Iterator[Flag]:
    """Flag the first condition that asks a device tensor for NaN or infinity, in code that runs at each batch."""
    from torchlint.analyses.sync.finite_checks import checks_for_nan, instead  # the model's parts load LibCST
    from torchlint.edits.messages import how_often

    for condition in checks_for_nan(node, context):
        advice = None if _is_left_alone(condition, context) else instead(node, condition, context)
        if advice is not None:
            yield Flag(
                condition,
                _CHECKED.of(condition=context.shown(condition), advice=advice, often=how_often(condition, context)),
            )
            return


def _is_left_alone(condition: cst.BaseExpression, context: Context) -> bool:
    """Whether somebody asked for the check, or the CPU has waited for the same value anyway."""
    from torchlint.analyses.sync.finite_checks import is_read_anyway
    from torchlint.analyses.sync.implicit_reads import asks_before
    from torchlint.analyses.sync.inherent_branches import is_by_design, is_told_apart

    if isinstance(condition, cst.Name) and asks_before(condition, context):
        return True
    return is_by_design(condition, context) or is_told_apart(condition, context) or is_read_anyway(condition, context)
