"""A device tensor formatted or logged at each step: the text needs its value, so the CPU waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Flag, Insert, Method, Node, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="implicit-sync-in-logging",
    code="TL306",
    group="sync",
    summary="Formatting or logging a device tensor at each step makes the CPU wait for it.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    options=(("every", 50),),
)


@RULE.on(
    Call("print"),
    Call("str"),
    Call("wandb.log"),
    Method("format"),
    Method("add_scalar"),
    Method("add_scalars"),
    Method("set_postfix"),
    Method("set_description"),
    Method("info"),
    Method("debug"),
    Node("FormattedStringExpression", (b'f"', b"f'", b'F"', b"F'")),
)
def check(node: cst.Call | cst.FormattedStringExpression, context: Context) -> Iterator[Flag]:
    """Flag the first device tensor that a logging call or an f-string formats at each step."""
    from torchlint.model.reads import is_device_tensor, is_hot

    formatted = [node.expression] if isinstance(node, cst.FormattedStringExpression) else list(_arguments(node))
    tensor = next((part for part in formatted if is_device_tensor(part, context)), None)
    if tensor is None or not is_hot(node, context) or _only_raises(node, context):
        return
    edits = _guard(node, context)
    yield Flag(
        tensor,
        f"formatting `{context.code(tensor)}` makes the CPU wait for the device {context.frequency(node)}; "
        "log every few steps",
        title=f"Log every {_every(context)} steps",
        edits=edits,
    )


def _arguments(call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What the call formats: its arguments, and the values of a dict among them."""
    for argument in call.args:
        match argument.value:
            case cst.Dict(elements=elements):
                yield from (element.value for element in elements)
            case value if not argument.star:
                yield value


def _only_raises(node: cst.CSTNode, context: Context) -> bool:
    """Whether the text belongs to an error or an assertion: it is made when something has gone wrong."""
    return any(isinstance(above, (cst.Raise, cst.Assert, cst.ExceptHandler)) for above in context.ancestors(node))


def _every(context: Context) -> int:
    return int(context.settings.option(RULE.name, "every", 50))  # type: ignore[arg-type]


def _guard(node: cst.CSTNode, context: Context) -> tuple[Insert, ...]:
    """`if step % 50 == 0:` around a statement that only logs, where the loop counts its steps."""
    statement = context.tree.line(node)
    loop = context.frequencies.batch_loop(node)
    if (
        not isinstance(statement, cst.SimpleStatementLine)
        or not isinstance(loop, cst.For)
        or context.loop(node) is not loop
    ):
        return ()
    match loop:
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=step)), *_]),
            iter=cst.Call(func=cst.Name(value="enumerate")),
        ):
            pass
        case _:
            return ()
    match statement.body:
        case [cst.Expr(value=cst.Call() as call)] if context.parent(statement) is loop.body and _only_logs(
            call, context
        ):
            indent = context.tree.indentation(statement)
            return (Insert(statement, f"if {step} % {_every(context)} == 0:\n{indent}{' ' * 4}", before=True),)
    return ()


def _only_logs(call: cst.Call, context: Context) -> bool:
    if context.qualified_name(call.func) in ("print", "wandb.log"):
        return True
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in (
        "add_scalar", "add_scalars", "set_postfix", "set_description", "info", "debug", "log",
    )  # fmt: skip
