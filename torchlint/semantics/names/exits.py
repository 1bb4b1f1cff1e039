"""What leaves a block otherwise than by its end: calls that never return, and context managers that end exceptions.

Both are asked while a control-flow graph is made, so they look at all bindings of a name, not at those that reach it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.semantics.knowledge.exits import (
    LET_THROUGH,
    LET_THROUGH_METHODS,
    LET_THROUGH_PACKAGES,
    NEVER,
    NEVER_RETURN,
)
from torchlint.semantics.names.scopes import Binder, Binding, Scope
from torchlint.semantics.names.spelling import last_part
from torchlint.syntax.tree import descendants_in_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlint.syntax.tree import Tree

    Lookup: TypeAlias = Callable[[cst.Name], tuple[Scope | None, tuple[Binding, ...]]]

# A manager may be made elsewhere and have several names; so many are followed.
_DEEPEST = 4
_LAST_PARTS = frozenset(name.rpartition(".")[2] for name in NEVER_RETURN)


class Exits:
    """Which calls of one module never return, and which of its context managers let every exception through."""

    def __init__(self, tree: Tree, lookup: Lookup) -> None:
        self._tree = tree
        self._lookup = lookup

    def never_returns(self, call: cst.Call) -> bool:
        """Whether what is called always ends the program or raises."""
        if type(call.func) is cst.Attribute and call.func.attr.value not in _LAST_PARTS:
            return False
        if self._spelt_out(call.func) in NEVER_RETURN:
            return True
        definition = self._definition(call.func)
        return (
            isinstance(definition, cst.FunctionDef)
            and definition.returns is not None
            and last_part(definition.returns.annotation) in NEVER
        )

    def swallows(self, item: cst.WithItem) -> bool:
        """Whether a context manager may end an exception: any may of which nothing is known."""
        return not self._lets_through(item.item, 0)

    def _lets_through(self, manager: cst.BaseExpression, depth: int) -> bool:
        if depth > _DEEPEST:
            return False
        match manager:
            case cst.IfExp(body=body, orelse=orelse):
                return self._lets_through(body, depth + 1) and self._lets_through(orelse, depth + 1)
            case cst.Name():
                _, bindings = self._lookup(manager)
                return bool(bindings) and all(
                    binding.binder is Binder.ASSIGN
                    and binding.value is not None
                    and not binding.path
                    and self._lets_through(binding.value, depth + 1)
                    for binding in bindings
                )
            case cst.Call(func=func):
                return self._makes_what_lets_through(func)
        return last_part(manager) in LET_THROUGH_METHODS

    def _makes_what_lets_through(self, func: cst.BaseExpression) -> bool:
        name = self._spelt_out(func)
        if name is not None and (name in LET_THROUGH or name.partition(".")[0] in LET_THROUGH_PACKAGES):
            return True
        match self._definition(func):
            case cst.FunctionDef() as function:
                return self._yields_in_the_open(function)
            case cst.ClassDef() as class_:
                return _exits_with_nothing(class_)
        return isinstance(func, cst.Attribute) and func.attr.value in LET_THROUGH_METHODS

    def _spelt_out(self, func: cst.BaseExpression) -> str | None:
        """The qualified name of a function that one import, or none, gives its name."""
        parts: list[str] = []
        while isinstance(func, cst.Attribute):
            parts.append(func.attr.value)
            func = func.value
        if not isinstance(func, cst.Name):
            return None
        _, bindings = self._lookup(func)
        targets = {binding.target for binding in bindings}
        if len(targets) > 1 or "" in targets:
            return None
        return ".".join([targets.pop() if targets else func.value, *reversed(parts)])

    def _definition(self, func: cst.BaseExpression) -> cst.CSTNode | None:
        """The one function or class of this module that is called."""
        if not isinstance(func, cst.Name):
            return None
        _, bindings = self._lookup(func)
        if len(bindings) != 1 or bindings[0].binder not in (Binder.FUNCTION, Binder.CLASS):
            return None
        return bindings[0].node

    def _yields_in_the_open(self, function: cst.FunctionDef) -> bool:
        """Whether a generator made a context manager handles no exception where it yields."""
        if not any(
            last_part(decorator.decorator) in ("contextmanager", "asynccontextmanager")
            for decorator in function.decorators
        ):
            return False
        for node in descendants_in_scope(function.body):
            if isinstance(node, cst.Yield):
                for above in self._tree.ancestors(node):
                    if above is function:
                        break
                    if isinstance(above, (cst.Try, cst.TryStar)) and above.handlers:
                        return False
                    if isinstance(above, cst.With) and not all(
                        self._lets_through(item.item, _DEEPEST) for item in above.items
                    ):
                        return False
        return True


def _exits_with_nothing(class_: cst.ClassDef) -> bool:
    """Whether a class says itself how it is left, and returns nothing from there."""
    for statement in class_.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value in ("__exit__", "__aexit__"):
            returned = [node.value for node in descendants_in_scope(statement.body) if isinstance(node, cst.Return)]
            return all(
                value is None or (isinstance(value, cst.Name) and value.value in ("None", "False"))
                for value in returned
            )
    return False
