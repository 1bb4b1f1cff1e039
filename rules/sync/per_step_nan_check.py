"""A check for NaN or infinity whose answer Python waits for at each step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Node, Rule

from ._shared.doubts import WAIT_DOUBTS, certain_first, weighed

RULE = Rule(
    name="per-step-nan-check",
    code="TL308",
    group="sync",
    summary="Checking for NaN or infinity in every step synchronizes with the GPU.",
    since="0.2.0",
    yields_to=("graph-break-in-compiled",),
    doubts=WAIT_DOUBTS,
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
    """Flag the condition that asks a device tensor for NaN or infinity, the first certain one before any doubtful."""
    from torchlint.analyses.sync.finite_checks import checks_for_nan

    flags = (_flag(condition, node, context) for condition in checks_for_nan(node, context))
    yield from certain_first(flag for flag in flags if flag is not None)


def _flag(condition: cst.BaseExpression, node: cst.CSTNode, context: Context) -> Flag | None:
    from torchlint.analyses.sync.finite_checks import instead
    from torchlint.analyses.sync.inherent_branches import is_in_sample_code, is_told_apart
    from torchlint.edits.messages import how_often

    if is_in_sample_code(condition, context) or is_told_apart(condition, context):
        return None  # it may be on the CPU, or a number
    found = instead(node, condition, context)
    return Flag(
        condition,
        _CHECKED.of(condition=context.shown(condition), advice=found.advice, often=how_often(condition, context)),
        doubts=weighed(RULE, _doubts(condition, found.doubts, context)),
    )


def _doubts(condition: cst.BaseExpression, found: tuple[Doubt, ...], context: Context) -> Iterator[Doubt]:
    """What speaks against asking less, in the order of what it costs to know."""
    from torchlint.analyses.provenance.network import place_doubts
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.analyses.sync.finite_checks import is_named_scaled, is_read_anyway
    from torchlint.analyses.sync.implicit_reads import asks_before
    from torchlint.analyses.sync.inherent_branches import design_doubts

    if isinstance(condition, cst.Name) and asks_before(condition, context):
        yield Doubt.WAITS_ANYWAY
    yield from design_doubts(condition, context)
    if is_read_anyway(condition, context):
        yield Doubt.WAITS_ANYWAY
    if is_named_scaled(condition, context):
        yield Doubt.NAMED_OTHERWISE
    yield from found
    yield from place_doubts(condition, context)
    yield from wait_doubts(condition, condition, context)
