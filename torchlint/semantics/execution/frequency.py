"""How often a line runs: loops over batches and epochs, entry points, callers, rate limits."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, cast

import libcst as cst

from torchlint.finding import Frequency
from torchlint.semantics.execution.first_time import gives_what_is_kept, is_first_time, makes_an_entry
from torchlint.semantics.execution.guards import is_missing
from torchlint.semantics.execution.stepping import Stepping
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.conditions import LIMIT_FLAG
from torchlint.semantics.knowledge.conventions.counts import COUNTER, EPOCH, RECURRING_COUNTER, STEP_COUNTER
from torchlint.semantics.knowledge.conventions.functions import (
    CALLED_METHOD,
    CLIPPING_FUNCTION,
    COLLATE_FUNCTION,
    DIAGNOSTIC_FUNCTION,
    METER_CLASS,
    METER_METHOD,
    MODEL_PARTS,
    VISUALISER,
)
from torchlint.semantics.knowledge.conventions.values import LOADER, LOSS, MODULE
from torchlint.semantics.names.applied import APPLYING, applied
from torchlint.semantics.names.bindings import Binder, Binding, Names, dotted, final_part, last_part, method_name
from torchlint.semantics.names.loop_headers import (
    asks_for_a_list,
    is_of_a_later_axis,
    is_one_turn,
    is_shape,
    is_short,
    is_size,
    iterables,
    length_of,
    takes_loaders,
    walks_keys,
)
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.literals import integer
from torchlint.syntax.tree import LOOPS, SCOPES, Comprehension, Loop, Tree, children, descendants, descendants_in_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.facts import Called
    from torchlint.semantics.execution.declarations import Declaration, Declarations
    from torchlint.semantics.names.classes import Classes
    from torchlint.semantics.values.call_graph import Calls
    from torchlint.semantics.values.evaluator import Kinds
    from torchlint.semantics.values.other_files import Elsewhere

_CALLS_DEEP = 2
_FIRST_TURNS = 16  # of a loop over batches, which has many more
_GOING_ALONG = apis.PASS_THROUGH | {"enumerate", "zip"}
_OF_STEPS = apis.BACKWARD_METHODS | {"step", "zero_grad"}


class LoopKind(Enum):
    """What one iteration of a loop is."""

    BATCH = "batch"
    EPOCH = "epoch"
    OTHER = "other"


class Frequencies:
    """The frequency of nodes in one module."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        classes: Classes,
        kinds: Kinds,
        calls: Calls,
        elsewhere: Elsewhere,
        declarations: Declarations,
    ) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.kinds = kinds
        self.calls = calls
        self.elsewhere = elsewhere
        self.declarations = declarations
        self._origins: dict[cst.CSTNode, str] = {}
        self._by_name: set[cst.CSTNode] = set()
        self._steps: dict[cst.CSTNode, bool] = {}
        self._direct: dict[cst.CSTNode, list[cst.Call]] = {}
        self._single: dict[cst.For, bool] = {}
        self._skips: dict[cst.IndentedBlock, int | None] = {}

    def frequency(self, node: cst.CSTNode) -> Frequency:
        """How often the node runs, as far as this module shows."""
        inside: LoopKind | None = None
        nested = False
        limited = False
        child = node
        for above in self.tree.ancestors(node):
            if isinstance(above, (cst.FunctionDef, cst.Lambda)) and child is above.body:
                outer = self.entry(above)
                return self._combined(inside, outer, nested=nested, limited=limited)
            if not limited and inside is not LoopKind.BATCH:
                # A limit around a loop over batches says how often the whole loop runs.
                limited = self._is_limited(above, child)
            if isinstance(above, (*Loop, *Comprehension)) and self._repeats(above, child, node):
                if inside is LoopKind.BATCH:
                    return self._combined(inside, Frequency.UNKNOWN, nested=nested, limited=limited)
                kind = self.loop_kind(above)
                nested = nested or (kind is LoopKind.OTHER and self._is_over_samples(above))
                if inside is None or kind is not LoopKind.OTHER:
                    inside = kind if inside is not LoopKind.EPOCH else inside
            child = above
        return self._combined(inside, Frequency.ONCE, nested=nested, limited=limited)

    @staticmethod
    def _combined(inside: LoopKind | None, outer: Frequency, *, nested: bool, limited: bool) -> Frequency:
        if inside is LoopKind.BATCH:
            result = Frequency.SAMPLE if nested else Frequency.BATCH
        elif inside is LoopKind.EPOCH:
            result = Frequency.EPOCH
        elif inside is LoopKind.OTHER and outer >= Frequency.BATCH:
            result = Frequency.SAMPLE if nested else outer
        elif inside is LoopKind.OTHER:
            result = Frequency.CALL if outer is Frequency.CALL else Frequency.UNKNOWN
        else:
            result = outer
        return Frequency.EPOCH if limited and result >= Frequency.BATCH else result

    def _repeats(self, loop: cst.CSTNode, child: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether the part of the loop in which the node stands runs in each iteration."""
        if isinstance(loop, cst.For):
            has_turns = not is_one_turn(loop.iter) and not self._ends_at_once(loop)
            return child is loop.body and has_turns and not self._leaves(node, loop)
        if isinstance(loop, cst.While):
            return child is loop.test or (child is loop.body and not self._leaves(node, loop))
        if isinstance(loop, Comprehension):
            return not self.tree.within(node, loop.for_in.iter)
        return False

    def _is_limited(self, above: cst.CSTNode, child: cst.CSTNode) -> bool:
        """Whether the statement lets its part run in some iterations only."""
        if isinstance(above, cst.If):
            return child is above.body and (is_first_time(above, self.names) or self.limits(above))
        if isinstance(above, cst.Else):
            statement = self.tree.parent(above)
            return isinstance(statement, cst.If) and makes_an_entry(statement, above.body, cst.In, self.names)
        return isinstance(above, cst.IndentedBlock) and self._skips_most(above, child)

    def is_of_the_first_time(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether the node runs where something is not there yet, and is made: here, or wherever its caller stands."""
        child = node
        for above in self.tree.ancestors(node):
            if isinstance(above, cst.If) and child is above.body and is_first_time(above, self.names):
                return True
            if isinstance(above, (cst.Lambda, cst.ClassDef)) or depth > _CALLS_DEEP:
                return False
            if isinstance(above, cst.FunctionDef):
                callers = () if self.elsewhere.callers(above) else self.calls.callers(above)
                return bool(callers) and all(self.is_of_the_first_time(call, depth + 1) for call in callers)
            child = above
        return False

    def _skips_most(self, block: cst.IndentedBlock, child: cst.CSTNode) -> bool:
        """Whether an earlier statement of the block leaves it in most iterations: `if step % n != 0: return`."""
        if block not in self._skips:
            skips = (part for part in block.body if isinstance(part, cst.If) and part.orelse is None)
            first = next((skip for skip in skips if self._is_skip(skip)), None)
            self._skips[block] = None if first is None else self.tree.place(first)
        place = self._skips[block]
        return place is not None and place < self.tree.place(child)

    def _is_skip(self, statement: cst.If) -> bool:
        suite = statement.body
        last = suite.body[-1] if suite.body else None
        final = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        if not isinstance(final, (cst.Return, cst.Continue)):
            return False
        is_kept = isinstance(final, cst.Return) and gives_what_is_kept(statement, final, self.tree)
        return is_kept or any(self._is_off_beat(part) for part in _parts(statement.test))

    def _is_off_beat(self, test: cst.BaseExpression, depth: int = 0) -> bool:
        match test:
            case cst.Comparison(
                left=left, comparisons=[cst.ComparisonTarget(operator=cst.NotEqual(), comparator=right)]
            ):
                return self._is_modulo(left) or self._is_modulo(right)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return self.is_rate_limit(inner)
            case cst.Name() if depth < 2:
                return any(
                    self._is_off_beat(part, depth + 1)
                    for binding in self.names.reaching(test)
                    if binding.value is not None and not binding.path
                    for part in _alternatives(binding.value)
                )
        return self._is_modulo(test)

    def _ends_at_once(self, loop: cst.For) -> bool:
        """Whether the first iteration is the last, or one soon after it: a few iterations are none to speak of.

        The first is, where `break` or `return` stands in the body itself, and no `continue`.
        """
        if loop not in self._single:
            self._single[loop] = self._is_single(loop)
        return self._single[loop]

    def _is_single(self, loop: cst.For) -> bool:
        if self._ends_early(loop):
            return True
        lines = [line for line in loop.body.body if isinstance(line, cst.SimpleStatementLine)]
        if not any(isinstance(part, (cst.Break, cst.Return)) for line in lines for part in line.body):
            return False
        inside = descendants_in_scope(loop.body)
        return not any(isinstance(node, cst.Continue) and self.loop(node) is loop for node in inside)

    def _ends_early(self, loop: cst.For) -> bool:
        """`if i >= 5: break`, in the body itself, of what counts the iterations."""
        for statement in loop.body.body:
            match statement:
                case cst.If(
                    test=cst.Comparison(
                        left=cst.Name() as counter,
                        comparisons=[
                            cst.ComparisonTarget(
                                operator=cst.GreaterThan() | cst.GreaterThanEqual() | cst.Equal(), comparator=last
                            )
                        ],
                    ),
                    body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[*_, cst.Break()])])
                    | cst.SimpleStatementSuite(body=[*_, cst.Break()]),
                ):
                    turns = integer(last)
                    if turns is not None and turns <= _FIRST_TURNS and self._counts(counter, loop):
                        return True
        return False

    def _counts(self, name: cst.Name, loop: cst.For) -> bool:
        """Whether this is the `i` of `for i in range(n)`, or of `for i, x in enumerate(xs)`."""
        bindings = self.names.reaching(name)
        if len(bindings) != 1 or bindings[0].node is not loop:
            return False
        match loop.iter:
            case cst.Call(func=func, args=[cst.Arg(value=_)]) if self.names.qualified(func) == "range":
                return bindings[0].path == ()
        return bindings[0].path == (0,) and self._is_numbered(loop.iter)

    def _leaves(self, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
        """Whether the block around the node ends the loop: `break`, `return` or `raise` behind an `if`."""
        for above in self.tree.ancestors(node):
            if above is loop:
                return False
            if isinstance(above, cst.IndentedBlock) and self.tree.parent(above) is not loop:
                owner = self.tree.parent(above)
                last = above.body[-1] if above.body else None
                if isinstance(owner, (cst.If, cst.Else, cst.ExceptHandler)) and isinstance(
                    last, cst.SimpleStatementLine
                ):
                    final = last.body[-1]
                    if isinstance(final, (cst.Return, cst.Raise)):
                        return True
                    if isinstance(final, cst.Break) and self.loop(final) is loop:
                        return True
        return False

    def loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        """The innermost loop statement in whose body or test the node stands, within its function."""
        child = node
        for above in self.tree.ancestors(node):
            if isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                return None
            if isinstance(above, Loop) and (
                child is above.body or (isinstance(above, cst.While) and child is above.test)
            ):
                return above
            child = above
        return None

    def batch_loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        """The innermost loop over batches in whose body the node stands, within its function."""
        current = self.loop(node)
        while current is not None and self.loop_kind(current) is not LoopKind.BATCH:
            current = self.loop(current)
        return current

    # Loops

    @cached_property
    def stepping(self) -> Stepping:
        """What takes steps of environments, iterators and networks."""
        return Stepping(self.tree, self.names, self.classes, self.kinds)

    def loop_kind(self, loop: cst.CSTNode) -> LoopKind:
        """What one iteration of the loop is."""
        return self.kinds.settled(("loop", loop), LoopKind.OTHER, self._classify, loop)

    def _classify(self, loop: cst.CSTNode) -> LoopKind:
        if isinstance(loop, Comprehension):
            takes_batches = self._over_batches(loop.for_in.iter) and not takes_loaders(loop.for_in.target)
            return LoopKind.BATCH if takes_batches else LoopKind.OTHER
        if isinstance(loop, cst.For):
            if self._over_batches(loop.iter):
                takes_batches = not takes_loaders(loop.target) or self._goes_backward(loop.body)
                return LoopKind.BATCH if takes_batches else LoopKind.EPOCH
            if self._names_epochs(loop):
                return LoopKind.EPOCH
            if self._walks_a_model(loop.iter):
                return LoopKind.OTHER
        assert isinstance(loop, Loop)
        # What a loop does in most iterations says what an iteration is: `if step % 1000 == 0: evaluate(…)` does not.
        found = self._classify_by_turns(loop, is_usual=True)
        if found is LoopKind.OTHER:
            found = self._classify_by_turns(loop, is_usual=False)
        return LoopKind.BATCH if found is LoopKind.OTHER and self._hands_out_batches(loop) else found

    def _classify_by_turns(self, loop: cst.For | cst.While, *, is_usual: bool) -> LoopKind:
        """What one iteration is by what it does; with `is_usual` what it does now and then is left out."""
        loops = [node for node in descendants_in_scope(loop.body) if isinstance(node, Loop)]
        calls = self._direct_calls(loop)
        if is_usual:
            loops = [node for node in loops if not self._is_limited_within(node, loop)]
            calls = [call for call in calls if not self._is_limited_within(call, loop)]
        inner = [self.loop_kind(node) for node in loops]
        if LoopKind.BATCH in inner or LoopKind.EPOCH in inner:
            # A loop that goes backward itself takes steps, whatever it looks at now and then.
            if self._has_a_backward(loop.body) or self._adds_up_gradients(loop, loops) or self._acts(loop):
                return LoopKind.BATCH
            is_of_parts = self.goes_along_an_axis(loop) or (
                LoopKind.EPOCH not in inner and (self._answers(loop, loops) or self._goes_along_axes(loops))
            )
            return LoopKind.BATCH if is_of_parts else LoopKind.EPOCH
        kinds = [self._callee_loops(call) for call in calls]
        if LoopKind.EPOCH in kinds:
            is_of_parts = self._has_a_backward(loop.body) or self.goes_along_an_axis(loop)
            return LoopKind.BATCH if is_of_parts else LoopKind.EPOCH
        if isinstance(loop, cst.For) and is_short(loop.iter):
            return LoopKind.OTHER
        # `for network in ("first", "second"):` around a step belongs to the turn.
        short = [inner.body for inner in loops if isinstance(inner, cst.For) and is_short(inner.iter)]
        if any(map(self.steps, (loop.body, *short))) or LoopKind.BATCH in kinds:
            return LoopKind.BATCH
        nexts = self._straight(loop.body, self._of_actions)
        if self._runs_a_module(loop) or any(map(self.stepping.takes_the_next_batch, nexts)):
            return LoopKind.BATCH
        return LoopKind.BATCH if self._acts(loop) else LoopKind.OTHER

    def _goes_along_axes(self, loops: list[cst.For | cst.While]) -> bool:
        """Whether those of the loops that run a network do so for each position of a tensor, as a part of a batch."""
        return all(self.goes_along_an_axis(each) for each in loops if self.loop_kind(each) is not LoopKind.OTHER)

    def _answers(self, loop: cst.For | cst.While, loops: list[cst.For | cst.While]) -> bool:
        """Whether each iteration runs a network beside loops that do, and neither trains nor goes over data.

        A step of what is generated: a loop drafts some tokens, and a larger network looks at them.
        """
        return self._runs_a_module(loop) and not any(
            self.steps(inner.body) or (isinstance(inner, cst.For) and self._over_batches(inner.iter)) for inner in loops
        )

    def _hands_out_batches(self, loop: cst.For | cst.While) -> bool:
        """Whether each iteration yields some rows, or what a loop over batches takes: `yield x[i : i + size]`."""
        yields = self._yields.get(loop)
        if yields is None:
            return False
        if any(self._is_of_rows(node.value, loop) for node in yields if isinstance(node.value, cst.BaseExpression)):
            return True
        function = self.tree.function(loop)
        callers = self.calls.callers(function) if isinstance(function, cst.FunctionDef) else ()
        takers = (self._taker(call) for call in callers)
        return any(taker is not None and self.loop_kind(taker) is LoopKind.BATCH for taker in takers)

    @cached_property
    def _yields(self) -> dict[cst.For | cst.While, list[cst.Yield]]:
        """What the loops of generators yield, each its own."""
        found: dict[cst.For | cst.While, list[cst.Yield]] = {}
        for node in self.tree.of(cst.Yield):
            loop = self.loop(node)
            if loop is not None:
                found.setdefault(loop, []).append(node)
        return found

    def _is_of_rows(self, node: cst.BaseExpression, loop: cst.For | cst.While, depth: int = 0) -> bool:
        """Whether this is, or holds, some rows that the iteration picks: by a slice, or by the numbers of them."""
        match node:
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return any(self._is_of_rows(element.value, loop, depth) for element in elements)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=index), *_]):
                if isinstance(index, cst.Index):
                    return self.kinds.value(index.value).kind in (Kind.TENSOR, Kind.NDARRAY)
                return True
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="to" | "cuda"))):
                return self._is_of_rows(owner, loop, depth)
            case cst.Call(func=func, args=[cst.Arg(value=first), *_]):
                made = (self.names.qualified(func) or "").startswith("torch.")
                return made and self._is_of_rows(first, loop, depth)
            case cst.Name() if depth < _CALLS_DEEP:
                return any(
                    binding.value is not None
                    and not binding.path
                    and self.tree.within(binding.node, loop.body)
                    and self._is_of_rows(binding.value, loop, depth + 1)
                    for binding in self.names.reaching(node)
                )
        return False

    def _taker(self, given: cst.CSTNode) -> cst.For | None:
        """The loop over what a call gives: `for x, y in enumerate(batches(data))`."""
        above = self.tree.parent(given)
        while isinstance(above, cst.Arg) and isinstance(call := self.tree.parent(above), cst.Call):
            if (self.names.qualified(call.func) or "") not in _GOING_ALONG:
                return None
            given, above = call, self.tree.parent(call)
        return above if isinstance(above, cst.For) and above.iter is given else None

    def goes_along_an_axis(self, loop: cst.For | cst.While) -> bool:
        """`for t in range(x.shape[1])`: positions of a tensor, whatever is done for each, are no epochs."""
        match loop:
            case cst.For(iter=cst.Call(func=cst.Name(value="range"), args=[*_, _] as args)):
                return self._is_extent(args[min(len(args), 2) - 1].value)
        return False

    def _is_extent(self, node: cst.BaseExpression) -> bool:
        """Whether this is the size of a tensor along an axis, or a name for one: `batch, length = x.size()`."""
        match node:
            case cst.Subscript(value=owner):
                return is_shape(owner)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[_]):
                return True
            case cst.Name():
                bindings = self.names.reaching(node)
                return bool(bindings) and all(
                    binding.value is not None and self._is_bound_to_extent(binding.value, binding.path)
                    for binding in bindings
                )
        return False

    def _is_bound_to_extent(self, value: cst.BaseExpression, path: tuple[int, ...]) -> bool:
        match value, path:
            case cst.Tuple(elements=elements), (place,) if 0 <= place < len(elements):
                return self._is_bound_to_extent(elements[place].value, ())
            case _, (_,):
                return is_shape(value)
            case cst.Subscript(value=owner), ():
                return is_shape(owner)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[_]), ():
                return True
        return False

    def _is_limited_within(self, node: cst.CSTNode, loop: cst.For | cst.While) -> bool:
        """Whether only some iterations of the loop come to the node."""
        child = node
        for above in self.tree.ancestors(node):
            if above is loop:
                return False
            if isinstance(above, cst.If) and child is above.body and self.is_rate_limit(above.test):
                return True
            child = above
        return False

    def _acts(self, loop: cst.For | cst.While) -> bool:
        """Whether each iteration steps an environment or a diffusion itself, whatever loops it has besides."""
        return any(map(self.stepping.is_step, self._straight(loop.body, self._of_actions))) or self._samples(loop)

    def _adds_up_gradients(self, loop: cst.For | cst.While, inner: list[cst.For | cst.While]) -> bool:
        """Whether the loop takes one step of the optimizer for all backward passes of a loop over parts of a batch.

        `for micro_step in range(k): …backward()`, then `optimizer.step()`. One over a loader is a pass over the data.
        """
        if not self.steps(loop.body) and not any(map(self._steps_each, inner)):
            return False
        kinds = [part for part in inner if self.loop_kind(part) is not LoopKind.OTHER]
        return all(
            isinstance(part, cst.For)
            and self._has_a_backward(part.body)
            and not self._takes_steps(part.body)
            and not self._goes_over_a_loader(part)
            for part in kinds
        )

    def _steps_each(self, loop: cst.For | cst.While) -> bool:
        """`for optimizer in optimizers: optimizer.step()`, whatever they are made by."""
        return (
            isinstance(loop, cst.For)
            and isinstance(loop.target, cst.Name)
            and not self._goes_backward(loop.body)
            and any(
                method_name(call.func) == "step" and not call.args and dotted(call.func.value) == loop.target.value  # type: ignore[attr-defined]
                for call in self._straight(loop.body)
            )
        )

    def _is_a_loader(self, iterated: cst.BaseExpression) -> bool:
        """Whether this is a loader, by what made it or by its name, and not only for what a loop does with it."""
        value = self.kinds.value(iterated)
        is_likely = value.kind is Kind.LOADER and (value.proven or LOADER.suggests(final_part(iterated)))
        return is_likely or self._loader_length(length_of(iterated))

    def _takes_steps(self, body: cst.CSTNode) -> bool:
        return any(
            method_name(call.func) not in apis.BACKWARD_METHODS and self._is_backward(call)
            for call in self._straight(body)
        )

    def _samples(self, loop: cst.For | cst.While) -> bool:
        """Whether a network in the method of a module is given, iteration by iteration, what it has made: it generates.

        In what runs with each batch anyway the loop is a part of the network.
        """
        function = self.tree.function(loop)
        if not isinstance(function, cst.FunctionDef) or function.name.value == "forward":
            return False
        if self.classes.owner(function) is None:
            return False
        fed = any(
            self.stepping.is_fed_its_own(call, loop)
            or (
                self._is_of_its_own(call)
                and self.stepping.takes_what_a_turn_made(call, loop)
                and self._runs_the_network(call)
            )
            for call in self._direct_calls(loop)
        )
        return fed and self.entry(function) < Frequency.BATCH

    def _is_of_its_own(self, call: cst.Call) -> bool:
        """Whether the call is of a method of the object itself: `self.p_sample(x, t)`."""
        match call.func:
            case cst.Attribute(value=cst.Name() as owner):
                return self.classes.self_class(owner) is not None
        return False

    def _runs_the_network(self, call: cst.Call) -> bool:
        """Whether the call is of a method of the object that calls a network."""
        target = self.calls.target(call) if self._is_of_its_own(call) else None
        return target is not None and self.kinds.settled(("runs", target), False, self._computes, target)  # noqa: FBT003

    def _computes(self, function: cst.FunctionDef) -> bool:
        """Whether a method calls a network, or a method of its object that does."""
        calls = [node for node in descendants_in_scope(function.body) if isinstance(node, cst.Call)]
        return any(
            isinstance(call.func, (cst.Name, cst.Attribute)) and self.kinds.value(call.func).kind is Kind.MODULE
            for call in calls
        ) or any(map(self._runs_the_network, calls))

    def _over_batches(self, iterated: cst.BaseExpression) -> bool:
        """Whether the loop goes over a loader, or over a dataset sample by sample."""
        if self.kinds.is_loader_like(iterated) or self.kinds.value(iterated).kind is Kind.DATASET:
            return True
        match iterated:
            case cst.Call(func=cst.Name(value="range"), args=args):
                last = args[min(len(args), 2) - 1].value if args else None
                return last is not None and self._loader_length(last)
            case cst.Call(args=[cst.Arg(value=first), *_], func=func):
                name = self.names.qualified(func) or dotted(func) or method_name(func)
                last_part = name.rpartition(".")[2]
                if name in apis.PASS_THROUGH:
                    return any(self._over_batches(argument.value) for argument in (cst.Arg(first),)) or (
                        last_part == "zip" and self.kinds.is_loader_like(iterated)
                    )
        return False

    def _loader_length(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=of)]):
                return self.kinds.is_loader_like(of)
            case cst.Name():
                return self.kinds.settled(("length", node), False, self._bound_length, node)  # noqa: FBT003
        return False

    def _bound_length(self, name: cst.Name) -> bool:
        bindings = self.names.reaching(name)
        if len(bindings) == 1 and bindings[0].value is not None and not bindings[0].path:
            return self._loader_length(bindings[0].value)
        return False

    def _names_epochs(self, loop: cst.For) -> bool:
        words = [dotted(node) or "" for node in descendants(loop.target)]
        words += [dotted(node) or "" for node in descendants(loop.iter) if isinstance(node, (cst.Name, cst.Attribute))]
        return any(EPOCH.suggests(word) for word in words)

    def _walks_a_model(self, iterated: cst.BaseExpression) -> bool:
        """Whether the loop goes over parameters, layers or optimizers."""
        value = self.kinds.value(iterated)
        if value.kind is Kind.MODULE:
            return True
        item = value.item
        if item is not None and item.kind in (Kind.OPTIMIZER, Kind.SCHEDULER, Kind.MODULE):
            return True
        walked = iterated.func if isinstance(iterated, cst.Call) else iterated
        return MODEL_PARTS.suggests(final_part(walked))

    def _is_over_samples(self, loop: cst.CSTNode) -> bool:
        """Whether the loop may go over the samples of a batch: not over parts of a model, or a few things that it has.

        What it goes over is not always known; then it may.
        """
        if isinstance(loop, cst.While) or walks_keys(loop):
            return False
        assert isinstance(loop, (cst.For, *Comprehension))
        iterated = loop.iter if isinstance(loop, cst.For) else loop.for_in.iter
        return all(self._may_be_samples(part) for part in iterables(iterated))

    def _may_be_samples(self, iterated: cst.BaseExpression) -> bool:
        if self._walks_a_model(iterated) or is_short(iterated) or self._goes_over_several(iterated):
            return False
        if isinstance(iterated, cst.Name) and self._spells_out(iterated):
            return False
        value = self.kinds.value(iterated)
        if value.kind is Kind.TENSOR:
            return True
        if (
            value.item is not None
            and value.item.kind in (Kind.OBJECT, Kind.FUNCTION, Kind.CLASS)
            and value.item.definition
        ):
            return False  # agents, callbacks
        listed = length_of(iterated)
        if isinstance(listed, cst.Name) and self._is_list_of_parts(listed):
            return False
        match iterated:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="keys" | "values")), args=[]):
                return False  # the parts of a batch, which have names
            case cst.Call(func=cst.Name(value="range"), args=args):
                return any(is_size(argument.value) or self._is_bound_to_size(argument.value) for argument in args)
            case cst.Attribute(value=cst.Name(value="self")):
                return False
        # `losses` holds one for each term.
        return not LOSS.suggests(final_part(iterated))

    def _spells_out(self, name: cst.Name) -> bool:
        """Whether the name stands for numbers or texts that are listed in the code: `stops = [2, 13]`."""
        values = [None if binding.path else binding.value for binding in self.names.reaching(name)]
        return bool(values) and all(
            isinstance(value, (cst.List, cst.Tuple))
            and bool(value.elements)
            and all(isinstance(each.value, (cst.Integer, cst.Float, cst.SimpleString)) for each in value.elements)
            for value in values
        )

    def _is_list_of_parts(self, name: cst.Name) -> bool:
        """Whether the function makes the list itself, and in no loop that may go over samples or batches."""
        function = self.tree.function(name)
        bindings = self.names.reaching(name)
        starts = [binding.value for binding in bindings if not binding.path]
        if not isinstance(function, cst.FunctionDef) or not starts or len(starts) < len(bindings):
            return False
        if not all(isinstance(start, cst.List) for start in starts):
            return False
        filled = [
            node
            for node in descendants_in_scope(function.body)
            if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == name.value
        ]
        loops = {
            loop
            for node in filled
            for loop in self.tree.ancestors(node)
            if isinstance(loop, Loop) and not all(self.tree.within(binding.node, loop) for binding in bindings)
        }
        return (
            bool(filled)
            and all(node.attr.value == "append" for node in filled)
            and not any(self.loop_kind(loop) is LoopKind.BATCH or self._is_over_samples(loop) for loop in loops)
        )

    def _is_bound_to_size(self, node: cst.BaseExpression) -> bool:
        """Whether every binding of a name is a size."""
        if not isinstance(node, cst.Name):
            return False
        bindings = self.names.reaching(node)
        return bool(bindings) and all(
            binding.value is not None and (is_size(binding.value) or is_shape(binding.value)) for binding in bindings
        )

    def _goes_over_several(self, iterated: cst.BaseExpression) -> bool:
        """Whether these are things of a batch that are no samples: what lies along a later axis, a list of batches."""
        match iterated:
            case cst.Call(func=cst.Name(value="range"), args=args) if args:
                sizes = [argument.value for argument in args]
                if any(is_of_a_later_axis(size) for size in sizes) or self._is_bound_to_a_later_axis(sizes[-1]):
                    return True
        child: cst.CSTNode = iterated
        for above in self.tree.ancestors(iterated):
            if isinstance(above, (cst.FunctionDef, cst.Lambda)):
                return False
            if isinstance(above, cst.If) and child is above.body and asks_for_a_list(above.test, iterated):
                return True
            child = above
        return False

    def _is_bound_to_a_later_axis(self, node: cst.BaseExpression) -> bool:
        """Whether every binding of a name is such a size: `frames = x.shape[1]`."""
        bindings = self.names.reaching(node) if isinstance(node, cst.Name) else ()
        return bool(bindings) and all(
            binding.value is not None and not binding.path and is_of_a_later_axis(binding.value) for binding in bindings
        )

    def _runs_a_module(self, loop: cst.For | cst.While) -> bool:
        """Whether each iteration calls a whole model outside of any model's own code."""
        class_ = self.tree.enclosing_class(loop)
        if class_ is not None and self.classes.is_module(class_):
            return False
        for call in self._direct_calls(loop):
            model = self._run(call)
            if model is None or not call.args or self._is_made_in(loop, model) or self._is_walked(loop, model):
                continue
            return True
        return False

    def _is_walked(self, loop: cst.For | cst.While, model: cst.BaseExpression) -> bool:
        """Whether what runs is what the loop goes over, or a part of it: `for stage in stages: x = stage[0](x)`."""
        return any(
            isinstance(part, cst.Name) and any(binding.node is loop for binding in self.names.reaching(part))
            for part in (model, *descendants(model))
        )

    def _run(self, call: cst.Call) -> cst.BaseExpression | None:
        """The model that a call runs: `model(x)`, or one that is known for sure, `vae.decode(x)`; a loss is none."""
        called = self.kinds.value(call.func)
        if called.kind is Kind.MODULE:
            return None if called.scalar and called.proven else call.func
        match call.func:
            case cst.Name(value=name) if called.kind is Kind.FUNCTION and any(
                binding.binder is Binder.PARAMETER for binding in self.names.reaching(call.func)
            ):
                is_model = MODULE.suggests(name) and not LOSS.suggests(name)
                return call.func if is_model else None  # in its place
            case cst.Attribute(value=owner, attr=cst.Name(value=method)) if method in apis.RUNNING_METHODS:
                value = self.kinds.value(owner)
                return owner if value.kind is Kind.MODULE and value.proven else None
        return None

    def _is_made_in(self, loop: cst.For | cst.While, model: cst.BaseExpression) -> bool:
        """Whether each iteration makes the model that it runs: the loop goes over models, and not over batches."""
        if not isinstance(model, cst.Name):
            return False
        bindings = self.names.reaching(model)
        return bool(bindings) and all(
            binding.node is loop
            or (self.tree.within(binding.node, loop.body) and self._makes_another(binding, model.value))
            for binding in bindings
        )

    @staticmethod
    def _makes_another(binding: Binding, name: str) -> bool:
        """Whether the binding calls something without what the name held before: `net = build()`."""
        return isinstance(binding.value, cst.Call) and not any(
            isinstance(part, cst.Name) and part.value == name for part in descendants(binding.value)
        )

    def _direct_calls(self, loop: cst.For | cst.While) -> list[cst.Call]:
        """Calls made in each iteration, those of inner loops left out."""
        found = self._direct.get(loop)
        if found is None:
            found = self._direct[loop] = []
            stack: list[cst.CSTNode] = [loop.body]
            while stack:
                current = stack.pop()
                kind = type(current)
                if kind in LOOPS or kind in SCOPES:
                    continue
                if kind is cst.Call:
                    found.append(cast("cst.Call", current))
                stack.extend(children(current))
        return found

    def _callee_loops(self, call: cst.Call) -> LoopKind:
        """EPOCH where the called function loops over batches, BATCH where it takes a step."""
        target = self.calls.target(call)
        if target is None:
            return LoopKind.OTHER
        for node in descendants_in_scope(target.body):
            if isinstance(node, Loop) and self.loop_kind(node) in (LoopKind.BATCH, LoopKind.EPOCH):
                return LoopKind.EPOCH
        if self.steps(target.body):
            return LoopKind.BATCH
        calls = self._straight(target.body, self._of_actions)
        takes = any(self.stepping.is_step(call) or self.stepping.takes_the_next_batch(call) for call in calls)
        return LoopKind.BATCH if takes else LoopKind.OTHER

    def steps(self, body: cst.CSTNode) -> bool:
        """Whether a backward pass is taken directly in the body: not in an inner loop or function."""
        found = self._steps.get(body)
        if found is None:
            found = self._steps[body] = any(map(self._is_backward, self._straight(body)))
        return found

    def _goes_backward(self, body: cst.CSTNode) -> bool:
        return any(method_name(call.func) in apis.BACKWARD_METHODS for call in self._straight(body))

    def _has_a_backward(self, body: cst.CSTNode) -> bool:
        """Whether the body goes backward, itself or by a function that only does so: `backward(loss, scaler)`."""
        return self._goes_backward(body) or any(self._straight(body, self._of_wrapped_backwards))

    @cached_property
    def _of_wrapped_backwards(self) -> list[cst.Call]:
        """The calls of functions of this module that go backward, outside of any loop, and take no step."""
        straight = {name: set(self._straight_functions(name)) for name in ("backward", "step")}
        wrappers = straight["backward"] - straight["step"]
        if not wrappers:
            return []
        names = {function.name.value for function in wrappers}
        return [
            call
            for call in self.tree.of(cst.Call)
            if last_part(call.func) in names and self._named_function(call.func) in wrappers
        ]

    def _straight_functions(self, method: str) -> Iterator[cst.FunctionDef]:
        """The functions in which the method is called outside of any loop."""
        for call in self._of_steps:
            function = self.tree.function(call)
            if not isinstance(function, cst.FunctionDef) or method_name(call.func) != method:
                continue
            if any(self._straight(function.body, [call])):
                yield function

    def _named_function(self, func: cst.BaseExpression) -> cst.FunctionDef | None:
        """The function of this module that goes by this name, or the method of the object itself."""
        match func:
            case cst.Name():
                bound = {binding.node for binding in self.names.reaching(func)}
                found = bound.pop() if len(bound) == 1 else None
                return found if isinstance(found, cst.FunctionDef) else None
            case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
                class_ = self.classes.self_class(owner)
                return self.classes.method(class_, name) if class_ is not None else None
        return None

    def _straight(self, body: cst.CSTNode, among: list[cst.Call] | None = None) -> Iterator[cst.Call]:
        """The calls in the body that belong to a step by their names: in no loop, function or class inside of it.

        Those `among` others, where these are given.
        """
        for call in self._of_steps if among is None else among:
            node: cst.CSTNode | None = call
            while node is not None and node is not body and type(node) not in LOOPS and type(node) not in SCOPES:
                node = self.tree.parent(node)
            if node is body:
                yield call

    @cached_property
    def _of_actions(self) -> list[cst.Call]:
        """The calls that may step an environment, or take a batch, by their names."""
        return [
            call
            for call in self.tree.of(cst.Call)
            if call.args
            and (method_name(call.func) == "step" or (isinstance(call.func, cst.Name) and call.func.value == "next"))
        ]

    @cached_property
    def _of_steps(self) -> list[cst.Call]:
        return [call for call in self.tree.of(cst.Call) if method_name(call.func) in _OF_STEPS]

    def _is_backward(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args):
                if name in apis.BACKWARD_METHODS:
                    return True
                # `optimizer.step()` or `scaler.step(optimizer)`, not an environment's `env.step(action)`.
                if name == "step" and isinstance(node.func, cst.Attribute) and len(args) <= 1:
                    owner = self.kinds.value(node.func.value)
                    if owner.kind in (Kind.OPTIMIZER, Kind.SCALER):
                        return True
                    return bool(args) and self.kinds.value(args[0].value).kind is Kind.OPTIMIZER
        return False

    # Functions

    def entry(self, function: cst.FunctionDef | cst.Lambda) -> Frequency:
        """How often a function is entered."""
        return self.kinds.settled(("entry", function), Frequency.UNKNOWN, self._entered, function)

    def _entered(self, function: cst.FunctionDef | cst.Lambda) -> Frequency:
        if isinstance(function, cst.Lambda):
            return self._of_calls_by_name(function)
        declared = self.declared(function)
        if declared is not None:
            return declared.frequency
        if self._is_cached(function):
            return Frequency.UNKNOWN
        known = self._by_role(function)
        if known is not Frequency.UNKNOWN:
            return known
        # What calls itself goes through something nested: who calls it from outside says how often.
        outside = [node for node in self.entries(function) if not self.tree.within(node, function)]
        seen = [self._entered_by(node, function) for node in outside]
        launched = map(self.frequency, self.calls.launches(function))  # once in each process
        best = max((*seen, *launched), default=Frequency.UNKNOWN)
        if best is Frequency.ONCE and self._recurs(outside, seen):
            best = Frequency.UNKNOWN
        if best < Frequency.BATCH:
            for call in self.from_elsewhere(function):
                if call.frequency > best:
                    best = call.frequency
                    self._origins[function] = call.where
        if best is Frequency.UNKNOWN and not outside and self.classes.owner(function) is not None:
            for call in self.elsewhere.sole_calls(function):
                if call.frequency > best:
                    best = call.frequency
                    self._origins[function] = call.where
                    self._by_name |= {function} if best >= Frequency.BATCH else set()
        # A step that a script takes once where it is defined, in a function or not, is none of many.
        around = self.tree.function(function)
        is_taken_once = best is Frequency.ONCE and all(self.tree.function(node) is around for node in outside)
        is_step = self._is_step(function) or self.adds_up_in_loops(function)
        if best < Frequency.BATCH and not is_taken_once and is_step:
            # Who calls it once an epoch trains with the whole set at a time, who does every fifth batch with batches.
            callers = self.calls.callers(function)
            is_thinned = any(call.thinned for call in self.elsewhere.callers(function))
            is_of_epochs = (
                all(map(self.is_named_after_epochs, callers)) if callers else best is Frequency.EPOCH and not is_thinned
            )
            return Frequency.EPOCH if is_of_epochs else Frequency.BATCH
        return Frequency.CALL if best is Frequency.UNKNOWN and self._is_called_unseen(function) else best

    def is_entered_by_name(self, function: cst.FunctionDef) -> bool:
        """Whether only calls of a method of this name, of objects that may be any, say how often it is entered."""
        return self.entry(function) >= Frequency.BATCH and function in self._by_name

    def from_elsewhere(self, function: cst.FunctionDef) -> tuple[Called, ...]:
        """The calls from other files that enter the function: those of `__init__` make an instance."""
        class_ = self.classes.owner(function) if function.name.value == "__init__" else None
        return self.elsewhere.callers(function) if class_ is None else self.elsewhere.makers(class_)

    def entries(self, function: cst.FunctionDef) -> tuple[cst.Call | cst.Attribute, ...]:
        """What enters the function in this module: calls, also of a `partial` of it or by `map`, and property reads."""
        calls = (*self.calls.callers(function), *self.calls.wrapped_callers(function), *self._maps(function))
        return (*calls, *self._reads(function))

    def _entered_by(self, node: cst.CSTNode, function: cst.FunctionDef) -> Frequency:
        """How often a call, or a read of a property, enters the function; of several in a dictionary it runs one."""
        found = self.frequency(node)
        is_sure = not isinstance(node, cst.Call) or found <= Frequency.BATCH or self.calls.target(node) is function
        return found if is_sure else Frequency.BATCH

    def _recurs(self, entries: list[cst.Call | cst.Attribute], seen: list[Frequency]) -> bool:
        """Whether one of several entries stands in a loop of which nobody sees how often it turns: not once, then."""
        return any(
            frequency is Frequency.UNKNOWN and self.loop(node) is not None
            for node, frequency in zip(entries, seen, strict=True)
        )

    def _of_calls_by_name(self, function: cst.Lambda) -> Frequency:
        """How often the name is called that a lambda is bound to, or what runs it for each element."""
        found = applied(function, self.tree, self.names)
        if found is not None:
            return self.frequency(found.call)
        match self.tree.parent(function):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
                calls = [
                    call
                    for use in self.names.spelt(name)
                    if isinstance(call := self.tree.parent(use), cst.Call)
                    and call.func is use
                    and any(binding.node is statement for binding in self.names.reaching(use))
                ]
                return max(map(self.frequency, calls), default=Frequency.UNKNOWN)
        return Frequency.UNKNOWN

    def _maps(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of `map` and the like that run the function for each element: `map(self.moved, arrays)`."""
        if not any(map(self.names.spelt, APPLYING)):
            return []
        found = []
        for name in self.names.spelt(function.name.value):
            above = self.tree.parent(name)
            passed = above if isinstance(above, cst.Attribute) and above.attr is name else name
            given = applied(passed, self.tree, self.names)
            if given is not None and self.kinds.value(passed).definition is function:
                found.append(given.call)
        return found

    def _reads(self, function: cst.FunctionDef) -> list[cst.Attribute]:
        """Where a property is read that the function computes."""
        owner = self.classes.owner(function)
        if owner is None or not any(last_part(item.decorator) == "property" for item in function.decorators):
            return []
        return [
            attribute
            for name in self.names.spelt(function.name.value)
            if isinstance(attribute := self.tree.parent(name), cst.Attribute)
            and attribute.attr is name
            and self._is_of(attribute.value, owner)
        ]

    def _is_of(self, node: cst.BaseExpression, class_: cst.ClassDef) -> bool:
        """Whether this holds an instance of the class, or of one that extends it."""
        own = self.classes.self_class(node) if isinstance(node, cst.Name) else None
        found = own or self.kinds.value(node).definition
        return isinstance(found, cst.ClassDef) and class_ in self.classes.lineage(found)

    def declared(self, function: cst.FunctionDef) -> Declaration | None:
        """What the author declares of how often a function runs, in a comment or in the configuration."""
        return self.declarations.of(function)

    def _is_called_unseen(self, function: cst.FunctionDef) -> bool:
        """Whether code that is not in sight calls the function, as far as it shows: a framework, Python, users."""
        name, owner = function.name.value, self.classes.owner(function)
        if any(self._registers(item.decorator) for item in function.decorators):
            return True
        if owner is None:
            return self.tree.function(function) is None and self._is_public(name)
        if name.startswith("__"):
            return name.endswith("__") and name not in apis.MAKING_METHODS
        if name.startswith("_"):
            return False
        return (
            CALLED_METHOD.suggests(name) or self._extends_what_is_not_here(owner) or self._is_public(owner.name.value)
        )

    def _registers(self, decorator: cst.BaseExpression) -> bool:
        """Whether a decorator hands the function to somebody, or makes it something that is read."""
        func = decorator.func if isinstance(decorator, cst.Call) else decorator
        name = self.names.qualified(func) or dotted(func) or ""
        return not name.startswith("torch.") and name not in apis.PLAIN_DECORATORS

    def _extends_what_is_not_here(self, class_: cst.ClassDef) -> bool:
        """Whether the class extends one from elsewhere, whose code may call what this one defines."""
        return any(
            isinstance(base, str) and base not in apis.PLAIN_BASES and not base.startswith("torch.nn.")
            for base in self.classes.lineage(class_)
        )

    def _is_public(self, name: str) -> bool:
        """Whether users of a library may reach what has this name: its file is a part of a package, or exports it."""
        return not name.startswith("_") and ("" in self.names.imported or "__all__" in self.names.module.bindings)

    def _is_cached(self, function: cst.FunctionDef) -> bool:
        """Whether the function runs once for all calls with the same arguments."""
        decorators = [item.decorator for item in function.decorators]
        called = [item.func if isinstance(item, cst.Call) else item for item in decorators]
        return any(self.names.qualified(item) in ("functools.lru_cache", "functools.cache") for item in called)

    def is_named_after_epochs(self, call: cst.Call) -> bool:
        """Whether the call stands in a loop that is one over epochs by its names, not only for what it holds."""
        loop = self.loop(call)
        return isinstance(loop, cst.For) and self._names_epochs(loop)

    def is_epoch_by_name(self, node: cst.CSTNode) -> bool:
        """Whether a name alone says that the node runs once an epoch: of all data at once, an epoch is a step."""
        return self.frequency(node) is Frequency.EPOCH and self._is_of_a_step(node)

    def _is_of_a_step(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether the node runs in each iteration of such a loop, here or wherever its function is called."""
        child = node
        for above in self.tree.ancestors(node):
            if isinstance(above, cst.FunctionDef) and child is above.body:
                callers = self.calls.callers(above) if depth < _CALLS_DEEP else ()
                return any(self._is_of_a_step(call, depth + 1) for call in callers)
            if isinstance(above, cst.Lambda) or self._is_limited(above, child):
                return False
            if isinstance(above, Loop) and child is above.body and self.loop_kind(above) is LoopKind.EPOCH:
                return isinstance(above, cst.For) and self._names_epochs(above) and self._is_one_step(above)
            child = above
        return False

    def _is_one_step(self, loop: cst.For) -> bool:
        """Whether each iteration takes a training step, itself or by a function, and goes over no batches."""
        loops = [node for node in descendants_in_scope(loop.body) if isinstance(node, Loop)]
        if any(self.loop_kind(node) is not LoopKind.OTHER for node in loops):
            return False
        # What it looks at now and then makes no epoch of it.
        calls = [call for call in self._direct_calls(loop) if not self._is_limited_within(call, loop)]
        targets = [(call, self.calls.target(call)) for call in calls]
        steps = {call for call, target in targets if target is not None and self._is_step(target)}
        if any(self._callee_loops(call) is LoopKind.EPOCH for call in calls if call not in steps):
            return False
        return bool(steps) or self._has_a_backward(loop.body)

    def origin(self, node: cst.CSTNode) -> str:
        """The call in another file that makes the node run as often as it does; nothing where this file says why."""
        seen: set[cst.CSTNode] = set()
        while self.batch_loop(node) is None:
            function = self.tree.function(node)
            if not isinstance(function, cst.FunctionDef) or function in seen:
                break
            seen.add(function)
            entry = self.entry(function)
            if function in self._origins or entry < Frequency.BATCH:
                return self._origins.get(function, "")
            caller = next((call for call in self.calls.callers(function) if self.frequency(call) is entry), None)
            if caller is None or self.declared(function) is not None or self._by_role(function) is entry:
                break
            node = caller
        return ""

    def _is_step(self, function: cst.FunctionDef) -> bool:
        """Whether the function is one training step: backward and step, both outside of any loop.

        What makes the optimizer as well takes the only step there is: a demonstration, or a check.
        """
        if not self.steps(function.body) or function.name.value == "__init__":
            return False
        names = {method_name(call.func) for call in self._straight(function.body)}
        takes_one = bool(names & apis.BACKWARD_METHODS) and bool(names & {"step", "zero_grad"})
        return takes_one and not self._makes_an_optimizer(function)

    def adds_up_in_loops(self, function: cst.FunctionDef) -> bool:
        """Whether a function goes backward in loops alone and takes the step after them: one of a training, in parts.

        A scheduler is stepped too, but has no gradients to zero.
        """
        owners: dict[str, set[str]] = {"step": set(), "zero_grad": set()}
        for call in self._straight(function.body):
            name = method_name(call.func)
            if name in owners and isinstance(call.func, cst.Attribute):
                owners[name].add(dotted(call.func.value) or "")
        if not (owners["step"] & owners["zero_grad"]) - {""} or self._makes_an_optimizer(function):
            return False
        nodes = descendants_in_scope(function.body)
        loops = [node for node in nodes if isinstance(node, Loop) and self._goes_backward(node.body)]
        return bool(loops) and not any(self._goes_over_a_loader(loop) for loop in loops)

    def _goes_over_a_loader(self, loop: cst.For | cst.While) -> bool:
        return isinstance(loop, cst.For) and any(map(self._is_a_loader, iterables(loop.iter)))

    def _makes_an_optimizer(self, function: cst.FunctionDef) -> bool:
        return any(
            (self.names.qualified(node.func) or "").startswith("torch.optim.")
            for node in descendants_in_scope(function.body)
            if isinstance(node, cst.Call)
        )

    def _by_role(self, function: cst.FunctionDef) -> Frequency:
        name = function.name.value
        owner = self.classes.owner(function)
        handled = self._as_a_handler(function)
        if handled is not Frequency.UNKNOWN:
            return handled
        if owner is None:
            is_called_per_batch = COLLATE_FUNCTION.suggests(name) or CLIPPING_FUNCTION.suggests(name)
            return Frequency.BATCH if is_called_per_batch else Frequency.UNKNOWN
        if name in apis.SAMPLE_METHODS and self.classes.is_dataset(owner):
            return Frequency.SAMPLE
        if name in apis.BATCH_METHODS and (self.classes.is_module(owner) or name != "forward"):
            return Frequency.BATCH
        if name in apis.ONCE_METHODS:
            return Frequency.ONCE
        if name in apis.EPOCH_METHODS:
            return Frequency.EPOCH
        if name in ("compute", "__call__"):
            bases = {base for base in self.classes.lineage(owner) if isinstance(base, str)}
            if name == "compute" and bases & apis.METRIC_BASES:
                return Frequency.EPOCH
            if name == "__call__" and bases & apis.DECODING_BASES:
                return Frequency.BATCH
        if name == "step" and self.classes.is_optimizer(owner):
            return Frequency.BATCH
        if METER_METHOD.suggests(name) and METER_CLASS.suggests(owner.name.value.lower()):
            return Frequency.BATCH
        return Frequency.UNKNOWN

    def _as_a_handler(self, function: cst.FunctionDef) -> Frequency:
        """How often Ignite calls a function: the step of an `Engine`, or the handler of an event."""
        if "ignite" not in self.names.imported:
            return Frequency.UNKNOWN
        events = [
            item.decorator
            for item in function.decorators
            if isinstance(item.decorator, cst.Call) and last_part(item.decorator.func) == "on"
        ]
        for call in self.tree.of(cst.Call):
            if not any(last_part(argument.value) == function.name.value for argument in call.args):
                continue
            if self.names.qualified(call.func) in ("ignite.engine.Engine", "ignite.engine.engine.Engine"):
                return Frequency.BATCH
            if last_part(call.func) == "add_event_handler":
                events.append(call)
        return max(map(_of_event, events), default=Frequency.UNKNOWN)

    def is_diagnostic(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in code that exists to look at things: debugging, profiling, plotting, export."""
        for above in self.tree.ancestors(node):
            if isinstance(above, cst.FunctionDef) and DIAGNOSTIC_FUNCTION.suggests(above.name.value.lower()):
                return True
            if isinstance(above, cst.ClassDef) and VISUALISER.suggests(above.name.value):
                return True
        return False

    # Rate limits

    def is_rate_limited(self, node: cst.CSTNode) -> bool:
        """Whether the node runs only in some iterations of the loop around it: `if step % 100 == 0`."""
        child = node
        for above in self.tree.ancestors(node):
            if isinstance(above, (*Loop, cst.FunctionDef)):
                return (
                    isinstance(above, Loop) and self.loop_kind(above) is LoopKind.OTHER and self.is_rate_limited(above)
                )
            if isinstance(above, (cst.If, cst.IfExp)) and child is above.body and self.limits(above):
                return True
            child = above
        return False

    def is_every_nth_step(self, node: cst.CSTNode) -> bool:
        """Whether the node belongs to a step that not every iteration takes: `if step % policy_delay == 0:`."""
        child = node
        for above in self.tree.ancestors(node):
            if isinstance(above, (*Loop, cst.FunctionDef)):
                return False
            if isinstance(above, cst.If) and child is above.body and self.is_rate_limit(above.test):
                return self._takes_a_step(above)
            child = above
        return False

    def _takes_a_step(self, branch: cst.If) -> bool:
        """Whether the branch trains: it goes backward, or takes the step for what several iterations have added up."""
        return self._goes_backward(branch.body) or self._takes_steps(branch.body)

    def limits(self, branch: cst.If | cst.IfExp) -> bool:
        """Whether a branch is taken only now and then.

        One that trains is a step of its own, every second turn or so: `if step % policy_delay == 0`.
        """
        if isinstance(branch, cst.If) and self._takes_a_step(branch):
            return False
        if self.is_rate_limit(branch.test) or self._is_of_the_first_turns(branch.test):
            return True
        return isinstance(branch, cst.If) and _moves_its_mark(branch)

    def _is_of_the_first_turns(self, test: cst.BaseExpression) -> bool:
        """`if batch_idx < 3`, in a loop over batches: they are more than that."""
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return self._is_of_the_first_turns(left) or self._is_of_the_first_turns(right)
            case cst.Comparison(
                left=cst.Name() as left,
                comparisons=[cst.ComparisonTarget(operator=cst.LessThan() | cst.LessThanEqual(), comparator=last)],
            ):
                turns = integer(last)
                return turns is not None and turns <= _FIRST_TURNS and self._numbers_batches(left)
        return False

    def is_rate_limit(self, test: cst.BaseExpression) -> bool:
        """Whether a condition holds only now and then."""
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return self.is_rate_limit(left) or self.is_rate_limit(right)
            case cst.BooleanOperation():
                parts = _alternatives(test)
                limits = [part for part in parts if self.is_rate_limit(part)]
                return bool(limits) and all(
                    part in limits or is_missing(part) or _is_now_and_then(part) for part in parts
                )
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return self._is_modulo(inner)
            case cst.Comparison(left=left, comparisons=[target]):
                sides = (left, target.comparator)
                if any(self._is_modulo(side) for side in sides):
                    return isinstance(target.operator, (cst.Equal, cst.LessThan, cst.Is))
                if isinstance(target.operator, cst.Equal):
                    is_at_an_end = any(self._is_an_end(side) for side in sides) and any(map(_is_counter, sides))
                    return is_at_an_end or _is_a_set_turn(*sides) or _is_a_set_turn(*reversed(sides))
                if isinstance(target.operator, (cst.LessThan, cst.LessThanEqual)) and is_size(left):
                    return isinstance(left, cst.Call)  # `len(buffer) < capacity`: until it is full
                if isinstance(target.operator, cst.In):
                    return isinstance(target.comparator, (cst.Name, cst.Attribute)) and _counts_steps(left)
                is_asked = isinstance(target.operator, cst.IsNot) and _is_none(target.comparator)
                return is_asked and self._is_set_now_and_then(left)
            case cst.Name():
                return self._holds_a_limit(test)
            case cst.Call():
                return self._divides(test)
        return False

    def _is_modulo(self, node: cst.BaseExpression) -> bool:
        """Whether this is `step % n`; every second or third turn is no limit, and `x.size(0) % n` counts none."""
        modulus = _modulus(node)
        if modulus is None or _is_small(modulus):
            return False
        match node:
            case cst.BinaryOperation(left=cst.Call(func=cst.Attribute()) | cst.Subscript() as left) if is_size(left):
                return False
        # `log_interval = 1`, and nothing else in sight; a parameter is what callers make of it.
        bindings = self.names.reaching(modulus) if isinstance(modulus, cst.Name) else ()
        return not bindings or not all(
            binding.binder is Binder.ASSIGN and binding.value is not None and _is_small(binding.value)
            for binding in bindings
        )

    def _numbers_batches(self, name: cst.Name) -> bool:
        """Whether this is the `i` of `for i, batch in enumerate(loader)`, with a progress bar around it or not."""
        bindings = self.names.reaching(name)
        return bool(bindings) and all(
            isinstance(binding.node, cst.For)
            and binding.path == (0,)
            and self._is_numbered(binding.node.iter)
            and self.loop_kind(binding.node) is LoopKind.BATCH
            for binding in bindings
        )

    def _is_numbered(self, iterated: cst.BaseExpression) -> bool:
        match iterated:
            case cst.Call(func=func, args=[cst.Arg(value=first), *_]):
                name = self.names.qualified(func)
                return name == "enumerate" or (name in apis.PASS_THROUGH and name != "zip" and self._is_numbered(first))
        return False

    def _divides(self, call: cst.Call) -> bool:
        """`divisible_by(step, 100)`, of a function that returns `a % b == 0`, or a name for it, and nothing else."""
        function = self.calls.target(call)
        if function is None or any(_is_small(argument.value) for argument in call.args):
            return False
        returned = [node.value for node in descendants_in_scope(function.body) if isinstance(node, cst.Return)]
        answer = returned[0] if len(returned) == 1 else None
        is_asked = isinstance(answer, (cst.Comparison, cst.UnaryOperation, cst.BooleanOperation, cst.Name))
        return is_asked and answer is not None and self.is_rate_limit(answer)

    def _holds_a_limit(self, name: cst.Name) -> bool:
        """Whether every binding of a name is such a condition: `log = step % 100 == 0`."""
        return self.kinds.settled(("limit", name), False, self._is_bound_to_limits, name)  # noqa: FBT003

    def _is_bound_to_limits(self, name: cst.Name) -> bool:
        # `log = False`, and under `if step % 100 == 0` True.
        bindings = [
            each for each in self.names.reaching(name) if isinstance(each.node, cst.Param) or not _is_false(each.value)
        ]
        return bool(bindings) and all(
            self._is_handed_limits(binding.node)
            if isinstance(binding.node, cst.Param)
            else binding.value is not None
            and not binding.path
            and (self._is_limit(binding.value) or self.is_rate_limited(binding.node))
            for binding in bindings
        )

    def _is_set_now_and_then(self, name: cst.BaseExpression) -> bool:
        """Whether a name is None but in some iterations: `kept = None`, and under `if step % 100 == 0` not."""
        if not isinstance(name, cst.Name):
            return False
        return self.kinds.settled(("now and then", name), False, self._is_mostly_none, name)  # noqa: FBT003

    def _is_mostly_none(self, name: cst.Name) -> bool:
        values = [
            (binding, binding.value is not None and _is_none(binding.value)) for binding in self.names.reaching(name)
        ]
        others = [binding for binding, is_nothing in values if not is_nothing]
        loop = self.loop(name)
        return (
            loop is not None
            and 0 < len(others) < len(values)
            and all(self.tree.within(binding.node, loop.body) for binding, _ in values)
            and all(self.is_rate_limited(binding.node) for binding in others)
        )

    def _is_limit(self, value: cst.BaseExpression) -> bool:
        is_condition = isinstance(value, (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation, cst.Name))
        return is_condition and self.is_rate_limit(value)

    def _is_handed_limits(self, parameter: cst.Param) -> bool:
        """Whether a parameter is such a condition in every call: `train_step(x, log=step % 100 == 0)`."""
        function = next((above for above in self.tree.ancestors(parameter) if isinstance(above, cst.FunctionDef)), None)
        if function is None:
            return False
        given = [self.calls.argument_for(call, function, parameter) for call in self.calls.callers(function)]
        asked = [value for value in given if not _is_false(value) and not (value is not None and _is_none(value))]
        return bool(asked) and all(value is not None and self._is_limit(value) for value in asked)

    def _is_an_end(self, node: cst.CSTNode) -> bool:
        """`0`, or `len(loader) - 1`: the first or the last iteration."""
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Subtract()):
                return self._is_an_end(left)
            case cst.Call(func=cst.Name(value="len")):
                return True
            case cst.Integer(value="0"):
                return True
        return False


def _of_event(call: cst.Call) -> Frequency:
    """How often the event happens that is the first argument: `Events.ITERATION_COMPLETED(every=100)` now and then."""
    event = call.args[0].value if call.args else None
    match event:
        case cst.Attribute(attr=cst.Name(value=name)):
            return Frequency.BATCH if "ITERATION" in name or "BATCH" in name else Frequency.EPOCH
        case cst.Call():
            return Frequency.EPOCH
    return Frequency.UNKNOWN


def _moves_its_mark(branch: cst.If) -> bool:
    """`if t - self.last >= n: self.last = t`, `if t >= self.next: self.next += n`: not again until that has gone by."""
    match branch.test:
        case cst.Comparison(
            left=left,
            comparisons=[cst.ComparisonTarget(operator=cst.GreaterThan() | cst.GreaterThanEqual(), comparator=mark)],
        ):
            past = [
                dotted(part.right)
                for part in (left, *descendants(left))
                if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Subtract)
            ]
        case _:
            return False
    for line in descendants_in_scope(branch.body):
        match line:
            case cst.AugAssign(target=target, operator=cst.AddAssign()) if dotted(target) == dotted(mark) is not None:
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value) if (
                moved := dotted(target)
            ) is not None:
                is_later = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add)
                if moved in past or (is_later and moved == dotted(mark)):
                    return True
    return False


def _alternatives(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The parts of `a or b`."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        return [*_alternatives(test.left), *_alternatives(test.right)]
    return [test]


def _is_now_and_then(part: cst.BaseExpression) -> bool:
    """What stands beside `step % 100 == 0 or`: an iteration of its own, `step == last`, or a flag raised at the end."""
    match part:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]):
            return _is_counter(left) or _is_counter(right)
        case cst.Comparison(
            left=left,
            comparisons=[cst.ComparisonTarget(operator=cst.GreaterThan() | cst.GreaterThanEqual(), comparator=right)],
        ):
            return _is_counter(left) and _is_a_length(right)  # `step >= epochs * len(loader)`: the last one
    return isinstance(part, cst.Name) or (isinstance(part, cst.Attribute) and LIMIT_FLAG.suggests(part.attr.value))


def _is_a_length(node: cst.BaseExpression) -> bool:
    """`len(loader)`, `epochs * len(loader) - 1`."""
    match node:
        case cst.Call(func=cst.Name(value="len")):
            return True
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return _is_a_length(left) or _is_a_length(right)
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract()):
            return _is_a_length(left)
    return False


def _is_counter(node: cst.BaseExpression) -> bool:
    """Whether this counts turns, by its name: `step`, `batch_idx`, `i + 1`; a rank does not."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        return _is_counter(node.left)
    name = (dotted(node) or "").rpartition(".")[2]
    return COUNTER.suggests(name if len(name) == 1 else name.lower())


def _is_a_set_turn(counter: cst.BaseExpression, turn: cst.BaseExpression) -> bool:
    """Whether a step is compared with one that options name, `train_step == args.warmup_steps`: one in all of them."""
    if not isinstance(turn, cst.Attribute) or dotted(turn) is None:
        return False
    return _counts_steps(counter) and not RECURRING_COUNTER.suggests(f"{_text(counter)} {_text(turn)}")


def _counts_steps(node: cst.BaseExpression) -> bool:
    return STEP_COUNTER.suggests((dotted(node) or "").rpartition(".")[2])


def _modulus(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The `n` of `step % n`."""
    return node.right if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo) else None


def _parts(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The parts of `a or b` and of `a and b`."""
    if isinstance(test, cst.BooleanOperation):
        return [*_parts(test.left), *_parts(test.right)]
    return [test]


def _is_false(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "False"


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _is_small(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.value in ("1", "2", "3", "4")


def _text(node: cst.CSTNode) -> str:
    return " ".join(dotted(part) or "" for part in descendants(node) if isinstance(part, (cst.Name, cst.Attribute)))
