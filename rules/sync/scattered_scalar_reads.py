"""Several values read back one by one in one statement at each batch: the CPU waits for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Method, Rule

from ._shared.doubts import READ_DOUBTS

RULE = Rule(
    name="scattered-scalar-reads",
    code="TL304",
    group="sync",
    summary="Several values are read one by one every batch, and each read synchronizes with the GPU.",
    since="0.2.0",
    yields_to=("repeated-item", "per-step-nan-check", "item-comprehension"),
    doubts=READ_DOUBTS,
)
_SCATTERED = Message(
    "scattered",
    "{reads} each synchronize with the GPU{often}",
    help="stack the tensors and read them at once with `.tolist()`",
)

# From how many reads on one copy of all of them is worth a line more.
_MANY = 3


@RULE.on(Method("item"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the first of three or more values that a statement reads from the device."""
    from torchlint.edits.messages import how_often

    from ._shared.deferred import deferred

    line = context.tree.line(node)
    if not isinstance(line, cst.SimpleStatementLine):
        return
    calls = [call for call in _reads(line) if not _is_per_element(call, line, context)]
    if len(calls) < _MANY or calls[0] is not node:  # cheap to ask, and most statements hold one
        return
    read = _read_together(calls, context)
    found = list(read)
    doubts = tuple(dict.fromkeys(doubt for each in read.values() for doubt in each))
    if len(found) < _MANY or (not doubts and deferred(found[0], context)):
        return
    names = [f"`{context.shown(read)}`" for read in found]
    yield Flag(
        found[0],
        _SCATTERED.of(
            reads=", ".join(names[:_MANY]) + (" and others" if len(names) > _MANY else ""),
            often=how_often(node, context),
        ),
        places=tuple(found[1:]),
        doubts=doubts,
    )


def _reads(line: cst.SimpleStatementLine) -> list[cst.Call]:
    """The `….item()` of a statement, in the order of the source."""
    from torchlint.syntax.tree import descendants_in_scope

    return [
        call
        for call in descendants_in_scope(line)
        if isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "item"
        and not call.args
    ]


def _is_per_element(call: cst.Call, line: cst.CSTNode, context: Context) -> bool:
    """Whether the read stands in a comprehension, or in a branch of a conditional expression."""
    from torchlint.syntax.tree import Comprehension

    return context.enclosing(call, *Comprehension, cst.IfExp, cst.Lambda, within=line) is not None


def _read_together(calls: list[cst.Call], context: Context) -> dict[cst.Call, tuple[Doubt, ...]]:
    """The reads, each value once, of tensors that may live on the device, with what speaks against sparing them.

    The certain ones alone, if they are many; those for which the rule would be silent are none.
    """
    from torchlint.analyses.round_trips.trips import Trips
    from torchlint.analyses.sync.avoidable import doubtful_read

    worthless = {doubt for doubt, reason in RULE.doubts if reason}
    found: dict[str, tuple[cst.Call, tuple[Doubt, ...]]] = {}
    for call in calls:
        read = doubtful_read(call, context)
        if read is not None and worthless.isdisjoint(read.doubts) and context[Trips].of(call) is None:
            found.setdefault(context.code(read.tensor), (call, read.doubts))
    certain = {call: doubts for call, doubts in found.values() if not doubts}
    return certain if len(certain) >= _MANY else dict(found.values())
