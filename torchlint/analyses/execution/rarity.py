"""Code that runs rarely: at start-up, for pictures and reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.role import Role
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

# Functions that run once, or that are there to show or store things.
_RARE = re.compile(
    r"(^|_)(__)?init(_|$|ializ)|__repr__|reset_parameters|plot|draw|show|visual(?!s)|(^|_)vis(_|$)|display|save|dump|"
    r"export|^_?(download|load|read|parse|write|report|print)(_|$)|^_?process$|^prepare_data$|summary|"
    r"(^|_)verify(_|$)|(^|_)lut(_|$)|^_?log_(image|img|video|audio|sample|conditioning|figure)",
    re.IGNORECASE,
)
# Branches that are there to show things.
_SHOWN = re.compile(r"visual|plot|draw|(^|_)viz?s?(_|$)", re.IGNORECASE)


def words_of(node: cst.CSTNode) -> list[str]:
    """The names in an expression, those of attributes too."""
    return [part.value for part in descendants(node) if isinstance(part, cst.Name)]


def runs_rarely(loop: cst.CSTNode, context: Context) -> bool:
    """Whether the loop, or whatever it is, is one of start-up, of pictures and reports."""
    if context.settings.role in (Role.SHOWING, Role.EXPORTING):
        return True
    function = context.function(loop)
    while function is not None:
        if isinstance(function, cst.FunctionDef) and _RARE.search(function.name.value):
            return True
        function = context.function(function)
    if context.frequencies.is_diagnostic(loop) or context.frequencies.is_rate_limited(loop):
        return True
    return any(
        isinstance(above, cst.If) and any(map(_SHOWN.search, words_of(above.test))) for above in context.ancestors(loop)
    )
