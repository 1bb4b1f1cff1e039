"""Where a name or an attribute is read: from a binding to its reads, as `names` leads from a read to its bindings."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.names.bindings import Names
    from torchlint.semantics.names.classes import Classes
    from torchlint.semantics.names.scopes import Scope
    from torchlint.semantics.values.evaluator import Kinds
    from torchlint.syntax.tree import Tree

Variable: TypeAlias = "cst.Name | cst.Attribute"


class _OfSelf(NamedTuple):
    """The mentions of an attribute on `self`: by the class around, by those that it is derived from, and all others."""

    direct: dict[int, list[cst.Attribute]]
    below: dict[int, list[cst.Attribute]]
    others: list[cst.Attribute]


class Uses:
    """The reads of names and attributes in one module."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.kinds = kinds
        self._expressions: dict[str, list[cst.Name]] = {}
        self._reads: dict[str, dict[int, list[cst.Name]]] = {}
        self._mentions: dict[tuple[Scope | None, str], list[Variable]] = {}
        self._of_self: dict[str, _OfSelf] = {}

    def _named(self, text: str) -> list[cst.Name]:
        """The expressions that are a name of this text."""
        found = self._expressions.get(text)
        if found is None:
            found = self._expressions[text] = [name for name in self.names.spelt(text) if self._is_expression(name)]
        return found

    @cached_property
    def _attributes(self) -> dict[str, list[cst.Attribute]]:
        found: dict[str, list[cst.Attribute]] = {}
        for node in self.tree.of(cst.Attribute):
            found.setdefault(node.attr.value, []).append(node)
        return found

    def _is_expression(self, name: cst.Name) -> bool:
        """Whether the name stands for itself: not as the name of an attribute, keyword, parameter or import."""
        match self.tree.parent(name):
            case cst.Attribute(attr=other) | cst.Arg(keyword=other):
                return other is not name
            case cst.Param(default=default):
                return default is name
            case cst.FunctionDef() | cst.ClassDef() | cst.ImportAlias() | cst.AsName() | cst.NameItem():
                return False
        return True

    def is_target(self, node: cst.CSTNode) -> bool:
        """Whether an assignment, a loop or `with` binds the node, or `del` unbinds it."""
        match self.tree.parent(node):
            case cst.AssignTarget() | cst.AsName() | cst.Del():
                return True
            case (
                cst.AnnAssign(target=target)
                | cst.For(target=target)
                | cst.CompFor(target=target)
                | cst.NamedExpr(target=target)
            ):
                return target is node
            case cst.Element() as element:
                above = self.tree.parent(element)
                return isinstance(above, (cst.Tuple, cst.List)) and self.is_target(above)
        return False

    def of(self, name: str, binder: cst.CSTNode) -> list[cst.Name]:
        """The reads of a name that may see the value given by a statement, parameter, class or function."""
        if name not in self._reads:
            reads = self._reads[name] = {}
            for use in self._named(name):
                if not self.is_target(use):
                    for node in {id(binding.node): None for binding in self.names.reaching(use)}:
                        reads.setdefault(node, []).append(use)
        return self._reads[name].get(id(binder), [])

    def attributes(self, name: str) -> list[cst.Attribute]:
        """Every mention of an attribute of this name, on whatever."""
        return self._attributes.get(name, [])

    def mentions(self, variable: Variable) -> list[Variable] | None:
        """Every place that names the same variable, bound or read; None where an unknown object may have it too."""
        if isinstance(variable, cst.Name):
            scope, _ = self.names.lookup(variable)
            key = scope, variable.value
            found = self._mentions.get(key)
            if found is None:
                named = self._named(variable.value)
                found = self._mentions[key] = [name for name in named if self.names.lookup(name)[0] is scope]
            return found
        class_ = self.owner(variable)
        return None if class_ is None else self.of_attribute(class_, variable.attr.value)

    def of_attribute(self, class_: cst.ClassDef, name: str) -> list[Variable] | None:
        """As `mentions`, for the attribute of a class's instances."""
        of_self = self._on_self(name)
        family = {id(base) for base in self.classes.lineage(class_)}
        found = [
            *of_self.below.get(id(class_), ()),
            *(each for base in family for each in of_self.direct.get(base, ())),
        ]
        for attribute in of_self.others:
            owner = self.owner(attribute)
            if owner is None:
                # On something unknown an attribute of that name matters only where it is called.
                parent = self.tree.parent(attribute)
                if isinstance(parent, cst.Call) and parent.func is attribute and self._is_unknown(attribute.value):
                    return None
            elif id(owner) in family or any(base is class_ for base in self.classes.lineage(owner)):
                found.append(attribute)
        return sorted({id(each): each for each in found}.values(), key=self.tree.place)

    def _on_self(self, name: str) -> _OfSelf:
        """The mentions of an attribute of this name, sorted by the class whose `self` they stand on."""
        known = self._of_self.get(name)
        if known is None:
            known = self._of_self[name] = _OfSelf({}, {}, [])
            for attribute in self.attributes(name):
                base = attribute.value
                class_ = self.classes.self_class(base) if isinstance(base, cst.Name) else None
                if class_ is None:
                    known.others.append(attribute)
                    continue
                known.direct.setdefault(id(class_), []).append(attribute)
                for above in self.classes.lineage(class_):
                    known.below.setdefault(id(above), []).append(attribute)
        return known

    def owner(self, attribute: cst.Attribute) -> cst.ClassDef | None:
        """The class of this module from whose instance an attribute is read, where that is known."""
        if isinstance(attribute.value, cst.Name):
            class_ = self.classes.self_class(attribute.value)
            if class_ is not None:
                return class_
        definition = self.kinds.value(attribute.value).definition
        return definition if isinstance(definition, cst.ClassDef) else None

    def _is_unknown(self, node: cst.BaseExpression) -> bool:
        """Whether nothing tells that this is no instance of a class of this module."""
        return self.names.qualified(node) is None and not self.kinds.value(node).qualified
