"""Reaching definitions: which bindings of a name may hold where it is used.

One name of one scope at a time. Bindings and a use that follow each other in one suite need no control-flow graph.
Otherwise the blocks that bind the name, and those where ways from them meet, are a graph of their own, which may be
much smaller than that of the scope: a worklist runs over that.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import libcst as cst

from torchlint.semantics.names.exits import Exits
from torchlint.semantics.names.scopes import Binder, Binding, Scope, ScopeNode
from torchlint.semantics.names.spelling import final_part
from torchlint.syntax.control_flow import ENTRY, Body, ControlFlow
from torchlint.syntax.dominance import Dominance, Landmarks
from torchlint.syntax.tree import LOOPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchlint.semantics.names.exits import Lookup
    from torchlint.syntax.control_flow import Condition, Graph
    from torchlint.syntax.tree import Tree

_BODIES: frozenset[type] = frozenset({cst.Module, cst.ClassDef, cst.FunctionDef})
_SUITES: frozenset[type] = frozenset({cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite})
# Statements that bind a name before their bodies run.
_HEADS: frozenset[type] = frozenset({cst.For, cst.With})
_DEFERRING: frozenset[type] = frozenset({cst.FunctionDef, cst.Lambda})
# The bit of a name that is not bound, below those of its bindings; all bits; and before all that stands in a block.
_UNBOUND = 1
_ALL = -1
_BEGINNING = -1
_EFFECT = attrgetter("effect")
# What keeps a generator expression that it is given, and goes through it later; other calls do so at once.
_LAZY = frozenset("accumulate chain enumerate filter imap islice iter map starmap takewhile zip".split())
# A state of a name that two places share only if nothing rebinds it between them: a block, and how much of it has run.
Version: TypeAlias = tuple[int, int]


class Reaching:
    """The bindings that reach the uses of names in one module."""

    def __init__(self, tree: Tree, scope_of: Callable[[cst.CSTNode], Scope], lookup: Lookup) -> None:
        self._tree = tree
        self._scope_of = scope_of
        exits = Exits(tree, lookup)
        self.ways = Ways(tree, ControlFlow(tree, exits.never_returns, exits.swallows))
        self._flows: dict[tuple[Scope, str], NameFlow] = {}
        self._plain: dict[tuple[Scope, str], bool] = {}
        self._deferred: dict[tuple[int, str], tuple[Binding, ...]] = {}
        self._suite_ends: dict[int, int] = {}

    def bindings(self, use: cst.Name, scope: Scope, bindings: tuple[Binding, ...]) -> tuple[tuple[Binding, ...], bool]:
        """Those of the bindings in a scope that may hold at a use, and whether there may be none.

        All of them where the scope has no statements, or nothing reaches the use.
        """
        body = scope.node
        if not _has_statements(body):
            return bindings, False
        deferring = self._deferring(self._scope_of(use), scope)
        if deferring is None:
            found, unbound = self._at(self._tree.place(use), use.value, scope, body, bindings)
        else:
            found, unbound = self._seen_from(deferring, use.value, scope, body, bindings), False
        return (found, unbound) if found or unbound else (bindings, False)

    def flow(self, name: str, scope: Scope, body: Body) -> NameFlow:
        """Where the bindings of a name reach in a scope, which is that of this body."""
        found = self._flows.get((scope, name))
        if found is None:
            unbinding = [node for node in self._unbinding.get(name, ()) if self._scope_of(node) is scope]
            bindings = tuple(scope.bindings.get(name, ()))
            found = self._flows[scope, name] = NameFlow(name, self.ways, body, bindings, unbinding)
        return found

    def _deferring(self, inner: Scope, scope: Scope) -> cst.CSTNode | None:
        """The function or generator inside of a scope that may run later than it is made, the outermost."""
        found: cst.CSTNode | None = None
        while inner is not scope and inner.parent is not None:
            if type(inner.node) in _DEFERRING or (type(inner.node) is cst.GeneratorExp and self._is_kept(inner.node)):
                found = inner.node
            inner = inner.parent
        return found

    def _is_kept(self, generator: cst.CSTNode) -> bool:
        """Whether a generator expression may be gone through later than where it stands."""
        argument = self._tree.parent(generator)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        return not isinstance(call, cst.Call) or final_part(call.func) in _LAZY

    def _seen_from(
        self, deferring: cst.CSTNode, name: str, scope: Scope, body: Body, bindings: tuple[Binding, ...]
    ) -> tuple[Binding, ...]:
        """What a function may find whenever it is called: what reaches its definition, and what is bound after that."""
        found = self._deferred.get((id(deferring), name))
        if found is None:
            place = self._tree.place(deferring)
            now, _ = self._at(place, name, scope, body, bindings)
            first, last = self._loop_around(deferring, scope)
            found = self._deferred[id(deferring), name] = tuple(
                binding
                for binding in bindings
                if binding.effect >= place
                or first <= binding.effect <= last
                or binding.from_elsewhere
                or any(binding is other for other in now)
            )
        return found

    def _loop_around(self, node: cst.CSTNode, scope: Scope) -> tuple[int, int]:
        """The first and last place of the outermost loop around a node: what stands there may run after it."""
        loop: cst.CSTNode | None = None
        for above in self._tree.ancestors(node):
            if above is scope.node:
                break
            if type(above) in LOOPS:
                loop = above
        return (0, -1) if loop is None else (self._tree.place(loop), self._tree.end(loop))

    def _at(
        self, place: int, name: str, scope: Scope, body: Body, bindings: tuple[Binding, ...]
    ) -> tuple[tuple[Binding, ...], bool]:
        last = self._straight(place, name, scope, body, bindings)
        if last is not None:
            return (last,), False
        return self.flow(name, scope, body).at(place)

    def _straight(
        self, place: int, name: str, scope: Scope, body: Body, bindings: tuple[Binding, ...]
    ) -> Binding | None:
        """The binding that precedes a place in one of the suites around it, if there is nothing else between."""
        if not self._is_plain(name, scope, bindings):
            return None
        index = bisect_left(bindings, place, key=_EFFECT) - 1
        if index < 0:
            return None
        last = bindings[index]
        suite = body if last.binder is Binder.PARAMETER else self._suite(last)
        if suite is None or self._end(suite) < place:
            return None
        if index + 1 < len(bindings):
            following = bindings[index + 1]
            # A loop around the place may come back with what is bound further down in it, but not in this suite itself.
            if following.effect <= self._end(suite) and self._line_in(following.node) is not suite:
                return None
        return last

    def _is_plain(self, name: str, scope: Scope, bindings: tuple[Binding, ...]) -> bool:
        """Whether all that binds a name stands in its scope and takes effect in the order of the source."""
        found = self._plain.get((scope, name))
        if found is None:
            found = self._plain[scope, name] = name not in self._unbinding and not any(
                binding.from_elsewhere or type(binding.node) is cst.NamedExpr for binding in bindings
            )
        return found

    def _suite(self, binding: Binding) -> cst.CSTNode | None:
        """The suite that always runs on after this binding."""
        if binding.binder is Binder.ANNOTATION or type(binding.node) in _HEADS:
            return None
        return self._line_in(binding.node)

    def _line_in(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The suite in which a statement stands by itself."""
        above = self._tree.parent(node)
        if type(above) is cst.SimpleStatementLine:
            above = self._tree.parent(above)
        return above if type(above) in _SUITES else None

    def _end(self, suite: cst.CSTNode) -> int:
        found = self._suite_ends.get(id(suite))
        if found is None:
            found = self._suite_ends[id(suite)] = self._tree.end(suite)
        return found

    @cached_property
    def _unbinding(self) -> dict[str, list[cst.CSTNode]]:
        """What makes a name be bound no more: `del`, and the end of the handler that binds it."""
        found: dict[str, list[cst.CSTNode]] = {}
        for statement in self._tree.of(cst.Del):
            targets: list[cst.BaseExpression] = [statement.target]
            while targets:
                match targets.pop():
                    case cst.Name(value=name):
                        found.setdefault(name, []).append(statement)
                    case cst.Tuple(elements=elements) | cst.List(elements=elements):
                        targets += [element.value for element in elements]
        handlers: list[cst.ExceptHandler | cst.ExceptStarHandler] = [
            *self._tree.of(cst.ExceptHandler),
            *self._tree.of(cst.ExceptStarHandler),
        ]
        for handler in handlers:
            if handler.name is not None and isinstance(handler.name.name, cst.Name):
                found.setdefault(handler.name.name.value, []).append(handler.body)
        return found


def _names_of_none(condition: Condition) -> Iterator[str]:
    """The names that hold None where the condition is met."""
    for part in condition.parts():
        match part.test:
            case cst.Comparison(
                left=cst.Name(value=name),
                comparisons=[cst.ComparisonTarget(operator=operator, comparator=cst.Name(value="None"))],
            ):
                if isinstance(operator, cst.Is if part.holds else cst.IsNot):
                    yield name


def _is_none(node: cst.CSTNode) -> bool:
    """Whether the statement binds a name to None."""
    return (
        isinstance(node, cst.Assign | cst.AnnAssign) and isinstance(node.value, cst.Name) and node.value.value == "None"
    )


def _has_statements(node: ScopeNode) -> TypeGuard[Body]:
    return type(node) in _BODIES


@dataclass(slots=True)
class _Effects:
    """What one block does to a name, one step after the other.

    After the first `n` steps the name holds one of `given[n]`, or of `kept[n]` what it held before.
    """

    places: list[int]
    given: list[int]
    kept: list[int]

    def add(self, place: int, bit: int, kept: int) -> None:
        """A step: `bit` is what it gives, `kept` are the bits that it does not end."""
        self.places.append(place)
        self.given.append(self.given[-1] & kept | bit)
        self.kept.append(self.kept[-1] & kept)


class NameFlow:
    """Where the bindings of one name reach in its own scope."""

    def __init__(
        self, name: str, ways: Ways, body: Body, bindings: tuple[Binding, ...], unbinding: Iterable[cst.CSTNode]
    ) -> None:
        self._graph, self._dominance = ways.of(body)
        self._bindings = bindings
        self._found: dict[int, tuple[tuple[Binding, ...], bool]] = {}
        steps: list[tuple[int, int, int, int]] = []
        staying = nothing = 0
        for number, binding in enumerate(bindings, 1):
            if binding.from_elsewhere:
                staying |= 1 << number  # what other functions bind may be bound again at any time
            if _is_none(binding.node):
                nothing |= 1 << number
        for number, binding in enumerate(bindings, 1):
            ends = not binding.from_elsewhere and binding.binder is not Binder.ANNOTATION
            blocks = self._graph.after(binding.node, binding.effect)
            steps += [(block, binding.effect, 1 << number, staying if ends else _ALL) for block in blocks]
        for node in unbinding:
            place = ways.tree.end(node)
            steps += [(block, place, _UNBOUND, staying) for block in self._graph.after(node, place)]
        # Where the name is known to hold None, nothing that it was bound to otherwise goes on from.
        self._nones = frozenset(ways.nones(body).get(name, ()))
        steps += [(block, _BEGINNING, 0, staying | nothing) for block in self._nones]
        self._effects: dict[int, _Effects] = {}
        for block, place, bit, kept in sorted(steps):
            self._effects.setdefault(block, _Effects([], [0], [_ALL])).add(place, bit, kept)
        reached = self._effects.keys() & self._dominance.rank.keys()
        self._meetings = self._dominance.meetings(reached)
        self._landmarks = Landmarks(self._dominance, {ENTRY, *reached, *self._meetings})
        self._solve({ENTRY, *reached, *self._meetings})

    def at(self, place: int) -> tuple[tuple[Binding, ...], bool]:
        """What the name may hold at a place, in source order, and whether it may hold nothing."""
        bits = 0
        for block in self.blocks(place):
            landmark, count = self.version(block, place)
            bits |= self._after(landmark, count) or (self._before[landmark] if landmark in self._nones else 0)
        found = self._found.get(bits)
        if found is None:
            found = self._found[bits] = tuple(self._chosen(bits)), bool(bits & _UNBOUND)
        return found

    def blocks(self, place: int) -> list[int]:
        """The blocks that hold a place and can be reached."""
        return [block for block in self._graph.at(place) if block in self._dominance.rank]

    def _chosen(self, bits: int) -> list[Binding]:
        bits &= ~_UNBOUND
        found = []
        while bits:
            lowest = bits & -bits
            bits ^= lowest
            found.append(self._bindings[lowest.bit_length() - 2])
        return found

    def version(self, block: int, place: int = 0) -> Version:
        """The state of the name at a place in a block, or where the block begins."""
        landmark = self._landmarks.nearest(block)
        assert landmark is not None
        if landmark == block:
            count = bisect_left(self._effects[block].places, place) if block in self._effects else 0
            if count or block in self._meetings or block == ENTRY:
                return block, count
            above = self._landmarks.above(block)
            assert above is not None
            landmark = above
        return landmark, self._count(landmark)

    def _count(self, block: int) -> int:
        effects = self._effects.get(block)
        return len(effects.places) if effects is not None else 0

    def _after(self, block: int, count: int) -> int:
        """The bits after the first steps of a landmark."""
        if not count:
            return self._before[block]
        effects = self._effects[block]
        before = self._before[block]
        return effects.given[count] | before & effects.kept[count]

    def _solve(self, blocks: set[int]) -> None:
        """The bits before each landmark, by a worklist."""
        sources: dict[int, Iterable[int]] = {}
        for block in blocks:
            if block in self._meetings:
                sources[block] = self._landmarks.before(block)
            else:
                above = self._landmarks.above(block)
                sources[block] = () if above is None else (above,)
        followers: dict[int, list[int]] = {}
        for block, befores in sources.items():
            for source in befores:
                followers.setdefault(source, []).append(block)
        self._before = dict.fromkeys(blocks, 0)
        self._before[ENTRY] = _UNBOUND
        # In the order in which blocks run, so that a loop is gone through about once more than others stand around it.
        rank, order = self._dominance.rank, self._dominance.order
        waiting = sorted(rank[block] for block in blocks)
        queued = set(blocks)
        while waiting:
            block = order[heappop(waiting)]
            queued.discard(block)
            bits = self._after(block, self._count(block))
            for follower in followers.get(block, ()):
                if bits & ~self._before[follower]:
                    self._before[follower] |= bits
                    if follower not in queued:
                        queued.add(follower)
                        heappush(waiting, rank[follower])


class Ways:
    """The graphs of bodies, with their dominators."""

    def __init__(self, tree: Tree, control: ControlFlow) -> None:
        self.tree = tree
        self._control = control
        self._known: dict[int, tuple[Graph, Dominance]] = {}
        self._nones: dict[int, dict[str, list[int]]] = {}

    def nones(self, body: Body) -> dict[str, list[int]]:
        """For each name the blocks that begin where a test has come out so that it holds None."""
        found = self._nones.get(id(body))
        if found is None:
            found = self._nones[id(body)] = {}
            for block, condition in self.of(body)[0].conditions.items():
                for name in _names_of_none(condition):
                    found.setdefault(name, []).append(block)
        return found

    def of(self, body: Body) -> tuple[Graph, Dominance]:
        """The graph of a body, and its dominator tree."""
        found = self._known.get(id(body))
        if found is None:
            graph = self._control.graph(body)
            found = self._known[id(body)] = graph, Dominance(graph)
        return found
