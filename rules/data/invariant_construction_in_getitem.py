"""A tokenizer, a model or a transform that a dataset builds again for every sample, from the same arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Call, Flag, Message, Method, Rule, Status

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

    from ._shared.samples import Way

RULE = Rule(
    name="invariant-construction-in-getitem",
    code="TL108",
    group="data",
    summary="A dataset builds the same tokenizer, model or transform for every sample.",
    since="0.2.0",
    status=Status.PREVIEW,
)
_REBUILT = Message("rebuilt", "`{shown}` builds the same object for every sample", help="build it once, in `__init__`")

# What reads files, compiles or computes tables when it is made.
_COSTLY = (
    "torch.hub.load",
    "torch.jit.load",
    "spacy.load",
    "timm.create_model",
    "sentencepiece.SentencePieceProcessor",
    "cv2.CascadeClassifier",
    "torchaudio.transforms.Spectrogram",
    "torchaudio.transforms.MelSpectrogram",
    "torchaudio.transforms.MelScale",
    "torchaudio.transforms.MFCC",
    "torchaudio.transforms.LFCC",
    "torchaudio.transforms.Resample",
    "albumentations.Compose",
    "albumentations.ReplayCompose",
)
# Calls that may stand among the arguments: they give the same for the same.
_PARTS = ("albumentations.", "torchaudio.", "torchvision.transforms.", "torch.device", "torch.hann_window")


@RULE.on(Method("from_pretrained"), *map(Call, _COSTLY))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a costly construction whose arguments do not depend on the sample, where each sample is made."""
    from ._shared.samples import is_kept, ways  # the model's parts load LibCST

    if not node.args or context.has_unpacking(node) or context.loop(node) is not None or is_kept(node, context):
        return
    for way in ways(node, context):
        if all(_is_same(argument.value, way, context) for argument in node.args):
            shown = context.shown(node.func)
            yield Flag(node, _REBUILT.of(shown=shown))
            return


def _is_same(node: cst.BaseExpression, way: Way, context: Context) -> bool:
    """Whether an argument is the same at every sample, the parts of a chain of transforms among them."""
    from ._shared.samples import is_same

    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return all(_is_same(element.value, way, context) for element in elements)
        case cst.Call(args=args) if (context.qualified_name(node.func) or "").startswith(_PARTS):
            return all(_is_same(argument.value, way, context) for argument in args)
    return is_same(node, context, way)
