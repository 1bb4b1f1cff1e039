"""One walk over a module: every node in source order, its parent, and the nodes of each type.

LibCST's visitors rebuild the tree and its metadata providers cost several parses; this walk costs a tenth of one.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

import libcst as cst

NodeT = TypeVar("NodeT", bound=cst.CSTNode)

# Fields that hold white space, punctuation or operators' surroundings: no rule and no fact looks there.
_SKIPPED = frozenset(
    {
        "asynchronous", "colon", "comma", "default_indent", "default_newline", "dot", "encoding", "end", "equal",
        "first_colon", "first_line", "footer", "has_trailing_newline", "header", "indent", "last_line",
        "lbrace", "lbracket", "leading_lines", "leading_whitespace", "lines_after_decorators", "lpar", "newline",
        "rbrace", "rbracket", "rpar", "second_colon", "semicolon", "separator", "start", "trailing_comma",
        "trailing_whitespace", "whitespace", "posonly_ind", "empty_lines", "conversion",
    }
)  # fmt: skip
# Fields in the order of the source where LibCST's own order differs.
_ORDER: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.FunctionDef: ("decorators", "name", "type_parameters", "params", "returns", "body"),
    cst.Parameters: ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
    cst.Arg: ("keyword", "value"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.ImportFrom: ("module", "names"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Name: (),
    cst.Integer: (),
    cst.Float: (),
    cst.SimpleString: (),
    cst.FormattedStringText: (),
}
# What gives the children of the types that most nodes with any are of, much sooner than going through the fields does.
_QUICK: dict[type[cst.CSTNode], Callable[[Any], list[cst.CSTNode]]] = {
    cst.Annotation: lambda node: [node.annotation],
    cst.Arg: lambda node: [node.value] if node.keyword is None else [node.keyword, node.value],
    cst.Assign: lambda node: [*node.targets, node.value],
    cst.AssignTarget: lambda node: [node.target],
    cst.Attribute: lambda node: [node.value, node.attr],
    cst.BinaryOperation: lambda node: [node.left, node.operator, node.right],
    cst.BooleanOperation: lambda node: [node.left, node.operator, node.right],
    cst.Call: lambda node: [node.func, *node.args],
    cst.Comparison: lambda node: [node.left, *node.comparisons],
    cst.ComparisonTarget: lambda node: [node.operator, node.comparator],
    cst.Element: lambda node: [node.value],
    cst.Expr: lambda node: [node.value],
    cst.FormattedString: lambda node: [*node.parts],
    cst.If: lambda node: [node.test, node.body] if node.orelse is None else [node.test, node.body, node.orelse],
    cst.ImportAlias: lambda node: [node.name] if node.asname is None else [node.name, node.asname],
    cst.IndentedBlock: lambda node: [*node.body],
    cst.Index: lambda node: [node.value],
    cst.List: lambda node: [*node.elements],
    cst.SimpleStatementLine: lambda node: [*node.body],
    cst.Subscript: lambda node: [node.value, *node.slice],
    cst.SubscriptElement: lambda node: [node.slice],
    cst.Tuple: lambda node: [*node.elements],
}
# What gives only the last children of those that may have many.
_LONG: dict[type[cst.CSTNode], Callable[[Any], Sequence[cst.CSTNode]]] = {
    cst.Call: lambda node: node.args or (node.func,),
    cst.ClassDef: lambda node: (node.body,),
    cst.FunctionDef: lambda node: (node.body,),
    cst.IndentedBlock: lambda node: node.body,
    cst.List: lambda node: node.elements,
    cst.Tuple: lambda node: node.elements,
}
_fields: dict[type[cst.CSTNode], Callable[[cst.CSTNode], tuple[Any, ...]] | None] = {}
_node_types: dict[type, bool] = {}
# Types of which no field may hold a node: half of all nodes are of one.
_childless: set[type[cst.CSTNode]] = set()

# Asking whether something is of an abstract class, as all of LibCST's are, is slow: these are for `type(node) in …`.
SCOPES: frozenset[type] = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef})
BRANCHES: frozenset[type] = frozenset({cst.If, cst.IfExp})
LOOPS: frozenset[type] = frozenset({cst.For, cst.While})

Loop = (cst.For, cst.While)
Comprehension = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
Function = (cst.FunctionDef, cst.Lambda)
# What indents: the cases of a `match` stand in no block.
INDENTED = (cst.IndentedBlock, cst.Match)


def _child_fields(kind: type[cst.CSTNode]) -> Callable[[cst.CSTNode], tuple[Any, ...]] | None:
    """What gives the values of the fields of a node that may hold others; None where none may."""
    names = _ORDER.get(kind)
    if names is None:
        names = tuple(
            field.name
            for field in dataclasses.fields(kind)
            if field.name not in _SKIPPED and not field.name.startswith("whitespace")
        )
    # `attrgetter` gives a tuple for two names or more; the name of a module is no node.
    fields = _fields[kind] = attrgetter(*names, "__module__") if names else None
    if fields is None:
        _childless.add(kind)
    return fields


def _is_node_type(kind: type) -> bool:
    """Whether values of this type are nodes, remembered: asking an abstract class is slow."""
    known = _node_types[kind] = issubclass(kind, cst.CSTNode)
    return known


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly below `node`, in source order."""
    kind = type(node)
    if kind in _QUICK:
        return _QUICK[kind](node)
    fields = _fields[kind] if kind in _fields else _child_fields(kind)
    found: list[cst.CSTNode] = []
    if fields is None:
        return found
    for value in fields(node):
        if value is None:
            continue
        kind = type(value)
        if kind is tuple or kind is list:
            found += value
        elif _node_types[kind] if kind in _node_types else _is_node_type(kind):
            found.append(value)
    return found


def _last_child(node: cst.CSTNode) -> cst.CSTNode | None:
    """The last of the nodes directly below `node`; None if there is none."""
    kind = type(node)
    if kind in _childless:
        return None
    below = _LONG[kind](node) if kind in _LONG else children(node)
    return below[-1] if below else None


def descendants(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`node` and all below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if type(current) not in _childless:
            below = children(current)
            below.reverse()
            stack += below


def speaks_of(node: cst.CSTNode, names: Collection[str]) -> bool:
    """Whether one of the names stands in `node`."""
    return any(isinstance(part, cst.Name) and part.value in names for part in descendants(node))


def descendants_in_scope(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`node` and all below it that runs when it runs: bodies of functions and classes defined inside are left out."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        kind = type(current)
        if kind not in _childless and (kind not in SCOPES or current is node):
            below = children(current)
            below.reverse()
            stack += below


class Tree:
    """The nodes of a module with parents, by type, in source order."""

    def __init__(self, module: cst.Module) -> None:
        self.module = module
        # By identity: hashing a node calls into Python, and this is asked more than anything else.
        self.parents: dict[int, cst.CSTNode] = {}
        self.by_type: defaultdict[type[cst.CSTNode], list[cst.CSTNode]] = defaultdict(list)
        self.nodes: list[cst.CSTNode] = []
        # Of blocks, the last place: those inside of each other often end together.
        self._ends: dict[int, int] = {}
        parents, by_type, note, quick = self.parents, self.by_type, self.nodes.append, _QUICK
        stack: list[cst.CSTNode] = [module]
        pop = stack.pop
        while stack:
            node = pop()
            note(node)
            kind = type(node)
            by_type[kind].append(node)
            if kind in _childless:
                continue
            found = quick[kind](node) if kind in quick else children(node)
            for child in found:
                parents[id(child)] = node
            found.reverse()
            stack += found

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each node in source order, the module's being 0, by identity."""
        return dict(zip(map(id, self.nodes), range(len(self.nodes)), strict=True))

    def place(self, node: cst.CSTNode) -> int:
        """The place of one node."""
        return self.places[id(node)]

    def of(self, *kinds: type[NodeT]) -> list[NodeT]:
        """All nodes of exactly these types."""
        if len(kinds) == 1:
            return self.by_type.get(kinds[0], [])  # type: ignore[return-value]
        return [node for kind in kinds for node in self.by_type.get(kind, [])]  # type: ignore[misc]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node directly above, None for the module."""
        return self.parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes above, nearest first."""
        parents = self.parents
        current = parents.get(id(node))
        while current is not None:
            yield current
            current = parents.get(id(current))

    def within(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Whether `node` is `outer` or below it."""
        return node is outer or any(above is outer for above in self.ancestors(node))

    def end(self, node: cst.CSTNode) -> int:
        """The place of the last node below `node` (its own, if there is none)."""
        blocks: list[int] = []
        found: int | None = None
        while (last := _last_child(node)) is not None:
            if type(node) is cst.IndentedBlock:
                found = self._ends.get(id(node))
                if found is not None:
                    break
                blocks.append(id(node))
            node = last
        if found is None:
            found = self.places[id(node)]
        for block in blocks:
            self._ends[block] = found
        return found

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Lambda | None:
        """The function in whose body (not signature or decorators) the node stands."""
        child = node
        for above in self.ancestors(node):
            if isinstance(above, Function) and child is above.body:
                return above
            child = above
        return None

    def function_of_parameter(self, parameter: cst.CSTNode) -> cst.FunctionDef | cst.Lambda | None:
        """The function that a `Param` belongs to."""
        for above in self.ancestors(parameter):
            if isinstance(above, Function):
                return above
        return None

    def enclosing_class(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The class in whose body the node stands directly or in a method."""
        child = node
        for above in self.ancestors(node):
            if isinstance(above, cst.ClassDef) and child is above.body:
                return above
            child = above
        return None

    def statement(self, node: cst.CSTNode) -> cst.BaseCompoundStatement | cst.BaseSmallStatement | None:
        """The innermost statement that holds the node (or is it)."""
        if isinstance(node, (cst.BaseCompoundStatement, cst.BaseSmallStatement)):
            return node
        for above in self.ancestors(node):
            if isinstance(above, (cst.BaseCompoundStatement, cst.BaseSmallStatement)):
                return above
        return None

    def line(self, node: cst.CSTNode) -> cst.SimpleStatementLine | cst.BaseCompoundStatement | None:
        """The statement as it stands in a block: the line of a small statement, or the compound statement."""
        current: cst.CSTNode | None = node
        while current is not None:
            if isinstance(current, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return current
            current = self.parents.get(id(current))
        return None

    def indentation(self, statement: cst.CSTNode) -> str:
        """The white space before a statement that stands on a line of its own."""
        levels = [
            above.indent if above.indent is not None else self.module.default_indent
            for above in self.ancestors(statement)
            if isinstance(above, INDENTED)
        ]
        return "".join(reversed(levels))
