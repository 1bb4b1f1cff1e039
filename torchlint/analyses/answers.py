"""What this module says to other files: of its calls of their functions, and of its own classes and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import libcst as cst

from torchlint.analyses.data.datasets import Work, class_work, returned_work, uses_device
from torchlint.analyses.data.sample_code import is_in_a_dataset
from torchlint.analyses.execution.untaken_branches import literal
from torchlint.analyses.host.purpose import purpose
from torchlint.analyses.layers.bare import records_nothing
from torchlint.analyses.layers.inference_only import is_served
from torchlint.analyses.layers.wrappers import wrapper
from torchlint.facts import ANY, PLACED, Answers, Asked, Called, Described, Passed, Purpose, Returned
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.apis import BACKWARD_METHODS
from torchlint.semantics.names.bindings import last_part
from torchlint.semantics.values.lattice import Kind, Value, item_of
from torchlint.semantics.values.other_files import recording, told
from torchlint.semantics.values.parameters import is_class_name, is_main_guard
from torchlint.syntax.tree import descendants, descendants_in_scope


def answers(context: Context, asked: Asked) -> Answers:
    """What this module says of its calls of `package.module.function` or `….Class.method`, and of what it defines."""
    calls = _calls(context, asked.calls) if asked.calls else ()
    classes = [
        (class_.name.value, describe(class_, context))
        for class_ in context.tree.of(cst.ClassDef)
        if class_.name.value in asked.classes and context.tree.function(class_) is None
    ]
    functions = [
        (function.name.value, describe_function(function, context))
        for function in context.tree.of(cst.FunctionDef)
        if function.name.value in asked.classes
        and context.tree.function(function) is None
        and context.tree.enclosing_class(function) is None
    ]
    handed = tuple(sorted(context.elsewhere.handing))
    return Answers(calls, (*classes, *functions), context.elsewhere.questions, asked, handed=handed)


def returns(context: Context) -> Answers:
    """What calls give of the functions and classes at the top of this module, in a context that is asked nothing else.

    What a function gives to one caller may not be what it gives to another: who calls it from elsewhere is not asked.
    """
    found = tuple(_given(context))
    return Answers(asked=Asked(returns=True), returns=found, passes_on=context.elsewhere.questions.returns)


def describe(class_: cst.ClassDef, context: Context) -> Described:
    """What other files may want to know of a class."""
    bases = tuple(base for base in context.classes.lineage(class_) if isinstance(base, str) and base)
    inherited = [found for base in bases if (found := context.elsewhere.described(base)) is not None]
    work = next((found.work for found in inherited if found.work is not None), None)
    if any(context.classes.method(class_, name) for name in ("__getitem__", "__iter__")):
        work = int(class_work(class_, context))
    wrapped = wrapper(class_, context) if context.classes.is_module(class_) else None
    return Described(context.source.path, bases, work, wrapped, bare=records_nothing(class_, context))


def describe_function(function: cst.FunctionDef, context: Context) -> Described:
    """What other files may want to know of a function: of which kind a dataset is that it makes."""
    work = returned_work(function, context)
    is_sure = work not in (Work.UNKNOWN, Work.LOADS)
    return Described(
        context.source.path, work=int(work) if is_sure else None, uses_device=uses_device(function, context)
    )


def _given(context: Context) -> Iterator[tuple[str, Returned]]:
    """What a call gives of each function and class, as far as that is known; of an instance, what its methods give."""
    functions, classes = context.tree.of(cst.FunctionDef), context.tree.of(cst.ClassDef)
    found: dict[str, Callable[[], Value]] = {
        **{
            node.name.value: partial(context.kinds.returns, node) for node in functions if _is_at_the_top(node, context)
        },
        **{node.name.value: partial(context.kinds.instance, node) for node in classes if _is_at_the_top(node, context)},
    }
    for name in sorted(found):
        value = found[name]()
        given = told(value, tuple(_given_by_methods(value, context)))
        if given is not None:
            yield name, given


def _given_by_methods(instance: Value, context: Context) -> Iterator[tuple[str, Returned]]:
    if isinstance(instance.definition, cst.ClassDef):
        for name, method in sorted(context.classes.methods(instance.definition).items()):
            given = told(context.kinds.returns(method))
            if instance.kind is Kind.MODULE and _records(method, context):
                given = recording(given)
            if given is not None:
                yield name, given


def _records(method: cst.FunctionDef, context: Context) -> bool:
    """Whether a method of a module, other than its `forward`, gives something and calls a module with autograd on.

    What it goes back through itself is of use.
    """
    if method.name.value == "forward" or method.name.value.startswith("__") or _goes_back(method, context):
        return False
    inside = list(descendants_in_scope(method.body))
    return any(isinstance(node, cst.Return) and node.value is not None for node in inside) and any(
        isinstance(node, cst.Call)
        and isinstance(node.func, (cst.Name, cst.Attribute))
        and context.kind(node.func) is Kind.MODULE
        and context.grad(node) is GradMode.ON
        for node in inside
    )


def _goes_back(method: cst.FunctionDef, context: Context) -> bool:
    """Whether a function, or one of the file that it calls, goes back through a graph."""
    waiting, seen = [method], {method}
    while waiting:
        for node in descendants(waiting.pop().body):
            if isinstance(node, cst.Call):
                if last_part(node.func) in (*BACKWARD_METHODS, "grad"):
                    return True
                target = context.calls.target(node)
                if target is not None and target not in seen:
                    seen.add(target)
                    waiting.append(target)
    return False


def _is_at_the_top(definition: cst.ClassDef | cst.FunctionDef, context: Context) -> bool:
    return context.tree.function(definition) is None and context.tree.enclosing_class(definition) is None


def _calls(context: Context, asked: tuple[str, ...]) -> tuple[tuple[str, tuple[Called, ...]], ...]:
    methods = {name.rpartition(".")[2] for name in asked}
    of_handed = {name.rpartition(".")[2] for name in asked if name.startswith(PLACED)}
    found: dict[str, list[cst.Call]] = {}
    for call in context.tree.of(cst.Call):
        if isinstance(call.func, cst.Name) or (
            isinstance(call.func, cst.Attribute) and call.func.attr.value in methods
        ):
            for name in _names(call, context):
                if name in asked:
                    found.setdefault(name, []).append(call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in of_handed:
                name = f"{_handed(call.func.value, context)}.{call.func.attr.value}"
                if name in asked:
                    found.setdefault(name, []).append(call)
    spans = context.spans(call for calls in found.values() for call in calls)
    answered = []
    for name in sorted(asked):
        class_, _, method = name.rpartition(".")
        called = tuple(_called(call, spans.inner(call).start, context) for call in found.get(name, ()))
        called += context.elsewhere.callers_of_held(class_, method)
        if called:
            answered.append((name, called))
    return tuple(answered)


def _names(call: cst.Call, context: Context) -> Iterator[str]:
    """The qualified names of what is called: of the function itself, or of the class of the object and its method."""
    name = context.qualified_name(call.func)
    if name is not None:
        yield name
    if isinstance(call.func, cst.Name):
        if name is None or "." not in name:
            yield from (f"{module}.{call.func.value}" for module in context.names.star_imports)
    elif name is None and isinstance(call.func, cst.Attribute):
        made = _constructions(call.func.value, context)
        for construction in made:
            class_ = context.qualified_name(construction.func)
            if class_ is not None:
                yield f"{class_}.{call.func.attr.value}"
        if not made and isinstance(call.func.value, cst.Attribute):
            yield from _names_of_held(call.func.value, call.func.attr.value, context)
        if not made and not (isinstance(call.func.value, cst.Name) and context.classes.self_class(call.func.value)):
            yield f"{ANY}{call.func.attr.value}"


def _names_of_held(held: cst.Attribute, method: str, context: Context) -> Iterator[str]:
    """The names of what an object holds and what is called of that: `module.Agent.buffer.add`."""
    for construction in _constructions(held.value, context):
        class_ = context.qualified_name(construction.func)
        if class_ is not None:
            yield f"{class_}.{held.attr.value}.{method}"


def _constructions(node: cst.BaseExpression, context: Context) -> list[cst.Call]:
    """The calls that may have made an object: those assigned to its name or attribute, or passed for the parameter."""
    found = context.origins(node, Through.ATTRIBUTES | Through.PARAMETERS)
    return [made for made in found.nodes if isinstance(made, cst.Call)]


def _handed(node: cst.BaseExpression, context: Context) -> str:
    """The class of the project whose instance every caller from elsewhere passes for the parameter that this is."""
    given = context.origins(node, Through.ATTRIBUTES | Through.PARAMETERS).nodes
    parameter = _parameter(given[0], context) if len(given) == 1 else None
    function = context.tree.function_of_parameter(parameter) if parameter is not None else None
    if parameter is None or not isinstance(function, cst.FunctionDef):
        return ""
    place = context.kinds.parameters.place(function, parameter)
    return context.elsewhere.handed(function, place, parameter.name.value)


def _parameter(node: cst.BaseExpression, context: Context) -> cst.Param | None:
    """The parameter for which a name stands, or whose default this is."""
    if isinstance(above := context.parent(node), cst.Param):
        return above
    bindings = context.names.reaching(node) if isinstance(node, cst.Name) else ()
    bound = bindings[0].node if len(bindings) == 1 else None
    return bound if isinstance(bound, cst.Param) and not bound.star else None


def _maker(node: cst.BaseExpression, context: Context) -> str:
    """What is called to make an object: a class of the project, by its qualified name, or `@:Class` of this file."""
    if not isinstance(node, (cst.Name, cst.Attribute, cst.Call)):
        return ""
    made = _constructions(node, context)
    if len(made) != 1:
        return "" if made else _handed(node, context)
    name = context.qualified_name(made[0].func)
    if name is not None and "." in name:
        return name
    own = context.value(made[0].func).definition
    return f"{PLACED}:{own.name.value}" if isinstance(own, cst.ClassDef) and _is_at_the_top(own, context) else ""


def _called(call: cst.Call, start: int, context: Context) -> Called:
    is_class = isinstance(call.func, (cst.Name, cst.Attribute)) and is_class_name(last_part(call.func))
    return Called(
        f"{context.source.path}:{context.source.place(start).line}",
        _frequency(call, context),
        context.grad(call).value,
        (Purpose.SERVED if is_class and is_served(call, context) else purpose(call, context)).value,
        None if context.has_unpacking(call) else tuple(_arguments(call, context)),
        is_in_a_dataset(call, context),
        context.frequencies.is_rate_limited(call) and context.frequencies.batch_loop(call) is not None,
    )


def _frequency(call: cst.Call, context: Context) -> Frequency:
    """How often the call is made, as far as that is sure: another file can't look at the loop around it."""
    found, frequencies = context.frequency(call), context.frequencies
    is_sure = frequencies.is_named_after_epochs(call) or frequencies.is_rate_limited(call)
    if (found is Frequency.EPOCH and not is_sure) or (found is Frequency.ONCE and _is_a_trial(call, context)):
        return Frequency.UNKNOWN
    return Frequency.UNKNOWN if _is_in_a_dataset(call, context) else found


def _is_a_trial(call: cst.Call, context: Context) -> bool:
    """Whether a module of networks tries them where it is run by itself: that shows not what programs do with them."""
    return (
        context.function(call) is None
        and any(is_main_guard(above.test) for above in context.around(call, cst.If))
        and any(map(context.classes.is_module, context.tree.of(cst.ClassDef)))
    )


def _is_in_a_dataset(call: cst.Call, context: Context) -> bool:
    """Whether the call is made where samples are loaded, on the CPU and in processes of their own."""
    class_ = context.tree.enclosing_class(call)
    return class_ is not None and context.classes.is_dataset(class_)


# What it helps to know that a sequence holds.
_HELD = frozenset({Kind.NUMBER, Kind.STRING, Kind.TENSOR, Kind.NDARRAY})


def _arguments(call: cst.Call, context: Context) -> Iterator[Passed]:
    for place, argument in enumerate(call.args):
        value = context.value(argument.value)
        keyword = argument.keyword.value if argument.keyword is not None else ""
        made = _maker(argument.value, context)
        if value or keyword or made:  # what goes into `**` is known only where all of it is
            item = item_of(value) if value.kind is Kind.SEQUENCE else value
            held = item.kind.name if item is not value and item.kind in _HELD and item.proven else ""
            same = literal(argument.value) or ""
            place_ = None if keyword else place
            yield Passed(place_, keyword, value.kind.name, str(value.device.name), held, same, made, value.proven)
