"""Signs that somebody meant it so: comments beside a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge.conventions.comments import DIRECTIVE

if TYPE_CHECKING:
    from torchlint.semantics.context import Context


def comments_above(call: cst.Call, context: Context) -> str:
    """What the comments above the statement say, or above the first of several with such calls."""
    child: cst.CSTNode = call
    block = context.parent(call)
    while block is not None and not isinstance(block, (cst.IndentedBlock, cst.Module)):
        child, block = block, context.parent(block)
    above: list[str] = []
    for statement in block.body if block is not None else ():
        lines = [line.comment.value for line in getattr(statement, "leading_lines", ()) if line.comment is not None]
        above += [comment for comment in lines if not DIRECTIVE.suggests(comment)]
        if statement is child:
            return "\n".join(above)
        if f"{context.code(call.func)}(" not in context.code(statement):
            above = []
    return ""


def comment_behind(node: cst.CSTNode, context: Context) -> str:
    """What a comment behind the node on its line says; nothing where it speaks to a linter."""
    row, column = context.source.position(context.spans({node}).outer(node).end)
    comment = context.source.line(row)[column - 1 :].partition("#")[2]
    return "" if DIRECTIVE.suggests(comment) else comment
