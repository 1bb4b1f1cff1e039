"""How the code of an expression may stand in another place: with the brackets it needs there, and no comment lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Insert, Replace
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchlint.semantics.context import Context

# What `.method()` may follow without brackets.
_CLOSED = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def as_owner(node: cst.BaseExpression, context: Context) -> str:
    """The code of an expression as that of which a method is called or a part is taken."""
    code = context.code(node)
    is_safe = isinstance(node, _CLOSED) and ("\n" not in code or isinstance(node, (cst.Call, cst.Subscript)))
    return code if node.lpar or is_safe else f"({code})"


def shown_owner(node: cst.BaseExpression, context: Context) -> str:
    """As `as_owner`, for a message."""
    shown = context.shown(node)
    return shown if isinstance(node, _CLOSED) else f"({shown})"


def in_place_of(node: cst.BaseExpression, code: str, context: Context) -> str:
    """Code to replace the expression with: in brackets where it stood in some, or where it would touch a word."""
    line = context.tree.line(node)
    around = context.code_at(line, line) if line is not None else ""
    old = re.escape(context.code(node))
    touches = (code[:1].isidentifier() and re.search(rf"\w{old}", around)) or (
        code[-1:].isidentifier() and re.search(rf"{old}\w", around)
    )
    return f"({code})" if node.lpar or touches else code


def as_argument(argument: cst.Arg, context: Context) -> str:
    """The code of an argument in another call, without the comma and the white space behind it."""
    bare = argument.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))
    return context.code(bare)


def with_argument(call: cst.Call, code: str, context: Context) -> Insert:
    """The edit that adds an argument, given as code such as `bias=False`, after the last one.

    Where each of the others has a line of its own, so has this one.
    """
    if not call.args:
        raise ValueError("the call has no arguments to insert behind")
    return Insert(call.args[-1], f",{context.code_at(space_before_added(call), call)}{code}")


def space_before_added(call: cst.Call) -> cst.BaseParenthesizableWhitespace:
    """What stands before an argument that is added behind the others: a new line, where each of them has one."""
    *spaces, behind = [_space_behind(argument) for argument in call.args]
    if not spaces and isinstance(behind, cst.ParenthesizedWhitespace) and isinstance(call.args[0].comma, cst.Comma):
        spaces = [call.whitespace_before_args]
    lines = [space for space in spaces if isinstance(space, cst.ParenthesizedWhitespace)]
    speaks_of_last = isinstance(behind, cst.ParenthesizedWhitespace) and behind.first_line.comment is not None
    if not lines or len(lines) < len(spaces) or speaks_of_last:
        return cst.SimpleWhitespace(" ")
    return lines[-1].with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())


def _space_behind(argument: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    comma = argument.comma
    return comma.whitespace_after if isinstance(comma, cst.Comma) else argument.whitespace_after_arg


def loses_comment(node: cst.BaseExpression, *kept: cst.BaseExpression, context: Context) -> bool:
    """Whether a comment stands in an expression of which only some parts are kept."""
    return context.code(node).count("#") > sum(context.code(part).count("#") for part in kept)


def deleted(statement: cst.SimpleStatementLine | cst.If, context: Context) -> Replace:
    """The edit that deletes a statement; comments above it stay, and so do the empty lines that part its neighbours."""
    above = statement.leading_lines
    if all(line.comment is None for line in above) and not _parts_neighbours(statement, context):
        return Replace(statement, "")
    code = context.code_at(cst.SimpleStatementLine([], leading_lines=above), statement)
    return Replace(statement, code[: code.rindex("\n", 0, len(code) - 1) + 1] if code.endswith("\n") else code)


def _parts_neighbours(statement: cst.SimpleStatementLine | cst.If, context: Context) -> bool:
    """Whether empty lines stand above the statement, and none below, between it and the next one."""
    block = context.parent(statement)
    if not statement.leading_lines or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return False
    place = list(block.body).index(statement)
    below = getattr(block.body[place + 1], "leading_lines", ()) if place + 1 < len(block.body) else None
    return place > 0 and below is not None and (not below or below[0].comment is not None)


def is_spelt_out(node: cst.CSTNode, context: Context) -> bool:
    """Whether the source of the expression is printed too: `f"{t.item()=}"`."""
    return any(above.equal is not None for above in context.around(node, cst.FormattedStringExpression))


def fits_in_string(code: str, node: cst.CSTNode, context: Context) -> bool:
    """Whether code may stand in the place of the node in the f-strings around it, as Python read them before 3.12."""
    for above in context.around(node, cst.FormattedString):
        quote = above.end
        if quote[0] in code or any(mark in code for mark in "\\#") or (len(quote) == 1 and "\n" in code):
            return False
    return True


def may_swap(first: Iterable[cst.BaseExpression], then: cst.BaseExpression, context: Context) -> bool:
    """Whether `then` may as well be evaluated before the others: nothing binds, draws, raises or changes in between."""
    before = [part for node in first for part in (node, *descendants(node)) if isinstance(part, cst.BaseExpression)]
    behind = [then, *descendants(then)]
    if any(isinstance(part, _BINDING) for part in (*before, *behind)):
        return False
    if isinstance(then, cst.Name) or all(isinstance(part, _QUIET) for part in before):
        return True
    calls = [part for part in behind if isinstance(part, cst.Call)]
    return all(isinstance(part, (*_QUIET, cst.Attribute)) for part in before) and all(
        context.kind(call.func) is Kind.MODULE or (context.qualified_name(call.func) or "").startswith("torch.")
        for call in calls
    )


_BINDING = (cst.NamedExpr, cst.Await, cst.Yield)
_QUIET = (cst.Name, cst.BaseNumber, cst.BaseString, cst.Tuple, cst.List, cst.UnaryOperation)
