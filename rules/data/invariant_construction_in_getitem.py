"""A tokenizer, a model or a transform that a dataset builds again for every sample, from the same arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Call, Context, Flag, Message, Method, Rule

if TYPE_CHECKING:
    from ._shared.samples import Way

RULE = Rule(
    name="invariant-construction-in-getitem",
    code="TL108",
    group="data",
    summary="A dataset builds the same tokenizer, model or transform for every sample.",
    since="0.2.0",
    doubts=(
        (Doubt.WORK_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.WAITS_ANYWAY, ""),
        (Doubt.RUNS_ONCE, "To compute a filter once takes no time worth a word."),
        (Doubt.RARE, "To compute a filter now and then takes no time worth a word."),
    ),
)
_REBUILT = Message("rebuilt", "`{shown}` builds the same object for every sample", help="build it once, in `__init__`")
_FILTER = Message(
    "filter",
    "`{shown}` computes its filter again{often}",
    help="keep one for each set of arguments, and on the device where it is used there",
)

# What reads files, compiles or computes tables when it is made.
_COSTLY = (
    "torch.hub.load",
    "torch.jit.load",
    "spacy.load",
    "timm.create_model",
    "sentencepiece.SentencePieceProcessor",
    "cv2.CascadeClassifier",
    "albumentations.Compose",
    "albumentations.ReplayCompose",
)
# What computes filters or windows when it is made, and is then called.
_FILTERS = (
    "torchaudio.transforms.Spectrogram",
    "torchaudio.transforms.MelSpectrogram",
    "torchaudio.transforms.MelScale",
    "torchaudio.transforms.MFCC",
    "torchaudio.transforms.LFCC",
    "torchaudio.transforms.Resample",
)
_CACHES = ("functools.cache", "functools.lru_cache", "functools.cached_property")
# Calls that may stand among the arguments: they give the same for the same.
_PARTS = ("albumentations.", "torchaudio.", "torchvision.transforms.", "torch.device", "torch.hann_window")


@RULE.on(*map(Call, _FILTERS))
def check_filters(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a transform that is made where a sample is, or where it is called once, and dropped."""
    from torchlint.analyses.data.sample_code import is_for_samples
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    found = list(check(node, context))
    yield from found
    function = context.function(node)
    if found or context.has_unpacking(node) or _is_remembered(function, context) or not _is_called(node, context):
        return
    if context.loop(node) is None and not isinstance(function, cst.FunctionDef):
        return
    if isinstance(function, cst.FunctionDef) and function.name.value == "__init__":
        return
    yield Flag(
        node,
        _FILTER.of(shown=context.shown(node.func), often=how_often(node, context)),
        doubts=(*((Doubt.WORK_UNKNOWN,) if is_for_samples(node, context) else ()), *rate_doubts(node, context)),
    )


def _is_remembered(function: cst.FunctionDef | cst.Lambda | None, context: Context) -> bool:
    """Whether a cache keeps what the function gives."""
    if not isinstance(function, cst.FunctionDef):
        return False
    made = (item.decorator for item in function.decorators)
    called = (item.func if isinstance(item, cst.Call) else item for item in made)
    return any(context.qualified_name(item) in _CACHES for item in called)


def _is_called(node: cst.Call, context: Context) -> bool:
    """Whether what is made is called right there, or under the one name that it is given, and goes nowhere else."""
    match above := context.parent(node):
        case cst.Call(func=func):
            return func is node
        case cst.Attribute(attr=cst.Name(value="to" | "cuda")):
            moved = context.parent(above)
            return isinstance(moved, cst.Call) and _is_called(moved, context)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            uses = [context.parent(use) for use in context.uses.of(name, above)]
            calls = [use for use in uses if isinstance(use, cst.Call)]
            moves = [use for use in uses if isinstance(use, cst.Attribute) and use.attr.value in ("to", "cuda")]
            return bool(uses) and len(calls) + len(moves) == len(uses)
    return False


@RULE.on(Method("from_pretrained"), *map(Call, _COSTLY))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a costly construction whose arguments do not depend on the sample, where each sample is made."""
    from ._shared.samples import is_kept, ways

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
