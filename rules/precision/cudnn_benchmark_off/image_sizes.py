"""Whether all batches of images that a script loads have one height and one width."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.provenance.constants import constant
from torchlint.semantics.context import Context

_LOADER = "torch.utils.data.DataLoader"
_TRANSFORMS = ("torchvision.transforms.v2.", "torchvision.transforms.")
_CROPS = frozenset({"CenterCrop", "RandomCrop", "RandomResizedCrop", "FiveCrop", "TenCrop"})
# Data sets whose images have one size as they come.
_EVEN = frozenset(
    {
        "torch.utils.data.TensorDataset",
        "torchvision.datasets.CIFAR10",
        "torchvision.datasets.CIFAR100",
        "torchvision.datasets.SVHN",
        "torchvision.datasets.STL10",
    }
)


def has_one_size(context: Context) -> bool:
    """Whether the script joins images to batches by default, which takes one size, and gives them one for good."""
    calls = context.tree.of(cst.Call)
    named = [(context.qualified_name(call.func) or "", call) for call in calls]
    loaders = [call for name, call in named if name == _LOADER]
    return (
        bool(loaders)
        and all(_joins(call, context) for call in loaders)
        and any(name in _EVEN or _sets_size(name, call) for name, call in named)
    )


def _joins(loader: cst.Call, context: Context) -> bool:
    """Whether the loader's batches are more than one image, or may be."""
    size = context.argument(loader, "batch_size", 1)
    if size is None or context.has_unpacking(loader):
        return False
    value = constant(size, context)
    return (not isinstance(value, cst.Integer) and context.code(value) != "None") or _is_several(value)


def _is_several(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Integer) and int(value.value, 0) > 1


def _sets_size(name: str, call: cst.Call) -> bool:
    """Whether a transform gives both sides: a crop, or a size that names two."""
    prefix = next((prefix for prefix in _TRANSFORMS if name.startswith(prefix)), None)
    if prefix is None or not call.args:
        return False
    step, size = name.removeprefix(prefix), call.args[0].value
    return step in _CROPS or (step == "Resize" and isinstance(size, (cst.Tuple, cst.List)) and len(size.elements) > 1)
