"""Images that are made floating point and normalized one by one on the CPU, and are copied to the device as such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Call, Flag, Message, Rule, Status

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="float-preprocess-on-cpu",
    code="TL114",
    group="data",
    summary="Images become float32 and are normalized on the CPU: four times the bytes to copy to the GPU.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
)
_WIDENED = Message(
    "widened-on-the-cpu",
    "`{converted}` and `Normalize` make each image float32 on the CPU, four times the bytes to copy",
    help="load uint8, and convert and normalize each batch on the GPU",
)
# Smaller images are copied in no time, whatever they are made of.
_SMALLEST = 96


@RULE.on(Call("torchvision.transforms.Compose"), Call("torchvision.transforms.v2.Compose"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a conversion to float that ends with a normalization, for images of some size that a loader gives a GPU."""
    from .transforms import feeds_a_dataset, side, steps  # the model's parts load LibCST

    chain = steps(node, context)
    if len(chain) < 2 or not context.program.mentions_accelerator:
        return
    (*before, (_, _), (name, last)) = chain
    converted = chain[-2][0]
    if name != "Normalize" or converted not in ("ToTensor", "ConvertImageDtype", "ToDtype"):
        return
    sizes = [found for kind, call in before if (found := side(kind, call, context)) is not None]
    if not sizes or min(sizes) < _SMALLEST or not _has_a_loader(context) or not feeds_a_dataset(node, context):
        return
    yield Flag(
        last,
        _WIDENED.of(converted=converted),
    )


def _has_a_loader(context: Context) -> bool:
    """Whether the file makes a loader of PyTorch's, which would collate uint8 as well."""
    from torchlint.analyses.data.loaders import is_loader

    return any(is_loader(call, context) for call in context.tree.of(cst.Call))
