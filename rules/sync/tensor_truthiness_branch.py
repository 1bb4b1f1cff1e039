"""Python goes one way or the other by a tensor's value: the CPU waits for the device before it can go on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Node, Rule, Said

from ._shared.doubts import WAIT_DOUBTS, certain_first, weighed

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
    doubts=WAIT_DOUBTS,
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
    """Flag the condition whose truth is that of a device tensor, the first certain one before any doubtful."""
    from torchlint.analyses.sync.implicit_reads import waits

    flags = (_flag(condition, node, context) for condition in waits(node, context, anytime=True))
    yield from certain_first(flag for flag in flags if flag is not None)


def _flag(condition: cst.BaseExpression, node: cst.CSTNode, context: Context) -> Flag | None:
    from torchlint.analyses.sync.alternatives import instead
    from torchlint.analyses.sync.avoidable import seen_to_recur
    from torchlint.analyses.sync.finite_checks import is_check_for_nan
    from torchlint.analyses.sync.inherent_branches import is_in_sample_code, is_read_turn_by_turn, is_told_apart

    if (
        is_in_sample_code(condition, context)
        or is_told_apart(condition, context)
        or is_check_for_nan(condition, context)
        or (not isinstance(node, cst.While) and is_read_turn_by_turn(condition, context))
    ):
        return None  # it may be a number, or on the CPU, or another rule speaks of it
    found = instead(node, condition, context)
    doubts = weighed(RULE, _doubts(condition, node, found.doubts, context))
    doubts = seen_to_recur(condition, doubts, context)
    return Flag(condition, _said(condition, found.advice, context), doubts=doubts)


def _doubts(
    condition: cst.BaseExpression, node: cst.CSTNode, found: tuple[Doubt, ...], context: Context
) -> Iterator[Doubt]:
    """What speaks against asking less, in the order of what it costs to know."""
    from torchlint.analyses.host.purpose import is_known_already
    from torchlint.analyses.provenance.network import place_doubts
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.analyses.sync.implicit_reads import asks_before
    from torchlint.analyses.sync.inherent_branches import decides_by_design, design_doubts

    if isinstance(condition, cst.Name) and asks_before(condition, context):
        yield Doubt.WAITS_ANYWAY
    yield from design_doubts(condition, context)
    if decides_by_design(node, condition, context):
        yield Doubt.VALUE_DECIDES
    if is_known_already(condition, condition, context):
        yield Doubt.WAITS_ANYWAY
    yield from found
    yield from place_doubts(condition, context)
    # Last, since other files may have to say how often it runs.
    yield from wait_doubts(condition, condition, context)


def _said(condition: cst.BaseExpression, advice: str, context: Context) -> Said:
    from torchlint.edits.messages import how_often

    match condition:
        case cst.Call(func=cst.Name(value="max" | "min" | "sorted")):
            message = _COMPARES
        case _:
            message = _BRANCHES
    return message.of(condition=context.shown(condition), often=how_often(condition, context), advice=advice)
