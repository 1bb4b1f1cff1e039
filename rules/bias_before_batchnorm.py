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

# The place of `bias` among the positional arguments.
_LAYERS = {
    **{f"torch.nn.{kind}{rank}d": 7 for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)},
    **{f"torch.nn.Lazy{kind}{rank}d": 6 for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)},
    "torch.nn.Linear": 2,
    "torch.nn.LazyLinear": 1,
}
_BATCH_NORMS = frozenset(
    {"torch.nn.SyncBatchNorm", *(f"torch.nn.{lazy}BatchNorm{rank}d" for lazy in ("", "Lazy") for rank in (1, 2, 3))}
)
_INSTANCE_NORMS = frozenset(f"torch.nn.{lazy}InstanceNorm{rank}d" for lazy in ("", "Lazy") for rank in (1, 2, 3))
# What lets a shift of a whole channel through, and so puts nothing between the layer and the norm.
_MAX_POOLS = re.compile(r"torch\.nn\.(MaxPool[123]d|AdaptiveMaxPool[123]d|functional\.(adaptive_)?max_pool[123]d)")
_AVERAGE_POOLS = re.compile(r"torch\.nn\.(AvgPool[123]d|functional\.avg_pool[123]d)")
# Weights that this file loads, or its framework for it, hold the bias.
_LOADS_WEIGHTS = re.compile(
    r"load_state_dict|load_url|load_checkpoint|load_from_checkpoint|load_pretrained\w*|load_weights|from_pretrained|"
    r"PreTrainedModel|build_model_with_cfg"
)
# Quantisation fuses layer and norm into one layer with a bias, and its tools expect to find the parts.
_QUANTISES = re.compile(r"\btorch(\.ao)?\.quantization\b|\bfuse_modules\b|\bQuantStub\b")
_DEEPEST = 4


@RULE.on(Node("Module", (b"BatchNorm", b"InstanceNorm", b"GroupNorm")))
def check(_: cst.Module, context: Context) -> Iterator[Flag]:
    """Flag each layer with a bias, all of whose output goes into norms that subtract a channel's mean."""
    if _QUANTISES.search(context.source.text):
        return
    for call in context.tree.of(cst.Call):
        name = context.qualified_name(call.func)
        if name not in _LAYERS or not _has_bias(call, _LAYERS[name], context):
            continue
        norms = _norms_behind(call, context)
        if not norms or _freezes_norms(context):
            continue
        if name.endswith("Linear") and not all(_is_over_features(call, norm, context) for norm in norms):
            continue
        layer, norm = _last_part(name), _last_part(context.qualified_name(norms[0].func) or "")
        reason = _reason_to_keep(call, name, context)
        yield Flag(
            call,
            f"`{norm}` subtracts the bias of this `{layer}` again, and each step still adds it, "
            f"computes its gradient and updates it; {reason or 'set `bias=False`'}",
            title="Set `bias=False`",
            edits=() if reason else _without_bias(call, _LAYERS[name], context),
        )


def _has_bias(call: cst.Call, place: int, context: Context) -> bool:
    """Whether the layer is sure to have a bias: by default, or as `bias=True`."""
    from torchlint.model.arguments import may_pass

    given = context.argument(call, "bias", place)
    if given is not None:
        return isinstance(given, cst.Name) and given.value == "True"
    return not may_pass(call, "bias", context)


def _norms_behind(layer: cst.Call, context: Context, depth: int = 0) -> list[cst.Call]:
    """The norms that take all of the layer's output and subtract its bias again; none if anything else takes it."""
    norms: list[cst.Call] = []
    for follower in context.layers.followers(layer):
        found = [follower] if _cancels(follower, context) else []
        if not found and depth < _DEEPEST and _lets_shifts_through(follower, context):
            found = _norms_behind(follower, context, depth + 1)
        if not found:
            return []
        norms += found
    return norms


def _cancels(norm: cst.Call, context: Context) -> bool:
    """Whether a norm subtracts the mean of each channel, over whatever else there is."""
    name = context.qualified_name(norm.func)
    if name in _BATCH_NORMS:
        return True
    if name in _INSTANCE_NORMS:
        running = context.argument(norm, "track_running_stats", 4)
        return not context.has_unpacking(norm) and (running is None or context.code(running) == "False")
    if name == "torch.nn.GroupNorm":
        groups, channels = context.argument(norm, "num_groups", 0), context.argument(norm, "num_channels", 1)
        return groups is not None and channels is not None and groups.deep_equals(channels)
    return False


def _lets_shifts_through(layer: cst.Call, context: Context) -> bool:
    """Whether a layer gives back any shift of a channel as the same shift."""
    name = context.qualified_name(layer.func) or ""
    if name == "torch.nn.Identity" or _MAX_POOLS.fullmatch(name):
        return True
    if not _AVERAGE_POOLS.fullmatch(name):
        return False
    padding = context.argument(layer, "padding", 3 if ".functional." in name else 2)
    return not context.has_unpacking(layer) and (padding is None or context.code(padding) == "0")


def _is_over_features(linear: cst.Call, norm: cst.Call, context: Context) -> bool:
    """Whether the norm's channels are the layer's features: on `(N, C, L)` a linear layer works on the last dimension.

    Features and channels that are written alike are the same; others may be anything.
    """
    if context.qualified_name(norm.func) not in ("torch.nn.BatchNorm1d", "torch.nn.SyncBatchNorm"):
        return False
    lazy = context.qualified_name(linear.func) == "torch.nn.LazyLinear"
    features = context.argument(linear, "out_features", 0 if lazy else 1)
    channels = context.argument(norm, "num_features", 0)
    return features is not None and channels is not None and context.bare_code(features) == context.bare_code(channels)


def _freezes_norms(context: Context) -> bool:
    """Whether norms of this file may be in eval mode in training: what they subtract is fixed then."""
    return any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == "eval" and _is_about_norms(call, context)
        for call in context.tree.of(cst.Call)
    )


def _is_about_norms(call: cst.Call, context: Context) -> bool:
    """Whether the call stands in an overridden `train`, or behind a test for a norm."""
    for above in context.ancestors(call):
        if isinstance(above, cst.FunctionDef):
            return above.name.value == "train" and context.classes.owner(above) is not None
        if isinstance(above, cst.If) and "Norm" in context.code(above.test):
            return True
    return False


def _reason_to_keep(call: cst.Call, name: str, context: Context) -> str:
    """Why the bias can't just be left out, for the message."""
    loads = _LOADS_WEIGHTS.search(context.source.text)
    if loads:
        return f"weights loaded by `{loads[0]}` hold it, so convert them before setting `bias=False`"
    if any(_reads_bias(read, call, name, context) for read in context.tree.of(cst.Attribute)):
        return "this file uses `.bias` without a test for None, so add one before setting `bias=False`"
    return ""


def _reads_bias(read: cst.Attribute, layer: cst.Call, name: str, context: Context) -> bool:
    """Whether an expression needs the layer to have a bias: `m.bias.data.zero_()` without a test for None."""
    if read.attr.value != "bias" or isinstance(context.parent(read), cst.Comparison):
        return False
    if not context.layers.may_be(read.value, layer):
        return False
    child: cst.CSTNode = read
    for above in context.ancestors(read):
        if isinstance(above, (cst.If, cst.IfExp)) and child is above.body:
            test = context.code(above.test)
            if ".bias" in test:
                return False
            if "isinstance" in test or "find(" in test or "classname" in test:
                return any(word in test for word in _words_for(name))
        child = above
    return True


def _words_for(name: str) -> tuple[str, ...]:
    """What a test for this kind of layer mentions: `nn.Conv2d`, `_ConvNd`, `classname.find('Conv')`."""
    kind = _last_part(name)
    return (kind, "_ConvNd", "'Conv'", '"Conv"', "'conv'", '"conv"') if "Conv" in kind else (kind, "'Lin", '"Lin')


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _without_bias(call: cst.Call, place: int, context: Context) -> tuple[NodeEdit, ...]:
    given = context.argument(call, "bias", place)
    if given is not None:
        return (Replace(given, "False"),)
    if context.has_unpacking(call):
        return ()
    return (context.with_argument(call, "bias=False"),)
