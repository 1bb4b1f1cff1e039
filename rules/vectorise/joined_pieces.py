"""A tensor that is taken apart and joined again, which copies it: a view shows the same."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Rule

RULE = Rule(
    name="joined-pieces",
    code="TL915",
    group="vectorise",
    summary="A tensor is taken apart and joined again, which copies it; a view shows the same.",
    since="0.2.0",
    eager=True,
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "One copy now and then takes microseconds."),
        (Doubt.RUNS_ONCE, "One copy takes microseconds."),
    ),
)
_COPIES = Message(
    "copies",
    "`{join}` of the pieces of `{tensor}` copies it{often}",
    help="use {view}, which copies nothing",
)
_PIECES = frozenset({"unbind", "chunk", "split", "tensor_split"})
# Nested tensors are taken apart and stacked to be tensors of one shape.
_NESTED = "torch.nested"


@RULE.on(Call("torch.stack"), Call("torch.cat"), Call("torch.concat"), Call("torch.concatenate"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a `torch.stack` or `torch.cat` of all pieces of one tensor whose result is a view of it."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    if not node.args or node.args[0].keyword is not None or node.args[0].star or context.has_unpacking(node):
        return
    found = _pieces(node.args[0].value, context)
    if found is None:
        return
    tensor, way, axis, number = found
    if way == "unbind" and _NESTED in context.program.code:
        return
    joined = _integer(context.argument(node, "dim", 1), context)
    if axis is None or joined is None:
        return
    join = (context.qualified_name(node.func) or "").rpartition(".")[2]
    view = _view(join, way, axis, joined, number)
    if view is None:
        return
    yield Flag(
        node,
        _COPIES.of(
            join=f"torch.{join}",
            tensor=context.shown(tensor),
            view=view,
            often=how_often(node, context),
        ),
        doubts=rate_doubts(node, context),
    )


def _pieces(node: cst.BaseExpression, context: Context) -> tuple[cst.BaseExpression, str, int | None, str] | None:
    """The tensor, how it is taken apart, along which axis, and into how many pieces: `x.chunk(n, dim=0)`."""
    match node:
        case cst.Call(func=cst.Name(value="list" | "tuple"), args=[cst.Arg(value=inner, keyword=None, star="")]):
            return _pieces(inner, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=way))) if way in _PIECES:
            pass
        case _:
            return None
    if context.has_unpacking(node):
        return None
    is_function = context.qualified_name(node.func) == f"torch.{way}"
    if is_function:
        if not node.args or node.args[0].keyword is not None:
            return None
        owner = node.args[0].value
    elif isinstance(owner, cst.Name) and context.is_an_object(owner):
        return None
    place = int(is_function) + (way != "unbind")
    axis = _integer(context.argument(node, "dim", place), context)
    number = context.argument(node, "chunks", int(is_function)) if way == "chunk" else None
    return owner, way, axis, context.shown(number) if number is not None else "n"


def _integer(node: cst.BaseExpression | None, context: Context) -> int | None:
    from torchlint.syntax.literals import integer

    return 0 if node is None else integer(node)


def _view(join: str, way: str, axis: int, joined: int, number: str) -> str | None:
    """What shows the same without a copy; None where the pieces come to stand in another order."""
    match join, way:
        case "stack", "unbind":
            return "the tensor itself" if axis == joined else f"`.movedim({axis}, {joined})`"
        case "stack", "chunk" if axis == joined and axis >= 0:
            return f"`.unflatten({axis}, ({number}, -1))`"
        case (("cat" | "concat" | "concatenate"), "unbind") if axis == joined and axis >= 0:
            return f"`.flatten({axis}, {axis + 1})`"
        case (("cat" | "concat" | "concatenate"), ("chunk" | "split" | "tensor_split")) if axis == joined:
            return "the tensor itself"
    return None
