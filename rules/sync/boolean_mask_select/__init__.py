"""Elements picked by a mask: how many they are is known to the device alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Context, Doubt, Flag, Message, Node, Rule
from torchlint.semantics.flow.query import query

from .._shared.doubts import WAIT_DOUBTS, weighed

RULE = Rule(
    name="boolean-mask-select",
    code="TL309",
    group="sync",
    summary="Boolean indexing synchronizes: the size of its result depends on the data.",
    since="0.2.0",
    doubts=(*WAIT_DOUBTS, (Doubt.DATA_UNKNOWN, "")),
)
_MASKED = Message(
    "masked",
    "`{selection}` synchronizes with the GPU{often}: its size depends on the data",
    help="{advice}",
)

_SELECTED = Message(
    "selected",
    "`{selection}` synchronizes with the GPU{often}: its size depends on the data",
    help="keep the shape and mask with `torch.where`, or combine masks and select once",
)

_WRITTEN = Message(
    "written",
    "assigning to `{selection}` synchronizes with the GPU{often}: the mask becomes indices",
    help="keep the shape: `{instead}`",
)
_SCATTERED = Message(
    "scattered",
    "assigning to `{selection}` synchronizes with the GPU{often}: the mask becomes indices",
    help="keep the shape: `{instead}`, with a mask of as many dimensions",
)
_UPDATED = Message(
    "updated",
    "`{selection}` is read and written, and each synchronizes with the GPU{often}",
    help="keep the shape: `{instead}`",
)

_LOSS = 'take the loss with `reduction="none"`, and sum `torch.where(mask, loss, 0)`'
_REDUCTIONS = frozenset({"mean", "sum"})
# Losses that give each element its own before they reduce.
_ELEMENTWISE = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"})


@RULE.on(Node("Subscript", (b"[",)))
def check(node: cst.Subscript, context: Context) -> Iterator[Flag]:
    """Flag what a mask selects of a device tensor: where it is only reduced, and else the first of its selections."""
    from .masks import mask_among

    mask = mask_among(node, context)
    if mask is None:
        return
    if _is_target(node, context):
        yield from _written(node, mask, context)
        return
    from torchlint.analyses.host.purpose import is_known_already
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.analyses.sync.avoidable import UNSEEN, wait_doubts
    from torchlint.analyses.sync.inherent_branches import (  # the model's parts load LibCST
        design_doubts,
        is_in_sample_code,
    )
    from torchlint.edits.messages import how_often

    advice = _instead(node, mask, context)
    if not is_device_tensor(node.value, context) or is_in_sample_code(node, context):
        return
    doubts = chain(design_doubts(node, context), wait_doubts(node, mask, context))
    if advice is None:
        known = (Doubt.WAITS_ANYWAY,) if is_known_already(node, mask, context) else ()
        found = weighed(RULE, chain(known, (Doubt.USE_UNKNOWN,), doubts))
        is_out_of_sight = Doubt.DEVICE_UNKNOWN in found and not UNSEEN.isdisjoint(found)
        if is_out_of_sight and context.frequency(node) is not Frequency.CALL:
            return  # neither how often nor where it runs is known
        others = _selections(context.tree.module, context)[_cause(node, mask, context)]
        if others[0] is node:
            said = _SELECTED.of(selection=context.shown(node), often=how_often(node, context))
            yield Flag(node, said, places=tuple(others[1:]), doubts=found)
        return
    if is_known_already(node, mask, context):
        clamped = advice.replace("mask.sum()", "mask.sum().clamp(min=1)")
        advice = f"{clamped}, which needs no branch either"
    yield Flag(
        node,
        _MASKED.of(selection=context.shown(node), advice=advice, often=how_often(node, context)),
        doubts=weighed(RULE, doubts),
    )


def _instead(node: cst.Subscript, mask: cst.BaseExpression, context: Context) -> str | None:
    """What to do instead of this selection, where that is known."""
    from .masks import is_for_gaps, mask_of  # the model's parts load LibCST

    advice = _advice(node, context)
    if advice is None or mask_of(node, context) is None or (advice == _LOSS and is_for_gaps(mask, context)):
        return None
    return advice


def _written(node: cst.Subscript, mask: cst.BaseExpression, context: Context) -> Iterator[Flag]:
    """`x[mask] = y[mask]`, `x[mask] += 1`; nothing of `x[mask] = 0`, which PyTorch makes `masked_fill_` of."""
    from torchlint.analyses.host.purpose import is_known_already
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.analyses.sync.inherent_branches import is_in_sample_code, named_sample_code
    from torchlint.edits.messages import how_often

    from .writes import Write  # the model's parts load LibCST

    write = Write.of(node, mask, context)
    if write is None or not is_device_tensor(node.value, context) or is_in_sample_code(node, context):
        return
    known = (Doubt.WAITS_ANYWAY,) if is_known_already(node, mask, context) else ()
    unknown = () if write.keeps_the_shape else (Doubt.DATA_UNKNOWN,)
    message = _UPDATED if write.reads_itself else _WRITTEN if write.keeps_the_shape else _SCATTERED
    yield Flag(
        node,
        message.of(selection=context.shown(node), often=how_often(node, context), instead=write.instead),
        about=write.others,
        doubts=weighed(RULE, chain(known, unknown, named_sample_code(node, context), wait_doubts(node, mask, context))),
    )


def _is_target(node: cst.Subscript, context: Context) -> bool:
    """Whether something is put into the elements, which waits for nothing if it is a number, or they are deleted."""
    child: cst.CSTNode = node
    above = context.parent(node)
    while isinstance(above, (cst.Subscript, cst.Attribute, cst.Element, cst.Tuple)) and child is not getattr(
        above, "slice", None
    ):
        child, above = above, context.parent(above)
    is_written = isinstance(above, (cst.AugAssign, cst.AnnAssign)) and above.target is child
    return is_written or isinstance(above, (cst.AssignTarget, cst.Del))


@query(bottom=None)
def _selections(_module: cst.Module, context: Context) -> dict[object, list[cst.Subscript]]:
    """What each function selects by the same mask, for which nothing else is known, in the order of the source."""
    from .masks import mask_among

    found: dict[object, list[cst.Subscript]] = {}
    for node in context.tree.of(cst.Subscript):
        mask = mask_among(node, context)
        if mask is not None and not _is_target(node, context) and _instead(node, mask, context) is None:
            found.setdefault(_cause(node, mask, context), []).append(node)
    return found


def _cause(node: cst.Subscript, mask: cst.BaseExpression, context: Context) -> object:
    """What is the same of selections by the same mask."""
    bound = context.binders(mask) if isinstance(mask, cst.Name) else ()
    return context.function(node), context.code(mask), bound


def _advice(node: cst.Subscript, context: Context) -> str | None:
    """What gives the same without picking; None where what is picked is not reduced at once."""
    parent = context.parent(node)
    if isinstance(parent, cst.Attribute) and parent.value is node and parent.attr.value in _REDUCTIONS:
        call = context.parent(parent)
        is_plain = isinstance(call, cst.Call) and call.func is parent and not call.args
        return _summed(parent.attr.value) if is_plain else None
    call = context.parent(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not parent or parent.keyword is not None:
        return None
    name = context.qualified_name(call.func) or ""
    if name in ("torch.mean", "torch.sum"):
        return _summed(name[len("torch.") :]) if len(call.args) == 1 else None
    last = name.rpartition(".")[2]
    if name != f"torch.nn.functional.{last}" or not _is_picked_alike(node, call, context):
        return None
    return _LOSS if last in _ELEMENTWISE else None


def _summed(reduction: str) -> str:
    where = "sum `torch.where(mask, x, 0)`"
    return f"{where}, and divide by `mask.sum()`" if reduction == "mean" else where


def _is_picked_alike(node: cst.Subscript, call: cst.Call, context: Context) -> bool:
    """`mse_loss(x[mask], y[mask])`: both by the same mask, and nothing said of how to reduce or weigh."""
    if len(call.args) != 2 or not isinstance(node.slice[0].slice, cst.Index):
        return False
    other = call.args[1].value
    return isinstance(other, cst.Subscript) and _inside(other, context) == _inside(node, context)


def _inside(node: cst.Subscript, context: Context) -> list[str]:
    return [context.code(part.slice) for part in node.slice]
