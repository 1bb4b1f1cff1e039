"""Tensors of literal numbers in the code, made again on the CPU and sent to the device each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import libcst as cst

from torchlint.analyses.host.reads import is_device_tensor, tests_a_tensor
from torchlint.analyses.sync.inherent_branches import is_for_data
from torchlint.analyses.tensors.factories import Factory, Sameness
from torchlint.analyses.transfer.moves import is_plain, move
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.apis import OF_LISTS
from torchlint.semantics.knowledge.conventions.conditions import (
    BROKEN_CONDITION,
    DEVICE_CONDITION,
    EMPTINESS_CONDITION,
    EXPORT_CONDITION,
    WAITING_CONDITION,
)
from torchlint.semantics.knowledge.conventions.values import OWN_DEVICE
from torchlint.semantics.names.bindings import dotted, parameters
from torchlint.semantics.names.classes import is_static
from torchlint.semantics.values.lattice import Device, Kind, item_of
from torchlint.syntax.tree import descendants, speaks_of

_PLAIN = ("torch.tensor", "torch.as_tensor")
_CACHING = ("functools.lru_cache", "functools.cache", "functools.cached_property")
# So many statements behind such a question, little has been launched again.
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Constant:
    """A tensor of constants, and the call that takes it to the device: `call` itself where that is given `device=`.

    `value` is the code of the number that is everywhere in the tensor, empty where there are several; `axes` are the
    tensor's sizes. `where` is the code of the device that is asked for, empty where it takes a look at other lines.
    """

    call: cst.Call
    moved: cst.Call
    data: cst.BaseExpression
    value: str
    axes: tuple[int, ...]
    where: str

    @property
    def is_kept(self) -> bool:
        """Whether it is made of a list that an object holds, of any length."""
        return not (self.axes or self.value)


def constant(call: cst.Call, context: Context, *, computed: bool = True) -> Constant | None:
    """The tensor of constants that the call makes, if it goes to a device: by `device=`, or by a move behind it.

    One number may be `computed`; others are literal.
    """
    name = context.qualified_name(call.func)
    data = context.argument(call, "data", 0)
    if name not in OF_LISTS or data is None or context.has_unpacking(call):
        return None
    axes = _axes(_written(data, context))
    if axes is None and computed and name in _PLAIN:
        axes = _axis_of_a_number(data, context)
    is_kept = axes is None and _is_kept_list(data, context)
    if is_kept:
        axes = ()
    if axes is None or not (axes or is_kept or name in _PLAIN) or context.program.changes_default_device:
        return None
    value = "" if is_kept else _only_value(data, context)
    device = context.argument(call, "device")
    if _is_a_trial_of_the_device(call, context):
        return None
    if device is not None:
        is_there = name in _PLAIN and _is_device(device, context)
        return Constant(call, call, data, value, axes, context.code(device)) if is_there else None
    if any(keyword is not None and keyword.value in ("pin_memory", "requires_grad") for keyword in _keywords(call)):
        return None
    moved = move(Factory(call, "full", Sameness.EXACT), context)
    if moved is None or (moved.binding is not None and context.loop(moved.call) is not context.loop(call)):
        return None
    destination = moved.destination
    is_simple = moved.is_direct and moved.binding is None and not destination.like and destination.cast is None
    where = destination.device if is_simple and is_plain(destination.node) else ""
    return Constant(call, moved.call, data, value, axes, where)


def _written(data: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """The list for which a name stands throughout the module, which nothing is added to; else the data itself."""
    written = context.stands_for(data) if isinstance(data, cst.Name) else None
    if not isinstance(written, (cst.List, cst.Tuple)) or context.function(written) is not None:
        return data
    uses = [use for use in context.names.spelt(data.value) if use is not data]  # type: ignore[attr-defined]
    is_left = all(isinstance(context.parent(use), (cst.Arg, cst.AssignTarget)) for use in uses)
    return written if is_left else data


def _axis_of_a_number(data: cst.BaseExpression, context: Context) -> tuple[int, ...] | None:
    """The sizes of a tensor of one number that Python knows by then: `torch.tensor(eps)`, `torch.tensor([n / 2])`."""
    match data:
        case cst.List(elements=[cst.Element(value=inner)]):
            axes = _axis_of_a_number(inner, context)
            return None if axes is None else (1, *axes)
    value = context.value(data)
    return () if value.kind is Kind.NUMBER and value.proven else None


def _is_kept_list(data: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a list that the object has held since it was made, as it was: `self.mean`."""
    match data:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
            class_, value = context.classes.self_class(owner), context.value(data)
            if class_ is None or value.kind is not Kind.SEQUENCE or item_of(value).kind is Kind.TENSOR:
                return False
            sets = context.classes.attribute_sets(class_, name)
            makers = [context.function(entry.node) for entry in sets]
            return bool(makers) and all(
                isinstance(maker, cst.FunctionDef) and maker.name.value == "__init__" for maker in makers
            )
    return False


def _is_a_trial_of_the_device(call: cst.Call, context: Context) -> bool:
    """Whether the tensor is made to see where it comes to be: it is discarded, or only its device is read."""
    match context.parent(call):
        case cst.Expr():
            return True
        case cst.Attribute(attr=cst.Name(value="device")):
            return True
    return False


def stands_in_for_nothing(node: cst.CSTNode, context: Context) -> bool:
    """Whether the branch around the node asks for emptiness or NaN, or for what the CPU waits for already.

    In the first a constant stands in, and seldom; in the second nothing is left to wait for. A trace is neither.
    """
    is_nearest = True
    for test, is_taken in context.conditions(node, within=context.loop(node)):
        asked = _asked(test, context)
        is_scarce = not _holds_plenty(test, is_taken=is_taken)
        if is_nearest and (
            (is_scarce and EMPTINESS_CONDITION.suggests(asked))
            or WAITING_CONDITION.suggests(asked)
            or EXPORT_CONDITION.suggests(asked)
        ):
            return True
        if is_taken and (BROKEN_CONDITION.suggests(asked) or _is_empty_list(test, context)):
            return True
        is_nearest = is_nearest and DEVICE_CONDITION.suggests(asked)
    return False


def _holds_plenty(test: cst.BaseExpression, *, is_taken: bool) -> bool:
    """Whether the branch is the one where there is something, or enough of it: `if len(buffer) > batch_size:`."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _holds_plenty(inner, is_taken=not is_taken)
        case cst.Comparison(left=cst.Call(func=cst.Name(value="len")), comparisons=[target]):
            more = isinstance(target.operator, (cst.GreaterThan, cst.GreaterThanEqual, cst.NotEqual))
            fewer = isinstance(target.operator, (cst.LessThan, cst.LessThanEqual, cst.Equal))
            return more if is_taken else fewer
        case cst.Call(func=cst.Name(value="len")):
            return is_taken
    return False


def _asked(test: cst.BaseExpression, context: Context) -> str:
    """The code of a condition, and of what a name that it compares with zero is bound to: `total == 0`."""
    code = context.code(test)
    match test:
        case cst.Comparison(
            left=cst.Name() as name, comparisons=[cst.ComparisonTarget(comparator=cst.Integer(value="0"))]
        ):
            return " ".join([code, *(context.code(value) for value in context.origins(name).nodes)])
    return code


def _is_empty_list(test: cst.BaseExpression, context: Context) -> bool:
    """`not pairs`, which is a list of this function."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Name() as name):
            return context.origins(name).every(lambda value: isinstance(value, (cst.List, cst.ListComp)))
    return False


def is_behind_a_wait(node: cst.CSTNode, context: Context) -> bool:
    """Whether the CPU has waited right before: `if x.isnan().any(): raise …`, or `n = x.sum().item()` just above.

    So it has in the branch that such a test leads to.
    """
    line = context.tree.line(node)
    block = context.parent(line) if line is not None else None
    if line is None or not isinstance(block, cst.IndentedBlock):
        return False
    place = list(block.body).index(line)
    branch = context.parent(block)
    if isinstance(branch, cst.If) and place < _NEAR and tests_a_tensor(branch.test, context):
        return True
    if place and isinstance(above := block.body[place - 1], cst.SimpleStatementLine) and _reads_back(above, context):
        return True
    return any(
        isinstance(before, cst.If) and tests_a_tensor(before.test, context)
        for before in block.body[max(place - _NEAR, 0) : place]
    )


def _reads_back(line: cst.SimpleStatementLine, context: Context) -> bool:
    """Whether the statement reads something of the device back, whatever comes of it."""
    if any(isinstance(part, (cst.IfExp, cst.BooleanOperation, cst.Lambda)) for part in descendants(line)):
        return False
    return any(
        isinstance(part, cst.Call)
        and isinstance(part.func, cst.Attribute)
        and part.func.attr.value in ("item", "tolist", "cpu")
        and is_device_tensor(part.func.value, context)
        for part in descendants(line)
    )


def is_last_resort(node: cst.CSTNode, context: Context) -> bool:
    """Whether a function returns it where nothing else fits: behind three ifs that each ask for the same and return."""
    line = context.tree.line(node)
    block = context.parent(line) if line is not None else None
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(line.body[-1], cst.Return):
        return False
    if not isinstance(block, cst.IndentedBlock) or not isinstance(context.parent(block), cst.FunctionDef):
        return False
    asked: list[str | None] = []
    for before in block.body[: list(block.body).index(line)]:
        statement: cst.BaseStatement | cst.If | cst.Else | None = before
        while isinstance(statement, cst.If):
            asked.append(_asked_for(statement))
            statement = statement.orelse
    return len(asked) > 2 and None not in asked and len(set(asked)) == 1


def _asked_for(statement: cst.If) -> str | None:
    """The `kind` of `if kind == "l1": return …`, where the branch returns."""
    last = statement.body.body[-1] if statement.body.body else None
    if not isinstance(last, cst.SimpleStatementLine) or not isinstance(last.body[-1], cst.Return):
        return None
    match statement.test:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal())]):
            return dotted(left)
    return None


def is_where_data_are_made(node: cst.Call, context: Context) -> bool:
    """Whether what transforms the data sends it to a device of its own, which is the CPU unless somebody moves it."""
    device = context.argument(node, "device")
    # Also as a part of `device, dtype = self.device, self.dtype`.
    return (
        device is not None
        and context.origins(device, Through.PARTS).every(lambda each: OWN_DEVICE.suggests(dotted(each) or ""))
        and is_for_data(node, context)
    )


def is_kept_by_object(node: cst.Call, context: Context) -> bool:
    """Whether an object keeps the tensor from one call to the next: `self.x = …` elsewhere than in `forward`."""
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or function.name.value == "forward":
        return False
    match context.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value="self")))]):
            return True
    return False


def is_of_a_cached_function(node: cst.CSTNode, context: Context) -> bool:
    """Whether the function around is run once for all calls that look alike: `@functools.lru_cache`."""
    function = context.function(node)
    return isinstance(function, cst.FunctionDef) and any(
        context.qualified_name(item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator)
        in _CACHING
        for item in function.decorators
    )


def is_read_at_once(node: cst.Call, context: Context) -> bool:
    """Whether the CPU waits for what is made of it in the same statement or soon after it: sizes that are exchanged."""
    line = context.tree.line(node)
    if not isinstance(line, cst.SimpleStatementLine):
        return False
    names = {
        part.value
        for statement in line.body
        if isinstance(statement, cst.Assign)
        for target in statement.targets
        for part in descendants(target)
        if isinstance(part, cst.Name)
    }
    names |= _given_to(line)
    following = list(islice(_lines_behind(line, context), 2))
    for other in islice(_lines_behind(line, context), 3):
        exchanged = _given_to(other)
        if exchanged & names:
            names |= exchanged
            following += islice(_lines_behind(other, context), 2)
    return any(_reads_one_of(part, names) for other in following for part in descendants(other)) or any(
        isinstance(other, cst.If) and speaks_of(other.test, names) and tests_a_tensor(other.test, context)
        for other in following
    )


def _given_to(line: cst.CSTNode) -> set[str]:
    """The names that a statement gives to the function it calls: `all_gather(sizes, size)`."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(args=args))]):
            return {argument.value.value for argument in args if isinstance(argument.value, cst.Name)}
    return set()


def _lines_behind(line: cst.CSTNode, context: Context) -> Iterator[cst.CSTNode]:
    """The statements that run behind this one: those of its block, then those behind the `try`, `if` or `with`."""
    while True:
        block = context.parent(line)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return
        lines = list(block.body)
        yield from lines[lines.index(line) + 1 :]  # type: ignore[arg-type]
        if isinstance(block, cst.Module):
            return
        owner = context.parent(block)
        while isinstance(owner, (cst.ExceptHandler, cst.Else, cst.Finally)):
            owner = context.parent(owner)
        if not isinstance(owner, (cst.Try, cst.If, cst.With)):
            return
        line = owner


def _reads_one_of(node: cst.CSTNode, names: set[str]) -> bool:
    """`t.item()`, and `[t.item() for t in …]`."""
    match node:
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="item" | "tolist" | "cpu"))):
            return speaks_of(receiver, names)
        case cst.ListComp(elt=element, for_in=cst.CompFor(target=cst.Name(value=name), iter=iterated)):
            return speaks_of(iterated, names) and any(_reads_one_of(part, {name}) for part in descendants(element))
    return False


def _keywords(call: cst.Call) -> list[cst.Name | None]:
    return [argument.keyword for argument in call.args]


def _is_device(node: cst.BaseExpression, context: Context) -> bool:
    value = context.value(node)
    if (isinstance(node, cst.Name) and node.value == "None") or is_left_out(node, context):
        return False
    return value.kind in (Kind.DEVICE, Kind.STRING, Kind.NUMBER) and value.device is not Device.CPU


def is_left_out(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a parameter that is None by default, and no call in sight gives anything for it."""
    parameter = context.parameter(node)
    return parameter is not None and _is_never_given(parameter, context)


def _is_never_given(parameter: cst.Param, context: Context) -> bool:
    function = context.tree.function_of_parameter(parameter)
    if not isinstance(parameter.default, cst.Name) or parameter.default.value != "None":
        return False
    if not isinstance(function, cst.FunctionDef):
        return False
    given = [context.calls.argument_for(call, function, parameter) for call in context.calls.callers(function)]
    if any(value is not parameter.default for value in given):
        return False
    names = [other.name.value for other in parameters(function)]
    place = names.index(parameter.name.value) if parameter.name.value in names else None
    if place is not None and context.classes.owner(function) is not None and not is_static(function):
        place -= 1
    calls = context.elsewhere.callers(function)
    return bool(given or calls) and not any(
        call.arguments is None
        or any(argument.keyword == parameter.name.value or argument.place == place for argument in call.arguments)
        for call in calls
    )


def _axes(node: cst.BaseExpression) -> tuple[int, ...] | None:
    """The sizes of a tensor of constants; None where a part of the data is something else, or rows differ."""
    if not isinstance(node, (cst.List, cst.Tuple)):
        return () if _is_number(node) else None
    parts = {_axes(element.value) for element in node.elements}
    if len(parts) != 1 or any(isinstance(element, cst.StarredElement) for element in node.elements):
        return None
    (inner,) = parts
    return None if inner is None else (len(node.elements), *inner)


def _is_number(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Integer() | cst.Float() | cst.Name(value="True" | "False"):
            return True
        case cst.Attribute(value=cst.Name(value="math" | "np" | "numpy"), attr=cst.Name(value=name)):
            return name in ("pi", "e", "inf", "nan", "tau")
        case cst.UnaryOperation(operator=cst.Minus() | cst.Plus(), expression=inner):
            return _is_number(inner)
        case cst.BinaryOperation(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case cst.Call(func=cst.Name(value="float"), args=[cst.Arg(value=cst.SimpleString())]):
            return True
    return False


def _only_value(node: cst.BaseExpression, context: Context) -> str:
    if not isinstance(node, (cst.List, cst.Tuple)):
        return context.bare_code(node)
    values = {_only_value(element.value, context) for element in node.elements}
    return values.pop() if len(values) == 1 else ""
