"""A loader that picks the samples of a batch from tensors one by one, and stacks them again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, Replace, Rule
from torchlint.semantics.knowledge.conventions.counts import MICRO_BATCH
from torchlint.semantics.knowledge.conventions.packages import SAMPLER_FRAMEWORK

RULE = Rule(
    name="tensor-dataset-collated-itemwise",
    code="TL111",
    group="data",
    summary="A `DataLoader` indexes in-memory tensors sample by sample and stacks the results.",
    since="0.2.0",
    default=False,
    fix=(Applicability.UNSAFE,),
    unsafe="the `batch_size` of the loader is None, and its `sampler` another",
)
_ITEMWISE = Message(
    "itemwise",
    "the loader indexes the tensors sample by sample and stacks the results",
    help="pass `batch_size=None` and a `BatchSampler` as `sampler`, to index once per batch",
)

# Of fewer samples a batch is stacked in no time.
_FEWEST = 16


@RULE.on(Call("torch.utils.data.DataLoader"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader with batches of some size over a dataset that only picks from tensors."""
    from torchlint.analyses.data.datasets import Reader, reader

    from .._shared.no_gain import is_on_the_cpu
    from .datasets import batched, gives_numbers, picks

    size = context.argument(node, "batch_size", 1)
    dataset = context.argument(node, "dataset", 0)
    if size is None or dataset is None or context.has_unpacking(node) or not _is_large(size, context):
        return
    if any(
        context.argument(node, name, place) is not None for name, place in (("batch_sampler", 4), ("collate_fn", 6))
    ):
        return
    if SAMPLER_FRAMEWORK.suggests_any(context.names.imported):
        return
    sampler = context.argument(node, "sampler", 3)
    if sampler is not None and not gives_numbers(sampler, context):
        return
    if not picks(dataset, context) or is_on_the_cpu(context):
        return
    if reader(node, context) in (Reader.NOBODY, Reader.PEEK, Reader.SHOW):
        return
    mended = batched(node, context)
    yield Flag(
        node,
        _ITEMWISE.of(),
        title="Index the tensors once per batch",
        edits=(Replace(node, mended),) if mended is not None else (),
    )


def _is_large(size: cst.BaseExpression, context: Context) -> bool:
    from torchlint.analyses.provenance.constants import constant

    number = constant(size, context)
    if isinstance(number, cst.Integer):
        return int(number.value.replace("_", ""), 0) >= _FEWEST
    word = number.attr.value if isinstance(number, cst.Attribute) else context.code(number)
    # A micro-batch has a few samples, each of them large.
    return word != "None" and not MICRO_BATCH.suggests(word.lower())
