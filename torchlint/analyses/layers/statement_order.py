"""In which order statements of one function run: which of some nodes comes next after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import libcst as cst

from torchlint.syntax.tree import Tree, descendants_in_scope

_Block = (cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)


class Order:
    """Which of `nodes` may run next, on every way through the branches and loops of their function.

    `decide` tells what a condition always is, None where it depends.
    """

    def __init__(
        self, tree: Tree, nodes: Collection[cst.CSTNode], decide: Callable[[cst.BaseExpression], bool | None]
    ) -> None:
        self.tree = tree
        self.nodes = nodes
        self.decide = decide

    def after(self, node: cst.CSTNode) -> tuple[list[cst.CSTNode], bool]:
        """The nodes that may be the first to run behind `node`, and whether the function may end before any does."""
        found: dict[cst.CSTNode, None] = {}
        line = self.tree.line(node)
        if line is None:
            return [], True
        rest = [other for other in self._inside(line) if self.tree.place(other) > self.tree.place(node)]
        if isinstance(line, cst.SimpleStatementLine) and rest:
            return rest[:1], False
        ends = self._behind(line, found, set())
        return list(found), ends

    def _inside(self, line: cst.CSTNode) -> list[cst.CSTNode]:
        return [node for node in descendants_in_scope(line) if node in self.nodes]

    def _behind(self, line: cst.CSTNode, found: dict[cst.CSTNode, None], seen: set[int]) -> bool:
        """Note what runs first behind a statement; whether the function may end before."""
        block = self.tree.parent(line)
        if not isinstance(block, _Block):
            return True
        place = next(place for place, other in enumerate(block.body) if other is line)
        falls, ends = self._first(block.body[place + 1 :], found, seen)
        return (falls and self._leave(block, found, seen)) or ends

    def _leave(self, block: cst.CSTNode, found: dict[cst.CSTNode, None], seen: set[int]) -> bool:
        """As `_behind`, from the end of a block."""
        owner = self.tree.parent(block)
        while isinstance(owner, (cst.Else, cst.If)) and isinstance(self.tree.parent(owner), cst.If):
            owner = self.tree.parent(owner)
        match owner:
            case cst.For() | cst.While() if block is owner.body:
                return self._turn(owner, found, seen)
            case cst.ExceptHandler() | cst.ExceptStarHandler() | cst.Finally() | cst.Else() | cst.MatchCase():
                statement = self.tree.parent(owner)
                return statement is None or self._behind(statement, found, seen)
            case cst.If() | cst.With() | cst.Try() | cst.TryStar() | cst.For() | cst.While():
                return self._behind(owner, found, seen)
        return True

    def _turn(self, loop: cst.For | cst.While, found: dict[cst.CSTNode, None], seen: set[int]) -> bool:
        """From the end of a loop's body into its next turn, and out of it."""
        ends = False
        if id(loop) not in seen:
            seen.add(id(loop))
            _, ends = self._first([loop.body], found, seen)
        return self._behind(loop, found, seen) or ends

    def _first(
        self, statements: Collection[cst.CSTNode], found: dict[cst.CSTNode, None], seen: set[int]
    ) -> tuple[bool, bool]:
        """Note what runs first in statements: whether they may end without any, and whether the function may."""
        ends = False
        for statement in statements:
            falls, ended = self._first_in(statement, found, seen)
            ends = ends or ended
            if not falls:
                return False, ends
        return True, ends

    def _first_in(self, statement: cst.CSTNode, found: dict[cst.CSTNode, None], seen: set[int]) -> tuple[bool, bool]:
        match statement:
            case cst.SimpleStatementLine() | cst.SimpleStatementSuite():
                inside = self._inside(statement)
                if inside:
                    found[inside[0]] = None
                    return False, False
                return self._jump(statement, found, seen)
            case cst.IndentedBlock(body=body):
                return self._first(body, found, seen)
            case cst.If(test=test, body=body, orelse=orelse):
                taken = self.decide(test)
                ways = [self._first_in(body, found, seen)] if taken is not False else []
                if taken is not True:
                    ways.append(self._first_in(orelse, found, seen) if orelse is not None else (True, False))
                return any(falls for falls, _ in ways), any(ends for _, ends in ways)
            case (
                cst.Else()
                | cst.Finally()
                | cst.With()
                | cst.ExceptHandler()
                | cst.ExceptStarHandler()
                | cst.MatchCase()
            ):
                return self._first_in(statement.body, found, seen)
            case cst.For(body=body) | cst.While(body=body):
                # `continue` leads back to the loop's start, which is being looked at.
                seen.add(id(statement))
                _, ends = self._first_in(body, found, seen)
                return True, ends
            case cst.Try() | cst.TryStar():
                parts = (statement.body, *statement.handlers, statement.orelse, statement.finalbody)
                return True, self._ends_in(parts, found, seen)
            case cst.Match(cases=cases):
                return True, self._ends_in(cases, found, seen)
        return True, False

    def _ends_in(self, parts: Iterable[cst.CSTNode | None], found: dict[cst.CSTNode, None], seen: set[int]) -> bool:
        """Note what runs first in each of some blocks, of which any may run."""
        ways = [self._first_in(part, found, seen) for part in parts if part is not None]
        return any(ends for _, ends in ways)

    def _jump(self, line: cst.CSTNode, found: dict[cst.CSTNode, None], seen: set[int]) -> tuple[bool, bool]:
        """As `_first_in`, for a line without any of the nodes."""
        for statement in descendants_in_scope(line):
            if isinstance(statement, (cst.Return, cst.Raise)):
                return False, isinstance(statement, cst.Return)
            if isinstance(statement, (cst.Break, cst.Continue)):
                loop = self._loop(statement)
                if loop is None:
                    return False, True
                if isinstance(statement, cst.Break):
                    return False, self._behind(loop, found, seen)
                return False, self._turn(loop, found, seen)
        return True, False

    def _loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        for above in self.tree.ancestors(node):
            if isinstance(above, (cst.For, cst.While)):
                return above
        return None
