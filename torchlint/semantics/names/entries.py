"""What a literal mapping holds under a key: `config["lr"]` of `config = {"lr": 0.1, "name": "base"}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names.bindings import Binder

if TYPE_CHECKING:
    from torchlint.semantics.names.bindings import Names
    from torchlint.syntax.tree import Tree

# What changes a mapping whose name it is called on, or gives it to something that may.
_CHANGING = frozenset(("update", "setdefault", "pop", "clear", "popitem"))


def entry(node: cst.Subscript, tree: Tree, names: Names) -> cst.BaseExpression | None:
    """The expression that the mapping has under this key, if it is written out and nothing in the file changes it."""
    key = _key(node)
    if key is None or not isinstance(node.value, cst.Name):
        return None
    bindings = names.reaching(node.value)
    if len(bindings) != 1 or bindings[0].binder is not Binder.ASSIGN or bindings[0].path:
        return None
    written = _written(bindings[0].value, key)
    if written is None or any(_may_change(use, key, tree) for use in names.spelt(node.value.value)):
        return None
    return written


def _key(node: cst.Subscript) -> str | None:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as text))]:
            return text.raw_value
    return None


def _written(mapping: cst.BaseExpression | None, key: str) -> cst.BaseExpression | None:
    """The value beside the key; None where there is none, or a part that is not written out may replace it."""
    found = None
    match mapping:
        case cst.Dict(elements=elements):
            for element in elements:
                if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                    return None
                if element.key.raw_value == key:
                    found = element.value
    return found


def _may_change(use: cst.Name, key: str, tree: Tree) -> bool:
    """`config["lr"] = x`, `config[name] = x`, `config.update(x)`."""
    above = tree.parent(use)
    match above:
        case cst.Subscript(value=owner) if owner is use:
            is_other = (named := _key(above)) is not None and named != key
            is_target = isinstance(tree.parent(above), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
            return is_target and not is_other
        case cst.Attribute(value=owner, attr=cst.Name(value=name)) if owner is use:
            return name in _CHANGING
    return False
