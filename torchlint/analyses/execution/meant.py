"""What the author says that a line is meant to do: the only comments that decide anything, and only for their line."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.comments import DIRECTIVE
from torchlint.semantics.knowledge.conventions.convention import Convention
from torchlint.syntax.uncommented import comments, may_be_comments


def is_meant(
    node: cst.CSTNode, context: Context, *, behind: Convention | None = None, above: Convention | None = None
) -> bool:
    """Whether the author says that it is meant so, behind the node on its line or right above its statement.

    Comments elsewhere decide nothing, and none decides for another line.
    """
    if above is not None and any(map(above.suggests, _right_above(node, context))):
        return True
    # Where the node ends is dear to ask, and few files say such a thing at all.
    is_said = behind is not None and _is_said(context.tree.module, context, behind)
    return is_said and behind is not None and any(map(behind.suggests, _behind(node, context)))


@query(bottom=False)
def _is_said(_module: cst.Module, context: Context, convention: Convention) -> bool:
    """Whether anything in the file that may be a comment follows the convention."""
    return any(map(convention.suggests, may_be_comments(context.source.text)))


def said(node: cst.CSTNode, context: Context) -> list[str]:
    """The comments of a line: behind the node on its line, and right above its statement."""
    return [*_behind(node, context), *_right_above(node, context)]


def _behind(node: cst.CSTNode, context: Context) -> list[str]:
    """The comment behind the node on its line; none where it speaks to a linter."""
    row, column = context.source.position(context.spans({node}).outer(node).end)
    found = comments(context.source.line(row)[column - 1 :])
    return [comment for comment in found if not DIRECTIVE.suggests(comment)]


def _right_above(node: cst.CSTNode, context: Context) -> list[str]:
    """The comment that ends on the row above the statement, as one text; none where it speaks to a linter."""
    line = context.tree.line(node)
    rows: list[str] = []
    for above in reversed(line.leading_lines if line is not None else ()):
        if above.comment is None:
            break
        if not DIRECTIVE.suggests(above.comment.value):
            rows.insert(0, above.comment.value)
    return ["\n".join(rows)] if rows else []
