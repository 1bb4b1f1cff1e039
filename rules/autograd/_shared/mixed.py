"""Loops that train and evaluate by turns, as an option says, and build an autograd graph either way."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.knowledge import apis
from torchlint.semantics.names.bindings import final_part
from torchlint.syntax.tree import descendants, descendants_in_scope

from .evaluation import Evaluations

_GRADIENTS = (*apis.BACKWARD_METHODS, "grad", "vjp", "jvp", "requires_grad_", "enable_grad", "set_grad_enabled")

_DECIDED = (Doubt.OPTION_DECIDES,)


class Mixed(NamedTuple):
    """A call of a model that always builds a graph, which is gone back through only where `test` comes out `holds`."""

    call: cst.Call
    test: cst.BaseExpression
    holds: bool
    doubts: tuple[Doubt, ...]


class MixedLoops:
    """Which loops of a file train or evaluate, as an option says."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._gradients: dict[cst.FunctionDef, list[cst.CSTNode]] = {}

    def mixed(self, loop: cst.For) -> Mixed | None:
        """The first model that a loop over batches calls, if an option decides whether that loop trains."""
        context = self.context
        function = context.function(loop)
        if not isinstance(function, cst.FunctionDef):
            return None
        gradients = self._taken_in(function)
        if not gradients or any(not context.tree.within(node, loop.body) for node in gradients):
            return None
        shared = _conditions(gradients[0], loop, context)
        for node in gradients[1:]:
            others = _conditions(node, loop, context)
            shared = {said: test for said, test in shared.items() if said in others}
        options = {said: test for said, test in shared.items() if _is_settled(test, loop, context)}
        if not options or context[Evaluations].is_of_a_test_case(function):
            return None
        first = min(map(context.tree.place, gradients))
        for call in descendants_in_scope(loop.body):
            if (
                isinstance(call, cst.Call)
                and context.tree.place(call) < first
                and context.grad(call) is GradMode.ON
                and context[Evaluations].is_model_call(call)
            ):
                own = _conditions(call, loop, context)
                found = [
                    Mixed(call, test, holds, () if _goes_both_ways(test, function, context) else _DECIDED)
                    for (said, holds), test in options.items()
                    if (said, holds) not in own and (said, not holds) not in own
                ]
                if found:
                    return min(found, key=lambda each: len(each.doubts))
        return None

    def _taken_in(self, function: cst.FunctionDef) -> list[cst.CSTNode]:
        """What goes back through a graph in a function."""
        found = self._gradients.get(function)
        if found is None:
            found = self._gradients[function] = [
                node for node in descendants(function.body) if _takes_a_gradient(node, self.context)
            ]
        return found


def _takes_a_gradient(node: cst.CSTNode, context: Context) -> bool:
    """Whether this goes back through a graph, or says whether there is one; a helper of the file may do it."""
    if not isinstance(node, cst.Call):
        return False
    if final_part(node.func) in _GRADIENTS:
        return True
    helper = context.calls.target(node)
    return helper is not None and context[Evaluations].takes_gradients(helper.body)


def _conditions(node: cst.CSTNode, loop: cst.For, context: Context) -> dict[tuple[str, bool], cst.BaseExpression]:
    return {
        (context.code(part.test), part.holds): part.test
        for condition in context.conditions(node, within=loop)
        for part in condition.parts()
    }


def _is_settled(test: cst.BaseExpression, loop: cst.For, context: Context) -> bool:
    """Whether it comes out the same in each iteration: it asks a name or an attribute that the loop leaves alone."""
    match test:
        case cst.Comparison(left=asked, comparisons=[cst.ComparisonTarget(comparator=cst.SimpleString() | cst.Name())]):
            pass
        case cst.Name() | cst.Attribute():
            asked = test
        case _:
            return False
    root = asked
    while isinstance(root, cst.Attribute):
        root = root.value
    if not isinstance(root, cst.Name):
        return False
    return not any(context.tree.within(binder, loop) for binder in context.binders(root))


def _goes_both_ways(test: cst.BaseExpression, function: cst.FunctionDef, context: Context) -> bool:
    """Whether the file shows both: a module is asked for its mode, or callers pass one thing and another."""
    match test:
        case cst.Attribute(attr=cst.Name(value="training")):
            return True
        case cst.Comparison(left=cst.Name() as asked) | (cst.Name() as asked):
            pass
        case _:
            return False
    parameter = next((each for each in context.binders(asked) if isinstance(each, cst.Param)), None)
    if parameter is None:
        return any(isinstance(each, cst.For) for each in context.binders(asked))
    passed = {
        context.code(given) if (given := context.calls.argument_for(call, function, parameter)) is not None else ""
        for call in context.calls.callers(function)
    }
    return len(passed) > 1
