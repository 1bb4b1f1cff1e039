"""A mask of ones that is made in one type and converted at once to another: two tensors where one would do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.rule import Applicability, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule, Status

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="factory-then-cast",
    code="TL914",
    group="vectorise",
    summary="A constant tensor is made in one type and converted to another at once.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.SAFE,),
    eager=True,
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.DATA_UNKNOWN, ""),
        (Doubt.SMALL, "A kernel over a few numbers takes microseconds."),
        (Doubt.RARE, "One more kernel now and then takes microseconds."),
        (Doubt.RUNS_ONCE, "One more kernel takes microseconds."),
    ),
)
_CAST = Message(
    "cast",
    "`{made}` is made as {old} and then converted to {new}{often}",
    help="pass `dtype={new}` where it is made",
)
# The types that a method without arguments converts to.
_CASTS = {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
}
_DTYPES = frozenset(_CASTS.values()) | {"long", "int", "half", "double", "short"}
# Factories of numbers that each type can hold, so that converting them changes none.
_FACTORIES = frozenset({"ones", "zeros", "eye"})
_LIKE = frozenset({"ones_like", "zeros_like"})
_TRIANGLES = frozenset({"tril", "triu"})


class _Made(NamedTuple):
    """`factory` makes the tensor; `inner` is what is cast: the factory, or the triangle of it."""

    factory: cst.Call
    inner: cst.Call


@RULE.on(*map(Method, _CASTS), Method("to"), Method("type"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a cast of what `torch.ones` or the like has just made; the fix makes it in that type."""
    from torchlint.analyses.execution.hot import rate_doubts  # the model's parts load LibCST
    from torchlint.analyses.tensors.element_types import is_floating
    from torchlint.edits.messages import how_often

    new = _target(node, context)
    if new is None or not isinstance(node.func, cst.Attribute):
        return
    made = _made(node.func.value, context)
    if made is None or context.argument(made.factory, "dtype") is not None or context.has_unpacking(made.factory):
        return
    if any(argument.keyword is not None and argument.keyword.value == "out" for argument in made.factory.args):
        return
    doubts = rate_doubts(node, context)
    if not _is_large(made, context):
        doubts = (*doubts, Doubt.SMALL)
    old = "float"
    if _last(made.factory, context) in _LIKE:
        old = f"the type of `{context.shown(made.factory.args[0].value)}`"
        if not is_floating(made.factory.args[0].value, context):
            doubts = (*doubts, Doubt.DATA_UNKNOWN)
    yield Flag(
        node,
        _CAST.of(
            made=context.shown(made.inner),
            old=old,
            new=new,
            often=how_often(node, context),
        ),
        title=f"Pass `dtype={new}`",
        edits=_edits(node, made, new, context),
        applicability=Applicability.SAFE,
        doubts=doubts,
    )


def _target(cast: cst.Call, context: Context) -> str | None:
    """The type that a call converts to, as it is written: `.bool()`, `.to(torch.bool)`."""
    match cast:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=[]) if name in _CASTS:
            return f"torch.{_CASTS[name]}"
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="to" | "type")),
            args=[cst.Arg(value=cst.Attribute() as dtype, keyword=None | cst.Name(value="dtype"), star="")],
        ):
            root, _, last = (context.qualified_name(dtype) or "").rpartition(".")
            return context.code(dtype) if root == "torch" and last in _DTYPES else None
    return None


def _made(node: cst.BaseExpression, context: Context) -> _Made | None:
    """`torch.ones(n, n)`, `torch.tril(torch.ones(n, n))`, `torch.ones(n, n).triu(1)`."""
    if not isinstance(node, cst.Call):
        return None
    name = context.qualified_name(node.func) or ""
    root, _, last = name.rpartition(".")
    if root == "torch" and last in _FACTORIES | _LIKE:
        return _Made(node, node) if node.args else None
    held: cst.BaseExpression | None = None
    if root == "torch" and last in _TRIANGLES and node.args and node.args[0].keyword is None:
        held = node.args[0].value
    elif isinstance(node.func, cst.Attribute) and node.func.attr.value in _TRIANGLES:
        held = node.func.value
    found = _made(held, context) if held is not None else None
    return _Made(found.factory, node) if found is not None else None


def _last(call: cst.Call, context: Context) -> str:
    return (context.qualified_name(call.func) or "").rpartition(".")[2]


def _is_large(made: _Made, context: Context) -> bool:
    """Whether it has two axes or more, one of them of a length that is not written out."""
    from torchlint.analyses.tensors.element_counts import sizes

    if _last(made.factory, context) in _LIKE:
        return True
    found = sizes(made.factory, context)
    if found is None:
        return False
    return len([size for size in found if size != 1]) > 1 and None in found


def _edits(node: cst.Call, made: _Made, new: str, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import in_place_of, loses_comment

    name = new if "." in new and not new.startswith("torch.") else None
    if name is None:
        root = made.factory.func.value if isinstance(made.factory.func, cst.Attribute) else None
        if root is None or context.qualified_name(root) != "torch":
            return ()
        name = f"{context.code(root)}.{new.rpartition('.')[2]}"
    if loses_comment(node, made.inner, context=context) or "\n" in context.code(node):
        return ()
    old = context.code(made.factory)
    code = context.code(made.inner)
    if code.count(old) != 1 or not old.endswith(")") or made.factory.lpar:
        return ()
    separator = " " if old[:-1].rstrip().endswith(",") else ", "
    typed = f"{old[:-1].rstrip()}{separator}dtype={name})"
    return (Replace(node, in_place_of(node, code.replace(old, typed), context)),)
