"""Code that another is compared with, or that stands beside a faster one: it runs in tests and where that can't."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.functions import REFERENCE_FUNCTION
from torchlint.semantics.knowledge.conventions.texts import PICKED_BY_NAME


def is_reference(node: cst.CSTNode, context: Context) -> bool:
    """Whether a function around the node is a reference, by its name.

    What stands in a lambda may be used by any function of the file, so that one such function will do.
    """
    functions = [*context.around(node, cst.FunctionDef)]
    if isinstance(context.function(node), cst.Lambda):
        functions = context.tree.of(cst.FunctionDef)
    return any(REFERENCE_FUNCTION.suggests_any(function.name.value.lower().split("_")) for function in functions)


def is_unchosen(node: cst.CSTNode, context: Context) -> bool:
    """Whether the code around the node is but one of several that are picked by name, and no default says its name.

    `ACTIVATIONS = {"relu": relu, "swish": swish}`, a registry and `globals()[name]` are there for who asks for another
    one than the usual.
    """
    function = context.function(node)
    if _is_registered(node, context) or (_gives_no_more(function) and PICKED_BY_NAME.suggests(context.program.code)):
        return True
    if not isinstance(function, cst.FunctionDef) or context.classes.owner(function) is not None:
        return False
    keys = [_key(use, context) for use in context.uses.of(function.name.value, function)]
    if not keys or None in keys or context.elsewhere.callers(function):
        return False
    defaults = (parameter.default for parameter in context.tree.of(cst.Param))
    chosen = {default.evaluated_value for default in defaults if isinstance(default, cst.SimpleString)}
    return chosen.isdisjoint(keys)


def _gives_no_more(function: cst.CSTNode | None) -> bool:
    """Whether a function is but a `return`, behind its docstring."""
    if not isinstance(function, cst.FunctionDef):
        return False
    lines = function.body.body[1 if function.get_docstring() else 0 :]
    return len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) and len(lines[0].body) == 1


def _is_registered(node: cst.CSTNode, context: Context) -> bool:
    """Whether a decorator is given the class around the node, as a registry's: `@ACTIVATIONS.register_module()`."""
    class_ = context.tree.enclosing_class(node)
    return class_ is not None and not all(
        (context.qualified_name(item.decorator) or "").startswith("typing") for item in class_.decorators
    )


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
