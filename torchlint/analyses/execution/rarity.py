"""Code that runs rarely: at start-up, for pictures and reports."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.role import Role
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.conditions import LIMIT_FLAG, SHOWING_CONDITION
from torchlint.semantics.knowledge.conventions.convention import Convention
from torchlint.semantics.knowledge.conventions.functions import FALLBACK, RARE_FUNCTION
from torchlint.semantics.names.bindings import final_part
from torchlint.syntax.tree import descendants

# What Python, torch and Lightning call once for each object, or to print one.
_SETTING_UP = frozenset({"__init__", "__repr__", "__str__", "extra_repr", "reset_parameters", "prepare_data"})


def words_of(node: cst.CSTNode) -> list[str]:
    """The names in an expression, those of attributes too."""
    return [part.value for part in descendants(node) if isinstance(part, cst.Name)]


def is_named(node: cst.CSTNode, word: Convention, context: Context) -> bool:
    """Whether a function or class around the node is called as the convention has it."""
    around: Iterator[cst.FunctionDef | cst.ClassDef] = context.around(node, cst.FunctionDef, cst.ClassDef)
    return any(word.suggests(above.name.value.lower()) for above in around)


def runs_rarely(node: cst.CSTNode, context: Context) -> bool:
    """Whether the file is for pictures and exports, something is set up, or few iterations of the loop get here."""
    return (
        context.settings.role in (Role.SHOWING, Role.EXPORTING)
        or any(function.name.value in _SETTING_UP for function in context.around(node, cst.FunctionDef))
        or context.frequencies.is_rate_limited(node)
    )


def named_rare(node: cst.CSTNode, context: Context) -> tuple[Doubt, ...]:
    """The doubt of what names say to be code of start-up, of pictures and reports: of functions and conditions."""
    functions = context.around(node, cst.FunctionDef)
    is_named = (
        any(RARE_FUNCTION.suggests(function.name.value) for function in functions)
        or any(
            SHOWING_CONDITION.suggests(word) for above in context.around(node, cst.If) for word in words_of(above.test)
        )
        or is_named_diagnostic(node, context)
    )
    return (Doubt.NAMED_RARE,) if is_named else ()


def is_named_diagnostic(node: cst.CSTNode, context: Context) -> bool:
    """Whether names say that the code is there to look at things or for what goes wrong, or is called by such code."""
    return (
        context.frequencies.is_diagnostic(node) or _is_under_a_flag(node, context) or _is_in_a_fallback(node, context)
    )


def _is_under_a_flag(node: cst.CSTNode, context: Context) -> bool:
    """Whether a flag around holds now and then, by its name: `if should_log:`."""
    return any(_is_a_limit(test, is_taken=is_taken) for test, is_taken in context.conditions(node))


def _is_a_limit(test: cst.BaseExpression, *, is_taken: bool) -> bool:
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _is_a_limit(inner, is_taken=not is_taken)
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right) if is_taken:
            return _is_a_limit(left, is_taken=True) or _is_a_limit(right, is_taken=True)
        case cst.Comparison(
            left=flag, comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name(value="None"))]
        ):
            return _is_a_limit(flag, is_taken=is_taken)
        case cst.Name() | cst.Attribute() if is_taken:
            return LIMIT_FLAG.suggests(final_part(test))
    return False


def _is_in_a_fallback(node: cst.CSTNode, context: Context) -> bool:
    if not FALLBACK.suggests(context.program.code):
        return False  # cheap to ask, unlike who calls a function
    function = context.enclosing(node, cst.FunctionDef, cst.Lambda, cst.ClassDef)
    if not isinstance(function, cst.FunctionDef):
        return False
    callers = [context.function(call) for call in context.calls.callers(function)]
    return _is_fallback(function) or (bool(callers) and all(map(_is_fallback, callers)))


def _is_fallback(function: cst.FunctionDef | cst.Lambda | None) -> bool:
    return isinstance(function, cst.FunctionDef) and FALLBACK.suggests(function.name.value)
