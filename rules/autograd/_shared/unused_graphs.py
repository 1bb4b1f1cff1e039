"""Calls of a model whose graph nothing uses: all that is made of what they give drops it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.origins import MOST_STEPS, Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

from .evaluation import Evaluation, Evaluations, lines_of
from .output_flow import DETACHING, PLAIN_ATTRIBUTES, PLAIN_FUNCTIONS

_THROUGH = Through.PARTS | Through.BRANCHES
_ONWARDS = _THROUGH | Through.ELEMENTS
# What is drawn may hold the graph: it need not be of `torch.distributions`.
_HELD = METHODS.keys() | {"cpu", "cuda", "to", "float", "half", "double", "sample", "rsample"}
_HOST = ("numpy.", "math.", "cv2.")
# Bases that call methods of a class with the grad mode that is known of them.
_KNOWN = ("torch.", "lightning.")
# Attributes that say something of a tensor and nothing of its values: to ask for them drops no graph.
_DESCRIBING = PLAIN_ATTRIBUTES - {"data", "indices"}


def unused_graphs(drop: cst.Call | cst.Attribute, context: Context) -> Iterator[Evaluation]:
    """The calls that record the graph which `x.detach()`, `x.item()` or the like drops, where nothing else uses it."""
    match drop:
        case cst.Call(args=[cst.Arg(value=dropped), *_]) if _is_a_drawing_function(drop, context):
            made_by = _model_calls(dropped, context)
        case cst.Call(func=cst.Attribute(value=dropped)) | cst.Attribute(value=dropped, attr=cst.Name(value="data")):
            made_by = _model_calls(dropped, context)
        case _:
            return
    found = [call for call in made_by if _is_unused(call, context)]
    if not found:
        return
    first = min(found, key=context.tree.place)
    together = [call for call in found if context.function(call) is context.function(first)]
    for calls in (together, *([call] for call in found if call not in together)):
        line = context.tree.line(min(calls, key=context.tree.place))
        yield Evaluation(lines_of([line]) if line is not None else (), tuple(sorted(calls, key=context.tree.place)))


def _is_a_drawing_function(call: cst.Call, context: Context) -> bool:
    """`torch.argmax(x)`, `torch.multinomial(x, 1)`: what these give has no graph."""
    return (context.qualified_name(call.func) or "") in _DRAWING


_DRAWING = frozenset({"torch.argmax", "torch.multinomial"})


@query(bottom=False)
def _is_unused(call: cst.Call, context: Context) -> bool:
    """Whether the call of what is surely a model, or of a function that calls one, builds a graph nothing uses."""
    if context.grad(call) is not GradMode.ON or _is_known(call, context) or not _is_dropped(call, context):
        return False
    if _is_of_a_frozen_table(call, context):
        return False
    return _hands_out_graphs(call, context) or _is_surely_a_model(call, context)


def _is_of_a_frozen_table(call: cst.Call, context: Context) -> bool:
    """Whether this is an embedding whose class has it take no gradients: it is given indices, so there is no graph."""
    if context.value(call.func).qualified != "torch.nn.Embedding":
        return False
    weight, class_ = f"{dotted(call.func)}.weight", context.tree.enclosing_class(call)
    return any(
        _is_frozen(line.value, context)
        for line in context.tree.of(cst.Assign)
        if any(dotted(target.target) == weight for target in line.targets)
        and context.tree.enclosing_class(line) is class_
    )


def _is_frozen(node: cst.BaseExpression, context: Context) -> bool:
    """`nn.Parameter(w, requires_grad=False)`."""
    if not isinstance(node, cst.Call) or context.qualified_name(node.func) != "torch.nn.Parameter":
        return False
    given = context.argument(node, "requires_grad", 1)
    return isinstance(given, cst.Name) and given.value == "False"


def _is_surely_a_model(call: cst.Call, context: Context) -> bool:
    """Whether more than a name says that it is a model: what is called one and nothing more may be anything."""
    evaluations = context[Evaluations]
    is_known = context.value(call.func).proven or evaluations.is_recording_method(call.func)
    return is_known or evaluations.is_loaded(call.func)


@query(bottom=False)
def _hands_out_graphs(call: cst.Call, context: Context) -> bool:
    """Whether the call runs a function of the file that returns what a model gives there, and uses no graph itself."""
    function = context.calls.target(call)
    evaluations = context[Evaluations]
    if function is None or function.asynchronous is not None or evaluations.takes_gradients(function.body):
        return False
    inside = [part for part in descendants_in_scope(function.body) if isinstance(part, cst.Call)]
    models = [part for part in inside if evaluations.is_model_call(part)]
    return bool(models) and all(
        context.grad(model) is GradMode.ON and _is_surely_a_model(model, context) and _is_returned(model, context)
        for model in models
    )


def _is_returned(call: cst.Call, context: Context) -> bool:
    """Whether the function returns what is made of the call's result, and nothing else there uses the graph."""
    gone = context.sinks.of(call, _ONWARDS, handed_on=lambda node, taker: _handed_on(node, taker, context))
    takes = [isinstance(context.parent(place.node), cst.Return) or _drops(place.node, context) for place in gone.found]
    return not gone.lost and None not in takes and True in takes


def is_entered_unseen(call: cst.Call, context: Context) -> bool:
    """Whether a method leads to the call that nobody in sight calls; a base may, which another file defines."""
    waiting = [context.function(call)]
    seen: set[cst.CSTNode] = set()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, cst.FunctionDef) or function in seen:
            continue
        seen.add(function)
        callers = context.calls.callers(function)
        waiting += [context.function(caller) for caller in callers]
        owner = context.classes.owner(function)
        if callers or owner is None or context.elsewhere.callers(function):
            continue
        bases = context.classes.lineage(owner)
        if any(isinstance(base, str) and base != "object" and not base.startswith(_KNOWN) for base in bases):
            return True
    return False


def is_alone(call: cst.Call, context: Context) -> bool:
    """Whether the statement computes what the call gives, moved or reshaped, and nothing else that may want a graph."""
    statement = context.tree.statement(call)
    value: cst.CSTNode | None = statement.value if isinstance(statement, cst.Assign) else None
    given = list(call.args)
    while value is not call:
        match value:
            case cst.Call(func=cst.Attribute(value=inner), args=args):
                given_there = (part for each in args for part in (each.value, *descendants(each.value)))
                if any(isinstance(part, cst.Name) for part in given_there):
                    return False
                value = inner
            case cst.Attribute(value=inner):
                value = inner
            case _:
                return False
    strange = (cst.Call, cst.Await, cst.NamedExpr)
    return not any(isinstance(part, strange) for each in given for part in (each.value, *descendants(each.value)))


def _model_calls(node: cst.BaseExpression, context: Context) -> Iterator[cst.Call]:
    """The calls of models that an expression may be made of, each once."""
    waiting = [node]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or len(seen) > MOST_STEPS:
            continue
        seen.add(id(part))
        match part:
            case cst.Name():
                origins = context.origins(part, _THROUGH)
                waiting += [origin.node for origin in (*origins.found, *origins.lost)]
            case cst.Call() if context[Evaluations].is_model_call(part) or _hands_out_graphs(part, context):
                yield part
                waiting += [argument.value for argument in part.args]
            case cst.Call(func=func, args=args) if (context.qualified_name(func) or "").startswith("torch."):
                waiting += [argument.value for argument in args]
            case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value=method))):
                waiting += [value] if method in _HELD and method not in DETACHING else []
            case cst.Subscript(value=value) | cst.Attribute(value=value):
                waiting.append(value)
            case cst.BinaryOperation(left=left, right=right):
                waiting += [left, right]
            case cst.UnaryOperation(expression=inner):
                waiting.append(inner)
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                waiting += [element.value for element in elements]


def _is_known(call: cst.Call, context: Context) -> bool:
    """Whether the call needs no word: in code that evaluates by other marks, beside a gradient, in a test."""
    unit = context.function(call) or context.tree.module
    if isinstance(unit, cst.Lambda):
        return True
    evaluations = context[Evaluations]
    if isinstance(unit, cst.FunctionDef) and (
        evaluations.is_of_a_test_case(unit) or evaluations.is_entered_without(unit)
    ):
        return True
    line = context.tree.line(call)
    if line is not None and evaluations.takes_gradients(line):
        return True
    return any(call in evaluation.calls for evaluation in evaluations.within(unit))


def _is_dropped(call: cst.Call, context: Context) -> bool:
    """Whether each place that what a call gives gets to drops its graph, or only asks what it is like."""
    gone = context.sinks.of(call, _ONWARDS, handed_on=lambda node, taker: _handed_on(node, taker, context))
    takes = [_drops(place.node, context) for place in gone.found]
    return not gone.lost and None not in takes and True in takes


def _handed_on(node: cst.BaseExpression, taker: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """The expression around one that holds its graph too."""
    if _drops(node, context) is not None:
        return None
    match taker:
        case cst.Attribute() if taker.value is node:
            call = context.parent(taker)
            if not isinstance(call, cst.Call) or call.func is not taker:
                return taker
            return call if taker.attr.value in _HELD else None
        case cst.Subscript() if taker.value is node:
            return taker
        case cst.BinaryOperation() | cst.UnaryOperation():
            return taker
        case cst.Element():
            parts = context.parent(taker)
            is_joined = isinstance(parts, (cst.List, cst.Tuple)) and isinstance(context.parent(parts), cst.Arg)
            return parts if is_joined and isinstance(parts, (cst.List, cst.Tuple)) else None
        case cst.Arg():
            call = context.parent(taker)
            if not isinstance(call, cst.Call):
                return None
            # What another network makes of it holds its graph, too.
            is_of_a_network = context[Evaluations].is_model_call(call)
            name = context.qualified_name(call.func) or ""
            is_of_torch = name.startswith("torch.") and not name.startswith("torch.autograd.")  # that takes gradients
            return call if is_of_a_network or is_of_torch else None
    return None


def _drops(node: cst.BaseExpression, context: Context) -> bool | None:
    """Whether what takes the expression drops its graph; False where it only asks what it is like, None if neither."""
    match context.parent(node):
        case cst.Attribute(attr=cst.Name(value=name)) as taker if taker.value is node:
            call = context.parent(taker)
            if not isinstance(call, cst.Call) or call.func is not taker:
                return None if name not in PLAIN_ATTRIBUTES else name not in _DESCRIBING
            is_drawn = name == "sample" and context.kind(node) is Kind.DISTRIBUTION
            return True if name in DETACHING or is_drawn else None
        case cst.ComparisonTarget() | cst.FormattedStringExpression():
            return True
        case cst.Comparison() as taker if taker.left is node:
            return True
        case cst.Arg() as argument:
            call = context.parent(argument)
            if not isinstance(call, cst.Call):
                return None
            name = context.qualified_name(call.func) or ""
            return True if name in PLAIN_FUNCTIONS or name in _DRAWING or name.startswith(_HOST) else None
    return None
