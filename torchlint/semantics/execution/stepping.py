"""What an iteration may take a step of, besides an optimizer: environments, iterators, schedulers, networks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.names.bindings import Names
    from torchlint.semantics.names.classes import Classes
    from torchlint.semantics.values.evaluator import Kinds
    from torchlint.syntax.tree import Tree

_STEPPED = frozenset({Kind.OPTIMIZER, Kind.SCALER, Kind.SCHEDULER})
# What an environment gives for an action: observation, reward, an end or two, and what else there is to say.
_FEWEST_RESULTS = 3


class Stepping:
    """The calls of one module that take such steps."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.kinds = kinds

    def takes_the_next_batch(self, call: cst.Call) -> bool:
        """Whether the call is `next(batches)`."""
        is_next = isinstance(call.func, cst.Name) and call.func.value == "next" and bool(call.args)
        return is_next and self.kinds.is_loader_like(call.args[0].value)

    def is_step(self, call: cst.Call) -> bool:
        """Whether the call steps an environment, or the scheduler of a diffusion."""
        match call.func:
            case cst.Attribute(value=owner, attr=cst.Name(value="step")):
                given = [argument for argument in call.args if not argument.star]
                if not given or self.kinds.value(owner).kind in _STEPPED:
                    return False
                return self._is_unpacked(call) or self._is_carried(call) or self._is_an_environment(owner, call)
        return False

    def _is_unpacked(self, call: cst.Call) -> bool:
        """`state, reward, done, info = env.step(action)`."""
        match self.tree.parent(call):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))]):
                return len(elements) >= _FEWEST_RESULTS and len(call.args) == 1
        return False

    def _is_carried(self, call: cst.Call) -> bool:
        """`x = scheduler.step(noise, t, x).prev_sample`: what a step gives is what the next one takes."""
        if len(call.args) <= 1 or not any(self.kinds.value(each.value).kind is Kind.TENSOR for each in call.args):
            return False
        node: cst.CSTNode = call
        above = self.tree.parent(node)
        while isinstance(above, (cst.Attribute, cst.Subscript)):
            node, above = above, self.tree.parent(above)
        match above:
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                bound = dotted(target)
                return bound is not None and any(dotted(argument.value) == bound for argument in call.args)
        return False

    def _is_an_environment(self, owner: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether a package of environments made it, or it begins episodes: what its `reset()` gives is used."""
        if isinstance(self.tree.parent(call), cst.Expr):
            return self._is_made_as_one(owner)
        name = dotted(owner)
        return (name is not None and name in self._begun) or self._is_made_as_one(owner)

    def _is_made_as_one(self, owner: cst.BaseExpression) -> bool:
        bindings = self.names.reaching(owner) if isinstance(owner, cst.Name) else ()
        made = [binding.value for binding in bindings if isinstance(binding.value, cst.Call)]
        return any(
            (self.names.qualified(value.func) or "").partition(".")[0] in apis.ENVIRONMENT_PACKAGES for value in made
        )

    @cached_property
    def _begun(self) -> frozenset[str]:
        """What begins episodes: the owners of `reset()` and `initial()` whose result is used."""
        return frozenset(
            name
            for call in self.tree.of(cst.Call)
            if isinstance(call.func, cst.Attribute)
            and call.func.attr.value in apis.EPISODE_BEGINNINGS
            and not isinstance(self.tree.parent(call), cst.Expr)
            and (name := dotted(call.func.value)) is not None
        )

    def is_fed_its_own(self, call: cst.Call, loop: cst.For | cst.While) -> bool:
        """Whether each iteration gives the same network what the one before has made: `x = self.model(x, t)`."""
        called = self.kinds.value(call.func)
        if called.kind is not Kind.MODULE or not isinstance(call.func, (cst.Name, cst.Attribute)):
            return False
        return not self._comes_of_the_turn(call.func, loop) and self.takes_what_a_turn_made(call, loop)

    def takes_what_a_turn_made(self, call: cst.Call, loop: cst.For | cst.While) -> bool:
        """Whether an argument of the call is bound in the loop's body, and before the call only by the turn before."""
        return any(
            isinstance(argument.value, cst.Name) and self._is_carried_over(argument.value, loop)
            for argument in call.args
        )

    def _is_carried_over(self, name: cst.Name, loop: cst.For | cst.While) -> bool:
        """Whether the name holds what the iteration before bound it to, or something computed of such a name."""
        waiting, seen = [name], {name.value}
        while waiting:
            bindings = self.names.reaching(waiting.pop())
            inside = [binding for binding in bindings if self.tree.within(binding.node, loop.body)]
            if inside and len(inside) < len(bindings):
                return True
            for value in filter(None, (binding.value for binding in inside if not binding.path)):
                parts = [part for part in (value, *descendants(value)) if isinstance(part, cst.Name)]
                waiting += [part for part in parts if part.value not in seen]
                seen.update(part.value for part in parts)
        return False

    def _comes_of_the_turn(self, func: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether what is called is another in each iteration: a layer that the loop goes over, or makes."""
        return any(
            isinstance(part, cst.Name)
            and any(
                binding.node is loop or self.tree.within(binding.node, loop.body)
                for binding in self.names.reaching(part)
            )
            for part in (func, *descendants(func))
        )
