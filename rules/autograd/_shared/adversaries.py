"""Networks trained against each other: which backward pass goes on into one whose gradients are zeroed unused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import CLIPPING_FUNCTION, FREEZING_FUNCTION
from torchlint.semantics.names.bindings import Binder, last_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

# What an expression names, wherever it is named: the scope or class that owns the name, and the attributes.
Place: TypeAlias = "tuple[object, ...]"

# Methods whose result has no graph, and attributes that have none.
CUT = frozenset("detach item numpy tolist size data shape device dtype grad no_grad".split())
# Methods that hand the graph of their tensor on.
_KEEPING = frozenset(
    "view reshape squeeze unsqueeze flatten transpose permute contiguous to cuda float half double bfloat16 type clone "
    "expand repeat mul add sub div mean sum clamp".split()
)


class Stray(NamedTuple):
    """A call of the network that is trained, whose arguments lead the backward pass into networks that are not.

    `carriers` are the arguments, or parts of them, that have the graph; `zeroed` is what clears the gradients.
    """

    call: cst.Call
    carriers: tuple[cst.BaseExpression, ...]
    other: cst.BaseExpression
    zeroed: cst.Call


class Idle(NamedTuple):
    """Calls of a network that a backward pass only goes through, and what clears the gradients of its parameters."""

    calls: tuple[cst.Call, ...]
    zeroed: cst.Call


class _Optimizer(NamedTuple):
    place: Place
    models: frozenset[Place]
    loose: frozenset[Place]  # whatever else it was made with


def strays(backward: cst.Call, context: Context) -> Iterator[Stray]:
    """The calls through which a backward pass goes into a network that it does not serve."""
    near, home = _next_step(backward, context), context.function(backward)
    if near is None:
        return
    trained = near[1].models
    if all(made.models <= trained for made in _optimizers(context)):
        return  # it serves all that there are
    judged = [call for call in _calls(_starts(backward), context) if place(call.func, context) in trained]
    if any(place(name, context) not in trained for name in _models(_starts(backward), context, judged)):
        return  # it gets there on another way too
    body: cst.CSTNode = home.body if home is not None else context.tree.module
    for call in judged:
        carriers = tuple(
            part for argument in call.args if not argument.star for part in _carriers(argument.value, context)
        )
        if carriers and context.grad(call) is GradMode.ON:
            others = _models(carriers, context, ())
            if _has_loose(carriers, context):
                continue
            zeroed = _waste(call, others, trained, body, context)
            if zeroed is not None and not _is_differentiated(call, carriers, body, context):
                yield Stray(call, carriers, others[0], zeroed)


def idlers(backward: cst.Call, context: Context) -> Iterator[Idle]:
    """The networks that a backward pass goes through to those that it serves, though their own gradients are cleared.

    They are behind what is trained: a critic that judges what an actor does.
    """
    near = _next_step(backward, context)
    if near is None:
        return
    trained = near[1].models
    if all(made.models <= trained for made in _optimizers(context)):
        return  # it serves all that there are
    home = context.function(backward)
    body: cst.CSTNode = home.body if home is not None else context.tree.module
    found: dict[Place, list[cst.Call]] = {}
    for call in _calls(_starts(backward), context):
        name = place(call.func, context)
        if (
            name is None
            or not _is_model(call.func, context)
            or name in trained
            or context.grad(call) is not GradMode.ON
        ):
            continue
        if any(
            place(model, context) in trained for given in call.args for model in _models([given.value], context, ())
        ):
            found.setdefault(name, []).append(call)
    for name, calls in found.items():
        if _is_handled(name, body, context, is_clipped=False):
            continue
        if any(_are_joined(name, other, context) for other in trained):
            continue
        zero = _zeroed(name, [backward], context, in_all_functions=True)
        if zero is not None:
            yield Idle(tuple(sorted(calls, key=context.tree.place)), zero)


def _next_step(backward: cst.Call, context: Context) -> tuple[cst.Call, _Optimizer] | None:
    """The first step behind a backward pass, in the same loop, if that is in its function."""
    behind = [each for each in _steps(context) if context.tree.place(each[0]) > context.tree.place(backward)]
    near = next((each for each in behind if context.loop(each[0]) is context.loop(backward)), None)
    return None if near is None or context.function(near[0]) is not context.function(backward) else near


def _waste(
    call: cst.Call, others: list[cst.BaseExpression], trained: frozenset[Place], body: cst.CSTNode, context: Context
) -> cst.Call | None:
    """What throws the gradients of the other models away; None if any of them may matter."""
    passes = [each for each in _backwards(body) if call in _calls(_starts(each), context)]
    found: cst.Call | None = None
    for model in others:
        name = place(model, context)
        if name is None or name in trained or _is_handled(name, body, context):
            return None
        if any(_are_joined(name, other, context) for other in trained):
            return None
        zero = _zeroed(name, passes, context)
        if zero is None:
            return None
        found = found or zero
    return found


@query(bottom=None)
def place(node: cst.BaseExpression, context: Context) -> Place | None:
    """What an expression names; through parameters, where all callers pass the same."""
    match node:
        case cst.Name():
            class_ = context.classes.self_class(node)
            if class_ is not None:
                return (class_,)
            scope, bindings = context.names.lookup(node)
            if scope is None or not bindings:
                return None
            [first, *more] = bindings
            if not more and first.binder is Binder.PARAMETER and isinstance(first.node, cst.Param):
                passed = _passed(first.node, context)
                return passed.pop() if len(passed) == 1 else (scope, node.value)
            return (scope, node.value)
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            above = place(owner, context)
            return above if above is None or name == "module" else (*above, name)
    return None


def _passed(parameter: cst.Param, context: Context) -> set[Place]:
    function = context.tree.function_of_parameter(parameter)
    if not isinstance(function, cst.FunctionDef):
        return set()
    given = [context.calls.argument_for(call, function, parameter) for call in context.calls.callers(function)]
    found = {place(argument, context) if argument is not None else None for argument in given}
    return {each for each in found if each is not None} if None not in found else set()


def _optimizers(context: Context) -> tuple[_Optimizer, ...]:
    return context.kinds.settled(("opponents", context.tree.module), (), _find_optimizers, context)


def _find_optimizers(context: Context) -> tuple[_Optimizer, ...]:
    found: list[_Optimizer] = []
    for assign in context.tree.of(cst.Assign):
        value = assign.value
        if (
            isinstance(value, cst.Call)
            and len(assign.targets) == 1
            and value.args
            and context.kind(value) is Kind.OPTIMIZER
        ):
            owners = {place(owner, context) for argument in value.args for owner in _owners(argument.value, context)}
            name = place(assign.targets[0].target, context)
            if name is not None and owners and None not in owners:
                models = frozenset(owner for owner in owners if owner is not None)
                reads = {
                    place(node, context) for node in descendants(value.args[0].value) if isinstance(node, cst.Name)
                }
                found.append(_Optimizer(name, models, frozenset(each for each in reads - models if each is not None)))
    return tuple(found)


def _owners(node: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """The models whose parameters an expression has: `G` of `list(G.parameters())`, also under a name."""
    for inner in context.ingredients(node, bound_by=lambda binder: isinstance(binder, cst.Assign)):
        match inner:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="parameters" | "named_parameters"))):
                yield owner


def _steps(context: Context) -> tuple[tuple[cst.Call, _Optimizer], ...]:
    """All steps of the module's optimizers: `optimizer.step()`, `scaler.step(optimizer)`."""
    return context.kinds.settled(("opponents' steps", context.tree.module), (), _find_steps, context)


def _find_steps(context: Context) -> tuple[tuple[cst.Call, _Optimizer], ...]:
    found: list[tuple[cst.Call, _Optimizer]] = []
    for call in context.tree.of(cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "step":
            for node in (call.func.value, *(argument.value for argument in call.args)):
                name = place(node, context)
                found += [(call, made) for made in _optimizers(context) if made.place == name]
    return tuple(found)


def _backwards(home: cst.CSTNode) -> list[cst.Call]:
    return [
        node
        for node in descendants_in_scope(home)
        if isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in apis.BACKWARD_METHODS
    ]


def _starts(call: cst.Call) -> list[cst.BaseExpression]:
    """What the backward pass may start from: `loss.backward(weight)`, `accelerator.backward(loss)`."""
    assert isinstance(call.func, cst.Attribute)
    return [call.func.value, *(argument.value for argument in call.args)]


def _behind(
    starts: Iterable[cst.BaseExpression], context: Context, stops: Collection[cst.Call]
) -> Iterator[cst.CSTNode]:
    """Every node that what `starts` hold may have been computed from, with its graph; not what lies in `stops`."""

    def is_cut(node: cst.CSTNode) -> bool:
        match node:
            case cst.Attribute(attr=cst.Name(value=name)) | cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
                return name in CUT or node in stops
        return node in stops

    for start in starts:
        for node in context.sources.ingredients(
            start, bound_by=lambda binder: context.grad(binder) is not GradMode.OFF, is_end=is_cut
        ):
            if node not in stops:
                yield node


def _calls(starts: Iterable[cst.BaseExpression], context: Context) -> list[cst.Call]:
    return [node for node in _behind(starts, context, ()) if isinstance(node, cst.Call)]


def _models(
    starts: Iterable[cst.BaseExpression], context: Context, stops: Collection[cst.Call]
) -> list[cst.BaseExpression]:
    """Where models with an optimizer are called, or handed to something, on the way to a value."""
    known = {model for made in _optimizers(context) for model in made.models}
    found: list[cst.BaseExpression] = []
    for node in _behind(starts, context, stops):
        named: cst.CSTNode | None = node.func if isinstance(node, cst.Call) else node
        while isinstance(named, (cst.Name, cst.Attribute)):
            if place(named, context) in known:
                found.append(named)
                break
            named = named.value if isinstance(named, cst.Attribute) else None
    return found


def _carriers(node: cst.BaseExpression, context: Context) -> Iterator[cst.BaseExpression]:
    """The names and calls in an argument that are sure to hold the graph of a model."""
    parts: list[cst.BaseExpression] = []
    match node:
        case cst.Name():
            if _may_be_tensor(node, context) and _holds_graph(node, context):
                yield node
        case cst.Call(func=func) if _is_model(func, context):
            if _may_be_tensor(node, context) and context.grad(node) is GradMode.ON:
                yield node
        case cst.Call(args=args) if _joins(node, context):
            parts = [argument.value for argument in args]
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _KEEPING:
            parts = [owner]
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            parts = [element.value for element in elements]
        case cst.BinaryOperation(left=left, right=right):
            parts = [left, right]
        case cst.Subscript(value=inner):
            parts = [inner]
    for part in parts:
        yield from _carriers(part, context)


def _may_be_tensor(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is not known to be something else, such as a list, that has no `detach`."""
    return context.kind(node) in (Kind.TENSOR, Kind.UNKNOWN)


@query(bottom=False)
def _holds_graph(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a value is sure to hold the graph of a model that has an optimizer."""

    def holds(part: cst.BaseExpression) -> bool:
        return _holds_graph(part, context)

    match node:
        case cst.Name():
            origins = context.origins(node, Through.PARTS)
            return origins.is_complete and all(holds(origin.node) for origin in origins.found)
        case cst.Call(func=func, args=args):
            if _is_model(func, context):
                return context.grad(node) is GradMode.ON
            if _joins(node, context):
                return any(holds(argument.value) for argument in args)
            return isinstance(func, cst.Attribute) and func.attr.value in _KEEPING and holds(func.value)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return any(holds(element.value) for element in elements)
        case cst.BinaryOperation(left=left, right=right):
            return holds(left) or holds(right)
        case cst.Subscript(value=inner):
            return holds(inner)
    return False


def _is_model(func: cst.BaseExpression, context: Context) -> bool:
    name = place(func, context)
    return any(name in made.models for made in _optimizers(context))


def _has_loose(starts: Iterable[cst.BaseExpression], context: Context) -> bool:
    """Whether a tensor that an optimizer was given by itself went into a value."""
    loose = {each for made in _optimizers(context) for each in made.loose if len(each) > 1}
    return any(isinstance(node, cst.Name) and place(node, context) in loose for node in _behind(starts, context, ()))


def _joins(call: cst.Call, context: Context) -> bool:
    return context.qualified_name(call.func) in ("torch.cat", "torch.concat", "torch.stack", "torch.nn.functional.pad")


def _zeroed(
    name: Place, passes: list[cst.Call], context: Context, *, in_all_functions: bool = False
) -> cst.Call | None:
    """What zeroes the gradients of a model before each step on them, behind all of the passes; None if not certain.

    A step in another function than the passes is certain where that function is left alone by what it calls there.
    """
    home = context.function(passes[0]) if passes else None
    zero: cst.Call | None = None
    for made in _optimizers(context):
        if name not in made.models:
            continue
        own = [step for step, other in _steps(context) if other.place == made.place]
        if not own or not passes:
            return None
        for step in own:
            is_near = context.function(step) is home
            found = _zero_before(step, {made.place, name}, passes, context) if is_near or in_all_functions else None
            if found is None or not (is_near or _runs_without(home, found, step, context)):
                return None
            zero = found if is_near or zero is None else zero
    return zero


def _runs_without(home: cst.FunctionDef | cst.Lambda | None, zero: cst.Call, step: cst.Call, context: Context) -> bool:
    """Whether nothing that is called by that name between the two calls of one function may be the function."""
    at = context.tree.place
    return isinstance(home, cst.FunctionDef) and not any(
        at(zero) < at(call) < at(step) and last_part(call.func) == home.name.value for call in context.tree.of(cst.Call)
    )


def _zero_before(step: cst.Call, names: set[Place | None], passes: list[cst.Call], context: Context) -> cst.Call | None:
    """The call that zeroes, on each way to the step, and has none of the passes between them."""
    at = context.tree.place
    for call in reversed(context.tree.of(cst.Call)):
        if at(call) > at(step) or context.function(call) is not context.function(step):
            continue
        block = _block(call, context) if _clears(call, names, context) else None
        if block is not None and context.tree.within(step, block) and context.loop(call) is context.loop(step):
            return None if any(at(call) < at(taken) < at(step) for taken in passes) else call
    return None


def _block(call: cst.Call, context: Context) -> cst.CSTNode | None:
    """The block in which a call stands for itself; None if it is part of something else."""
    statement = context.parent(call)
    line = context.parent(statement) if isinstance(statement, cst.Expr) else None
    return context.parent(line) if isinstance(line, cst.SimpleStatementLine) else line


def _clears(call: cst.Call, names: set[Place | None], context: Context) -> bool:
    """Whether a call zeroes gradients, itself or in the body of a function of this module."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "zero_grad":
        return place(call.func.value, context) in names
    helper = context.calls.target(call) if not call.args else None
    lines = helper.body.body if helper is not None else ()
    return any(
        isinstance(line, cst.SimpleStatementLine)
        and any(
            isinstance(small, cst.Expr)
            and isinstance(small.value, cst.Call)
            and isinstance(small.value.func, cst.Attribute)
            and small.value.func.attr.value == "zero_grad"
            and place(small.value.func.value, context) in names
            for small in line.body
        )
        for line in lines
    )


def _are_joined(one: Place, other: Place, context: Context) -> bool:
    """Whether two models may share parameters: one is set on the other, or both are made with the same module."""
    given: dict[Place, set[Place | None]] = {one: set(), other: set()}
    for assign in context.tree.of(cst.Assign):
        for target in assign.targets:
            name = place(target.target, context) if isinstance(target.target, (cst.Name, cst.Attribute)) else None
            for model, parts in given.items():
                if name is not None and name[: len(model)] == model:
                    reads = [node for node in descendants(assign.value) if isinstance(node, (cst.Name, cst.Attribute))]
                    parts |= {place(node, context) for node in reads if context.kind(node) is Kind.MODULE}
    given[one] -= {one, None}
    given[other] -= {other, None}
    return one in given[other] or other in given[one] or bool(given[one] & given[other])


def _is_handled(name: Place, body: cst.CSTNode, context: Context, *, is_clipped: bool = True) -> bool:
    """Whether the function freezes the model, or looks at its gradients; to limit them counts where `is_clipped`."""
    for node in descendants_in_scope(body):
        match node:
            case cst.Call() if FREEZING_FUNCTION.suggests(last_part(node.func)) or (
                is_clipped and CLIPPING_FUNCTION.suggests(last_part(node.func))
            ):
                parts: list[cst.CSTNode] = [node]
            case cst.For(body=block) if any(_is_grad(inner) for inner in descendants(block)):
                parts = [node.iter]
            case _:
                continue
        if any(
            isinstance(inner, (cst.Name, cst.Attribute)) and place(inner, context) == name
            for part in parts
            for inner in descendants(part)
        ):
            return True
    return False


def _is_grad(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value in ("grad", "requires_grad", "requires_grad_")


def _is_differentiated(
    call: cst.Call, carriers: tuple[cst.BaseExpression, ...], body: cst.CSTNode, context: Context
) -> bool:
    """Whether anything takes a gradient with respect to what is passed, or does away with its graph in place."""
    names = {part.value for part in carriers if isinstance(part, cst.Name)}
    line = context.parent(call)
    if isinstance(line, cst.Assign):
        names |= {target.target.value for target in line.targets if isinstance(target.target, cst.Name)}
    for node in descendants_in_scope(body):
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=method))) if (
                name in names and method in ("detach_", "requires_grad_", "retain_grad", "register_hook")
            ):
                return True
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="grad" | "requires_grad")) if (
                name in names
            ):
                return True
            case cst.Call() if last_part(node.func) == "grad" and any(
                isinstance(inner, cst.Name) and inner.value in names for inner in descendants(node)
            ):
                return True
    return False


# Who may see that a backward pass does not run

_FACTORIES = frozenset("rand randn randint zeros ones full empty arange linspace eye rand_like randn_like".split())
_PLAIN = (Kind.STRING, Kind.DEVICE, Kind.DTYPE)


def is_unwatched(stray: Stray, context: Context) -> bool:
    """Whether both networks are in sight, as is all that their graphs hang on, and nobody else has them in hand."""
    if not _is_in_sight(stray.call.func, context):
        return False
    if not all(context.kinds.is_tensor(part) and _is_closed(part, context) for part in stray.carriers):
        return False
    models = {place(node, context) for node in _models(stray.carriers, context, ())}
    watched = models | {made.place for made in _optimizers(context) if made.models & models}
    return all(_is_own_use(node, context) for node in _mentions(watched, context))


def _is_in_sight(func: cst.BaseExpression, context: Context) -> bool:
    value = context.value(func)
    return isinstance(value.definition, cst.ClassDef) or value.qualified.startswith("torch.nn.")


def _mentions(places: Collection[Place | None], context: Context) -> Iterator[cst.BaseExpression]:
    for node in (*context.tree.of(cst.Name), *context.tree.of(cst.Attribute)):
        if place(node, context) in places and not isinstance(context.parent(node), cst.Param):
            yield node


def _is_own_use(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the use of a model, or of its optimizer, gives it to nobody that this file does not show."""
    parent = context.parent(node)
    match parent:
        case _ if context.uses.is_target(node):
            return True
        case cst.Attribute():
            return True
        case cst.Call(func=func):
            return func is node
        case cst.Arg():
            call = context.parent(parent)
            if not isinstance(call, cst.Call):
                return False
            is_shown = context.calls.target(call) is not None
            return is_shown or (context.qualified_name(call.func) or "").startswith("torch.")
    return False


@query(bottom=False)
def _is_closed(node: cst.BaseExpression, context: Context) -> bool:
    """Whether nothing but batches, noise and models in sight went into a value: no tensor that may want a gradient."""

    def closed(part: cst.BaseExpression) -> bool:
        return _is_closed(part, context)

    value = context.value(node)
    if value.kind in _PLAIN or (value.kind is Kind.NUMBER and value.proven):
        return True
    match node:
        case cst.Name():
            origins = context.origins(node, Through.PARTS)
            return all(closed(origin.node) for origin in origins.found) and all(
                _is_taken_from_batches(origin.node, context) for origin in origins.lost
            )
        case cst.Call(func=func, args=args):
            root, _, name = (context.qualified_name(func) or "").rpartition(".")
            if root == "torch" and name in _FACTORIES:
                return True
            given = all(closed(argument.value) for argument in args)
            if _is_model(func, context):
                return given and _is_in_sight(func, context)
            if isinstance(func, cst.Attribute) and func.attr.value in _KEEPING:
                return given and closed(func.value)
            return given and root in ("torch", "torch.nn.functional")
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            return name in CUT and closed(owner)
        case cst.BinaryOperation(left=left, right=right):
            return closed(left) and closed(right)
        case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
            return closed(inner)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return all(closed(element.value) for element in elements)
    return False


def _is_taken_from_batches(node: cst.BaseExpression, context: Context) -> bool:
    """Whether all that a name is, but for what it is assigned, are batches that a loop goes over."""
    binders = context.binders(node) if isinstance(node, cst.Name) else ()
    return bool(binders) and all(
        isinstance(binder, (cst.Assign, cst.AnnAssign, cst.NamedExpr))
        or (
            isinstance(binder, cst.For)
            and (context.value(binder.target).batch or context.kinds.is_loader_like(binder.iter))
        )
        for binder in binders
    )
