"""The bias of a layer whose output only a batch norm reads, which subtracts it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Flag, Node, NodeEdit, Replace, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="bias-before-batchnorm",
    code="TL501",
    group="modules",
    summary="A layer learns a bias that the norm behind it subtracts again.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
)

# Weights that this file loads, or its framework for it, hold the bias.
_LOADS_WEIGHTS = re.compile(
    r"load_state_dict|load_url|load_checkpoint|load_from_checkpoint|load_pretrained\w*|load_weights|from_pretrained|"
    r"PreTrainedModel|build_model_with_cfg"
)
# Quantisation fuses layer and norm into one layer with a bias, and its tools expect to find the parts.
_QUANTISES = re.compile(r"\btorch(\.ao)?\.quantization\b|\bfuse_modules\b|\bQuantStub\b")


@RULE.on(Node("Module", (b"BatchNorm", b"InstanceNorm", b"GroupNorm")))
def check(_: cst.Module, context: Context) -> Iterator[Flag]:
    """Flag each layer with a bias, all of whose output goes into norms that subtract a channel's mean."""
    if _QUANTISES.search(context.source.text):
        return
    from torchlint.model.biases import has_bias  # the model's parts load LibCST
    from torchlint.model.norms import freezes_norms, is_over_features, norms_behind

    for call in context.tree.of(cst.Call):
        if not has_bias(call, context):
            continue
        norms = norms_behind(call, context)
        if not norms or freezes_norms(context):
            continue
        layer, norm = _class_name(call, context), _class_name(norms[0], context)
        if layer.endswith("Linear") and not all(is_over_features(norm, call, context) for norm in norms):
            continue
        reason = _reason_to_keep(call, context)
        yield Flag(
            call,
            f"`{norm}` subtracts the bias of this `{layer}` again, and each step still adds it, "
            f"computes its gradient and updates it; {reason or 'set `bias=False`'}",
            title="Set `bias=False`",
            edits=() if reason else _without_bias(call, context),
        )


def _class_name(call: cst.Call, context: Context) -> str:
    return (context.qualified_name(call.func) or "").rpartition(".")[2]


def _reason_to_keep(layer: cst.Call, context: Context) -> str:
    """Why the bias can't just be left out, for the message."""
    from torchlint.model.biases import needs_bias

    loads = _LOADS_WEIGHTS.search(context.source.text)
    if loads:
        return f"weights loaded by `{loads[0]}` hold it, so convert them before setting `bias=False`"
    if needs_bias(layer, context):
        return "this file uses `.bias` without a test for None, so add one before setting `bias=False`"
    return ""


def _without_bias(layer: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.model.biases import bias

    given = bias(layer, context)
    if given is not None:
        return (Replace(given, "False"),)
    if context.has_unpacking(layer):
        return ()
    return (context.with_argument(layer, "bias=False"),)
