"""Autograd's anomaly detection, left on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Replace, Rule
from torchlint.semantics.knowledge.conventions.functions import FAULT_FINDER

RULE = Rule(
    name="anomaly-detection-on",
    code="TL640",
    group="precision",
    summary="Anomaly detection is left on: it traces every operation and checks every gradient for NaN.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="a NaN in the backward pass no longer raises an error",
    doubts=((Doubt.MEANT, ""),),
)
_ANOMALY = Message(
    "anomaly-detection",
    "anomaly detection synchronizes with the GPU after every operation of the backward pass",
    help="turn it on only to find a NaN",
)
_TRACEBACKS = Message(
    "tracebacks",
    "anomaly detection keeps a traceback for every operation",
    help="turn it on only to find out where an operation stands",
)
_SETTERS = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
_CONTEXTS = ("torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly")
_TRAINER = "lightning.pytorch.Trainer"


@RULE.on(*(Call(name) for name in (*_SETTERS, *_CONTEXTS, _TRAINER)))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call that turns it on for certain, where nobody has to ask for it."""
    from torchlint.analyses.execution.rarity import is_named

    name = context.qualified_name(node.func)
    place = {_TRAINER: None}.get(name or "", 0)
    mode = context.argument(node, "detect_anomaly" if name == _TRAINER else "mode", place)
    if name in _CONTEXTS:
        edits: tuple[Replace, ...] = ()
    elif mode is not None and _is_true(mode, context):
        edits = (Replace(mode, "False"),) if isinstance(mode, cst.Name) and mode.value == "True" else ()
    else:
        return
    if _is_asked_for(node, context):
        return
    checked = context.argument(node, "check_nan", 0 if name in _CONTEXTS else 1)
    is_unchecked = isinstance(checked, cst.Name) and checked.value == "False"
    # Who has nothing checked wants the tracebacks.
    yield Flag(
        node,
        (_TRACEBACKS if is_unchecked else _ANOMALY).of(),
        title="Turn anomaly detection off",
        edits=edits,
        doubts=(Doubt.MEANT,) if is_unchecked or is_named(node, FAULT_FINDER, context) else (),
    )


def _is_true(mode: cst.BaseExpression, context: Context) -> bool:
    from torchlint.analyses.provenance.constants import constant

    value = constant(mode, context)
    return isinstance(value, cst.Name) and value.value == "True"


def _is_asked_for(node: cst.CSTNode, context: Context) -> bool:
    """Whether a condition decides on it, or an error was caught before."""
    from torchlint.analyses.provenance.constants import decided

    if context.enclosing(node, cst.Else, cst.ExceptHandler) is not None:
        return True
    for test, _ in context.conditions(node, across_functions=True):
        is_guard = isinstance(test, cst.Comparison) and getattr(test.left, "value", "") == "__name__"
        if not is_guard and decided(test, context) is not True:
            return True
    return False
