"""Elements of NumPy's arrays: numbers of an array with one axis, and arrays again of any other."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import Binder, Binding, final_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants

# What gives arrays of several axes, or several arrays.
_OF_SEVERAL_AXES = frozenset("reshape array_split split vsplit vstack stack column_stack argwhere".split())


@query(bottom=False)
def may_be_a_number(array: cst.CSTNode, context: Context) -> bool:
    """Whether this is an element of an array, or a sum with one: a number if the array has one axis, and no copy."""
    match array:
        case cst.Subscript(value=owner, slice=parts):
            is_one = all(isinstance(part.slice, cst.Index) and _is_number(part.slice.value, context) for part in parts)
            return is_one and context.kind(owner) is Kind.NDARRAY
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_number(side, context) or may_be_a_number(side, context) for side in (left, right))
        case cst.Name():
            return any(_may_hold_a_number(binding, context) for binding in context.reaching(array))
    return False


def _may_hold_a_number(binding: Binding, context: Context) -> bool:
    if binding.value is None:
        return False
    if binding.binder is Binder.LOOP:
        return not any(
            isinstance(node, cst.Call) and final_part(node.func) in _OF_SEVERAL_AXES for node in _parts(binding.value)
        )
    return not binding.path and may_be_a_number(binding.value, context)


def _parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    yield from descendants(node)


def _is_number(node: cst.BaseExpression, context: Context) -> bool:
    return context.kind(node) is Kind.NUMBER
