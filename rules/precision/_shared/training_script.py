"""How a script trains: the place where it goes backward, what it trains, and whether it has settled on a precision."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import MODEL_CLASS, STEP_METHOD
from torchlint.semantics.knowledge.conventions.packages import SMALL_NETWORKS
from torchlint.semantics.knowledge.conventions.texts import PRECISION_SETTLED, TINY_DATA
from torchlint.semantics.knowledge.marks import MAIN_BLOCK
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Device, Kind

ATTENTION = frozenset(
    f"torch.nn.{name}"
    for name in ("Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer",
                 "TransformerDecoderLayer", "MultiheadAttention")
)  # fmt: skip
_AUTOCAST = frozenset({"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast"})
_REFUSING = frozenset({"torch.nn.BCELoss", "torch.nn.functional.binary_cross_entropy"})
_PRETRAINED = "from_pretrained"
_SOME = 3
_NETWORKS = ("resnet", "resnext", "wide_resnet", "densenet", "vgg", "efficientnet", "convnext", "regnet", "inception",
             "mobilenet", "vit_", "swin")  # fmt: skip


def is_first_step(call: cst.Call, context: Context) -> bool:
    """Whether a call of `backward` is the first that a script makes at each batch, for a model on a device."""
    if context.frequency(call) < Frequency.BATCH or not _is_script(call, context):
        return False
    others = (
        other
        for other in context.tree.of(cst.Call)
        if isinstance(other.func, cst.Attribute) and other.func.attr.value == "backward"
    )
    first = next((other for other in others if context.frequency(other) >= Frequency.BATCH), call)
    return first is call and _moves_a_model(context)


@query(bottom=False)
def _is_script(call: cst.Call, context: Context) -> bool:
    """Whether the file runs the call by itself."""
    function = context.function(call)
    if function is None or MAIN_BLOCK.is_in(context.program.code):
        return True
    if not isinstance(function, cst.FunctionDef):
        return False
    return any(_is_script(caller, context) for caller in context.calls.callers(function))


def _moves_a_model(context: Context) -> bool:
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("to", "cuda")
        and context.kind(call.func.value) is Kind.MODULE
        and context.device(call) in (Device.MAYBE, Device.ACCELERATOR)
        for call in context.tree.of(cst.Call)
    )


def has_settled_on_a_precision(context: Context) -> bool:
    """Whether anything in the file speaks of one, or it computes what gains nothing by another."""
    return is_tiny(context) or PRECISION_SETTLED.suggests(context.program.code)


def is_tiny(context: Context) -> bool:
    """Whether the images are so small, or so much else is waited for, that convolutions take little time."""
    return SMALL_NETWORKS.suggests_any(context.names.imported) or TINY_DATA.suggests(context.program.code)


def casts(context: Context) -> bool:
    """Whether the script runs under autocast, and nothing is compiled."""
    names = set(_made(context))
    return not names.isdisjoint(_AUTOCAST) and "torch.compile" not in names


def refuses_autocast(context: Context) -> bool:
    """Whether the script computes a loss that raises under autocast: that of probabilities, not of logits."""
    return not set(_made(context)).isdisjoint(_REFUSING)


def takes_no_step(context: Context) -> bool:
    """Whether no optimizer of the file takes a step, so that the gradients themselves are what is wanted."""
    return not any(
        isinstance(call.func, cst.Attribute) and STEP_METHOD.suggests(call.func.attr.value)
        for call in context.tree.of(cst.Call)
    )


def optimizes_inputs(context: Context) -> bool:
    """Whether what the script optimizes are tensors such as an image, and no parameters of a model."""
    made = [
        call
        for call in context.tree.of(cst.Call)
        if (context.qualified_name(call.func) or "").startswith("torch.optim.") and context.kind(call) is Kind.OPTIMIZER
    ]
    return bool(made) and all(
        bool(call.args)
        and isinstance(call.args[0].value, cst.List)
        and all(context.kind(part.value) is Kind.TENSOR for part in call.args[0].value.elements)
        for call in made
    )


def attends(context: Context) -> bool:
    """Whether the script makes a transformer."""
    return any(name in ATTENTION or name.startswith("transformers.") for name in _made(context))


def convolves(context: Context) -> bool:
    """Whether the script makes a network of convolutions over images."""
    names = list(_made(context))
    return names.count("torch.nn.Conv2d") >= _SOME or any(
        name.startswith("torchvision.models.") and name.rpartition(".")[2].startswith(_NETWORKS) for name in names
    )


def _made(context: Context) -> Iterator[str]:
    """The qualified names of what is constructed, of pretrained models the class."""
    for call in context.tree.of(cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == _PRETRAINED:
            name = dotted(func.value) or ""
            if MODEL_CLASS.suggests(name.rpartition(".")[2]):
                yield context.qualified_name(func.value) or ""
        else:
            yield context.qualified_name(func) or ""
