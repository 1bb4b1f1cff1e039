"""Python lists and numbers, other than written-out ones, that a call makes a tensor of which goes to a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.execution.hot import rate_doubts
from torchlint.analyses.execution.occasions import is_export
from torchlint.analyses.provenance.filled_lists import filled_with, is_empty_list
from torchlint.analyses.tensors.factories import Factory, Sameness
from torchlint.analyses.transfer.moves import is_plain, move
from torchlint.finding import Doubt, Frequency
from torchlint.role import Role
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import ELEMENT, Origin, Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import OF_LISTS
from torchlint.semantics.knowledge.conventions.conditions import TRACED_CONDITION
from torchlint.semantics.knowledge.conventions.functions import COLLATOR
from torchlint.semantics.knowledge.marks import GRADIENT_TAKEN, STEP_TAKEN
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants, descendants_in_scope, speaks_of

from .._shared.literal_tensors import constant as constant_tensor
from .._shared.literal_tensors import is_behind_a_wait, is_left_out, is_of_a_cached_function, stands_in_for_nothing

_LISTS = (cst.List, cst.Tuple, cst.ListComp)
_PLAIN = ("torch.tensor", "torch.as_tensor")
_TELLING = frozenset({"pin_memory", "requires_grad"})
# With one of these among the elements the CPU has waited already, or they are tensors and arrays themselves.
_READS = frozenset("item tolist numpy cpu detach array asarray tensor as_tensor stack cat".split())
_BACK = frozenset("item tolist numpy cpu".split())
_REDUCTIONS = frozenset({"sum", "any", "all", "max", "min", "mean"})
# So many names are followed to where the CPU reads what they hold.
_MOST = 4


@dataclass(frozen=True, slots=True)
class SentList:
    """A tensor made of a list, and the call that takes it to the device: `call` itself where that is given `device=`.

    `where` is the code of the device, empty where it takes a look at other lines. `is_kept` says that the list holds
    only what a module was given when it was made; `one` is the code of the number where it holds a single one, or is
    that number itself, as `axes` says. `is_known` says that it holds numbers for certain: it may be data of any kind.
    `is_range`: it is made of `range(n)`.
    """

    call: cst.Call
    moved: cst.Call
    where: str
    is_kept: bool
    one: str
    axes: str
    is_known: bool
    is_range: bool


def sent_list(call: cst.Call, context: Context) -> SentList | None:
    """The tensor that the call makes of a list, if it goes to a device: by `device=`, or by a move behind it."""
    name = context.qualified_name(call.func)
    data = context.argument(call, "data", 0)
    if name not in OF_LISTS or data is None or context.has_unpacking(call) or not _may_be_host_data(data, context):
        return None
    if any(argument.keyword is not None and argument.keyword.value in _TELLING for argument in call.args):
        return None
    if name not in _PLAIN and (len(call.args) > 1 or not _may_be_list(data)):
        return None
    if context.program.changes_default_device:
        return None
    device = context.argument(call, "device")
    if device is not None:
        if name not in _PLAIN or not _is_device(device, context):
            return None
        moved, where = call, context.code(device)
    else:
        found = move(Factory(call, "full", Sameness.EXACT), context)
        if found is None or (found.binding is not None and context.loop(found.call) is not context.loop(call)):
            return None
        destination = found.destination
        is_simple = found.is_direct and found.binding is None and not destination.like and destination.cast is None
        moved, where = found.call, destination.device if is_simple and is_plain(destination.node) else ""
    if _does_not_block(moved) or constant_tensor(call, context, computed=False) is not None:
        return None
    is_number = name in _PLAIN and _is_one_number(data, context)
    is_known = is_number or _is_list(data, context)
    may_be = _may_be_of_the_host(data, context) or _may_be_a_list_of_a_batch(data, context)
    if not is_known and not (_copies(name or "", data) and may_be):
        return None
    one, axes = (context.bare_code(data), "()") if is_number else (_only(data, context), "(1,)")
    return SentList(
        call,
        moved,
        where,
        is_known and _is_kept(data, context),
        one if is_known else "",
        axes,
        is_known,
        is_range(data),
    )


def doubts_of(found: SentList, context: Context) -> Iterator[Doubt]:
    """Why nobody may wait for the copy, in the order of what it costs to know."""
    if is_export(context) or _is_elsewhere(found.moved, context):
        yield Doubt.RARE
    if stands_in_for_nothing(found.moved, context) or is_of_a_cached_function(found.moved, context):
        yield Doubt.RARE
    if is_behind_a_wait(found.moved, context) or _is_read_back(found.moved, context):
        yield Doubt.WAITS_ANYWAY
    function = context.function(found.moved)
    if isinstance(function, cst.FunctionDef) and COLLATOR.suggests(function.name.value):
        yield Doubt.NAMED_OTHERWISE
    if not found.is_known:
        yield Doubt.DATA_UNKNOWN
    yield from rate_doubts(found.moved, context)


def _is_device(node: cst.BaseExpression, context: Context) -> bool:
    if isinstance(node, cst.Name) and node.value == "None":
        return False
    if any(map(_is_unpacked, context.origins(node, Through.PARTS | Through.ELEMENTS).found)):
        return False  # one of several things that a call gives, such as the device of a generator of random numbers
    if is_left_out(node, context):
        return False
    value = context.value(node)
    return value.kind in (Kind.DEVICE, Kind.STRING, Kind.NUMBER) and value.device is not Device.CPU


def _does_not_block(moved: cst.Call) -> bool:
    """Whether somebody has thought of it: `.to(device, non_blocking=True)`, whatever the memory is."""
    return any(
        (argument.keyword is not None and argument.keyword.value == "non_blocking")
        or (isinstance(argument.value, cst.Name) and argument.value.value == "True")
        for argument in moved.args
    )


def _is_unpacked(origin: Origin) -> bool:
    return isinstance(origin.node, cst.Call) and any(step != ELEMENT for step in origin.path)


# The list


def _only(data: cst.BaseExpression, context: Context) -> str:
    """The code of the one number that a list holds."""
    match data:
        case cst.List(elements=[cst.Element(value=number)]) | cst.Tuple(elements=[cst.Element(value=number)]):
            return "" if isinstance(number, (cst.List, cst.Tuple, cst.ListComp)) else context.bare_code(number)
    return ""


def _may_be_host_data(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is no tensor of the device and no array as far as one can tell, of which other rules speak."""
    return _may_be_list(node) or context.kind(node) in (Kind.NUMBER, Kind.UNKNOWN, Kind.SEQUENCE)


def _may_be_a_list_of_a_batch(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a part of a batch, which is a tensor as a rule; but nobody makes a tensor of one."""
    value = context.value(node)
    return isinstance(node, cst.Name) and value.kind is Kind.TENSOR and value.batch and not value.proven


def _may_be_list(node: cst.BaseExpression) -> bool:
    return isinstance(node, (*_LISTS, cst.Name)) or is_range(node)


def is_range(node: cst.BaseExpression) -> bool:
    """`range(n)`, whose numbers a tensor may be made of, too."""
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "range"


def _copies(name: str, data: cst.BaseExpression) -> bool:
    """Whether the call makes a tensor whatever it is given: `as_tensor` gives a tensor back as it is."""
    return name == "torch.tensor" or (name == "torch.as_tensor" and isinstance(data, _LISTS))


@query(bottom=True)
def _may_be_of_the_host(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the CPU has it, whatever it is, and has not waited for it: what a function gave may be anything."""
    kinds = (Kind.NUMBER, Kind.UNKNOWN, Kind.SEQUENCE)
    if _reads(node) or context.kind(node) not in kinds or context.value(node).device is Device.ACCELERATOR:
        return False
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return bool(elements) and all(_may_be_of_the_host(element.value, context) for element in elements)
        case cst.ListComp(elt=element):
            return _may_be_of_the_host(element, context)
        case cst.BinaryOperation(left=left, right=right):
            return _may_be_of_the_host(left, context) and _may_be_of_the_host(right, context)
        case cst.Name():
            made = context.origins(node, Through.PARTS).nodes
            return all(
                isinstance(each, cst.Name)
                or (
                    _is_filled_on_the_host(node, context) if is_empty_list(each) else _may_be_of_the_host(each, context)
                )
                for each in made
            )
    return isinstance(node, (cst.Attribute, cst.Subscript, cst.UnaryOperation, cst.Call, cst.BaseNumber))


def _is_filled_on_the_host(name: cst.Name, context: Context) -> bool:
    """Whether a list that begins empty is filled with what the CPU has, or with what nobody knows."""
    added = filled_with(name, context)
    return bool(added) and all(
        not _reads(part)
        and (isinstance(part, cst.Name) or _may_be_of_the_host(part, context))
        and context.kind(part) not in (Kind.TENSOR, Kind.NDARRAY)
        for part in added
    )


def _is_one_number(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a single number of Python for certain."""
    if isinstance(node, cst.BinaryOperation):
        return _is_one_number(node.left, context) and _is_one_number(node.right, context)
    if isinstance(node, (*_LISTS, cst.Attribute)) and context.kind(node) is not Kind.NUMBER:
        return False
    return _is_number(node, context)


@query(bottom=False)
def _is_list(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is a list of numbers that the CPU has, and some of them computed or looked up."""
    if _reads(node):
        return False
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return bool(elements) and all(
                not isinstance(element, cst.StarredElement) and _is_number(element.value, context)
                for element in elements
            )
        case cst.ListComp(elt=element):
            return _is_number(element, context)
        case cst.Call():
            return is_range(node)
        case cst.BinaryOperation(left=cst.List() as repeated, operator=cst.Multiply(), right=count):
            return _is_list(repeated, context) and _is_one_number(count, context)
        case cst.Name():
            return context.origins(node).every(lambda value: _is_list(value, context))
    return False


def _is_number(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a number for certain, or a list of them, or an attribute of a module that nobody says is more."""
    if isinstance(node, _LISTS):
        return _is_list(node, context)
    if _reads(node):
        return False
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return _is_number(left, context) and _is_number(right, context)
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name(value="shape")), slice=[cst.SubscriptElement(slice=cst.Index())]
        ):
            return True
    value = context.value(node)
    return (value.kind is Kind.NUMBER and value.proven) or _is_setting(node, context)


def _is_setting(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is an attribute of a module that only its `__init__` binds: `self.start_token`."""
    match node:
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
            class_ = context.tree.enclosing_class(node)
            if class_ is None or not context.classes.is_module(class_):
                return False
            sets = context.classes.attribute_sets(class_, name)
            return bool(sets) and context.kind(node) in (Kind.NUMBER, Kind.UNKNOWN)
    return False


def _is_kept(data: cst.BaseExpression, context: Context) -> bool:
    """Whether the list holds nothing but attributes of a module, and literal numbers."""
    match data:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return all(_is_kept(element.value, context) for element in elements)
        case cst.BinaryOperation(left=left, right=right):
            return _is_kept(left, context) and _is_kept(right, context)
    return isinstance(data, (cst.Integer, cst.Float)) or _is_setting(data, context)


def _reads(node: cst.BaseExpression) -> bool:
    return any(isinstance(part, cst.Attribute) and part.attr.value in _READS for part in descendants(node))


# Where it stands, and what is done with it


def _is_elsewhere(node: cst.Call, context: Context) -> bool:
    """Whether the branch or the function around is for something else than the step of a network on its device."""
    function = context.function(node)
    if isinstance(function, cst.FunctionDef):
        if _is_remembered(function, context):
            return True
        # TorchScript knows no `pin_memory` for a tensor of a list.
        if any(context.qualified_name(item.decorator) == "torch.jit.script" for item in function.decorators):
            return True
        # Gradients that nobody steps with are there to be looked at, for one input after the other.
        text = context.program.code
        if (
            GRADIENT_TAKEN.is_in(text)
            and not STEP_TAKEN.is_in(text)
            and GRADIENT_TAKEN.is_in(context.uncommented(function.body))
        ):
            return True
    class_ = context.tree.enclosing_class(node)
    if class_ is not None and _is_of_traced_parts(class_, context):
        return True
    # A transform of images is what the workers of a loader run.
    if context.settings.role is Role.TRANSFORMS:
        return True
    above: cst.CSTNode | None = node
    while above is not None and above is not function:
        if isinstance(above, (cst.If, cst.IfExp)) and TRACED_CONDITION.suggests(context.uncommented(above.test)):
            return True
        above = context.parent(above)
    return not _is_run_per_batch(node, context)


def _is_of_traced_parts(class_: cst.ClassDef, context: Context) -> bool:
    """Whether a class traces what it is made of, which is there for TorchScript to compile the class as a whole."""
    return any(
        context.qualified_name(part.func) in ("torch.jit.trace", "torch.jit.trace_module", "torch.jit.script")
        for part in descendants(class_.body)
        if isinstance(part, cst.Call)
    )


def _is_run_per_batch(node: cst.Call, context: Context) -> bool:
    """Whether it is a network, or a loop over batches, that runs a loop over samples which the node stands in."""
    if context.frequency(node) <= Frequency.BATCH or context.frequencies.batch_loop(node) is not None:
        return True
    class_ = context.tree.enclosing_class(node)
    return class_ is not None and context.classes.is_module(class_)


def _is_remembered(function: cst.FunctionDef, context: Context) -> bool:
    """Whether all that call the function keep what it gives as an attribute of an object."""
    callers = context.calls.callers(function)
    return bool(callers) and all(_is_kept_by_object(call, context) for call in callers)


def _is_kept_by_object(call: cst.Call, context: Context) -> bool:
    line = context.tree.line(call)
    return isinstance(line, cst.SimpleStatementLine) and any(
        isinstance(part, cst.Attribute)
        for statement in line.body
        if isinstance(statement, cst.Assign)
        for target in statement.targets
        for part in (target.target, *_parts(target.target))
    )


def _parts(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [element.value for element in node.elements] if isinstance(node, (cst.Tuple, cst.List)) else []


def _is_read_back(moved: cst.Call, context: Context) -> bool:
    """Whether the tensor, or what is computed from it next, is read by the CPU soon, which then waits anyway."""
    function = context.function(moved)
    line = context.tree.line(moved)
    if _is_repeats(moved, context):
        return True
    if not isinstance(line, cst.SimpleStatementLine):
        return False
    names, elements = _bound(line), set[str]()
    scope = function.body if function is not None else context.tree.module
    for statement in descendants_in_scope(scope):
        if not names or not isinstance(statement, (cst.SimpleStatementLine, cst.For, cst.If)) or statement is line:
            continue
        if context.tree.place(statement) < context.tree.place(line):
            continue
        if isinstance(statement, cst.If):
            if _is_asked(statement.test, names, elements):
                return True
            continue
        if isinstance(statement, cst.For):
            elements |= _turned_to(statement, names)
            names |= elements
            continue
        turned = (_turned_to(part, names) for part in descendants(statement) if isinstance(part, cst.CompFor))
        wanted = names.union(*turned)
        if any(_is_read_of(part, wanted) for part in descendants(statement)):
            return True
        if len(names) < _MOST and speaks_of(statement, names):
            names |= _bound(statement) | _gathered(statement)
    return False


def _is_repeats(moved: cst.Call, context: Context) -> bool:
    """Whether it goes into `repeat_interleave` as it is, which asks for the sum of the repeats."""
    argument = context.parent(moved)
    match context.parent(argument) if isinstance(argument, cst.Arg) else None:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="repeat_interleave")), args=args):
            return not any(given.keyword is not None and given.keyword.value == "output_size" for given in args)
    return False


def _is_asked(test: cst.BaseExpression, names: set[str], elements: set[str]) -> bool:
    """Whether the condition is a tensor of what one of these holds: `if torch.any(torch.stack(flags)):`.

    `if flags.sum() > 0:` is, and so is `if flag != mine:` where it is about elements.
    """
    asked = test.expression if isinstance(test, cst.UnaryOperation) else test
    match asked:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="any" | "all" | "equal"))):
            return speaks_of(asked, names)
        case cst.Comparison(left=cst.Name(value=name), comparisons=[cst.ComparisonTarget(operator=operator)]):
            return name in elements and not isinstance(operator, (cst.Is, cst.IsNot))
        case cst.Comparison(left=cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method)))):
            return method in _REDUCTIONS and speaks_of(receiver, names)
    return False


def _turned_to(loop: cst.For | cst.CompFor, names: set[str]) -> set[str]:
    """What stands for the elements where a loop goes over one of these, or over its `data`, as it is or numbered."""
    target: cst.BaseExpression = loop.target
    match loop.iter, target:
        case (
            cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=iterated), *_]),
            cst.Tuple(elements=[_, cst.Element(value=element)]),
        ):
            target = element
        case iterated, _:
            pass
    if isinstance(iterated, cst.Attribute) and iterated.attr.value == "data":
        iterated = iterated.value
    is_over = isinstance(iterated, cst.Name) and iterated.value in names
    return {target.value} if is_over and isinstance(target, cst.Name) else set()


def _gathered(line: cst.SimpleStatementLine) -> set[str]:
    """The list that `all_gather` fills with what the other processes sent."""
    match line.body:
        case [cst.Expr(value=cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=filled)), *_]))]:
            return {filled} if (dotted(func) or "").endswith("gather") else set()
    return set()


def _is_read_of(node: cst.CSTNode, names: set[str]) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="repeat_interleave"))):
            return speaks_of(node, names)  # it asks for the sum of the repeats
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in _BACK:
            return speaks_of(receiver, names)
        case cst.Call(func=cst.Name(value="max" | "min" | "int"), args=[cst.Arg(value=cst.Name(value=name))]):
            return name in names  # one element after the other
    return False


def _bound(line: cst.SimpleStatementLine) -> set[str]:
    return {
        target.target.value
        for statement in line.body
        if isinstance(statement, cst.Assign)
        for target in statement.targets
        if isinstance(target.target, cst.Name)
    }
