"""Rows of a tensor taken one by one and joined again: a call, and a gradient, for each, where one takes them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, NodeEdit, Replace, Rule, Status
from torchlint.semantics.values.lattice import Device, Kind

if TYPE_CHECKING:
    from torchlint.analyses.batching.restacked import Stack

RULE = Rule(
    name="stack-of-indexing",
    code="TL904",
    group="vectorise",
    summary="Rows of a tensor are indexed one by one and stacked.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="no rows at all, and indices out of range, behave differently",
    eager=True,
    doubts=((Doubt.NAMED_RARE, ""),),
)
_STACKED = Message("stacked", "`{stack}` takes the rows of `{tensor}` one by one{wait}", help="{advice}")
# A longer index says less than that there is one.
_LONGEST = 40


@RULE.on(Call("torch.stack"), Call("torch.cat"), Call("torch.concat"), Call("torch.concatenate"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a stack of `x[i] for i in idx`; the fix indexes with `idx`."""
    from torchlint.analyses.batching.extent import may_wait
    from torchlint.analyses.batching.restacked import stack
    from torchlint.analyses.execution.rarity import named_rare
    from torchlint.edits.expressions import shown_owner

    found = stack(node, context)
    if found is None:
        return
    shown = shown_owner(found.tensor, context)
    numbers = _numbers(found, context)
    advice = f"index once with `{shown}[{numbers}]`" if len(numbers) < _LONGEST else "index with all of them at once"
    is_on_device = context.kind(found.indices) is Kind.TENSOR and may_wait(found.indices, context)
    wait = ", and each index synchronizes" if is_on_device else ""
    yield Flag(
        node,
        _STACKED.of(stack=context.shown(node), tensor=shown, wait=wait, advice=advice),
        title=f"Index `{shown}` once",
        edits=_edits(found, numbers, context),
        doubts=named_rare(node, context),
    )


def _numbers(found: Stack, context: Context) -> str:
    """The index that takes all rows: of a `range` a slice, of what may be a tuple a list."""
    from torchlint.analyses.batching.extent import may_wait
    from torchlint.analyses.batching.restacked import is_list
    from torchlint.edits.expressions import as_owner

    match found.indices:
        case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=end)]):
            return f": {context.bare_code(end)}"
        case cst.Call(func=cst.Name(value="range"), args=args):
            return " : ".join(context.bare_code(argument.value) for argument in args)
    code = context.code(found.indices)
    kind = context.kind(found.indices)
    if kind is Kind.TENSOR and context.device(found.tensor) is Device.CPU and may_wait(found.indices, context):
        # A single number on the device picks a row of a tensor on the CPU; a vector of them would be an error.
        return f"{as_owner(found.indices, context)}.cpu()"
    is_index = kind in (Kind.TENSOR, Kind.NDARRAY) or is_list(found.indices, context)
    return code if is_index else f"[*{code}]"


def _edits(found: Stack, numbers: str, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import as_owner, in_place_of, loses_comment

    call = found.call
    if context.qualified_name(getattr(found.indices, "func", call)) == "range":
        return ()  # a slice shares the memory of `x`, and takes what there is where the range goes on
    if loses_comment(call, found.tensor, found.indices, context=context):
        return ()
    return (Replace(call, in_place_of(call, f"{as_owner(found.tensor, context)}[{numbers}]", context)),)
