"""Log-probabilities of every class, of which one entry of each row is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Call, Doubt, Flag, Message, Method, Rule, Status

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="log-softmax-for-one-entry",
    code="TL515",
    group="modules",
    summary="`log_softmax` computes and keeps every log-probability, of which one per row is used.",
    since="0.2.0",
    status=Status.PREVIEW,
    eager=True,
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "A few log-probabilities now and then take no time."),
        (Doubt.RUNS_ONCE, "A few log-probabilities take no time."),
    ),
)
_ONE_OF_ALL = Message(
    "one-of-all",
    "`log_softmax` of `{logits}` is computed in full for one entry per row{often}",
    help="subtract `torch.logsumexp` from the gathered logits, or use `F.cross_entropy`, which keeps no second copy",
)
_FUNCTIONS = ("torch.log_softmax", "torch.nn.functional.log_softmax")


@RULE.on(*map(Call, _FUNCTIONS), Method("log_softmax"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a `log_softmax` whose only use is a `gather` of one entry along the same axis."""
    from torchlint.analyses.execution.hot import rate_doubts  # the model's parts load LibCST
    from torchlint.edits.messages import how_often

    is_function = context.qualified_name(node.func) in _FUNCTIONS
    if is_function:
        if not node.args or node.args[0].keyword is not None:
            return
        logits = node.args[0].value
    elif isinstance(node.func, cst.Attribute):
        logits = node.func.value
    else:
        return
    axis = _integer(context.argument(node, "dim", int(is_function)))
    if axis is None or context.has_unpacking(node):
        return
    used = context.destinations(node)
    if used.lost or len(used.found) != 1 or not _takes_one(used.found[0].node, axis, context):
        return
    yield Flag(
        node,
        _ONE_OF_ALL.of(logits=context.shown(logits), often=how_often(node, context)),
        doubts=(*rate_doubts(node, context), Doubt.SIZE_UNKNOWN),
    )


def _takes_one(node: cst.BaseExpression, axis: int, context: Context) -> bool:
    """Whether one entry along the axis is gathered: `….gather(-1, index.unsqueeze(-1))`, `torch.gather(…)`."""
    match context.parent(node):
        case cst.Attribute(attr=cst.Name(value="gather")) as method:
            call, place = context.parent(method), 0
        case cst.Arg() as argument:
            call, place = context.parent(argument), 1
            if not isinstance(call, cst.Call) or context.qualified_name(call.func) != "torch.gather":
                return False
            if call.args[0] is not argument:
                return False
        case _:
            return False
    if not isinstance(call, cst.Call) or _integer(context.argument(call, "dim", place)) != axis:
        return False
    index = context.argument(call, "index", place + 1)
    return index is not None and _has_one(index, axis, context)


def _has_one(index: cst.BaseExpression, axis: int, context: Context) -> bool:
    """Whether the index has a single entry along the axis: `target.unsqueeze(-1)`, `action[:, None]`."""
    return any(_is_single(made, axis) for made in context.origins(index).nodes)


def _is_single(made: cst.CSTNode, axis: int) -> bool:
    match made:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="unsqueeze")), args=[cst.Arg(value=place)]):
            return _integer(place) == axis
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="view" | "reshape")), args=[*_, cst.Arg(value=last)] as args
        ):
            return _integer(last) == 1 and len(args) > 1 and axis in (-1, len(args) - 1)
        case cst.Call(
            func=cst.Attribute(value=inner, attr=cst.Name(value="long" | "to" | "contiguous" | "type" | "clone"))
        ):
            return _is_single(inner, axis)
        case cst.Subscript(slice=[*_, cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="None")))] as parts):
            return axis in (-1, len(parts) - 1)
    return False


def _integer(node: cst.BaseExpression | None) -> int | None:
    from torchlint.syntax.literals import integer

    return None if node is None else integer(node)
