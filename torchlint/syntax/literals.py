"""Literal numbers."""

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
