"""Torch's transformers, and what is known of the masks that they are given."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.instances import EscapeError
from torchlint.semantics.flow.origins import EVERYTHING
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import CAUSAL_MASK

_TRANSFORMER = "torch.nn.Transformer"
TRANSFORMERS = frozenset({_TRANSFORMER, "torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder"})
# What `nn.Transformer` makes for itself and for what is derived from it.
_INHERITED = {"encoder": "torch.nn.TransformerEncoder", "decoder": "torch.nn.TransformerDecoder"}
_TRIANGLES = frozenset({"torch.triu", "torch.tril"})
_FACTORIES = frozenset({"torch.ones", "torch.zeros", "torch.full", "torch.empty", "torch.eye"})
_OF_THE_SAME_SHAPE = frozenset(
    "to cuda cpu float half double bfloat16 bool type type_as detach clone contiguous t transpose tril triu log "
    "logical_not masked_fill masked_fill_ fill_ log_".split()
)
_FUNCTIONS_OF_THE_SAME_SHAPE = frozenset({"torch.log", "torch.logical_not", "torch.zeros_like", "torch.ones_like"})


def layer(func: cst.BaseExpression, context: Context) -> str | None:
    """Which of torch's classes the module that is called is of; None where that is not known."""
    if context.qualified_name(func) is not None:  # the class, which makes one
        return None
    qualified = context.value(func).qualified
    if qualified in TRANSFORMERS:
        return qualified
    try:
        calls = context.constructions.of(func)
    except EscapeError:
        return _inherited(func, context)
    names = {context.qualified_name(call.func) for call in calls}
    return names.pop() if len(names) == 1 else None


def _inherited(func: cst.BaseExpression, context: Context) -> str | None:
    """`self.encoder` in a class derived from `nn.Transformer` that makes no other."""
    if not isinstance(func, cst.Attribute) or func.attr.value not in _INHERITED:
        return None
    owner = context.uses.owner(func)
    if owner is None or context.classes.attribute_sets(owner, func.attr.value):
        return None
    derived = [base for base in context.classes.lineage(owner) if isinstance(base, str)]
    return _INHERITED[func.attr.value] if derived[:1] == [_TRANSFORMER] else None


def is_none(node: cst.BaseExpression) -> bool:
    """Whether it is written as None."""
    return isinstance(node, cst.Name) and node.value == "None"


def may_be_compared(mask: cst.BaseExpression, context: Context) -> bool:
    """Whether a mask has two axes wherever it is given, and may be given at all."""
    return not context.origins(mask, EVERYTHING).every(is_none) and _is_square(mask, context)


@query(bottom=True)
def _is_square(mask: cst.BaseExpression, context: Context) -> bool:
    """Whether a mask has two axes wherever it is none, as one that is compared."""
    found = context.origins(mask, EVERYTHING)
    return not found.lost and all(
        not origin.path and (is_none(origin.node) or _is_made_square(origin.node, context)) for origin in found.found
    )


def _is_made_square(node: cst.BaseExpression, context: Context) -> bool:
    match node:
        case cst.Comparison(left=left) | cst.UnaryOperation(expression=left):
            return _is_square(left, context)
        case cst.BinaryOperation(left=left, right=right):
            return any(
                not context.is_tensor(other) and _is_square(one, context)
                for one, other in ((left, right), (right, left))
            )
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name == CAUSAL_MASK:
            return _is_of_torch(node, context)
        case cst.Call():
            pass
        case _:
            return False
    name = context.qualified_name(node.func) or ""
    if name in _FACTORIES:
        return _has_two_axes(node)
    if name in _TRIANGLES or name in _FUNCTIONS_OF_THE_SAME_SHAPE:
        return bool(node.args) and _is_square(node.args[0].value, context)
    is_method = isinstance(node.func, cst.Attribute) and not name and node.func.attr.value in _OF_THE_SAME_SHAPE
    return is_method and isinstance(node.func, cst.Attribute) and _is_square(node.func.value, context)


def _has_two_axes(factory: cst.Call) -> bool:
    """`torch.ones(n, n)`, `torch.full((n, n), 1.0)`."""
    given = [argument.value for argument in factory.args if argument.keyword is None]
    match given:
        case [cst.Tuple(elements=[_, _]) | cst.List(elements=[_, _]), *_]:
            return True
        case [_, _]:
            return not isinstance(given[0], (cst.Tuple, cst.List))
    return False


def _is_of_torch(call: cst.Call, context: Context) -> bool:
    """`nn.Transformer.generate_square_subsequent_mask(n)`, or the same by an instance."""
    if context.qualified_name(call.func) == f"{_TRANSFORMER}.{CAUSAL_MASK}":
        return True
    if not isinstance(call.func, cst.Attribute):
        return False
    maker = call.func.value
    if context.value(maker).qualified == _TRANSFORMER or layer(maker, context) == _TRANSFORMER:
        return True
    owner = context.uses.owner(call.func)
    if owner is None or context.classes.method(owner, CAUSAL_MASK) is not None:
        return False
    return _TRANSFORMER in context.classes.lineage(owner)


def is_causal(mask: cst.BaseExpression, context: Context) -> bool:
    """Whether it is what torch makes as a causal mask, at most moved or cast, and nobody writes to it on the way."""
    match mask:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="to" | "cuda"))):
            return is_causal(inner, context)
        case cst.Name():
            made = context.stands_for(mask)
            if made is None or isinstance(made, cst.Name):
                return False
            return is_causal(made, context) and not any(map(_may_write, map(context.parent, context.readers(mask))))
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name == CAUSAL_MASK:
            return _is_of_torch(mask, context) and context.argument(mask, "dtype", 2) is None
    return False


def _may_write(taker: cst.CSTNode | None) -> bool:
    """Whether the value may be changed, or get another name, where it is taken: anything but an argument or a move."""
    match taker:
        case cst.Arg():
            return False
        case cst.Attribute(attr=cst.Name(value="to" | "cuda" | "shape" | "size" | "device" | "dtype")):
            return False
    return True
