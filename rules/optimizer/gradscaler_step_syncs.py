"""A gradient scaler that asks the device at each step whether the gradients are finite, for want of `fused=True`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Method, Rule

RULE = Rule(
    name="gradscaler-step-syncs",
    code="TL802",
    group="optimizer",
    summary="A gradient scaler synchronizes every step; with a fused optimizer it decides on the GPU.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="the last digits differ",
    doubts=(
        (Doubt.OPTION_DECIDES, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.WAITS_ANYWAY, ""),
        (Doubt.RUNS_ONCE, "One wait costs microseconds."),
        (Doubt.RARE, "A wait now and then costs next to nothing."),
    ),
)
_ASKS = Message(
    "asks-for-infinities",
    "`{step}` synchronizes with the GPU every step to look for infinite gradients",
    help="pass `fused=True` to {optimizers}{newer}, which decides on the GPU",
)
# Scalers of these devices wait for nothing that the host does not know.
_HOST = ("cpu",)


@RULE.on(Method("step", (b"scaler", b"Scaler")))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `scaler.step(optimizer)` where the optimizer is one of torch that could be fused and is not."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.analyses.provenance.constants import is_off_by_default

    from ._shared.calls import (
        FUSED_SINCE,
        fused,
        has_sparse_gradients,
        lacks_fused,
        makers,
    )

    assert isinstance(node.func, cst.Attribute)
    optimizer = context.argument(node, "optimizer", 0)
    if optimizer is None or not _scales(node.func.value, context):
        return
    makes = list(dict.fromkeys(makers(optimizer, context)))
    made = [call for call in makes if lacks_fused(call, context)]
    names = [context.qualified_name(call.func) or "" for call in made]
    others = {name for call in makes if (name := context.qualified_name(call.func)) and name[:6] != "torch."}
    if not made or len(others) > len(set(names)) or has_sparse_gradients(context):
        return  # most that may be chosen are none of torch's
    short = " or ".join(f"`{name.rpartition('.')[2]}`" for name in dict.fromkeys(names))
    since = max(FUSED_SINCE[name] for name in names)
    newer = "" if since <= (2, 0) else f" (PyTorch {since[0]}.{since[1]})"
    edits = [edit for call in made if (edit := fused(call, context)) is not None]
    enabled = [context.argument(call, "enabled") for call in makers(node.func.value, context)]
    is_off = bool(enabled) and all(is_off_by_default(switch, context) for switch in enabled)
    yield Flag(
        node,
        _ASKS.of(step=context.shown(node), optimizers=short, newer=newer),
        title="Pass `fused=True`",
        edits=tuple(edits) if len(edits) == len(made) else (),
        about=tuple(made),
        doubts=(*((Doubt.OPTION_DECIDES,) if is_off else ()), *rate_doubts(node, context)),
    )


def _scales(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is torch's gradient scaler, not switched off for good and not one for the CPU."""
    from torchlint.semantics.values.lattice import Kind

    from ._shared.calls import makers

    if context.kind(node) is not Kind.SCALER:
        return False
    return not any(_is_idle(call, context) for call in makers(node, context))


def _is_idle(call: cst.Call, context: Context) -> bool:
    enabled = context.argument(call, "enabled")
    device = context.argument(call, "device", 0)
    return (isinstance(enabled, cst.Name) and enabled.value == "False") or (
        isinstance(device, cst.SimpleString) and device.evaluated_value in _HOST
    )
