"""Signs that somebody meant it so: comments beside a value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.model.context import Context

_DIRECTIVE = re.compile(r"\btorchlint:|\bnoqa\b|<-", re.IGNORECASE)


def comment_behind(node: cst.CSTNode, context: Context) -> str:
    """What a comment behind the node on its line says; nothing where it speaks to a linter."""
    row, column = context.source.position(context.spans({node}).outer(node).end)
    comment = context.source.line(row)[column - 1 :].partition("#")[2]
    return "" if _DIRECTIVE.search(comment) else comment
