"""Code that runs rarely: at start-up, for pictures and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.role import Role
from torchlint.semantics.knowledge.conventions.conditions import SHOWING_CONDITION
from torchlint.semantics.knowledge.conventions.functions import RARE_FUNCTION
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.context import Context


def words_of(node: cst.CSTNode) -> list[str]:
    """The names in an expression, those of attributes too."""
    return [part.value for part in descendants(node) if isinstance(part, cst.Name)]


def runs_rarely(loop: cst.CSTNode, context: Context) -> bool:
    """Whether the loop, or whatever it is, is one of start-up, of pictures and reports."""
    if context.settings.role in (Role.SHOWING, Role.EXPORTING):
        return True
    function = context.function(loop)
    while function is not None:
        if isinstance(function, cst.FunctionDef) and RARE_FUNCTION.suggests(function.name.value):
            return True
        function = context.function(function)
    if context.frequencies.is_diagnostic(loop) or context.frequencies.is_rate_limited(loop):
        return True
    return any(any(map(SHOWING_CONDITION.suggests, words_of(above.test))) for above in context.around(loop, cst.If))
