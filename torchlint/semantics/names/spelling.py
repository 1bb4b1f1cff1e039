"""How names and chains of attributes are spelt."""

from __future__ import annotations

import libcst as cst


def dotted(node: cst.CSTNode | None) -> str | None:
    """`a.b.c` for a chain of names and attributes."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def last_part(node: cst.CSTNode) -> str:
    """`c` for an expression that spells `a.b.c`, or `c` alone; nothing for others."""
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    if not isinstance(root, cst.Name):
        return ""
    return node.attr.value if isinstance(node, cst.Attribute) else root.value


def final_part(node: cst.CSTNode) -> str:
    """`f` of `a().f` and of `f`; nothing for what ends in no name."""
    match node:
        case cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name):
            return name
    return ""


def method_name(func: cst.CSTNode) -> str:
    """`f` of `a().f`; nothing for what is no attribute."""
    return func.attr.value if isinstance(func, cst.Attribute) else ""
