"""A checkpoint that each process of a distributed program loads to the GPU on which it was saved."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Rule, Status

RULE = Rule(
    name="load-without-map-location",
    code="TL219",
    group="transfer",
    summary="Every process of a distributed program loads a checkpoint to the GPU it was saved on.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="tensors outside of modules and optimizers stay on the CPU",
    doubts=((Doubt.NAMED_OTHERWISE, ""),),
)
_UNMAPPED = Message(
    "unmapped",
    "`{load}` loads every tensor to the GPU that it was saved on, the same one in all processes",
    help='pass `map_location="cpu"`',
)


@RULE.on(Call("torch.load"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the load of a state that a module or optimizer takes over, in a file that sets up several processes."""
    from torchlint.edits.expressions import with_argument

    from .checkpoints import (
        is_loaded_by_each_process,
        is_named_otherwise,
        is_taken_over,
    )

    if not node.args or context.has_unpacking(node) or context.argument(node, "map_location", 1) is not None:
        return
    if not is_loaded_by_each_process(node, context) or not is_taken_over(node, context):
        return
    yield Flag(
        node,
        _UNMAPPED.of(load=context.shown(node)),
        title='Pass `map_location="cpu"`',
        edits=(with_argument(node, 'map_location="cpu"', context),),
        doubts=(Doubt.NAMED_OTHERWISE,) if is_named_otherwise(node, context) else (),
    )
