"""Code that another is compared with, or that stands beside a faster one: it runs in tests and where that can't."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.model.context import Context

_SAYS = re.compile(r"\breference (implementation|version|code)\b|\bfor (testing|comparison|debugging)\b", re.IGNORECASE)
_WORDS = frozenset({"ref", "reference", "naive", "slow"})


def is_reference(node: cst.CSTNode, context: Context) -> bool:
    """Whether a function around the node is a reference, by its name or docstring.

    What stands in a lambda may be used by any function of the file, so that one such function will do.
    """
    functions = [above for above in context.ancestors(node) if isinstance(above, cst.FunctionDef)]
    if isinstance(context.function(node), cst.Lambda):
        functions = context.tree.of(cst.FunctionDef)
    return any(
        not _WORDS.isdisjoint(function.name.value.lower().split("_")) or _SAYS.search(function.get_docstring() or "")
        for function in functions
    )


def has_own_gradient(words: tuple[str, ...], context: Context) -> bool:
    """Whether the file has a `torch.autograd.Function` that speaks of one of the words."""
    return any(
        "torch.autograd.Function" in context.classes.lineage(class_)
        and any(map(context.code(class_).__contains__, words))
        for class_ in context.tree.of(cst.ClassDef)
    )
