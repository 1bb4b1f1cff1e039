"""Branches that the callers which run at each batch do not take: they pass the option that decides as a constant."""

from __future__ import annotations

import libcst as cst

from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import dotted


def is_untaken(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in a branch of a private function that is not for those who call it at each batch."""
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or not function.name.value.startswith("_"):
        return False
    callers = context.calls.callers(function)
    often = [call for call in callers if context.frequency(call) >= Frequency.BATCH]
    if not often:
        return False
    for test, is_taken in context.conditions(node):
        option, is_wanted = _option(test, is_true=is_taken)
        if option is not None and all(_passes(call, option, not is_wanted, function, context) for call in often):
            return True
    return False


@query(bottom=False)
def is_left_off(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node, or each call of its method, waits for an option of the class that nobody in sight switches on.

    `if self.include_nms:`, where the class says `include_nms = False`, or the default in `__init__` is `False`.
    """
    function = context.function(node)
    class_ = context.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    if class_ is None or not isinstance(function, cst.FunctionDef):
        return False
    if any(is_taken and _is_off(test, class_, context) for test, is_taken in context.conditions(node)):
        return True
    callers = context.calls.callers(function) if function.name.value != "forward" else []
    return bool(callers) and all(is_left_off(call, context) for call in callers)


def _is_off(test: cst.BaseExpression, class_: cst.ClassDef, context: Context) -> bool:
    match test:
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=option)):
            return option in _left_off(class_, context)
    return False


@query(bottom=frozenset[str]())
def _left_off(class_: cst.ClassDef, context: Context) -> frozenset[str]:
    """The options of a class that nobody here switches on."""
    kept: dict[str, list[cst.AssignTarget]] = {}
    for target in context.tree.of(cst.AssignTarget):
        if isinstance(target.target, cst.Attribute):
            kept.setdefault(target.target.attr.value, []).append(target)
    starts: dict[str, bool] = {}
    for line in class_.body.body:
        for part in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(part, cst.Assign) and len(part.targets) == 1 and (name := dotted(part.targets[0].target)):
                starts[name] = starts.get(name, True) and dotted(part.value) == "False"
    off = {name for name, is_off in starts.items() if is_off and name not in kept}
    given = (name for name, targets in kept.items() if len(targets) == 1 and _is_left_out(targets[0], class_, context))
    return frozenset((*off, *given))


def _is_left_out(target: cst.AssignTarget, class_: cst.ClassDef, context: Context) -> bool:
    """`self.option = option` in `__init__`, `False` by default and never given."""
    statement, init = context.parent(target), context.function(target)
    if not isinstance(statement, cst.Assign) or not isinstance(statement.value, cst.Name):
        return False
    parameter = context.parameter(statement.value)
    if parameter is None or not isinstance(init, cst.FunctionDef) or context.classes.owner(init) is not class_:
        return False
    if init.name.value != "__init__" or parameter.default is None or dotted(parameter.default) != "False":
        return False
    given = [context.calls.argument_for(call, init, parameter) for call in context.calls.callers(init)]
    if any(each is None or dotted(each) != "False" for each in given):
        return False
    name, places = parameter.name.value, [each.name.value for each in init.params.params[1:]]
    place = places.index(name) if name in places else None
    return not any(
        call.arguments is None
        or any(each.keyword == name or (each.place == place is not None) for each in call.arguments)
        for call in context.elsewhere.makers(class_)
    )


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
    parameter = context.parameter(option)
    if parameter is None:
        return False
    given = context.calls.argument_for(call, function, parameter)
    return isinstance(given, cst.Name) and given.value == str(value)
