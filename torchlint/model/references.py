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


def is_unchosen(node: cst.CSTNode, context: Context) -> bool:
    """Whether the function around the node is but an entry of a table, under a name that no default of the file says.

    `ACTIVATIONS = {"relu": relu, "swish": swish}` is there for who asks for another one than the usual.
    """
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or context.classes.owner(function) is not None:
        return False
    keys = [_key(use, context) for use in context.uses.of(function.name.value, function)]
    if not keys or None in keys or context.elsewhere.callers(function):
        return False
    defaults = (parameter.default for parameter in context.tree.of(cst.Param))
    chosen = {default.evaluated_value for default in defaults if isinstance(default, cst.SimpleString)}
    return chosen.isdisjoint(keys)


def _key(use: cst.CSTNode, context: Context) -> str | bytes | None:
    """The text under which a dict holds the name."""
    match context.parent(use):
        case cst.DictElement(key=cst.SimpleString() as key, value=value) if value is use:
            return key.evaluated_value
    return None


def has_own_gradient(words: tuple[str, ...], context: Context) -> bool:
    """Whether the file has a `torch.autograd.Function` that speaks of one of the words."""
    return any(
        "torch.autograd.Function" in context.classes.lineage(class_)
        and any(map(context.code(class_).__contains__, words))
        for class_ in context.tree.of(cst.ClassDef)
    )
