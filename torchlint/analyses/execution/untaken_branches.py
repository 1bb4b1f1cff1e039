"""Branches that the callers which run at each batch do not take: they pass the option that decides as a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.semantics.flow.query import query

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

# Texts that name a way to do something are short.
_LONG = 40


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
    """Whether the node, or each call of its function, waits for an option that nobody in sight switches on.

    `if self.include_nms:`, where the class says `include_nms = False`, or is never made with anything else;
    `if method == "linear":` of a parameter for which all who call the function pass `"gaussian"`.
    """
    function = context.function(node)
    if any(_holds(test, context) is not None for test, _ in context.conditions(node)) and any(
        _holds(test, context) is (not is_taken) for test, is_taken in context.conditions(node)
    ):
        return True
    if not isinstance(function, cst.FunctionDef) or context.classes.owner(function) is None:
        return False
    callers = context.calls.callers(function) if function.name.value != "forward" else []
    return bool(callers) and all(is_left_off(call, context) for call in callers)


def _holds(test: cst.BaseExpression, context: Context) -> bool | None:
    """Whether a condition on options holds, by what they are in all that is in sight; None if that is not known."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            held = _holds(inner, context)
            return None if held is None else not held
        case cst.BooleanOperation(operator=operator, left=left, right=right):
            is_and = isinstance(operator, cst.And)
            sides = [_holds(side, context) for side in (left, right)]
            return not is_and if (not is_and) in sides else None if None in sides else is_and
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            is_same = isinstance(operator, (cst.Equal, cst.Is))
            if not is_same and not isinstance(operator, (cst.NotEqual, cst.IsNot)):
                return None
            wanted, option = literal(right), constant(left, context)
            return None if wanted is None or option is None else (wanted == option) is is_same
        case cst.Name() | cst.Attribute():
            option = constant(test, context)
            return None if option is None else option not in ("False", "None", "''")
    return None


def constant(node: cst.BaseExpression, context: Context, depth: int = 4) -> str | None:
    """What an option always is, as far as all show who pass something for it: its `literal`; None if not known."""
    if depth == 0 or (found := literal(node)) is not None:
        return literal(node)
    match node:
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=option)):
            class_ = context.tree.enclosing_class(node)
            return None if class_ is None else _kept(option, class_, context, depth - 1)
        case cst.Name():
            parameter, function = context.parameter(node), context.function(node)
            if parameter is not None and isinstance(function, cst.FunctionDef):
                return _given(parameter, function, context, depth - 1)
    return found


def literal(node: cst.BaseExpression | None) -> str | None:
    """A constant that an option may be, in Python's spelling: `True`, `False`, `None` or a short text."""
    match node:
        case cst.Name(value="True" | "False" | "None"):
            return node.value
        case cst.SimpleString() if isinstance(text := node.evaluated_value, str) and len(text) < _LONG:
            return repr(text)
    return None


def _kept(option: str, class_: cst.ClassDef, context: Context, depth: int) -> str | None:
    """What an attribute is that one statement alone sets, in `__init__` or in the body of the class."""
    targets = [
        target
        for target in _attributes_set(context.tree.module, context).get(option, ())
        if not _is_of_another(target, class_, context)
    ]
    starts = [value for line in class_.body.body if (value := _start(line, option)) is not None]
    if not targets:
        return literal(starts[-1]) if starts else None
    statement, init = context.parent(targets[0]), context.function(targets[0])
    if len(targets) > 1 or not isinstance(statement, cst.Assign) or not isinstance(init, cst.FunctionDef):
        return None
    is_own = init.name.value == "__init__" and context.classes.owner(init) is class_
    return constant(statement.value, context, depth) if is_own and not starts else None


def _is_of_another(target: cst.AssignTarget, class_: cst.ClassDef, context: Context) -> bool:
    """Whether it sets an attribute of `self` in a class that has nothing to do with this one."""
    match target.target:
        case cst.Attribute(value=cst.Name() as name):
            owner = context.classes.self_class(name)
            if owner is not None:
                return owner not in context.classes.lineage(class_) and class_ not in context.classes.lineage(owner)
    return False


def _start(line: cst.BaseStatement | cst.BaseSmallStatement, option: str) -> cst.BaseExpression | None:
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(cst.Name(value=name))], value=value)]):
            return value if name == option else None
    return None


@query(bottom=MappingProxyType[str, Sequence[cst.AssignTarget]]({}))
def _attributes_set(_: cst.Module, context: Context) -> Mapping[str, Sequence[cst.AssignTarget]]:
    """The targets of assignments to attributes in a file, by the attribute's name."""
    found: dict[str, list[cst.AssignTarget]] = {}
    for target in context.tree.of(cst.AssignTarget):
        if isinstance(target.target, cst.Attribute):
            found.setdefault(target.target.attr.value, []).append(target)
    return found


def _given(parameter: cst.Param, function: cst.FunctionDef, context: Context, depth: int) -> str | None:
    """What all calls in sight pass for a parameter of `__init__`, of a private method, or of a function of a module.

    Where nothing is seen to make a class, an option of it that is `False` by default is taken to stay so.
    """
    name, class_ = parameter.name.value, context.classes.owner(function)
    is_init = function.name.value == "__init__"
    if (class_ is not None and not function.name.value.startswith("_")) or context.tree.function(function) is not None:
        return None
    calls = context.calls.callers(function)
    given = {
        None if passed is None else literal(passed) or constant(passed, context, depth)
        for passed in (context.calls.argument_for(call, function, parameter) for call in calls)
    }
    if len(given) > 1 or None in given:
        return None
    left_out = literal(parameter.default)
    names = [each.name.value for each in function.params.params[class_ is not None :]]
    place = names.index(name) if name in names else None
    for call in context.frequencies.from_elsewhere(function):
        passing = (each for each in call.arguments or () if name == each.keyword or each.place == place is not None)
        passed_there = next(passing, None)
        same = left_out if passed_there is None else passed_there.constant or None
        given.add(None if call.arguments is None else same)
    if not given and is_init and left_out == "False":
        return left_out
    return given.pop() if len(given) == 1 else None


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
