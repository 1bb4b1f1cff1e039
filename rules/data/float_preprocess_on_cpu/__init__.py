"""Images that are made floating point and normalized one by one on the CPU, and are copied to the device as such."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Call, Context, Flag, Message, Rule, Status

RULE = Rule(
    name="float-preprocess-on-cpu",
    code="TL114",
    group="data",
    summary="Images become float32 and are normalized on the CPU: four times the bytes to copy to the GPU.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
    doubts=((Doubt.DATA_UNKNOWN, ""),),
)
_WIDENED = Message(
    "widened-on-the-cpu",
    "`{converted}` and `Normalize` make each image float32 on the CPU, four times the bytes to copy",
    help="load uint8, and convert and normalize each batch on the GPU",
)
_CAST = Message(
    "cast-on-the-cpu",
    "`{cast}` makes each image float32 on the CPU, four times the bytes of uint8 to copy",
    help="give the tensor as it is, and cast the batch on the GPU",
)
# Smaller images are copied in no time, whatever they are made of.
_SMALLEST = 96


@RULE.on(Call("torchvision.transforms.Compose"), Call("torchvision.transforms.v2.Compose"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a conversion to float that ends with a normalization, for images of some size that a loader gives a GPU."""
    from .transforms import feeds_a_dataset, side, steps

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


@RULE.on(Call("torch.as_tensor"), Call("torch.from_numpy"), Call("torch.tensor"))
def check_array(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Note an image, which an array is that is turned to channels first, that is cast where samples are made."""
    from torchlint.analyses.data.sample_code import is_in_a_dataset

    from .transforms import cast_image

    cast = cast_image(node, context)
    if cast is None or not (is_in_a_dataset(node, context) or _is_a_mapper(node, context)):
        return
    yield Flag(cast, _CAST.of(cast=context.shown(cast)), doubts=(Doubt.DATA_UNKNOWN,))


def _is_a_mapper(node: cst.Call, context: Context) -> bool:
    """Whether this is the `__call__` of what makes samples: it takes one thing, and no class of torch's is extended."""
    import libcst as cst

    from torchlint.semantics.names.bindings import parameters

    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or function.name.value != "__call__":
        return False
    class_ = context.classes.owner(function)
    return class_ is not None and not context.classes.is_module(class_) and len(list(parameters(function))) == 2


def _has_a_loader(context: Context) -> bool:
    """Whether the file makes a loader of PyTorch's, which would collate uint8 as well."""
    from torchlint.analyses.data.loaders import is_loader

    return any(is_loader(call, context) for call in context.tree.of(cst.Call))
