"""Norms that subtract the mean of each channel, behind the layers whose output they take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.layers.followers import Layers
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.conditions import NORM_CONDITION
from torchlint.semantics.knowledge.conventions.functions import LOADING_METHOD, SWITCHING_METHOD

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

_BATCH_NORMS = frozenset(
    {"torch.nn.SyncBatchNorm", *(f"torch.nn.{lazy}BatchNorm{rank}d" for lazy in ("", "Lazy") for rank in (1, 2, 3))}
)
_INSTANCE_NORMS = frozenset(f"torch.nn.{lazy}InstanceNorm{rank}d" for lazy in ("", "Lazy") for rank in (1, 2, 3))
# What lets a shift of a whole channel through, and so puts nothing between the layer and the norm.
_MAX_POOLS = re.compile(r"torch\.nn\.(MaxPool[123]d|AdaptiveMaxPool[123]d|functional\.(adaptive_)?max_pool[123]d)")
_AVERAGE_POOLS = re.compile(r"torch\.nn\.(AvgPool[123]d|functional\.avg_pool[123]d)")


@query(bottom=())
def norms_behind(layer: cst.Call, context: Context) -> tuple[cst.Call, ...]:
    """The norms that take all of the layer's output and subtract its bias again; none if anything else takes it."""
    norms: list[cst.Call] = []
    for follower in context[Layers].followers(layer):
        found = [follower] if _cancels(follower, context) else []
        if not found and _lets_shifts_through(follower, context):
            found = [*norms_behind(follower, context)]
        if not found:
            return ()
        norms += found
    return tuple(norms)


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


def is_over_features(norm: cst.Call, features: cst.BaseExpression | None, context: Context) -> bool:
    """Whether the norm's channels are a linear layer's features: on `(N, C, L)` that works on the last dimension.

    Features and channels that are written alike are the same; others may be anything.
    """
    if context.qualified_name(norm.func) not in ("torch.nn.BatchNorm1d", "torch.nn.SyncBatchNorm"):
        return False
    channels = context.argument(norm, "num_features", 0)
    return features is not None and channels is not None and context.bare_code(features) == context.bare_code(channels)


def freezes_norms(context: Context) -> bool:
    """Whether norms of this file may be in eval mode in training: what they subtract is fixed then."""
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "eval"
        and (_is_about_norms(call, context) or _is_of_its_own(call.func.value, context))
        for call in context.tree.of(cst.Call)
    )


def _is_about_norms(call: cst.Call, context: Context) -> bool:
    """Whether the call stands in an overridden `train`, or behind a test for a norm."""
    function = context.enclosing(call, cst.FunctionDef)
    branches = context.around(call, cst.If, within=function)
    if any(NORM_CONDITION.suggests(context.uncommented(branch.test)) for branch in branches):
        return True
    return (
        function is not None
        and SWITCHING_METHOD.suggests(function.name.value)
        and context.classes.owner(function) is not None
    )


def _is_of_its_own(owner: cst.BaseExpression, context: Context) -> bool:
    """`self.eval()` where a module makes itself or loads its weights: it is there to be used, not to be trained."""
    function = context.function(owner)
    return (
        isinstance(function, cst.FunctionDef)
        and (function.name.value == "__init__" or LOADING_METHOD.suggests(function.name.value))
        and isinstance(owner, cst.Name)
        and context.classes.self_class(owner) is not None
    )
