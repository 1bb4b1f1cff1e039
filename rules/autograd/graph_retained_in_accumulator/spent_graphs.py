"""Which values of a loop have been gone back through: their graphs are spent, and serve nobody who keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.values import BACKWARD_LOSS
from torchlint.semantics.names.bindings import Binder, Binding, final_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

# Methods whose result has the graph of the tensor.
_KEEPING = frozenset(
    "mean sum clone squeeze unsqueeze view reshape to cuda cpu float double half div mul add sub div_ mul_".split()
)
_NONE: frozenset[Binding] = frozenset()


def spent(loop: cst.CSTNode, context: Context) -> frozenset[Binding]:
    """The bindings whose values an iteration of the loop goes back through for good, with those they are summed from.

    Empty where a graph is kept for another backward pass.
    """
    return context.kinds.settled(("spent", loop), _NONE, partial(_spent, context), loop)


def _spent(context: Context, loop: cst.CSTNode) -> frozenset[Binding]:
    found: dict[Binding, None] = {}
    for call in descendants_in_scope(loop):
        if isinstance(call, cst.Call) and _is_backward(call):
            if len(call.args) > 1 or any(_keeps_the_graph(argument) for argument in call.args):
                return _NONE
            for name in terms(_start(call), context):
                _follow(name, found, context)
    return frozenset(found)


def _is_backward(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in apis.BACKWARD_METHODS


def _keeps_the_graph(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value in ("retain_graph", "create_graph", "inputs")


def _start(call: cst.Call) -> cst.BaseExpression:
    """What the backward pass starts from: `loss.backward()`, `engine.backward(loss)`."""
    assert isinstance(call.func, cst.Attribute)
    return call.args[0].value if call.args else call.func.value


def terms(node: cst.BaseExpression, context: Context | None = None) -> Iterator[cst.Name]:
    """The names whose graphs the expression may have: parts of sums and products, through methods that keep a graph.

    With a context, of the factors of a product only those that have one for certain: the reward that a loss is weighed
    with is a number as often as not.
    """
    match node:
        case cst.Name():
            yield node
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            sides = [list(terms(left, context)), list(terms(right, context))]
            if context is None or isinstance(operator, (cst.Add, cst.Subtract)):
                yield from (name for side in sides for name in side)
            else:
                yield from _factors(left, right, sides, context)
        case cst.UnaryOperation(expression=inner):
            yield from terms(inner, context)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            for element in elements:
                yield from terms(element.value, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)), args=args):
            if method in _KEEPING:
                yield from terms(owner, context)
            elif method == "scale" and len(args) == 1:
                yield from terms(args[0].value, context)


def _factors(
    left: cst.BaseExpression, right: cst.BaseExpression, sides: list[list[cst.Name]], context: Context
) -> Iterator[cst.Name]:
    """Of the names on the sides of a product those that have a graph: a loss before all, else what is a tensor."""
    names = [name for side in sides for name in side]
    losses = [name for name in names if _is_loss(name, context)]
    if losses or _is_loss(left, context) or _is_loss(right, context):
        yield from losses
    else:
        yield from (name for name in names if not all(sides) or context.kind(name) is Kind.TENSOR)


def _is_loss(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is a loss by its name, or by that of the function that gives it."""
    match node:
        case cst.Name(value=name):
            made = [origin.node for origin in context.origins(node, Through.PARTS | Through.CONTEXTS).found]
            return BACKWARD_LOSS.suggests(name) or any(
                isinstance(call, cst.Call) and _is_loss(call, context) for call in made
            )
        case cst.Call(func=func):
            return BACKWARD_LOSS.suggests(final_part(func))
    return False


def _follow(name: cst.Name, found: dict[Binding, None], context: Context) -> None:
    for binding in context.reaching(name):
        if binding in found:
            continue
        found[binding] = None
        for term in _sources(binding, context):
            _follow(term, found, context)


def _sources(binding: Binding, context: Context | None = None) -> Iterator[cst.Name]:
    """The names whose graphs a binding gives to its own."""
    match binding.binder, binding.node, binding.value:
        case Binder.AUGMENTED, cst.AugAssign(target=cst.Name() as target, value=value), _:
            yield target
            yield from terms(value, context)
        case Binder.ASSIGN, _, cst.BaseExpression() as value if not binding.path:
            yield from terms(value, context)
        case Binder.CONTEXT, _, cst.Call(args=[cst.Arg(value=first), *_]):  # `with amp.scale_loss(loss, optimizer)`
            yield from terms(first, context)


@query(bottom=False)
def is_spent(name: cst.Name, context: Context, loop: cst.CSTNode) -> bool:
    """Whether the name holds, whichever way it came by its value, what the loop goes back through, or a sum of such."""
    gone = spent(loop, context)
    bindings = context.reaching(name)
    if not gone or not bindings:
        return False
    return all(
        (binding in gone and context.tree.within(binding.node, loop))
        or (
            binding.binder is Binder.ASSIGN
            and context.tree.within(binding.node, loop)
            and any(is_spent(term, context, loop) for term in _sources(binding))
        )
        for binding in bindings
    ) and not _is_cut(name, loop)


def _is_cut(name: cst.Name, loop: cst.CSTNode) -> bool:
    """Whether the loop takes the value out of its graph in place."""
    return any(
        isinstance(inner, cst.Attribute)
        and inner.attr.value == "detach_"
        and isinstance(inner.value, cst.Name)
        and inner.value.value == name.value
        for inner in descendants(loop)
    )
