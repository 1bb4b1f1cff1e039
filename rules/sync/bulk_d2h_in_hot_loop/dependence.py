"""What an expression in a loop is made from: things of this turn, and things that were there before."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.functions import SUPPRESSION
from torchlint.semantics.names.bindings import final_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants


def sources(node: cst.CSTNode, loop: cst.For | cst.While, context: Context) -> tuple[set[str], set[cst.Name]]:
    """The loop's own names, and the names bound before the loop, that the expression is computed from."""
    names = [part for part in computed_in(loop, node, context) if isinstance(part, cst.Name)]
    own = {name.value for name in names if any(binder is loop for binder in context.binders(name))}
    before = {name for name in names if any(not context.tree.within(binder, loop) for binder in context.binders(name))}
    return own, before


def depends_on_turn(node: cst.CSTNode, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the expression takes this turn's part of a tensor that was there before the loop, or of what it walks."""
    own, before = sources(node, loop, context)
    if isinstance(loop, cst.While):
        return any(context.kind(name) is Kind.TENSOR for name in before)
    return bool(own) and (
        any(context.kind(name) is Kind.TENSOR for name in before) or _walks_a_tensor(loop.iter, context)
    )


def _walks_a_tensor(iterated: cst.BaseExpression, context: Context) -> bool:
    match iterated:
        case cst.Call(func=cst.Name(value="enumerate" | "zip"), args=args):
            return any(_walks_a_tensor(argument.value, context) for argument in args)
        case cst.Call(func=cst.Attribute(value=cut, attr=cst.Name(value="split" | "chunk" | "unbind"))):
            if context.kind(cut) is Kind.TENSOR:
                return True  # pieces of one tensor
    return context.kind(iterated) is Kind.TENSOR


def computed_in(loop: cst.For | cst.While, node: cst.CSTNode, context: Context) -> list[cst.CSTNode]:
    """All expressions of the loop's turn that the node is computed from."""
    return [
        *context.ingredients(node, bound_by=lambda binder: binder is not loop and context.tree.within(binder, loop))
    ]


def is_cut_to_measure(node: cst.CSTNode, context: Context) -> bool:
    """Whether each iteration has its own piece: what suppression leaves, a network gives, or is of its own size."""
    loop = context.loop(node)
    if loop is None:
        return False
    calls = [part for part in computed_in(loop, node, context) if isinstance(part, cst.Call)]
    return any(
        SUPPRESSION.suggests(final_part(call.func)) or _runs_an_object(call, context) or _is_sized(call, loop, context)
        for call in calls
    )


def is_of_its_own_size(node: cst.CSTNode, context: Context) -> bool:
    """Whether each iteration has as much as suppression leaves, or a piece of a size that the loop goes through."""
    loop = context.loop(node)
    if loop is None:
        return False
    calls = [part for part in computed_in(loop, node, context) if isinstance(part, cst.Call)]
    return any(SUPPRESSION.suggests(final_part(call.func)) or _is_sized(call, loop, context) for call in calls)


def _runs_an_object(call: cst.Call, context: Context) -> bool:
    """`vocoder(row)`, of what a statement has made: a network, or anything that works on the piece as one does."""
    if context.kind(call.func) is Kind.MODULE:
        return True
    func = call.func
    return isinstance(func, cst.Name) and any(isinstance(binder, cst.Assign) for binder in context.binders(func))


def _is_sized(call: cst.Call, loop: cst.For | cst.While, context: Context) -> bool:
    """`interpolate(mask, size=size)`, where the loop goes through the sizes as well, and moves nothing back."""
    size = context.argument(call, "size", 1) if final_part(call.func) == "interpolate" else None
    if size is None or not sources(size, loop, context)[0]:
        return False
    calls = (part for part in descendants(loop.body) if isinstance(part, cst.Call))
    return not any(final_part(other.func) in ("to", "cuda") for other in calls)
