"""A loss that is kept with its graph: a total or a list holds on to the graphs of all steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.rule import Applicability, Context, Flag, Insert, Message, Method, Node, Replace, Rule

if TYPE_CHECKING:
    from torchlint.rule import NodeEdit

RULE = Rule(
    name="graph-retained-in-accumulator",
    code="TL403",
    group="autograd",
    summary="A total or a list of losses keeps the autograd graph of every step alive.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="the total no longer requires gradients",
)
_RETAINED = Message(
    "graph-retained",
    "`{keeper}` keeps one more autograd graph alive{often}, so memory grows",
    help="keep `{kept}.detach()`",
)
_BACKWARD = (b"backward",)


class _Kept(NamedTuple):
    """What is kept, and under what."""

    value: cst.BaseExpression
    under: cst.BaseExpression


@RULE.on(Node("AugAssign", _BACKWARD), Node("Assign", _BACKWARD), Method("append", _BACKWARD))
def check(node: cst.AugAssign | cst.Assign | cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a value that a training loop has gone back through where it is kept for longer than a step."""
    from torchlint.edits.messages import how_often
    from torchlint.semantics.execution.grad_mode import GradMode

    from .lifetime import outlives
    from .spent_graphs import is_spent, terms

    kept = _kept(node)
    if kept is None:
        return
    own = kept.under.value if isinstance(kept.under, cst.Name) else ""
    names = [name for name in terms(kept.value, context) if name.value != own]
    loop = context.loop(node) if names else None
    if loop is None or loop is not context.frequencies.batch_loop(node):
        return
    outermost: cst.CSTNode = loop
    while (around := context.frequencies.batch_loop(outermost)) is not None:
        outermost = around
    names = [name for name in names if is_spent(name, context, loop)]
    if not names or not outlives(kept.under, node, outermost, context) or context.grad(node) is not GradMode.ON:
        return
    shown = context.shown(names[0])
    yield Flag(
        kept.value,
        _RETAINED.of(keeper=context.shown(kept.under), kept=shown, often=how_often(node, context)),
        title=f"Keep `{shown}` without its graph",
        edits=_detached(kept.value, names, context),
    )


def _kept(node: cst.AugAssign | cst.Assign | cst.Call) -> _Kept | None:
    """`total += loss`, `total = total + loss`, `losses.append(loss)`."""
    match node:
        case cst.AugAssign(target=target, operator=cst.AddAssign() | cst.SubtractAssign(), value=value):
            return _Kept(value, target)
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Name() as target)], value=cst.BinaryOperation() as value
        ) if _adds_to(target.value, value):
            return _Kept(value, target)
        case cst.Call(
            func=cst.Attribute(value=owner, attr=cst.Name(value="append")),
            args=[cst.Arg(value=value, keyword=None, star="")],
        ):
            return _Kept(value, owner)
    return None


def _adds_to(name: str, value: cst.BaseExpression) -> bool:
    from .spent_graphs import terms

    return any(term.value == name for term in terms(value))


def _detached(value: cst.BaseExpression, names: list[cst.Name], context: Context) -> tuple[NodeEdit, ...]:
    if len(names) == 1 or isinstance(value, (cst.List, cst.Tuple)):
        return tuple(Insert(name, ".detach()") for name in names)
    return (Replace(value, f"({context.bare_code(value)}).detach()"),)
