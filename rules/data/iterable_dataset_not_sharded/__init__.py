"""An iterable dataset of which each worker of a loader yields everything."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Rule, Status

RULE = Rule(
    name="iterable-dataset-not-sharded",
    code="TL110",
    group="data",
    summary="Every worker yields all of an `IterableDataset`, so an epoch has each sample once per worker.",
    since="0.2.0",
    status=Status.PREVIEW,
    doubts=((Doubt.NAMED_OTHERWISE, ""),),
)
_NOT_SHARDED = Message(
    "not-sharded",
    "each of `{workers}` workers yields all of `{dataset}`, so an epoch repeats every sample",
    help="give each worker its part, by `torch.utils.data.get_worker_info()`",
)


@RULE.on(Call("torch.utils.data.DataLoader"), Call("torchdata.stateful_dataloader.StatefulDataLoader"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader with workers whose dataset is of a class here that never asks which worker it runs in."""
    if "IterableDataset" not in context.source.text:
        return
    from torchlint.analyses.data.loaders import option
    from torchlint.analyses.provenance.constants import constant

    from .._shared.worker_processes import number_of_workers
    from .datasets import construction, is_named_otherwise, repeats_in_workers

    count = number_of_workers(node, context)
    if count is None or _is_one(constant(count, context)) or context.has_unpacking(node):
        return
    if option(node, "worker_init_fn", 10, context).given is not None:
        return
    dataset = option(node, "dataset", 0, context).given
    made = construction(dataset, context) if dataset is not None else None
    if made is not None and repeats_in_workers(made, context):
        yield Flag(
            node,
            _NOT_SHARDED.of(workers=context.shown(count), dataset=context.shown(made.func)),
            doubts=(Doubt.NAMED_OTHERWISE,) if is_named_otherwise(made, context) else (),
        )


def _is_one(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.value == "1"
