"""Training under float16 autocast whose loss nobody scales: small gradients become zero."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Flag, Message, Method, Rule, Status
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.texts import LOSS_SCALING

RULE = Rule(
    name="fp16-without-scaler",
    code="TL604",
    group="precision",
    summary="Under float16 autocast without loss scaling, small gradients become zero.",
    since="0.2.0",
    status=Status.PREVIEW,
)
_UNSCALED = Message(
    "unscaled",
    "the backward pass runs in float16 unscaled, where gradients below 3e-8 become zero",
    help="use `dtype=torch.bfloat16` for the autocast, or scale the loss with a `torch.amp.GradScaler`",
)
_CUDA = "torch.cuda.amp.autocast"
_AUTOCASTS = frozenset({_CUDA, "torch.autocast", "torch.amp.autocast"})
_FLOAT16 = frozenset({"torch.float16", "torch.half"})


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass of each batch whose loss comes out of a float16 autocast as it is."""
    from torchlint.finding import Frequency

    if "autocast" not in context.program.code or LOSS_SCALING.suggests(context.program.code):
        return
    loss = getattr(node.func, "value", None)
    if not isinstance(loss, cst.Name) or context.frequency(node) < Frequency.BATCH:
        return
    if not _is_cast(loss, context) or not _steps(node, context):
        return
    yield Flag(
        node,
        _UNSCALED.of(),
    )


@query(bottom=False)
def _is_cast(loss: cst.Name, context: Context) -> bool:
    """Whether all that the name may hold is computed with a model under such an autocast, and divided at most."""

    def is_cast(value: cst.BaseExpression) -> bool:
        match value:
            case cst.BinaryOperation(left=cst.Name() as left, operator=cst.Divide()):
                return _is_cast(left, context)
        return not _has_factor(value) and _is_under_autocast(value, context)

    return context.origins(loss).every(is_cast)


def _has_factor(value: cst.BaseExpression) -> bool:
    """Whether the value is a product as a whole: of a loss and what scales it, perhaps."""
    return isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Multiply)


def _is_under_autocast(node: cst.CSTNode, context: Context) -> bool:
    """Whether the innermost autocast around the node casts to float16 for certain, and runs a model."""
    for guard in context.guards(node):
        for call in guard.managers:
            if isinstance(call, cst.Call) and context.qualified_name(call.func) in _AUTOCASTS:
                return _casts_to_float16(call, context) and _runs_a_model(guard.part, context)
    return False


def _casts_to_float16(call: cst.Call, context: Context) -> bool:
    is_cuda = context.qualified_name(call.func) == _CUDA
    enabled = context.argument(call, "enabled", 0 if is_cuda else 2)
    if context.has_unpacking(call) or not (enabled is None or context.code(enabled) == "True"):
        return False
    if (dtype := context.argument(call, "dtype", 1)) is not None:
        return context.qualified_name(dtype) in _FLOAT16
    device = None if is_cuda else context.argument(call, "device_type", 0)
    return is_cuda or (isinstance(device, cst.SimpleString) and str(device.evaluated_value).startswith("cuda"))


def _runs_a_model(body: cst.CSTNode, context: Context) -> bool:
    from torchlint.semantics.values.lattice import Kind
    from torchlint.syntax.tree import descendants_in_scope

    return any(
        context.kind(call.func) is Kind.MODULE for call in descendants_in_scope(body) if isinstance(call, cst.Call)
    )


def _steps(node: cst.Call, context: Context) -> bool:
    """Whether an optimizer steps in the same function, so that the gradients are those of a training."""
    function = context.function(node)
    return any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == "step" and context.function(call) is function
        for call in context.tree.of(cst.Call)
    )
