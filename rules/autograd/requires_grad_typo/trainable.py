"""Whether an expression holds a module or a parameter, which are trained unless somebody freezes them."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.values.lattice import Kind


def is_trained(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression holds a module or a parameter, which require a gradient unless told otherwise."""
    if context.kind(node) is Kind.MODULE:
        return True
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="weight" | "bias")) if context.kind(owner) is Kind.MODULE:
            return True
        case cst.Name() | cst.Attribute():
            origins = context.origins(node, Through.PARTS | Through.ELEMENTS | Through.ATTRIBUTES)
            return origins.is_complete and all(_gives_parameters(origin.node, context) for origin in origins.found)
    return False


def _gives_parameters(value: cst.BaseExpression, context: Context) -> bool:
    """`nn.Parameter(…)`, and what loops over parameters go over."""
    if not isinstance(value, cst.Call):
        return False
    if isinstance(value.func, cst.Attribute) and value.func.attr.value in ("parameters", "named_parameters"):
        return True
    given = context.argument(value, "requires_grad", 1)
    return context.qualified_name(value.func) == "torch.nn.Parameter" and not (
        isinstance(given, cst.Name) and given.value == "False"
    )
