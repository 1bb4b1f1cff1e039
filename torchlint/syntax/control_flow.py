"""What may run after what: the control-flow graph of the body of a module, a class or a function.

A block is a run of places that are evaluated in the order of the source; where that order is left, in a comprehension
or at `a if test else b`, a new block begins. Expressions that bind no name stay in the block of their statement. Any
statement in a `try` may raise, unless it obviously can't; the code of a `finally` has one copy for each way out of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import libcst as cst

from torchlint.syntax.tree import Tree, children

Body: TypeAlias = "cst.Module | cst.ClassDef | cst.FunctionDef"
_Suite: TypeAlias = "cst.Module | cst.BaseSuite"
_Try: TypeAlias = "cst.Try | cst.TryStar"

ENTRY = 0
# Where a `return` and what nobody catches lead.
EXIT = 1
# Expressions that bind names and nest deeper than this are taken as a whole, in any order.
_DEEPEST = 100
# Within so many copies of code of a `finally`, another one has one copy for all ways out: copies would multiply.
_MOST_COPIES = 1
# The key of that copy: no block has this number.
_ALL_WAYS = -1
_CATCH_ALL = frozenset({"BaseException"})
# Asking whether a node is of an abstract class is slow: these are for `type(node) in …`.
_WITHOUT_EFFECT: frozenset[type] = frozenset({cst.Break, cst.Continue, cst.Global, cst.Nonlocal, cst.Pass, cst.Raise})
_BINDS_NOTHING: frozenset[type] = _WITHOUT_EFFECT | {cst.Assert, cst.Expr, cst.Return}
_MAY_BE_KNOWN: frozenset[type] = frozenset({cst.Integer, cst.Name})


class Condition(NamedTuple):
    """A test, and whether it holds."""

    test: cst.BaseExpression
    holds: bool

    def parts(self) -> Iterator[Condition]:
        """What follows for each part of the test: `and`, `or` and `not` are taken apart."""
        stack = [self]
        while stack:
            condition = stack.pop()
            match condition.test:
                case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                    stack.append(Condition(inner, not condition.holds))
                case cst.BooleanOperation(left=left, operator=operator, right=right):
                    if isinstance(operator, cst.And) is condition.holds:
                        stack += [Condition(right, condition.holds), Condition(left, condition.holds)]
                case _:
                    yield condition


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The blocks of one body, by number, and the edges between them; a condition holds on the one edge to its block."""

    predecessors: list[list[int]] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    conditions: dict[int, Condition] = field(default_factory=dict)
    # Where in source order a block begins or goes on, and which: several for what has copies.
    starts: list[int] = field(default_factory=list)
    started: list[list[int]] = field(default_factory=list)
    # The blocks in which nodes end that leave the order of the source, and handlers, by identity.
    ends: dict[int, list[int]] = field(default_factory=dict)

    def at(self, place: int) -> list[int]:
        """The blocks that hold a place."""
        return self.started[max(bisect_right(self.starts, place) - 1, 0)]

    def after(self, node: cst.CSTNode, place: int) -> list[int]:
        """The blocks in which a node has its effect, which is at a place."""
        return self.ends.get(id(node)) or self.at(place)


class ControlFlow:
    """The graphs of one module, each made when asked for.

    `never_returns` says so of a call, `swallows` of the context manager of an item of a `with` that it may end an
    exception.
    """

    def __init__(
        self, tree: Tree, never_returns: Callable[[cst.Call], bool], swallows: Callable[[cst.WithItem], bool]
    ) -> None:
        self._tree = tree
        self._never_returns = never_returns
        self._swallows = swallows
        self._graphs: dict[cst.CSTNode, Graph] = {}

    def graph(self, body: Body) -> Graph:
        """The graph of a body."""
        found = self._graphs.get(body)
        if found is None:
            builder = _Builder(self._tree, self._binding, self._never_returns, self._swallows)
            found = self._graphs[body] = builder.build(body)
        return found

    @cached_property
    def _binding(self) -> frozenset[int]:
        """The expressions, patterns and statements that bind names out of order, and all that holds them."""
        found: set[int] = set()
        inner: list[cst.CSTNode] = [*self._tree.of(cst.NamedExpr), *self._tree.of(cst.MatchOr)]
        for node in inner:
            found.add(id(node))
            for above in self._tree.ancestors(node):
                if id(above) in found or isinstance(above, (cst.Lambda, cst.BaseSuite, cst.Match, cst.MatchCase)):
                    break
                found.add(id(above))
                if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                    break
        return frozenset(found)


class _Loop(NamedTuple):
    """Where `continue` and `break` lead, and how many `finally` stand around the loop."""

    again: int
    after: int
    finals: int


@dataclass(slots=True)
class _Final:
    """A `finally`: for each block that a way out leads to, the first block of the copy that it takes."""

    entries: dict[int, tuple[int, list[int]]] = field(default_factory=dict)


class _Builder:
    """Makes one graph, going through the body once and through each `finally` once for each way out."""

    def __init__(
        self,
        tree: Tree,
        binding: frozenset[int],
        never_returns: Callable[[cst.Call], bool],
        swallows: Callable[[cst.WithItem], bool],
    ) -> None:
        self._tree = tree
        self._binding = binding
        self._never_returns = never_returns
        self._swallows = swallows
        self._graph = Graph()
        self._places: dict[int, list[int]] = {}
        self._here = self._block()
        self._block()
        # Where an exception goes; None where nobody asks.
        self._landing: int | None = None
        # The blocks from which one may come: nothing more is bound in them.
        self._raising: set[int] = set()
        self._loops: list[_Loop] = []
        self._finals: list[_Final] = []
        self._copies = 0

    def build(self, body: Body) -> Graph:
        """The graph of a body."""
        suite = body if isinstance(body, cst.Module) else body.body
        self._at(suite)
        # Statements may nest deeper than the interpreter's stack: what is yielded is taken up here.
        open_: list[Iterator[_Suite]] = [self._suite(suite)]
        while open_:
            inner = next(open_[-1], None)
            if inner is None:
                open_.pop()
            else:
                open_.append(self._suite(inner))
        self._edge(self._here, EXIT)
        graph = self._graph
        graph.starts.extend(sorted(self._places))
        graph.started.extend(self._places[place] for place in graph.starts)
        return graph

    # Blocks and edges

    def _block(self) -> int:
        self._graph.predecessors.append([])
        self._graph.successors.append([])
        return len(self._graph.successors) - 1

    def _edge(self, source: int, target: int) -> None:
        if target not in self._graph.successors[source]:
            self._graph.successors[source].append(target)
            self._graph.predecessors[target].append(source)

    def _next(self) -> None:
        """Go on in a new block."""
        block = self._block()
        self._edge(self._here, block)
        self._here = block

    def _leave(self) -> None:
        """Go on in a block that nothing leads to."""
        self._here = self._block()

    def _join(self, *blocks: int) -> int:
        """A block that follows each of these."""
        joined = self._block()
        for block in blocks:
            self._edge(block, joined)
        return joined

    def _at(self, node: cst.CSTNode) -> None:
        """Note that a node is evaluated in the present block."""
        blocks = self._places.setdefault(self._tree.place(node), [])
        if not blocks or blocks[-1] != self._here:
            blocks.append(self._here)

    def _ends(self, node: cst.CSTNode) -> None:
        self._graph.ends.setdefault(id(node), []).append(self._here)

    # Statements

    def _suite(self, suite: _Suite) -> Iterator[_Suite]:
        line: Any
        for line in suite.body:
            kind = type(line)
            if kind is cst.SimpleStatementLine:
                for small in line.body:
                    self._small(small)
            elif kind in _COMPOUND:
                yield from _COMPOUND[kind](self, line)
            else:
                self._small(line)  # on the line of the `if` itself

    def _small(self, node: Any) -> None:  # noqa: ANN401 - its type is asked below
        kind = type(node)
        catches = self._landing is not None
        self._begin(node, binds=kind not in _BINDS_NOTHING, raises=catches and _may_raise(node))
        if kind is cst.Assert:
            self._assert(node)
            return
        if id(node) in self._binding:
            self._value(node)
            self._next()
            self._ends(node)
            self._raises()
        elif catches and _may_bind_in_part(node):
            self._raises()
        if kind is cst.Expr:
            if self._ends_here(node.value):
                self._leave()
        elif kind is cst.Return:
            self._jump_through(EXIT, 0)
        elif kind is cst.Raise:
            self._raises()
            self._leave()
        elif kind is cst.Break and self._loops:
            self._jump_through(self._loops[-1].after, self._loops[-1].finals)
        elif kind is cst.Continue and self._loops:
            self._jump_through(self._loops[-1].again, self._loops[-1].finals)

    def _ends_here(self, value: cst.BaseExpression) -> bool:
        return isinstance(value, cst.Call) and self._never_returns(value)

    def _begin(self, node: cst.CSTNode, *, binds: bool, raises: bool = True) -> None:
        """A statement, or the head of one, begins: what it binds is not bound yet where it raises."""
        if raises:
            self._raises()
        if binds and self._here in self._raising:
            self._next()
        self._at(node)

    def _raises(self) -> None:
        """What was bound so far is bound where an exception is caught."""
        if self._landing is not None:
            self._raising.add(self._here)
            self._edge(self._here, self._landing)

    def _jump_through(self, target: int, finals: int) -> None:
        """Go to a block, through the code of each `finally` inside of `finals` of them."""
        for final in self._finals[finals:]:
            target = self._through(final, target)
        self._edge(self._here, target)
        self._leave()

    def _through(self, final: _Final, target: int) -> int:
        """The first block of the copy of a `finally` that leads to a block."""
        key = target if self._copies < _MOST_COPIES else _ALL_WAYS
        if key not in final.entries:
            final.entries[key] = self._block(), []
        entry, targets = final.entries[key]
        if target not in targets:
            targets.append(target)
        return entry

    def _assert(self, node: cst.Assert) -> None:
        holds, fails = self._branch(node.test)
        if node.msg is not None:
            self._here = fails
            self._value(node.msg)
            fails = self._here
        self._here = fails
        self._raises()
        self._here = holds

    def _definition(self, node: cst.FunctionDef | cst.ClassDef) -> Iterator[_Suite]:
        self._begin(node, binds=True)
        if id(node) in self._binding:
            for child in children(node):
                if child is not node.body:
                    self._value(child)
            self._at(node.body)
            self._next()
            self._ends(node)
            self._raises()
        yield from ()

    def _if(self, node: cst.If) -> Iterator[_Suite]:
        after = self._block()
        branch: cst.If | cst.Else | None = node
        while isinstance(branch, cst.If):
            self._begin(branch, binds=False)
            self._here, other = self._branch(branch.test)
            yield branch.body
            self._edge(self._here, after)
            self._here = other
            branch = branch.orelse
        if branch is not None:
            yield branch.body
        self._edge(self._here, after)
        self._here = after

    def _while(self, node: cst.While) -> Iterator[_Suite]:
        after = self._block()
        self._next()
        again = self._here
        self._begin(node, binds=False)
        self._here, done = self._branch(node.test)
        yield from self._turns(node, again, after, done)

    def _for(self, node: cst.For) -> Iterator[_Suite]:
        after = self._block()
        self._begin(node, binds=False)
        self._value(node.iter)
        self._next()
        again = self._here
        self._raises()
        self._next()
        done = self._join(again)
        self._at(node.target)
        self._at(node.body)
        if not isinstance(node.target, cst.Name):
            self._raises()
        yield from self._turns(node, again, after, done)

    def _turns(self, node: cst.For | cst.While, again: int, after: int, done: int) -> Iterator[_Suite]:
        self._loops.append(_Loop(again, after, len(self._finals)))
        yield node.body
        self._loops.pop()
        self._edge(self._here, again)
        self._here = done
        if node.orelse is not None:
            yield node.orelse.body
        self._edge(self._here, after)
        self._here = after

    def _try(self, node: _Try) -> Iterator[_Suite]:
        outer, after = self._landing, self._block()
        self._begin(node, binds=False, raises=False)
        final = _Final() if node.finalbody is not None else None
        uncaught, normal = outer, after
        if final is not None:
            self._finals.append(final)
            uncaught = self._through(final, EXIT if outer is None else outer)
            normal = self._through(final, after)
        caught = self._join(self._here)
        self._landing = caught if node.handlers else uncaught
        # What is bound in the body is not bound where its first statement raises.
        self._next()
        yield node.body
        self._landing = uncaught
        if node.orelse is not None:
            yield node.orelse.body
        self._edge(self._here, normal)
        if node.handlers:
            yield from self._handlers(node.handlers, caught, normal)
        if final is not None:
            self._finals.pop()
        self._landing = outer
        if node.finalbody is not None and final is not None:
            self._copies += 1
            for self._here, targets in final.entries.values():
                yield node.finalbody.body
                for target in targets:
                    self._edge(self._here, target)
            self._copies -= 1
        self._here = after

    def _handlers(
        self, handlers: Sequence[cst.ExceptHandler | cst.ExceptStarHandler], caught: int, normal: int
    ) -> Iterator[_Suite]:
        for handler in handlers:
            self._here = caught
            self._next()
            self._begin(handler, binds=handler.name is not None, raises=handler.type is not None)
            if handler.type is not None:
                self._value(handler.type)
            self._at(handler.body)
            yield handler.body
            if handler.name is not None:
                self._next()  # here its name ends
                self._ends(handler.body)
            self._edge(self._here, normal)
            if isinstance(handler, cst.ExceptStarHandler):
                self._edge(self._here, caught)
        if self._landing is not None and not _catches_all(handlers[-1]):
            self._edge(caught, self._landing)

    def _with(self, node: cst.With) -> Iterator[_Suite]:
        outer = self._landing
        after: int | None = None
        self._begin(node, binds=False)
        for item in node.items:
            self._begin(item, binds=item.asname is not None)
            if id(item) in self._binding:
                self._value(item)
            if item.asname is not None and not isinstance(item.asname.name, cst.Name):
                self._raises()
            if after is None and self._swallows(item):
                self._landing, after = self._block(), self._block()
                self._edge(self._landing, after)
                if outer is not None:
                    self._edge(self._landing, outer)
        yield node.body
        self._landing = outer
        if after is not None:
            self._edge(self._here, after)
            self._here = after

    def _match(self, node: cst.Match) -> Iterator[_Suite]:
        after = self._block()
        self._begin(node, binds=False)
        self._value(node.subject)
        for case in node.cases:
            failed = self._block()
            if not _is_irrefutable(case.pattern):
                self._edge(self._here, failed)
            self._raises()
            self._next()
            self._value(case.pattern)
            if case.guard is not None:
                self._raises()
                self._here, unguarded = self._branch(case.guard)
                self._edge(unguarded, failed)
            self._at(case.body)
            yield case.body
            self._edge(self._here, after)
            self._here = failed
        self._edge(self._here, after)
        self._here = after

    # Expressions

    def _branch(self, test: cst.BaseExpression, depth: int = 0) -> tuple[int, int]:
        """The blocks that follow where a test holds and where it does not."""
        self._at(test)
        if id(test) in self._binding and depth < _DEEPEST:
            match test:
                case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                    holds, fails = self._branch(inner, depth + 1)
                    return fails, holds
                case cst.BooleanOperation(left=left, operator=operator, right=right):
                    holds, fails = self._branch(left, depth + 1)
                    self._here = holds if isinstance(operator, cst.And) else fails
                    holds_too, fails_too = self._branch(right, depth + 1)
                    if isinstance(operator, cst.And):
                        return holds_too, self._join(fails, fails_too)
                    return self._join(holds, holds_too), fails_too
        self._value(test, depth)
        always = _truth(test)
        holds = self._join() if always is False else self._join(self._here)
        fails = self._join() if always is True else self._join(self._here)
        self._graph.conditions[holds] = Condition(test, holds=True)
        self._graph.conditions[fails] = Condition(test, holds=False)
        return holds, fails

    def _value(self, node: cst.CSTNode, depth: int = 0) -> None:
        """Go through an expression or a pattern, as far as it binds names."""
        self._at(node)
        if id(node) not in self._binding:
            return
        self._raises()
        if depth >= _DEEPEST:
            self._in_any_order(node)
            return
        depth += 1
        match node:
            case cst.NamedExpr(value=value):
                self._value(value, depth)
                self._next()
                self._ends(node)
                self._next()
                self._raises()
            case cst.BooleanOperation(left=left, operator=operator, right=right):
                holds, fails = self._branch(left, depth)
                self._here, other = (holds, fails) if isinstance(operator, cst.And) else (fails, holds)
                self._value(right, depth)
                self._here = self._join(other, self._here)
            case cst.Comparison(left=left, comparisons=[first, *others]):
                self._value(left, depth)
                self._value(first, depth)
                self._perhaps(others, depth)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                holds, fails = self._branch(test, depth)
                self._either([(holds, body), (fails, orelse)], depth)
            case cst.MatchOr(patterns=patterns):
                self._either([(self._join(self._here), pattern) for pattern in patterns], depth)
            case cst.Assign(targets=targets, value=value):
                for part in (value, *targets):
                    self._value(part, depth)
            case cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.GeneratorExp():
                self._comprehension(node, depth)
            case _:
                for child in children(node):
                    self._value(child, depth)

    def _perhaps(self, parts: Sequence[cst.CSTNode], depth: int) -> None:
        """Each of these is evaluated only if those before it are."""
        ends: list[int] = []
        for part in parts:
            ends.append(self._here)
            self._next()
            self._value(part, depth)
        self._here = self._join(*ends, self._here)

    def _either(self, parts: Sequence[tuple[int, cst.CSTNode]], depth: int) -> None:
        """One of these is evaluated, each in its block."""
        ends: list[int] = []
        for self._here, part in parts:
            self._value(part, depth)
            ends.append(self._here)
        self._here = self._join(*ends)

    def _comprehension(self, node: cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp, depth: int) -> None:
        after = self._block()
        again = after
        level: cst.CompFor | None = node.for_in
        while level is not None:
            self._value(level.iter, depth)
            self._next()
            self._edge(self._here, again)
            again = self._here
            self._next()
            self._at(level.target)
            for condition in level.ifs:
                self._value(condition, depth)
                self._edge(self._here, again)
                self._next()
            level = level.inner_for_in
        for part in (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,):
            self._value(part, depth)
        self._edge(self._here, again)
        self._here = after

    def _in_any_order(self, node: cst.CSTNode) -> None:
        """Whatever is bound below may be bound or not, in any order."""
        self._next()
        whole = self._here
        self._at(node)
        self._raises()
        stack = [node]
        while stack:
            current = stack.pop()
            if id(current) not in self._binding and not isinstance(current, (cst.MatchAs, cst.MatchStar)):
                continue
            if isinstance(current, (cst.NamedExpr, cst.MatchAs, cst.MatchStar)):
                self._here = self._join(whole)
                self._ends(current)
                self._edge(self._here, whole)
            stack += children(current)
        self._here = self._join(whole)


# Not of each builder, which would refer to itself then.
_COMPOUND: dict[type[cst.CSTNode], Callable[[_Builder, Any], Iterator[_Suite]]] = {
    cst.If: _Builder._if,  # noqa: SLF001 - its own statements
    cst.For: _Builder._for,  # noqa: SLF001
    cst.While: _Builder._while,  # noqa: SLF001
    cst.Try: _Builder._try,  # noqa: SLF001
    cst.TryStar: _Builder._try,  # noqa: SLF001
    cst.With: _Builder._with,  # noqa: SLF001
    cst.Match: _Builder._match,  # noqa: SLF001
    cst.FunctionDef: _Builder._definition,  # noqa: SLF001
    cst.ClassDef: _Builder._definition,  # noqa: SLF001
}


def _may_raise(node: cst.BaseSmallStatement) -> bool:
    """Whether a small statement may raise besides by what it says: a constant that a name is given can't."""
    match node:
        case cst.Assign(targets=targets, value=value):
            return not (_is_constant(value) and all(isinstance(target.target, cst.Name) for target in targets))
        case cst.Expr(value=value):
            return not _is_constant(value)
        case cst.Return(value=None):
            return False
    return type(node) not in _WITHOUT_EFFECT


def _is_constant(node: cst.BaseExpression) -> bool:
    """Whether an expression can be evaluated whatever is there, and calls nothing."""
    match node:
        case cst.Name(value="None" | "True" | "False") | cst.List(elements=[]) | cst.Dict(elements=[]):
            return True
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() | cst.Float()):
            return True
    return isinstance(node, (cst.Ellipsis, cst.Float, cst.Integer, cst.SimpleString))


def _may_bind_in_part(node: cst.BaseSmallStatement) -> bool:
    """Whether a statement may have bound a name when it raises."""
    match node:
        case cst.Assign(targets=targets):
            return len(targets) > 1 or isinstance(targets[0].target, (cst.Tuple, cst.List))
        case cst.Import(names=names):
            return len(names) > 1
        case cst.ImportFrom(names=names):
            return not isinstance(names, cst.ImportStar) and len(names) > 1
        case cst.Del(target=target):
            return not isinstance(target, cst.Name)
    return False


def _catches_all(handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    match handler.type:
        case None:
            return True
        case cst.Name(value=name):
            return name in _CATCH_ALL and isinstance(handler, cst.ExceptHandler)
    return False


def _is_irrefutable(pattern: cst.MatchPattern) -> bool:
    """Whether a pattern matches everything."""
    match pattern:
        case cst.MatchAs(pattern=None):
            return True
        case cst.MatchAs(pattern=inner) if inner is not None:
            return _is_irrefutable(inner)
        case cst.MatchOr(patterns=[*_, last]):
            return _is_irrefutable(last.pattern)
    return False


def _truth(test: cst.BaseExpression) -> bool | None:
    """What a test always gives; None where that depends."""
    if type(test) not in _MAY_BE_KNOWN:
        return None
    match test:
        case cst.Name(value="True"):
            return True
        case cst.Name(value="False" | "None"):
            return False
        case cst.Integer():
            return bool(test.evaluated_value)
    return None
