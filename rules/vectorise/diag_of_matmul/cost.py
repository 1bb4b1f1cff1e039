"""What a product of matrices costs, as far as the code around it tells."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.syntax.tree import descendants_in_scope

# Beside these a product of the same matrices is nothing, and the matrices are mostly of three rows.
_DECOMPOSITIONS = frozenset(
    "svd svdvals eig eigh eigvals eigvalsh symeig qr det slogdet logdet cholesky inverse inv pinverse pinv".split()
)


def is_beside_a_decomposition(product: cst.BaseExpression, context: Context) -> bool:
    """Whether the product stands in a function that takes matrices apart, or inverts them."""
    function = context.function(product)
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _DECOMPOSITIONS
        for node in descendants_in_scope(function.body)
    )


def first_factor(left: cst.BaseExpression) -> cst.BaseExpression:
    """`a` of `a @ b @ c`, which has as many rows as the product."""
    while isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.MatrixMultiply):
        left = left.left
    return left
