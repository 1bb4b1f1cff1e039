"""Attention weights that `nn.MultiheadAttention` is asked for, as it is by default, and that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Flag, Message, Node, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.marks import WEIGHTS_READ

RULE = Rule(
    name="mha-weights-discarded",
    code="TL504",
    group="modules",
    summary="`nn.MultiheadAttention` materializes attention weights that nothing reads, so no fused kernel can run.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="a fused kernel rounds differently",
)
_UNREAD = Message(
    "unread",
    "`{attention}` materializes attention weights that nothing reads{often}",
    help="pass `need_weights=False`, which lets a fused kernel run",
)
_ATTENTION = "torch.nn.MultiheadAttention"
_NEED_WEIGHTS = 4  # behind query, key, value and key_padding_mask


@RULE.on(Node("Call", (b"MultiheadAttention",)))
def check(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call of an `nn.MultiheadAttention` of whose results only the first is used."""
    from torchlint.edits.expressions import with_argument

    if len(call.args) < 3 or not isinstance(call.func, (cst.Name, cst.Attribute, cst.Subscript)):
        return
    if not _discards_weights(call, context) or not _is_attention(call.func, context):
        return
    needed = context.argument(call, "need_weights", _NEED_WEIGHTS)
    if context.has_unpacking(call) or (needed is not None and not _is_true(needed)):
        return
    if WEIGHTS_READ.is_in(context.program.code):
        return
    from torchlint.edits.messages import how_often

    edit: NodeEdit = (
        Replace(needed, "False") if needed is not None else with_argument(call, "need_weights=False", context)
    )
    yield Flag(
        call,
        _UNREAD.of(attention=context.shown(call.func), often=how_often(call, context)),
        title="Pass `need_weights=False`",
        edits=(edit,),
    )


def _is_true(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"


def _is_attention(node: cst.BaseExpression, context: Context) -> bool:
    from torchlint.semantics.flow.instances import EscapeError

    if context.value(node).qualified == _ATTENTION:
        return True
    try:
        calls = context.constructions.of(node)
    except EscapeError:
        return False
    return bool(calls) and all(context.qualified_name(call.func) == _ATTENTION for call in calls)


def _discards_weights(call: cst.Call, context: Context) -> bool:
    """`attention(…)[0]`, `x, _ = attention(…)`, or a name of whose value only the first part is taken."""
    match context.parent(call):
        case cst.Subscript() as part:
            return _is_first(part)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[_, second]))]) as statement:
            return isinstance(second, cst.Element) and _is_unused(second.value, statement, context)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            uses = [context.parent(use) for use in context.uses.of(name, statement)]
            return bool(uses) and all(isinstance(use, cst.Subscript) and _is_first(use) for use in uses)
    return False


def _is_first(part: cst.Subscript) -> bool:
    match part.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]:
            return True
    return False


def _is_unused(target: cst.BaseExpression, statement: cst.Assign, context: Context) -> bool:
    return isinstance(target, cst.Name) and not context.uses.of(target.value, statement)
