"""Reads that stand beside something else for which the CPU waits: there is hardly anything left to wait for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import libcst as cst

from torchlint.analyses.round_trips.trips import Trips
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import last_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

# What queues a lot of work.
_WORK = frozenset({"backward", "step", "forward", "zero_grad"})


def is_beside_a_wait(node: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the CPU waits for the device right before the read, the tensor being there by then, or right after it.

    Right means that nothing in between runs a network, goes backward or takes a step.
    """
    line: cst.CSTNode | None = context.tree.line(node)
    while line is not None:
        block = context.parent(line)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return False
        places, decisive = _deciding(block, context)
        place = context.tree.place(line)
        before = decisive[bisect_left(places, place) - 1] if places and places[0] < place else None
        if before is not None and _is_wait(before, context) and _is_there(tensor, before, context):
            return True
        behind = bisect_right(places, place)
        if behind < len(places):
            return _is_wait(decisive[behind], context)
        line = _goes_on_behind(block, context)
    return False


@query(bottom=((), ()))
def _deciding(
    block: cst.IndentedBlock | cst.Module, context: Context
) -> tuple[tuple[int, ...], tuple[cst.CSTNode, ...]]:
    """The statements of a block that wait whatever becomes of a read, or queue work, and where they stand."""
    found = tuple(line for line in block.body if _decides(line, context))
    return tuple(map(context.tree.place, found)), found


def _decides(line: cst.CSTNode, context: Context) -> bool:
    return _is_wait(line, context) or not isinstance(line, cst.SimpleStatementLine) or _has_work(line, context)


def _goes_on_behind(block: cst.IndentedBlock | cst.Module, context: Context) -> cst.CSTNode | None:
    """The `if` or `with` of which this is the body, behind which the code goes on."""
    owner = context.parent(block)
    while isinstance(owner, cst.Else) or (isinstance(owner, cst.If) and isinstance(context.parent(owner), cst.If)):
        owner = context.parent(owner)
    return owner if isinstance(owner, (cst.If, cst.With)) else None


@query(bottom=False)
def _is_wait(line: cst.CSTNode, context: Context) -> bool:
    """Whether the CPU waits in the statement, in each of its branches."""
    match line:
        case cst.SimpleStatementLine():
            return any(isinstance(part, cst.Call) and _waits(part, context) for part in descendants_in_scope(line))
        case cst.If(body=body, orelse=(cst.Else() | cst.If()) as orelse):
            other = orelse if isinstance(orelse, cst.If) else None
            return any(_is_wait(part, context) for part in body.body) and (
                _is_wait(other, context)
                if other is not None
                else any(_is_wait(part, context) for part in orelse.body.body)
            )
    return False


def _has_work(line: cst.CSTNode, context: Context) -> bool:
    return any(
        isinstance(call, cst.Call) and (last_part(call.func) in _WORK or context.kind(call.func) is Kind.MODULE)
        for call in descendants_in_scope(line)
    )


def _waits(call: cst.Call, context: Context) -> bool:
    """`torch.cuda.synchronize()`, or a copy to the CPU that stays there for good."""
    if context.qualified_name(call.func) == "torch.cuda.synchronize":
        return True
    if not isinstance(call.func, cst.Attribute) or call.args or call.func.attr.value != "cpu":
        return False
    value = context.value(call.func.value)
    if value.kind not in (Kind.TENSOR, Kind.UNKNOWN) or value.device is Device.CPU or value.scalar:
        return False
    return _is_kept(call, context)


def _is_kept(copy: cst.Call, context: Context) -> bool:
    """Whether the copy is needed on the CPU, or collected there, so that no finding is made of it."""
    from torchlint.analyses.batching.comprehension_reads import is_listed
    from torchlint.analyses.execution.training_steps import trains
    from torchlint.analyses.host.purpose import is_averaged, purpose
    from torchlint.analyses.host.reads import is_needed_on_host
    from torchlint.facts import Purpose

    chain: cst.CSTNode = copy
    while isinstance(parent := context.parent(chain), (cst.Attribute, cst.Call)) and chain in (
        getattr(parent, "value", None),
        getattr(parent, "func", None),
    ):
        chain = parent
    if context[Trips].of(copy) is not None:
        return False
    if is_needed_on_host(chain, context) or purpose(chain, context) is Purpose.NEEDED or is_listed(copy, context):
        return True
    loop = context.frequencies.batch_loop(copy)
    return loop is not None and not trains(loop, context) and not is_averaged(copy, context)


def _is_there(tensor: cst.BaseExpression, wait: cst.CSTNode, context: Context) -> bool:
    """Whether all that the tensor is computed from was bound before the wait."""
    names = [node for node in descendants(tensor) if isinstance(node, cst.Name) and context.names.is_read(node)]
    place = context.tree.place(wait)
    return all(context.tree.place(binder) < place for name in names for binder in context.binders(name)) and not any(
        isinstance(node, cst.Call) and context.kind(node.func) is Kind.MODULE for node in descendants(tensor)
    )
