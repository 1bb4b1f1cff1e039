"""A whole tensor copied to the CPU at each step, or piece by piece within one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.model.values import Device
from torchlint.rule import Flag, Method, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="bulk-d2h-in-hot-loop",
    code="TL305",
    group="sync",
    summary="A tensor is copied to the CPU at each training step, or piece by piece within one batch.",
    since="0.1.0",
)


@RULE.on(Method("cpu"), Method("numpy"), Method("tolist"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a copy to the host in a training loop, in an inner loop over a batch, or into a running average."""
    from torchlint.model.purpose import Purpose, purpose
    from torchlint.model.reads import bulk_read, is_hot, is_needed_on_host, trains

    tensor = bulk_read(node, context)
    if tensor is None or not is_hot(node, context) or is_needed_on_host(node, context):
        return
    if purpose(_chain(node, context), context) is Purpose.NEEDED:
        return
    code = context.shown(node)
    loop = context.frequencies.batch_loop(node)
    if _is_piecewise(node, context):
        if _is_offloaded(node, context):
            return
        yield Flag(
            node, f"`{code}` copies a piece at a time, and the CPU waits for each; copy once for the whole batch"
        )
    elif loop is not None and (trains(loop, context) or _feeds_an_average(node, context)):
        yield Flag(
            node,
            f"`{code}` copies the tensor to the CPU {context.frequency(node)} and waits for it; "
            "keep it on the device until you log",
        )


def _chain(node: cst.CSTNode, context: Context) -> cst.CSTNode:
    """The whole of `t.cpu().numpy()[0]`: what is used of the copy."""
    parent = context.parent(node)
    while isinstance(parent, (cst.Attribute, cst.Call, cst.Subscript)) and node in (
        getattr(parent, "value", None),
        getattr(parent, "func", None),
    ):
        node, parent = parent, context.parent(parent)
    return node


def _is_piecewise(node: cst.Call, context: Context) -> bool:
    """Whether an inner loop over a part of the batch copies what depends on the turn: one copy could do for all."""
    from torchlint.model.dependence import depends_on_turn

    loop = context.loop(node)
    if loop is None or context.frequency(node) is not Frequency.SAMPLE or loop is context.frequencies.batch_loop(node):
        return False
    return depends_on_turn(node, loop, context)


def _is_offloaded(node: cst.Call, context: Context) -> bool:
    """Whether the copy is put into a part of a larger tensor or list, perhaps one that is too large for the device."""
    statement = context.parent(_chain(node, context))
    return isinstance(statement, cst.Assign) and any(
        isinstance(target.target, cst.Subscript) and context.device(target.target.value) is not Device.ACCELERATOR
        for target in statement.targets
    )


def _feeds_an_average(node: cst.Call, context: Context) -> bool:
    """Whether the copy only goes into a meter: `meter.update(x.cpu().numpy())`, directly or through its name."""
    names: set[str] = set()
    for above in context.ancestors(node):
        match above:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="update" | "add"))):
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                names.add(name)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))]):
                names.update(part.value.value for part in elements if isinstance(part.value, cst.Name))
            case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                break
    loop = context.frequencies.batch_loop(node)
    return loop is not None and bool(names) and _updates_with(loop, names, context)


def _updates_with(loop: cst.For | cst.While, names: set[str], context: Context) -> bool:
    from torchlint.model.tree import descendants_in_scope

    return any(
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("update", "add")
        and any(isinstance(argument.value, cst.Name) and argument.value.value in names for argument in call.args)
        for call in descendants_in_scope(loop.body)
    )
