"""What goes over the loaders of a module, from the first batch, how often."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.analyses.data.idle_loops import computes_nothing
from torchlint.analyses.data.loaders import is_loader, made, wrapped
from torchlint.analyses.provenance.constants import constant
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.names.bindings import Binder, Binding, dotted
from torchlint.syntax.tree import Loop, descendants

if TYPE_CHECKING:
    from torchlint.analyses.data.batch_moves import BatchMove
    from torchlint.semantics.context import Context


# A loop over a loader's batches, or a call of `iter` that begins them.
Reading: TypeAlias = "cst.For | cst.Call"

_DEEPEST = 6


class Passes:
    """What goes over the loaders that a module makes."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._of: dict[int, list[tuple[Reading, cst.BaseExpression]]] = {}
        for node, iterated in self._all():
            for call in made(iterated, context).calls:
                self._of.setdefault(id(call), []).append((node, iterated))

    def _all(self) -> Iterator[tuple[Reading, cst.BaseExpression]]:
        for loop in self.context.tree.of(cst.For):
            yield loop, loop.iter
        for call in self.context.tree.of(cst.Call):
            match call:
                case cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=first)]):
                    yield call, first

    @cached_property
    def moves(self) -> list[BatchMove]:
        """Where batches are moved to a device."""
        from torchlint.analyses.data.batch_moves import batch_moves  # which stands on this module

        return batch_moves(self.context)

    def of(self, loader: cst.Call) -> list[tuple[Reading, cst.BaseExpression]]:
        """What goes over a loader from its start, each with the expression by which it knows the loader."""
        return self._of.get(id(loader), [])

    def repeated(self, loader: cst.Call) -> Reading | None:
        """What goes over one and the same loader again and again, and further than to its first batch, if anything."""
        for node, iterated in self.of(loader):
            if self._is_peek(node) or (isinstance(node, cst.For) and computes_nothing(node, self.context)):
                continue
            if self._is_repeated(node, self._roots(iterated), loader) and not self._is_replaced(node, iterated, loader):
                return node
        return None

    def _is_peek(self, node: Reading) -> bool:
        """`next(iter(loader))`."""
        above = self.context.parent(node)
        outer = self.context.parent(above) if isinstance(above, cst.Arg) else None
        return (
            isinstance(node, cst.Call) and isinstance(outer, cst.Call) and dotted(outer.func) in ("next", "zip", "list")
        )

    def _is_replaced(self, node: Reading, iterated: cst.BaseExpression, loader: cst.Call) -> bool:
        """Whether each iteration but the first makes another loader of that name: `if epoch > 0: loader = …`."""
        return any(
            self.context.tree.within(node, loop.body)
            and not self.context.tree.within(loader, loop)
            and self._runs_from_the_second_turn(made, loop)
            for name in descendants(self._core(iterated))
            if isinstance(name, cst.Name)
            for made, _ in self.context.bound_to(name, Through.PARTS).found
            if isinstance(made, cst.Call) and isinstance(loop := self.context.loop(made), (cst.For, cst.While))
        )

    def _runs_from_the_second_turn(self, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
        """Whether the nearest `if` in the loop around this is `if epoch > 0:`."""
        match next(self.context.conditions(node, within=loop), None):
            case (cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator, comparator=end)]), True):
                first = end.value if isinstance(end, cst.Integer) else ""
                is_later = isinstance(operator, (cst.GreaterThan, cst.NotEqual)) and first == "0"
                return is_later or (isinstance(operator, cst.GreaterThanEqual) and first == "1")
        return False

    def varies(self, expression: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether another iteration of a loop may have another loader there: the loop names it, or makes it."""
        if any(root is loop for root in self._roots(expression)):
            return True
        return any(
            isinstance(name, cst.Name) and self.context.is_bound_in(name, loop.body) for name in descendants(expression)
        ) or any(self.context.tree.within(call, loop.body) for call in made(expression, self.context).calls)

    def overlap(self, loader: cst.Call) -> bool:
        """Whether the loader is begun again while something is still going over it."""
        nodes = [node for node, _ in self.of(loader)]
        return any(
            other is not loop and self._is_reached(other, loop)
            for loop in nodes
            if isinstance(loop, cst.For)
            for other in nodes
        )

    def _is_reached(self, node: cst.CSTNode, loop: cst.For) -> bool:
        """Whether the node runs in the body of a loop, or in a function that is called there."""
        if self.context.tree.within(node, loop.body):
            return True
        function = self.context.function(node)
        return isinstance(function, cst.FunctionDef) and any(
            self.context.tree.within(call, loop.body) for call in self.context.calls.callers(function)
        )

    def _is_made_within(self, loader: cst.Call, block: cst.CSTNode) -> bool:
        """Whether each run of the block makes the loader, itself or by the function that does: it has another one."""
        if self.context.tree.within(loader, block):
            return True
        function = self.context.function(loader)
        calls = self.context.calls.callers(function) if isinstance(function, cst.FunctionDef) else []
        return bool(calls) and all(self.context.tree.within(call, block) for call in calls)

    def _is_repeated(self, node: cst.CSTNode, roots: frozenset[cst.CSTNode], loader: cst.Call, depth: int = 0) -> bool:
        """Whether the node runs more than once for one run of the constructor, and that not only now and then.

        `roots` are the loops and parameters that say which loader it is.
        """
        context = self.context
        if depth > _DEEPEST or context.frequencies.is_rate_limited(node):
            return False
        child = node
        for above in context.ancestors(node):
            if isinstance(above, cst.ClassDef) or self._is_made_within(loader, above):
                return False
            is_free = isinstance(above, Loop) and child is above.body and above not in roots
            if is_free and self._is_of_epochs(above) and not self._is_left(node):
                return True
            if isinstance(above, cst.FunctionDef) and child is above.body:
                return any(
                    self._is_repeated(call, self._roots_of_call(call, above, roots), loader, depth + 1)
                    for call in context.calls.callers(above)
                    if not self._passes_another(call, above, roots, loader)
                )
            child = above
        return False

    def _passes_another(
        self, call: cst.Call, function: cst.FunctionDef, roots: frozenset[cst.CSTNode], loader: cst.Call
    ) -> bool:
        """Whether a call passes something else where another call of the function passes this loader."""
        for parameter in roots:
            if isinstance(parameter, cst.Param) and self.context.tree.function_of_parameter(parameter) is function:
                calls = self.context.calls.callers(function)
                if any(self._is_passed(loader, other, function, parameter) for other in calls) and not self._is_passed(
                    loader, call, function, parameter
                ):
                    return True
        return False

    def _is_passed(self, loader: cst.Call, call: cst.Call, function: cst.FunctionDef, parameter: cst.Param) -> bool:
        passed = self.context.calls.argument_for(call, function, parameter)
        return passed is not None and loader in made(passed, self.context).calls

    def _roots_of_call(
        self, call: cst.Call, function: cst.FunctionDef, roots: frozenset[cst.CSTNode]
    ) -> frozenset[cst.CSTNode]:
        """What says which loader a call passes."""
        found: set[cst.CSTNode] = set()
        for parameter in roots:
            if isinstance(parameter, cst.Param) and self.context.tree.function_of_parameter(parameter) is function:
                passed = self.context.calls.argument_for(call, function, parameter)
                if passed is not None:
                    found |= self._roots(passed)
        return frozenset(found)

    def _roots(self, node: cst.BaseExpression) -> frozenset[cst.CSTNode]:
        """The loops and parameters on whose values it depends which loader an expression holds."""
        found: set[cst.CSTNode] = set()
        seen: set[Binding] = set()
        left = [node]
        while left:
            for name in descendants(self._core(left.pop())):
                for binding in self.context.reaching(name) if isinstance(name, cst.Name) else ():
                    if binding in seen:
                        continue
                    seen.add(binding)
                    if binding.binder in (Binder.LOOP, Binder.PARAMETER):
                        found.add(binding.node)
                    elif binding.binder is Binder.ASSIGN and binding.value is not None:
                        left.append(binding.value)
        return frozenset(found)

    def _core(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The expression without what wraps it: `loader` of `tqdm(enumerate(loader), desc=…)`."""
        while isinstance(node, cst.Call) and not is_loader(node, self.context):
            inner = wrapped(node, self.context)
            if inner is None:
                return node
            node = inner
        return node

    def _is_of_epochs(self, loop: cst.CSTNode) -> bool:
        if isinstance(loop, cst.For) and _is_single(loop.iter, self.context):
            return False
        return self.context.frequencies.loop_kind(loop) in (LoopKind.EPOCH, LoopKind.BATCH)

    def _is_left(self, node: cst.CSTNode) -> bool:
        """Whether the loop around it ends in the block in which the node stands."""
        block = self.context.parent(node)
        while block is not None and not isinstance(block, (cst.IndentedBlock, cst.Module)):
            block = self.context.parent(block)
        last = block.body[-1] if isinstance(block, cst.IndentedBlock) and block.body else None
        return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Break, cst.Return))


def _is_single(iterated: cst.BaseExpression, context: Context) -> bool:
    """`range(1)`, `[x]`: there is but one iteration."""
    match iterated:
        case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=end)]):
            last = constant(end, context)
            return isinstance(last, cst.Integer) and last.value in ("0", "1")
        case cst.List(elements=[_]) | cst.Tuple(elements=[_]):
            return True
    return False
