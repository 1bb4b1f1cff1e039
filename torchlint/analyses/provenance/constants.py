"""What a call passes, and a condition is: constants through names, keywords through dictionaries, callers, methods."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import Binder, Binding, parameters


def constant(node: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """The expression that a name bound once in all its scope stands for, the node itself if it is none."""
    if isinstance(node, cst.Name):
        binding = _only_binding(node, context)
        if binding is not None and isinstance(binding.value, (cst.BaseNumber, cst.SimpleString, cst.Name)):
            return binding.value
    return node


def keywords(unpacked: cst.BaseExpression, context: Context) -> dict[str, cst.BaseExpression] | None:
    """The keywords that `**unpacked` passes; None where not all of them are in sight."""
    match unpacked:
        case cst.Dict(elements=elements):
            found: dict[str, cst.BaseExpression] = {}
            for element in elements:
                if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                    return None
                found[str(element.key.evaluated_value)] = element.value
            return found
        case cst.Call(func=cst.Name(value="dict"), args=args):
            named = {argument.keyword.value: argument.value for argument in args if argument.keyword is not None}
            return named if len(named) == len(args) else None
        case cst.Name(value=name):
            binding = _only_binding(unpacked, context)
            if binding is None or not isinstance(binding.value, (cst.Dict, cst.Call)):
                return None
            # Whatever else is done with the dictionary may change it.
            if all(_is_unpacked(use, context) for use in context.uses.of(name, binding.node)):
                return keywords(binding.value, context)
    return None


def _only_binding(name: cst.Name, context: Context) -> Binding | None:
    _, bindings = context.names.lookup(name)
    if len(bindings) == 1 and bindings[0].binder is Binder.ASSIGN and not bindings[0].path:
        return bindings[0]
    return None


def _is_unpacked(use: cst.CSTNode, context: Context) -> bool:
    parent = context.parent(use)
    return isinstance(parent, cst.Arg) and parent.star == "**"


def may_pass(call: cst.Call, keyword: str, context: Context) -> bool:
    """Whether a call may pass a keyword: itself, or through the `**kwargs` of a function and what its callers pass."""
    return _passes(call, context, keyword)


@query(bottom=False)
def _passes(call: cst.Call, context: Context, keyword: str) -> bool:
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == keyword:
            return True
        if argument.star == "*" or (argument.star and _may_hold(argument.value, keyword, context)):
            return True
    return False


def _may_hold(unpacked: cst.BaseExpression, keyword: str, context: Context) -> bool:
    known = keywords(unpacked, context)
    if known is not None:
        return keyword in known
    function = _collecting(unpacked, context)
    if function is None:
        return True
    owner = context.classes.owner(function)
    named: cst.FunctionDef | cst.ClassDef = function if owner is None else owner
    callers = context.calls.callers(function)
    if not callers or any(context.parent(use) not in callers for use in context.uses.of(named.name.value, named)):
        return True
    return any(_passes(call, context, keyword) for call in callers)


def _collecting(unpacked: cst.BaseExpression, context: Context) -> cst.FunctionDef | None:
    """The function whose `**kwargs` this is, if it only passes them on here."""
    parameter = context.parameter(unpacked)
    if parameter is None or len(context.uses.of(parameter.name.value, parameter)) > 1:
        return None
    function = context.tree.function_of_parameter(parameter)
    return function if isinstance(function, cst.FunctionDef) else None


def decided(test: cst.BaseExpression, context: Context) -> bool | None:
    """What a condition always is: a constant, or a parameter for which all callers here pass the same one."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            known = decided(inner, context)
            return None if known is None else not known
        case cst.Name(value="True" | "False" | "None" as word):
            return word == "True"
        case cst.Name():
            return _decided_by_callers(test, context)
    return None


def _decided_by_callers(name: cst.Name, context: Context) -> bool | None:
    parameter = context.parameter(name)
    function = context.tree.function_of_parameter(parameter) if parameter is not None else None
    if not isinstance(function, cst.FunctionDef) or parameter is None:
        return None
    calls = context.calls.callers(function)
    passed = [context.calls.argument_for(call, function, parameter) for call in calls]
    words = {argument.value if isinstance(argument, cst.Name) else "" for argument in passed}
    return {"True": True, "False": False}.get(words.pop()) if len(words) == 1 else None


class Parameter(NamedTuple):
    """A parameter of a method, its place behind `self`, None if only by keyword, and its default, None if unknown.

    `node` is what takes its value: the parameter itself or `**kwargs`.
    """

    name: str
    place: int | None
    default: bool | None
    node: cst.Param


def handed_on(call: cst.Call, keyword: str, place: int, method: cst.FunctionDef, context: Context) -> Parameter | None:
    """The parameter that a method hands on as an argument of a call in it: by its name, or in `*args, **kwargs`.

    `place` is that of the argument in the call. For what `**kwargs` leaves out the callee has the default.
    """
    params = method.params
    positional = params.params[1:]
    given = context.argument(call, keyword, place)
    if params.posonly_params:
        return None
    if given is not None:
        node = _passed_parameter(given, method, context)
        if node is None or node.star:
            return None
        where = next((number for number, other in enumerate(positional) if other is node), None)
        return Parameter(node.name.value, where, _literal(node.default), node)
    if any(node.name.value == keyword for node in parameters(method)):
        return None
    stars = [(number, argument) for number, argument in enumerate(call.args) if argument.star]
    nodes = [_passed_parameter(argument.value, method, context) for _, argument in stars]
    if not nodes or nodes[-1] is None or nodes[-1] is not params.star_kwarg:
        return None
    if len(context.uses.of(nodes[-1].name.value, nodes[-1])) > 1:
        return None  # `kwargs.pop("bias")`
    if len(nodes) == 1:
        return Parameter(keyword, None, None, nodes[-1])
    if len(nodes) > 2 or nodes[0] is None or nodes[0] is not params.star_arg or place < stars[0][0]:
        return None
    return Parameter(keyword, len(positional) + place - stars[0][0], None, nodes[-1])


def _passed_parameter(node: cst.BaseExpression, method: cst.FunctionDef, context: Context) -> cst.Param | None:
    """The parameter of a method whose value, as it was passed, an expression holds."""
    found = context.parameter(node)
    return found if found is not None and context.tree.function_of_parameter(found) is method else None


def _literal(node: cst.BaseExpression | None) -> bool | None:
    return {"True": True, "False": False}.get(node.value) if isinstance(node, cst.Name) else None


def parsed_default(name: str, context: Context) -> cst.BaseExpression | None:
    """The default of an option of the command line; None where there is none, or no such option."""
    call = _parsed(name, context)
    return context.argument(call, "default") if call is not None else None


def is_off_by_default(switch: cst.BaseExpression | None, context: Context) -> bool:
    """Whether somebody has to ask for it on the command line: `args.dtype == "float16"`, where that is "bfloat16"."""
    match switch:
        case cst.Comparison(
            left=cst.Attribute(attr=cst.Name(value=name)),
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.SimpleString() as wanted)],
        ):
            given = parsed_default(name, context)
            return isinstance(given, cst.SimpleString) and given.evaluated_value != wanted.evaluated_value
        case cst.Attribute(attr=cst.Name(value=name)):
            call = _parsed(name, context)
            if call is None:
                return _is_a_switch_elsewhere(name, context)
            action, given = context.argument(call, "action"), context.argument(call, "default")
            is_on = isinstance(given, cst.Name) and given.value == "True"
            return isinstance(action, cst.SimpleString) and action.raw_value == "store_true" and not is_on
    return False


def _is_a_switch_elsewhere(name: str, context: Context) -> bool:
    """Whether the programs that the file is part of have such a switch, `--name`, which is off where it is left out."""
    for call in context.elsewhere.program_calls("argparse.ArgumentParser.add_argument"):
        given = {each.keyword: each.constant for each in call.arguments or ()}
        texts = [each.constant for each in call.arguments or () if each.place is not None]
        if given.get("action") == "'store_true'" and name in (_destination(text[1:-1]) for text in texts):
            return True
    return False


def _destination(option: str) -> str:
    """The name that an option of the command line has among what was parsed."""
    return option.lstrip("-").replace("-", "_")


def _parsed(name: str, context: Context) -> cst.Call | None:
    """The `add_argument` of an option of the command line, by the name that it has among what was parsed."""
    for call in context.tree.of(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "add_argument":
            continue
        destination = context.argument(call, "dest")
        names = [destination] if destination is not None else [argument.value for argument in call.args]
        words = [_destination(str(word.evaluated_value)) for word in names if isinstance(word, cst.SimpleString)]
        if name in words:
            return call
    return None
