"""Which conditions hold where a name is used: those of the edges that every way there takes, and of its expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.syntax.control_flow import Condition
from torchlint.syntax.dominance import Landmarks
from torchlint.syntax.tree import SCOPES, descendants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.semantics.names.bindings import Names
    from torchlint.semantics.names.scopes import Scope
    from torchlint.syntax.control_flow import Body

_COMPREHENSIONS: frozenset[type] = frozenset({cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp})


class Narrowing:
    """The conditions that hold of names in one module."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._tree = names.tree
        self._marks: dict[Body, dict[str, Landmarks]] = {}

    def conditions(self, use: cst.Name) -> Iterator[Condition]:
        """What was tested of a name, and came out so, since it was last bound; the nearest first.

        `and`, `or` and `not` are taken apart. What a test says of an attribute of the name may have changed since.
        """
        scope, bindings = self._names.lookup(use)
        if scope is None or any(binding.from_elsewhere for binding in bindings):
            return
        if not any(type(binding.node) is cst.NamedExpr for binding in bindings):
            yield from self._in_expression(use)
        own = self._names.scope_of(use)
        while type(own.node) in _COMPREHENSIONS and own is not scope and own.parent is not None:
            if type(own.node) is cst.GeneratorExp and len(bindings) > 1:
                return  # it may run when the name is bound otherwise
            own = own.parent
        if isinstance(own.node, (cst.Module, cst.ClassDef, cst.FunctionDef)):
            yield from self._on_edges(use, own, own.node)

    def _in_expression(self, use: cst.Name) -> Iterator[Condition]:
        """The conditions under which a part of an expression is evaluated."""
        child: cst.CSTNode = use
        for above in self._tree.ancestors(use):
            match above:
                case cst.IfExp(test=test):
                    if child is not test:
                        yield from Condition(test, holds=child is above.body).parts()
                case cst.BooleanOperation(left=left, operator=operator, right=right) if child is right:
                    yield from Condition(left, holds=isinstance(operator, cst.And)).parts()
                case cst.CompFor():
                    # The tests of a `for` come before its later tests, and before the `for` inside of it.
                    for condition in above.ifs if child is not above.iter else ():
                        if condition is child:
                            break
                        yield from Condition(condition.test, holds=True).parts()
                case cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.GeneratorExp():
                    level: cst.CompFor | None = above.for_in if child is not above.for_in else None
                    while level is not None:
                        for condition in level.ifs:
                            yield from Condition(condition.test, holds=True).parts()
                        level = level.inner_for_in
                case cst.BaseSmallStatement() | cst.BaseCompoundStatement() | cst.BaseSuite():
                    break
            if type(above) in SCOPES:
                break
            child = above

    def _on_edges(self, use: cst.Name, scope: Scope, body: Body) -> Iterator[Condition]:
        """The conditions of the edges that every way from the beginning of a body to a use takes."""
        marks = self._tested(body).get(use.value)
        if marks is None:
            return
        flow = self._names.flow.flow(use.value, scope, body)
        place = self._tree.place(use)
        blocks = flow.blocks(place)
        if len(blocks) != 1:  # unreachable, or there are several copies, of which each may be reached otherwise
            return
        version = flow.version(blocks[0], place)
        mark = marks.nearest(blocks[0])
        graph, _ = self._names.flow.ways.of(body)
        while mark is not None and flow.version(mark) == version:
            yield from graph.conditions[mark].parts()
            mark = marks.above(mark)

    def _tested(self, body: Body) -> dict[str, Landmarks]:
        """For each name the blocks that begin with a condition which speaks of it."""
        found = self._marks.get(body)
        if found is None:
            graph, dominance = self._names.flow.ways.of(body)
            blocks: dict[str, list[int]] = {}
            for block, condition in graph.conditions.items():
                for name in {node.value for node in descendants(condition.test) if isinstance(node, cst.Name)}:
                    blocks.setdefault(name, []).append(block)
            found = self._marks[body] = {name: Landmarks(dominance, these) for name, these in blocks.items()}
        return found
