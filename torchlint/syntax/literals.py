"""Literal numbers, slices and dots."""

from __future__ import annotations

import libcst as cst


def integer(node: cst.CSTNode) -> int | None:
    """The literal whole number, with its sign."""
    match node:
        case cst.Integer(value=text):
            return int(text.replace("_", ""), 0)
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value=text)):
            return -int(text.replace("_", ""), 0)
    return None


def is_whole(part: cst.BaseSlice) -> bool:
    """`:`."""
    return isinstance(part, cst.Slice) and part.lower is None and part.upper is None and part.step is None


def is_dots(part: cst.BaseSlice) -> bool:
    """`...`."""
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)
