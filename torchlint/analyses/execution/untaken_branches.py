"""Code that nobody in sight gets to: a branch for an option that is off, a definition that no file uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import libcst as cst

from torchlint.analyses.provenance.constants import is_off_by_default
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.conditions import DEVICE_CONDITION
from torchlint.semantics.values.lattice import Kind, Value

# What an option is that everybody passes something for.
GIVEN = "..."
_SOMETHING = dict.fromkeys(
    (kind.name for kind in (Kind.TENSOR, Kind.NDARRAY, Kind.MODULE, Kind.LOADER, Kind.OPTIMIZER)), GIVEN
)
# Texts that name a way to do something are short.
_LONG = 40


def is_dead(node: cst.CSTNode, context: Context) -> bool:
    """Whether a statement before it leaves a block around it: `assert False`, `raise`."""
    child = node
    for above in context.ancestors(node):
        if isinstance(above, (cst.IndentedBlock, cst.Module)):
            before = above.body[: above.body.index(child)]
            if any(isinstance(line, cst.SimpleStatementLine) and _leaves(line.body[-1]) for line in before):
                return True
        child = above
    return False


def _leaves(statement: cst.CSTNode) -> bool:
    if isinstance(statement, cst.Assert):
        return isinstance(statement.test, (cst.Name, cst.Integer)) and statement.test.value in ("False", "0")
    return isinstance(statement, (cst.Raise, cst.Return, cst.Break, cst.Continue))


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
        parameter = context.parameter(option) if option is not None else None
        if parameter is not None and all(
            literal(context.calls.argument_for(call, function, parameter)) == str(not is_wanted) for call in often
        ):
            return True
    return False


def _joined(node: cst.CSTNode, context: Context) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """What `and` and `or` ask before they ask for the node, and how it has to come out."""
    child = node
    while isinstance(above := context.parent(child), (cst.BooleanOperation, cst.Comparison, cst.UnaryOperation)):
        if isinstance(above, cst.BooleanOperation) and child is above.right:
            yield above.left, isinstance(above.operator, cst.And)
        child = above


@query(bottom=False)
def is_left_off(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node, or each call of its function, waits for an option that nobody in sight switches on.

    `if self.include_nms:`, where the class says `include_nms = False`, or is never made with anything else;
    `if method == "linear":` of a parameter for which all who call the function pass `"gaussian"`.
    """
    function = context.function(node)
    asked = (*context.conditions(node), *_joined(node, context))
    if any(_holds(test, context) is (not is_taken) for test, is_taken in asked):
        return True
    if any(is_taken and _is_a_switch(test, context) for test, is_taken in asked):
        return True
    if any(_is_decided_by_callers(test, context) for test, _ in asked):
        return True
    if not isinstance(function, cst.FunctionDef) or context.classes.owner(function) is None:
        return False
    callers = context.calls.callers(function) if function.name.value != "forward" else []
    return bool(callers) and all(is_left_off(call, context) for call in callers)


def _is_a_switch(test: cst.BaseExpression, context: Context) -> bool:
    """Whether hot code asks for a switch of the command line, which somebody has to set.

    One that decides whether it runs at all, `if args.do_train:`, says what the program is for.
    """
    return (
        isinstance(test, cst.Attribute)
        and context.frequency(test) >= Frequency.BATCH
        and not DEVICE_CONDITION.suggests(context.uncommented(test))
        and is_off_by_default(test, context)
    )


def _is_decided_by_callers(test: cst.BaseExpression, context: Context) -> bool:
    """Whether all in sight who call the function decide at each call: `self.loss(x, is_logged=step % 100 == 0)`."""
    option, _ = _option(test, is_true=True)
    parameter, function = context.parameter(option) if option is not None else None, context.function(test)
    if parameter is None or not isinstance(function, cst.FunctionDef):
        return False
    calls = context.calls.callers(function)
    given = [context.calls.argument_for(call, function, parameter) for call in calls]
    return bool(given) and all(
        isinstance(each, (cst.Comparison, cst.BooleanOperation))
        or (isinstance(each, cst.UnaryOperation) and isinstance(each.operator, cst.Not))
        for each in given
    )


def is_called_by_name(node: cst.CSTNode, context: Context) -> bool:
    """Whether all that leads to the node at each batch calls a method of objects of which nobody knows the class."""
    function = context.function(node)
    return isinstance(function, cst.FunctionDef) and _is_called_by_name(function, context)


@query(bottom=False)
def _is_called_by_name(function: cst.FunctionDef, context: Context) -> bool:
    if context.frequencies.is_entered_by_name(function):
        return True
    if any(call.frequency >= Frequency.BATCH for call in context.frequencies.from_elsewhere(function)):
        return False
    callers = context.calls.callers(function)
    functions = [context.function(call) for call in callers if context.frequency(call) >= Frequency.BATCH]
    return bool(functions) and all(
        isinstance(each, cst.FunctionDef) and _is_called_by_name(each, context) for each in functions
    )


def is_unused(node: cst.CSTNode, context: Context) -> bool:
    """Whether files that use others of its file never name the class or function around the node, nor does its own.

    What only such a definition names is used as little.
    """
    above = [each for each in context.ancestors(node) if isinstance(each, (cst.ClassDef, cst.FunctionDef))]
    if not above or context.tree.function(above[-1]) is not None or "__all__" in context.names.module.bindings:
        return False
    return _is_unused(above[-1], context)


@query(bottom=False)
def _is_unused(definition: cst.ClassDef | cst.FunctionDef, context: Context) -> bool:
    if definition.decorators:
        return False
    name = definition.name.value
    users = dict.fromkeys(_definition_around(use, context) for use in context.names.spelt(name))
    if None in users:
        return False
    # Each is asked, whatever the others say: what is asked of other files is asked at once.
    used = [not _is_unused(user, context) for user in users if user is not None and user is not definition]
    return context.elsewhere.is_unused(name) and not any(used)


def _definition_around(use: cst.Name, context: Context) -> cst.ClassDef | cst.FunctionDef | None:
    """The definition of the module that a name stands in, or is the name of."""
    above = [each for each in context.ancestors(use) if isinstance(each, (cst.ClassDef, cst.FunctionDef))]
    return above[-1] if above else None


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
            is_unclear = wanted is None or option is None or (option == GIVEN and wanted != "None")
            return None if is_unclear else (wanted == option) is is_same
        case cst.Name() | cst.Attribute():
            option = constant(test, context)
            return None if option in (None, GIVEN) else option not in ("False", "None", "''")
    return None


def constant(node: cst.BaseExpression, context: Context, depth: int = 4) -> str | None:
    """What an option always is, as far as all show who pass something for it: its `literal`; None if not known.

    `GIVEN` is something that is not None.
    """
    if depth == 0 or (found := literal(node)) is not None:
        return literal(node)
    match node:
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=option)):
            class_ = context.tree.enclosing_class(node)
            is_alone = class_ is not None and class_ not in _extended(context.tree.module, context)
            return _kept(option, class_, context, depth - 1) if class_ is not None and is_alone else None
        case cst.Name():
            parameter, function = context.parameter(node), context.function(node)
            if parameter is not None and isinstance(function, cst.FunctionDef):
                return _given(parameter, context, function, depth - 1)
            match context.binders(node):
                case [cst.Assign(targets=[_], value=value) as line] if _is_of_the_module(line, context):
                    return literal(value)
    return found


def _is_of_the_module(line: cst.Assign, context: Context) -> bool:
    above = context.parent(line)
    return above is not None and context.parent(above) is context.tree.module


def literal(node: cst.BaseExpression | None) -> str | None:
    """A constant that an option may be, in Python's spelling: `True`, `False`, `None` or a short text."""
    match node:
        case cst.Name(value="True" | "False" | "None"):
            return node.value
        case cst.SimpleString() if isinstance(text := node.evaluated_value, str) and len(text) < _LONG:
            return repr(text)
    return None


def _kept(option: str, class_: cst.ClassDef, context: Context, depth: int) -> str | None:
    """What an attribute is that one statement alone sets, in a method or in the body of the class."""
    stores = [
        store
        for store in _stores(context.tree.module, context).get(option, ())
        if not _is_of_another(store, class_, context)
    ]
    starts = [value for line in class_.body.body if (value := _start(line, option)) is not None]
    if not stores:
        return literal(starts[-1]) if starts else None
    statement, init = context.parent(stores[0]), context.function(stores[0])
    if isinstance(statement, cst.AssignTarget):
        statement = context.parent(statement)
    if len(stores) > 1 or not isinstance(statement, (cst.Assign, cst.AnnAssign)) or statement.value is None:
        return None
    if not isinstance(init, cst.FunctionDef):
        return None
    is_own = context.classes.owner(init) is class_
    return constant(statement.value, context, depth) if is_own and not starts else None


@query(bottom=frozenset[cst.ClassDef]())
def _extended(_: cst.Module, context: Context) -> frozenset[cst.ClassDef]:
    """The classes of a file that others of it extend, and may make with other options."""
    lineages = (context.classes.lineage(class_)[1:] for class_ in context.tree.of(cst.ClassDef))
    return frozenset(each for lineage in lineages for each in lineage if not isinstance(each, str))


def _is_of_another(store: cst.Attribute, class_: cst.ClassDef, context: Context) -> bool:
    """Whether it sets an attribute of `self` in a class that has nothing to do with this one."""
    owner = context.classes.self_class(store.value) if isinstance(store.value, cst.Name) else None
    return owner is not None and (
        owner not in context.classes.lineage(class_) and class_ not in context.classes.lineage(owner)
    )


def _start(line: cst.BaseStatement | cst.BaseSmallStatement, option: str) -> cst.BaseExpression | None:
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(cst.Name(value=name))], value=value)]):
            return value if name == option else None
    return None


@query(bottom=MappingProxyType[str, Sequence[cst.Attribute]]({}))
def _stores(_: cst.Module, context: Context) -> Mapping[str, Sequence[cst.Attribute]]:
    """The attributes that statements of a file set, by name."""
    found: dict[str, list[cst.Attribute]] = {}
    targets: list[cst.CSTNode] = [each.target for each in context.tree.of(cst.AssignTarget)]
    targets += [each.target for each in context.tree.of(cst.AnnAssign)]
    targets += [each.target for each in context.tree.of(cst.AugAssign)]
    targets += [each.target for each in context.tree.of(cst.For)]
    while targets:
        match targets.pop():
            case cst.Attribute(attr=cst.Name(value=name)) as store:
                found.setdefault(name, []).append(store)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                targets += [element.value for element in elements]
    return found


@query(bottom=None)
def _given(parameter: cst.Param, context: Context, function: cst.FunctionDef, depth: int) -> str | None:
    """What all calls in sight pass for a parameter.

    Where nothing is seen to make a class or to run a network, an option that is `False` by default is taken to stay so.
    Who calls the `forward` of a network without a word for another option is one of many.
    """
    name, class_ = parameter.name.value, context.classes.owner(function)
    is_init, is_forward = (function.name.value == each for each in ("__init__", "forward"))
    if context.tree.function(function) is not None:
        return None
    calls = context.calls.callers(function)
    given = {
        None if passed is None else constant(passed, context, depth) or _something(context.value(passed))
        for passed in (context.calls.argument_for(call, function, parameter) for call in calls)
    }
    if None in given:
        return None
    left_out = literal(parameter.default)
    names = [each.name.value for each in function.params.params[class_ is not None :]]
    place = names.index(name) if name in names else None
    for call in context.frequencies.from_elsewhere(function):
        passing = (each for each in call.arguments or () if name == each.keyword or each.place == place is not None)
        passed_there = next(passing, None)
        same = left_out if passed_there is None else passed_there.constant or _SOMETHING.get(passed_there.kind)
        given.add(None if call.arguments is None else same)
    if not given and (is_init or is_forward) and left_out == "False":
        return left_out
    if given and None not in given and "None" not in given and len(given) > 1:
        return GIVEN
    found = given.pop() if len(given) == 1 else None
    return None if is_forward and found not in (GIVEN, left_out if left_out == "False" else GIVEN) else found


def _something(value: Value) -> str | None:
    return _SOMETHING.get(value.kind.name) if value.proven else None


def _option(test: cst.BaseExpression, *, is_true: bool) -> tuple[cst.Name | None, bool]:
    """The name that a condition asks for, and what it has to be: `if not fast:` wants it to be false."""
    match test:
        case cst.Name():
            return test, is_true
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _option(inner, is_true=not is_true)
    return None, is_true
