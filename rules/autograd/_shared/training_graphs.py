"""Autograd graphs in training code that nothing uses: of networks that only follow others, and of loops that evaluate.

A network that follows another is a target network, a teacher or an average of weights. A loop may train and evaluate by
turns, as an option says.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.knowledge import apis
from torchlint.semantics.names.bindings import final_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import Loop, descendants, descendants_in_scope

from .adversaries import CUT, Place, place
from .evaluation import Evaluations

_COPIES = ("copy.copy", "copy.deepcopy")
# Methods that give the module itself.
_SAME = frozenset("to cuda cpu eval train float half double requires_grad_".split())
_OF_PARAMETERS = frozenset({"parameters", "named_parameters"})
_WRITING = frozenset("copy_ mul_ add_ lerp_ set_".split())
_GRADIENTS = (*apis.BACKWARD_METHODS, "grad", "vjp", "jvp", "requires_grad_", "enable_grad", "set_grad_enabled")

_DECIDED = (Doubt.OPTION_DECIDES,)


class Followers:
    """Which networks of a file follow others, and where they are called with autograd on."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._evaluations = context[Evaluations]

    def calls(self) -> Iterator[tuple[cst.Call, bool]]:
        """Each call that builds a graph of a network that only follows; whether what it is given may want one."""
        context = self.context
        places = {follower for follower, _ in self._pairs if self._only_follows(follower)}
        if not places or not any(context.kind(call) is Kind.OPTIMIZER for call in context.tree.of(cst.Call)):
            return
        for call in context.tree.of(cst.Call):
            func = _network(call)
            if not isinstance(func, (cst.Name, cst.Attribute)) or place(func, context) not in places:
                continue
            if context.grad(call) is GradMode.ON and self._evaluations.is_model_call(call):
                yield call, self._may_want_gradients(call, places)

    @cached_property
    def _pairs(self) -> set[tuple[Place, Place]]:
        """What is a copy of what, or is set to what that has learned; the second is trained here."""
        return {(one, other) for one, other in self._named if one != other and self._is_trained(other)}

    @cached_property
    def _named(self) -> set[tuple[Place, Place]]:
        return {*self._copied(), *self._loaded(), *self._averaged()}

    def _copied(self) -> Iterator[tuple[Place, Place]]:
        """`self.target = copy.deepcopy(self.critic).eval()`."""
        for assign in self.context.tree.of(cst.Assign):
            made = assign.value
            while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) and made.func.attr.value in _SAME:
                made = made.func.value
            if isinstance(made, cst.Call) and made.args and self.context.qualified_name(made.func) in _COPIES:
                for target in assign.targets:
                    yield from self._pair(target.target, made.args[0].value)

    def _loaded(self) -> Iterator[tuple[Place, Place]]:
        """`self.target.load_state_dict(self.critic.state_dict())`."""
        for call in self.context.tree.of(cst.Call):
            match call:
                case cst.Call(
                    func=cst.Attribute(value=follower, attr=cst.Name(value="load_state_dict")),
                    args=[cst.Arg(value=cst.Call(func=cst.Attribute(value=leader, attr=cst.Name(value="state_dict"))))],
                ):
                    yield from self._pair(follower, leader)

    def _averaged(self) -> Iterator[tuple[Place, Place]]:
        """`for p, q in zip(critic.parameters(), target.parameters()): q.data.copy_(…)`."""
        for loop in self.context.tree.of(cst.For):
            match loop:
                case cst.For(
                    target=cst.Tuple(elements=[cst.Element(value=one), cst.Element(value=other)]),
                    iter=cst.Call(func=cst.Name(value="zip"), args=[cst.Arg(value=first), cst.Arg(value=second)]),
                ):
                    held = _whose_parameters(first), _whose_parameters(second)
                    if held[0] is not None and held[1] is not None:
                        if _is_written(one, loop.body):
                            yield from self._pair(held[0], held[1])
                        elif _is_written(other, loop.body):
                            yield from self._pair(held[1], held[0])

    def _pair(self, follower: cst.BaseExpression, leader: cst.BaseExpression) -> Iterator[tuple[Place, Place]]:
        names = (place(follower, self.context), place(leader, self.context))
        if names[0] is not None and names[1] is not None:
            yield names[0], names[1]

    @cached_property
    def _mentions(self) -> dict[Place, list[cst.BaseExpression]]:
        """Where the file names what follows and what is followed, by parameters too."""
        found: dict[Place, list[cst.BaseExpression]] = {}
        wanted = {name[-1] for pair in self._named for name in pair}
        wanted |= {parameter.name.value for parameter in self.context.tree.of(cst.Param)}
        for node in (*self.context.tree.of(cst.Name), *self.context.tree.of(cst.Attribute)):
            if final_part(node) in wanted and not isinstance(self.context.parent(node), cst.Param):
                name = place(node, self.context)
                if name is not None:
                    found.setdefault(name, []).append(node)
        return found

    def _is_trained(self, leader: Place) -> bool:
        """Whether its parameters are handed to something: `Adam(self.critic.parameters())`."""
        return any(self._hands_out_parameters(node) for node in self._mentions.get(leader, ()))

    def _hands_out_parameters(self, node: cst.BaseExpression) -> bool:
        """Whether this asks for the parameters, other than to go through them and not look at their gradients."""
        call = _called_of(node, self.context)
        if call is None or final_part(call.func) not in _OF_PARAMETERS:
            return False
        above: cst.CSTNode | None = self.context.parent(call)
        while isinstance(above, cst.Arg):
            taker = self.context.parent(above)
            if not isinstance(taker, cst.Call) or final_part(taker.func) not in ("zip", "list", "tuple", "enumerate"):
                return True
            above = self.context.parent(taker)
        if not isinstance(above, (*Loop, cst.CompFor)):
            return True
        around = self.context.parent(above) if isinstance(above, cst.CompFor) else above
        return around is None or any(
            isinstance(inner, cst.Attribute) and inner.attr.value == "grad" for inner in descendants(around)
        )  # who steps by hand trains it

    def _only_follows(self, follower: Place) -> bool:
        """Whether the file only calls it, moves it, and sets it to what others have learned."""
        nodes = self._mentions.get(follower, ())
        return all(self._is_harmless(node) for node in nodes) and any(map(self.context.uses.is_target, nodes))

    def _is_harmless(self, node: cst.BaseExpression) -> bool:
        parent = self.context.parent(node)
        if self.context.uses.is_target(node):
            return True
        match parent:
            case cst.Attribute():
                return not self._hands_out_parameters(node)
            case cst.Call():
                return parent.func is node
            case cst.Arg():
                call = self.context.parent(parent)
                return isinstance(call, cst.Call) and self._is_copied_or_set(call, parent)
        return False

    def _is_copied_or_set(self, call: cst.Call, given: cst.Arg) -> bool:
        """Whether the call copies it, or a function of the file sets its parameters: `soft_update(q, target)`."""
        if self.context.qualified_name(call.func) in _COPIES:
            return True
        function = self.context.calls.target(call)
        if function is None:
            return False
        taken = [
            parameter
            for parameter in function.params.params
            if self.context.calls.argument_for(call, function, parameter) is given.value
        ]
        names = {parameter.name.value for parameter in taken}
        uses = [
            node
            for node in descendants(function.body)
            if isinstance(node, cst.Name) and node.value in names and not isinstance(self.context.parent(node), cst.Arg)
        ]
        return bool(uses) and all(
            isinstance(self.context.parent(use), cst.Attribute) and not self._hands_out_parameters(use) for use in uses
        )

    def _may_want_gradients(self, call: cst.Call, followers: set[Place]) -> bool:
        """Whether a network that is trained went into what the call is given, with its graph."""
        context = self.context
        for argument in call.args:
            for node in context.sources.ingredients(
                argument.value, bound_by=lambda binder: context.grad(binder) is not GradMode.OFF, is_end=_is_cut
            ):
                if isinstance(node, cst.Call) and not _is_cut(node) and context.grad(node) is GradMode.ON:
                    func = _network(node)
                    if self._evaluations.is_model_call(node) and place(func, context) not in followers:
                        return True
        return False


def _network(call: cst.Call) -> cst.BaseExpression:
    """What is called, or its `forward` is."""
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name(value="forward")):
            return owner
    return call.func


def _is_cut(node: cst.CSTNode) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) | cst.Attribute(attr=cst.Name(value=name)):
            return name in CUT or name in ("argmax", "sample")
    return False


def _called_of(node: cst.BaseExpression, context: Context) -> cst.Call | None:
    """What is called of something, or of its parts: `net.body.parameters()`."""
    above = context.parent(node)
    while isinstance(above, cst.Attribute):
        node, above = above, context.parent(above)
    return above if isinstance(above, cst.Call) and above.func is node and isinstance(node, cst.Attribute) else None


def _whose_parameters(node: cst.BaseExpression) -> cst.BaseExpression | None:
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="parameters"))):
            return owner
    return None


def _is_written(name: cst.BaseExpression, body: cst.CSTNode) -> bool:
    """Whether the parameter is set in place, or its data are: `q.data.copy_(…)`, `q.data = …`."""
    if not isinstance(name, cst.Name):
        return False
    for node in descendants(body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=owner, attr=cst.Name(value="data")))]):
                written: cst.BaseExpression = owner
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _WRITING:
                written = owner.value if isinstance(owner, cst.Attribute) and owner.attr.value == "data" else owner
            case _:
                continue
        if isinstance(written, cst.Name) and written.value == name.value:
            return True
    return False


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
        if not any(self.context.tree.within(call, loop.body) for call in self._backward.get(function, ())):
            return None  # what a step of its own does is its business
        gradients = self._taken_in(function)
        if not gradients or any(not context.tree.within(node, loop.body) for node in gradients):
            return None
        shared = _conditions(gradients[0], loop, context)
        for node in gradients[1:]:
            others = _conditions(node, loop, context)
            shared = {said: test for said, test in shared.items() if said in others}
        options = {said: test for said, test in shared.items() if _is_settled(test, loop, context)}
        if not options or context.frequencies.loop_kind(loop) is not LoopKind.BATCH:
            return None
        if context[Evaluations].is_of_a_test_case(function):
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

    @cached_property
    def _backward(self) -> dict[cst.CSTNode | None, list[cst.Call]]:
        """The backward passes of each function."""
        found: dict[cst.CSTNode | None, list[cst.Call]] = {}
        for call in self.context.tree.of(cst.Call):
            if final_part(call.func) in apis.BACKWARD_METHODS:
                found.setdefault(self.context.function(call), []).append(call)
        return found

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
        case cst.Comparison(left=asked, comparisons=[cst.ComparisonTarget(comparator=cst.SimpleString())]):
            return _is_left_alone(asked, loop, context)
        case cst.Comparison(left=asked, comparisons=[cst.ComparisonTarget(comparator=cst.Name() as other)]):
            is_word = other.value in ("None", "True", "False")
            return (is_word or _is_left_alone(other, loop, context)) and _is_left_alone(asked, loop, context)
    return _is_left_alone(test, loop, context)


def _is_left_alone(asked: cst.BaseExpression, loop: cst.For, context: Context) -> bool:
    """Whether this is a name that the loop does not bind, or an attribute of one that it does not set either."""
    root = asked
    while isinstance(root, cst.Attribute):
        root = root.value
    if not isinstance(root, cst.Name) or any(context.tree.within(binder, loop) for binder in context.binders(root)):
        return False
    return not isinstance(asked, cst.Attribute) or not any(
        isinstance(node, cst.Attribute) and node.attr.value == asked.attr.value and context.uses.is_target(node)
        for node in descendants(loop.body)
    )


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
