"""What a literal mapping holds under a key: `config["lr"]` of `config = {"lr": 0.1, "name": "base"}`."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.names.bindings import Binder, Names
from torchlint.syntax.tree import Tree

# What changes a mapping whose name it is called on, or gives it to something that may.
_CHANGING = frozenset(("update", "setdefault", "pop", "clear", "popitem"))


class Entries:
    """The mappings of a module that are literal, and what may change them."""

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names
        self._changes: dict[str, frozenset[str] | None] = {}

    def entry(self, node: cst.Subscript) -> cst.BaseExpression | None:
        """The expression that the mapping has under this key, if nothing in the file may change it."""
        key = _key(node)
        if key is None or not isinstance(node.value, cst.Name):
            return None
        bindings = self._names.reaching(node.value)
        if len(bindings) != 1 or bindings[0].binder is not Binder.ASSIGN or bindings[0].path:
            return None
        written = _written(bindings[0].value, key)
        if written is None:
            return None
        changed = self._changed(node.value.value)
        return None if changed is None or key in changed else written

    def _changed(self, name: str) -> frozenset[str] | None:
        """The keys that are given another value in a mapping of this name; None where it may be any."""
        if name not in self._changes:
            found = [_change(use, self._tree) for use in self._names.spelt(name)]
            self._changes[name] = None if None in found else frozenset(key for key in found if key)
        return self._changes[name]


def _key(node: cst.Subscript) -> str | None:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as text))]:
            return text.raw_value
    return None


def _written(mapping: cst.BaseExpression | None, key: str) -> cst.BaseExpression | None:
    """The value beside the key; None where there is none, or a part that is not literal may replace it."""
    found = None
    match mapping:
        case cst.Dict(elements=elements):
            for element in elements:
                if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                    return None
                if element.key.raw_value == key:
                    found = element.value
    return found


def _change(use: cst.Name, tree: Tree) -> str | None:
    """The key of `config["lr"] = x`; None where it may be any, "" where nothing changes.

    It may be any of `config[name] = x` and `config.update(x)`, and where something else is given the mapping.
    """
    above = tree.parent(use)
    match above:
        case cst.Subscript(value=owner) if owner is use:
            is_target = isinstance(tree.parent(above), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del))
            return _key(above) if is_target else ""
        case cst.Attribute(value=owner, attr=cst.Name(value=name)) if owner is use:
            return None if name in _CHANGING else ""
        case cst.Arg(value=given, star="") if given is use:
            return None
        case cst.Assign(value=given) | cst.AnnAssign(value=given) if given is use:
            return None
    return ""
