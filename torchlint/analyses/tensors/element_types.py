"""What numbers a tensor holds, by what it is computed from: whole numbers that count, or floating point."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.functions import CRITERION_CALL
from torchlint.semantics.knowledge.conventions.values import LOSS_WORD
from torchlint.semantics.names.bindings import final_part


def counts(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor is a count: the sum of a comparison."""
    return all(_is_count(value, context) for value in context.origins(tensor).nodes)


def _is_count(value: cst.BaseExpression, context: Context) -> bool:
    match value:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sum")), args=args) if _is_torch(
            inner, context
        ):
            return len(args) == 1 and _is_mask(args[0].value, context)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sum")), args=[]):
            return _is_mask(inner, context)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="detach" | "long" | "int")), args=[]):
            return _is_count(inner, context)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="count_nonzero"))):
            return True
    return False


def _is_mask(value: cst.BaseExpression, context: Context) -> bool:
    for found in context.origins(value).nodes:
        match found:
            case cst.Comparison():
                pass
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _COMPARISONS:
                pass
            case cst.Call(
                func=cst.Attribute(value=inner, attr=cst.Name(value="long" | "int" | "view" | "flatten" | "all"))
            ):
                if not _is_mask(inner, context):
                    return False
            case _:
                return False
    return True


_COMPARISONS = frozenset("eq ne gt lt ge le equal not_equal greater less greater_equal less_equal".split())
_MEANS = frozenset("mean float double norm std var exp log sqrt softmax sigmoid log_softmax nanmean".split())


def is_floating(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor surely holds floating point numbers: a loss, a mean, a quotient."""
    for value in context.origins(tensor).nodes:
        match value:
            case cst.BinaryOperation(operator=cst.Divide()):
                continue
            case cst.BinaryOperation(left=left, right=right) if is_floating(left, context) or is_floating(
                right, context
            ):
                continue
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _MEANS:
                continue
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sum" | "detach" | "max" | "min"))):
                if is_floating(inner, context):
                    continue
        names = [node.value for node in (value, tensor) if isinstance(node, cst.Name)]
        names += [node.attr.value for node in (value, tensor) if isinstance(node, cst.Attribute)]
        called = final_part(value.func) if isinstance(value, cst.Call) else ""
        if not any(LOSS_WORD.suggests(name) for name in (*names, called)) and not CRITERION_CALL.suggests(called):
            return False
    return True


def _is_torch(node: cst.BaseExpression, context: Context) -> bool:
    return isinstance(node, cst.Name) and context.qualified_name(node) == "torch"
