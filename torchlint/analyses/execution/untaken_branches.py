"""Branches that the callers which run at each batch do not take: they pass the option that decides as a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.semantics.names.bindings import Binder, dotted

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

# How many calls away such an option is looked for.
_CALLS_DEEP = 2


def is_untaken(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in a branch of a private function that is not for those who call it at each batch."""
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or not function.name.value.startswith("_"):
        return False
    callers = context.calls.callers(function)
    often = [call for call in callers if context.frequency(call) >= Frequency.BATCH]
    if not often:
        return False
    child = node
    for above in context.ancestors(node):
        if above is function:
            return False
        if isinstance(above, cst.If) and child is not above.test:
            option, is_wanted = _option(above.test, is_true=child is above.body)
            if option is not None and all(_passes(call, option, not is_wanted, function, context) for call in often):
                return True
        child = above
    return False


def is_left_off(node: cst.CSTNode, context: Context, depth: int = 0) -> bool:
    """Whether the node, or each call of its method, waits for an option of the class that nobody here switches on.

    `if self.include_nms:`, where the class says `include_nms = False` and no line of the file sets it.
    """
    function = context.function(node)
    class_ = context.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    if class_ is None or not isinstance(function, cst.FunctionDef) or depth > _CALLS_DEEP:
        return False
    child = node
    for above in context.ancestors(node):
        if above is function:
            break
        if isinstance(above, cst.If) and child is above.body and _is_off(above.test, class_, context):
            return True
        child = above
    callers = context.calls.callers(function) if function.name.value != "forward" else []
    return bool(callers) and all(is_left_off(call, context, depth + 1) for call in callers)


def _is_off(test: cst.BaseExpression, class_: cst.ClassDef, context: Context) -> bool:
    match test:
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=option)):
            starts = [
                part.value
                for line in class_.body.body
                if isinstance(line, cst.SimpleStatementLine)
                for part in line.body
                if isinstance(part, cst.Assign) and [dotted(target.target) for target in part.targets] == [option]
            ]
            is_set = any(
                isinstance(target.target, cst.Attribute) and target.target.attr.value == option
                for target in context.tree.of(cst.AssignTarget)
            )
            return bool(starts) and not is_set and all(dotted(start) == "False" for start in starts)
    return False


def _option(test: cst.BaseExpression, *, is_true: bool) -> tuple[cst.Name | None, bool]:
    """The name that a condition asks for, and what it has to be: `if not fast:` wants it to be false."""
    match test:
        case cst.Name():
            return test, is_true
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _option(inner, is_true=not is_true)
    return None, is_true


def _passes(call: cst.Call, option: cst.Name, value: bool, function: cst.FunctionDef, context: Context) -> bool:  # noqa: FBT001
    """Whether a call passes this constant for the parameter that the option is."""
    bindings = context.reaching(option)
    if len(bindings) != 1 or bindings[0].binder is not Binder.PARAMETER or not isinstance(bindings[0].node, cst.Param):
        return False
    given = context.calls.argument_for(call, function, bindings[0].node)
    return isinstance(given, cst.Name) and given.value == str(value)
