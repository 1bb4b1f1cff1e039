"""A compiled module or function that nobody keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, Replace, Rule

if TYPE_CHECKING:
    from torchlint.rule import NodeEdit

RULE = Rule(
    name="compile-result-discarded",
    code="TL650",
    group="precision",
    summary="The result of `torch.compile` is discarded.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="the first calls compile, and the last digits may differ",
)
_DISCARDED = Message(
    "discarded",
    "the result of `torch.compile` is discarded, so `{shown}` runs uncompiled",
    help="call what `torch.compile` returns",
)
# In-place compilation of modules, which keeps their names and types.
_IN_PLACE = (2, 2)


@RULE.on(Call("torch.compile"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call whose result goes nowhere, where what it was to compile goes on to be used."""
    compiled = context.argument(node, "model", 0)
    line = context.tree.line(node)
    if (
        compiled is None
        or not isinstance(context.parent(node), cst.Expr)
        or not isinstance(compiled, (cst.Name, cst.Attribute))
    ):
        return
    if line is None or not _is_used_behind(compiled, line, context) or _is_a_trial(node, context):
        return
    shown = context.shown(compiled)
    yield Flag(
        node,
        _DISCARDED.of(shown=shown),
        title=f"Compile `{shown}` itself",
        edits=_kept(node, compiled, context),
    )


def _is_used_behind(compiled: cst.Name | cst.Attribute, line: cst.CSTNode, context: Context) -> bool:
    """Whether the model or function is read after the statement, or is an object's, which others read."""
    if isinstance(compiled, cst.Attribute):
        return True
    end = context.tree.end(line)
    return any(
        context.names.lookup(use)[0] is context.names.lookup(compiled)[0]
        for use in context.readers(compiled)
        if context.tree.place(use) > end
    )


def _is_a_trial(node: cst.Call, context: Context) -> bool:
    """Whether the call is there to see if it works: in `try`."""
    return any(
        isinstance(guard.node, cst.Try) and guard.part is guard.node.body and bool(guard.node.handlers)
        for guard in context.guards(node, across_functions=True)
    )


def _kept(node: cst.Call, compiled: cst.Name | cst.Attribute, context: Context) -> tuple[NodeEdit, ...]:
    """`model.compile(…)` for a module, where there is such a thing, or else `f = torch.compile(f)`."""
    from torchlint.edits.expressions import as_argument
    from torchlint.semantics.values.lattice import Kind

    others = [argument for argument in node.args if argument.value is not compiled]
    code = context.code(compiled)
    if context.kind(compiled) is Kind.MODULE and context.settings.target_torch >= _IN_PLACE:
        options = ", ".join(as_argument(argument, context) for argument in others)
        return () if "#" in context.code(node) else (Replace(node, f"{code}.compile({options})"),)
    return (Replace(node, f"{code} = {context.code(node)}"),)
