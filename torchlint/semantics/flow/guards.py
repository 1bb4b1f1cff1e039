"""What stands around a node: the conditions under which it runs, loops, handlers, `with`, and the blocks around it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple, TypeVar

import libcst as cst

from torchlint.syntax.tree import Function, Tree

NodeT = TypeVar("NodeT", bound=cst.CSTNode)


class Role(Enum):
    """In which part of what stands around it a node lies, and so when it runs.

    TAKEN: if the test holds (`if`, `a if test else b`, `test and a`, the `c` of `a < b < c`). NOT_TAKEN: if it does not
    (`else`, `test or a`, the message of `assert`).
    CASE: if a pattern fits. LOOP: in the body of a loop. EACH: for the elements of a comprehension. TRY: where
    exceptions are caught. HANDLER: behind one. FINALLY: whatever happened. UNBROKEN: in the `else` of a loop or of
    `try`. WITH: while context managers are entered.
    """

    TAKEN = auto()
    NOT_TAKEN = auto()
    CASE = auto()
    LOOP = auto()
    EACH = auto()
    TRY = auto()
    HANDLER = auto()
    FINALLY = auto()
    UNBROKEN = auto()
    WITH = auto()


class Guard(NamedTuple):
    """What decides whether, how often, or under what a node runs: `part` of `node` holds it; `test` is a condition."""

    role: Role
    node: cst.CSTNode
    part: cst.CSTNode
    test: cst.BaseExpression | None = None

    @property
    def managers(self) -> tuple[cst.BaseExpression, ...]:
        """The context managers of a `with`."""
        return tuple(item.item for item in self.node.items) if isinstance(self.node, cst.With) else ()


class Suite(NamedTuple):
    """A block, and the line in it that holds the node or is it."""

    block: cst.IndentedBlock | cst.Module
    line: cst.CSTNode


class Surroundings:
    """What stands around the nodes of one module."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def guards(
        self, node: cst.CSTNode, *, within: cst.CSTNode | None = None, across_functions: bool = False
    ) -> Iterator[Guard]:
        """What guards a node, nearest first, as far as its function; or `within` a node, which is left out itself.

        Across functions, what guards the definition of its function goes on, too.
        """
        part = node
        for above in self.tree.ancestors(node):
            if above is within:
                return
            role, test = _role(above, part)
            if role is not None:
                yield Guard(role, above, part, test)
            elif not across_functions and isinstance(above, Function) and part is above.body:
                return
            part = above

    def around(self, node: cst.CSTNode, *kinds: type[NodeT], within: cst.CSTNode | None = None) -> Iterator[NodeT]:
        """The nodes of these types that hold a node, nearest first; those `within` one, which is left out itself."""
        for above in self.tree.ancestors(node):
            if above is within:
                return
            if isinstance(above, kinds):
                yield above

    def is_above(self, node: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether the line of a node stands before another node, in a block that holds both for itself."""
        block = self.tree.parent(self.tree.line(node) or node)
        return self.tree.place(node) < self.tree.place(other) and any(
            suite.block is block for suite in self.suites(other)
        )

    def suites(self, node: cst.CSTNode) -> Iterator[Suite]:
        """The blocks that hold a node, innermost first, as far as the body of its function."""
        part = node
        for above in self.tree.ancestors(node):
            if isinstance(above, (cst.IndentedBlock, cst.Module)):
                yield Suite(above, part)
            elif isinstance(above, Function):
                return
            part = above


def _role(above: cst.CSTNode, part: cst.CSTNode) -> tuple[Role | None, cst.BaseExpression | None]:
    """What one node says of when its part runs, and the test that decides it."""
    if type(above) not in _DECIDING:  # as most are that stand around anything
        return None, None
    match above:
        case cst.If(test=test) | cst.IfExp(test=test):
            if part is test:
                return None, None
            return (Role.TAKEN if part is above.body else Role.NOT_TAKEN), test
        case cst.BooleanOperation(left=test, operator=operator):
            if part is test:
                return None, None
            return (Role.TAKEN if isinstance(operator, cst.And) else Role.NOT_TAKEN), test
        case cst.For(body=body) | cst.While(body=body):
            return (Role.LOOP if part is body else Role.UNBROKEN if part is above.orelse else None), None
        case (
            cst.ListComp(for_in=source)
            | cst.SetComp(for_in=source)
            | cst.DictComp(for_in=source)
            | cst.GeneratorExp(for_in=source)
        ):
            return (None if part is source else Role.EACH), None
        case cst.CompFor(iter=source):
            return (None if part is source else Role.EACH), None
        case cst.Comparison(comparisons=[_, *more]) if part in more:
            return Role.TAKEN, None
        case cst.Assert(test=test):
            return (None, None) if part is test else (Role.NOT_TAKEN, test)
        case cst.With(body=body):
            return (Role.WITH if part is body else None), None
        case cst.Try(body=body) | cst.TryStar(body=body):
            return (Role.TRY if part is body else Role.UNBROKEN if part is above.orelse else None), None
        case cst.ExceptHandler() | cst.ExceptStarHandler():
            return Role.HANDLER, None
        case cst.Finally():
            return Role.FINALLY, None
        case cst.MatchCase(guard=guard):
            return Role.CASE, guard
    return None, None


_DECIDING = frozenset(
    {
        cst.Assert,
        cst.BooleanOperation,
        cst.CompFor,
        cst.Comparison,
        cst.DictComp,
        cst.ExceptHandler,
        cst.ExceptStarHandler,
        cst.Finally,
        cst.For,
        cst.GeneratorExp,
        cst.If,
        cst.IfExp,
        cst.ListComp,
        cst.MatchCase,
        cst.SetComp,
        cst.Try,
        cst.TryStar,
        cst.While,
        cst.With,
    }
)
