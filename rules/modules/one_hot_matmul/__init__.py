"""A product of one-hot rows with a table, which reads all of the table to pick some rows of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Applicability, Call, Context, Flag, Message, Method, NodeEdit, Replace, Rule, Status

if TYPE_CHECKING:
    from .lookups import Lookup

RULE = Rule(
    name="one-hot-matmul",
    code="TL511",
    group="modules",
    summary="A product with one-hot rows reads a whole table to pick some of its rows.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="gradients of repeated rows are added in another order",
)
_MULTIPLIED = Message(
    "multiplied",
    "`{product}` multiplies one-hot rows with a whole table{often} to pick rows of it",
    help="use `F.embedding({indices}, {table})`",
)
_EMBEDDING = "torch.nn.functional.embedding"


@RULE.on(Call("torch.nn.functional.one_hot"), Method("scatter_"))
def check(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag each product of the one-hot rows that a call makes with a table of two axes."""
    from torchlint.edits.messages import how_often

    from .lookups import lookups

    function = context.function(call)
    if isinstance(function, cst.FunctionDef) and function.name.value == "__init__":
        return
    for found in lookups(call, context):
        if context.frequency(found.node) is Frequency.ONCE:
            continue
        yield Flag(
            found.node,
            _MULTIPLIED.of(
                product=context.shown(found.node),
                indices=_indices(found, context),
                table=_table(found, context),
                often=how_often(found.node, context),
            ),
            title="Use `F.embedding`",
            edits=_edits(found, call, context),
        )


def _indices(found: Lookup, context: Context) -> str:
    return context.bare_code(found.indices) if isinstance(found.indices, (cst.Name, cst.Attribute)) else "…"


def _table(found: Lookup, context: Context) -> str:
    from torchlint.edits.expressions import shown_owner

    return f"{shown_owner(found.table, context)}.t()" if found.is_turned else context.shown(found.table)


def _edits(found: Lookup, call: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import as_owner, in_place_of, loses_comment
    from torchlint.edits.imports import spelling

    from .lookups import ONE_HOT

    name = spelling(_EMBEDDING, found.node, context)
    is_plain = found.is_direct and context.qualified_name(call.func) == ONE_HOT and not context.has_unpacking(call)
    if not name or not is_plain or loses_comment(found.node, found.indices, found.table, context=context):
        return ()
    table = f"{as_owner(found.table, context)}.t()" if found.is_turned else context.code(found.table)
    code = f"{name}({context.code(found.indices)}, {table})"
    return (Replace(found.node, in_place_of(found.node, code, context)),)
