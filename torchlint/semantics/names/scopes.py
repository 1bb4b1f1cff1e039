"""Scopes, and what binds names in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import libcst as cst

Bodied: TypeAlias = "cst.ClassDef | cst.FunctionDef | cst.Lambda"
ComprehensionNode: TypeAlias = "cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp"
ScopeNode: TypeAlias = "cst.Module | Bodied | ComprehensionNode"


class Binder(Enum):
    """The kind of statement that binds a name."""

    ASSIGN = "assign"
    AUGMENTED = "augmented"
    ANNOTATION = "annotation"
    LOOP = "loop"
    CONTEXT = "context"
    PARAMETER = "parameter"
    IMPORT = "import"
    FUNCTION = "function"
    CLASS = "class"
    OTHER = "other"


@dataclass(slots=True, eq=False)  # not frozen: that doubles what making one costs, and there are many
class Binding:
    """One place that gives a name a value, never changed.

    `value` is the expression bound (for a loop what is iterated, for `with` the context manager); `path` leads from
    it to the name through unpacking, -1 standing for a starred target, -2 for one behind it. `effect` is the place in
    source order from which on the name holds the value. `target` is the qualified name of an import.
    """

    name: str
    binder: Binder
    node: cst.CSTNode
    value: cst.BaseExpression | None
    effect: int
    path: tuple[int, ...] = ()
    target: str = ""
    # Bound from another scope, by `global` or `nonlocal`.
    from_elsewhere: bool = False


@dataclass(slots=True, eq=False)
class Scope:
    """A namespace of the source."""

    node: ScopeNode
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)

    @property
    def is_class(self) -> bool:
        """Whether names bound here are hidden from functions inside."""
        return type(self.node) is cst.ClassDef
