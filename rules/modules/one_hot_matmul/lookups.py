"""Products of one-hot rows with a table, which only pick rows of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import method_name

from .._shared.attention import Product, product

ONE_HOT = "torch.nn.functional.one_hot"
_CASTS = frozenset({"float", "half", "double", "bfloat16", "to", "type", "type_as", "contiguous"})
_FACTORIES = frozenset({"zeros", "ones", "randn", "rand", "empty", "full", "Tensor", "FloatTensor"})
_TABLES = frozenset({"torch.nn.Embedding", "torch.nn.Linear"})


class Lookup(NamedTuple):
    """A product that picks rows: their numbers, the table, and whether it lies on its side.

    `is_direct` where the one-hot rows are made for the product alone.
    """

    node: cst.BaseExpression
    indices: cst.BaseExpression
    table: cst.BaseExpression
    is_turned: bool
    is_direct: bool


def lookups(call: cst.Call, context: Context) -> Iterator[Lookup]:
    """The products of the one-hot rows that a call makes, `F.one_hot(i)` or `zeros.scatter_(1, i, 1)`."""
    indices = _indices(call, context)
    if indices is None:
        return
    for rows, is_direct in _casts(call, context):
        node = context.parent(rows)
        node = context.parent(node) if isinstance(node, cst.Arg) else node
        if not isinstance(node, cst.BaseExpression):
            continue
        found = _table(node, rows, context)
        if found is not None:
            table, is_turned = found
            yield Lookup(node, indices, table, is_turned, is_direct)


def _indices(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    if context.qualified_name(call.func) == ONE_HOT:
        return context.argument(call, "input", 0)
    match call:
        case cst.Call(
            func=cst.Attribute(value=owner, attr=cst.Name(value="scatter_")),
            args=[cst.Arg(value=dim), cst.Arg(value=indices), cst.Arg(value=value)],
        ) if context.code(dim) in ("1", "-1") and context.code(value) in ("1", "1.0"):
            zeros = context.stands_for(owner)
            while (
                isinstance(zeros, cst.Call)
                and isinstance(zeros.func, cst.Attribute)
                and zeros.func.attr.value in _CASTS
            ):
                zeros = zeros.func.value
            made = isinstance(zeros, cst.Call) and context.qualified_name(zeros.func) == "torch.zeros"
            return indices if made else None
    return None


def _casts(rows: cst.Call, context: Context) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The expressions that hold the rows and nothing else, with another type, and under names; whether as they are."""

    def cast(_: cst.BaseExpression, taker: cst.CSTNode) -> cst.BaseExpression | None:
        call = context.parent(taker) if method_name(taker) in _CASTS else None
        return call if isinstance(call, cst.Call) and call.func is taker else None

    starts: list[cst.BaseExpression] = [rows]
    match context.parent(rows), rows.func:
        case cst.Expr(), cst.Attribute(value=cst.Name() as owner):  # `rows.scatter_(1, i, 1)` as a statement
            place = context.tree.place(rows)
            starts += [
                use
                for use in context.readers(owner)
                if context.tree.place(use) > place and len(context.binders(use)) == 1
            ]
    statement = context.tree.statement(rows)
    for start in starts:
        for held in context.destinations(start, handed_on=cast).held:
            if held.is_alone:
                yield held.node, context.tree.statement(held.node) is statement


def _table(
    node: cst.BaseExpression, rows: cst.BaseExpression, context: Context
) -> tuple[cst.BaseExpression, bool] | None:
    """The table that one-hot rows are multiplied with, if it has two axes for certain."""
    made = product(node, context)
    match node:
        case cst.Call(args=[cst.Arg(value=left), cst.Arg(value=right)]):
            if context.qualified_name(node.func) == "torch.mm":
                made = Product(left, right)
    if made is not None and made.left is rows:
        if not made.equation:
            return (made.right, False) if _has_two_axes(made.right, context) else None
        return _of_equation(made.equation, made.right)
    if isinstance(node, cst.Call) and context.qualified_name(node.func) == "torch.nn.functional.linear":
        weight = context.argument(node, "weight", 1)
        if len(node.args) == 2 and node.args[0].value is rows and weight is not None:
            return weight, True
    return None


def _of_equation(equation: str, table: cst.BaseExpression) -> tuple[cst.BaseExpression, bool] | None:
    """`bk,kd->bd`: the last axis of the rows goes, that of the table comes."""
    operands, _, result = equation.partition("->")
    rows, _, letters = operands.partition(",")
    if len(letters) == 2 and rows and rows[-1] in letters:
        other = letters.replace(rows[-1], "", 1)
        if other not in rows and result == rows[:-1] + other:
            return table, letters[1] == rows[-1]
    return None


@query(bottom=False)
def _has_two_axes(node: cst.BaseExpression, context: Context) -> bool:
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="weight")) if context.value(owner).qualified in _TABLES:
            return True
        case cst.Attribute(value=owner, attr=cst.Name(value="data" | "T")):
            return _has_two_axes(owner, context)
        case cst.Attribute():
            class_ = context.uses.owner(node)
            sets = context.classes.attribute_sets(class_, node.attr.value) if class_ is not None else []
            values = [entry.value for entry in sets if entry.value is not None and not entry.path]
            return len(values) == len(sets) == 1 and _has_two_axes(values[0], context)
        case cst.Name():
            value = context.stands_for(node)
            return value is not None and _has_two_axes(value, context)
        case cst.Call(func=func, args=args):
            name = context.qualified_name(func) or ""
            last = name.rpartition(".")[2]
            if last == "Parameter" and args:
                return _has_two_axes(args[0].value, context)
            if name.startswith("torch.") and last in _FACTORIES:
                sizes = [argument for argument in args if argument.keyword is None and not argument.star]
                return len(sizes) == 2 and last != "full"
            match func:
                case cst.Attribute(attr=cst.Name(value="view" | "reshape")):
                    return len(args) == 2
                case cst.Attribute(value=owner, attr=cst.Name(value=method)) if method in _CASTS or method == "t":
                    return method == "t" or _has_two_axes(owner, context)
    return False
