"""The same value read back twice in one block: the second read waits for nothing new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Insert, Message, Method, NodeEdit, Replace, Rule

from .._shared.doubts import READ_DOUBTS, weighed

if TYPE_CHECKING:
    from .repeats import Repeats

RULE = Rule(
    name="repeated-item",
    code="TL303",
    group="sync",
    summary="The same scalar is read from the GPU several times in one block.",
    since="0.1.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    doubts=READ_DOUBTS,
    unsafe="something between the reads may change the tensor",
)
_REPEATED = Message(
    "repeated", "`{read}` is read {times} times in this block, and each read synchronizes", help="read it once"
)


@RULE.on(Method("item"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the second read of a value that the block has already read; the fix names the value once."""
    from torchlint.analyses.host.reads import scalar_read

    from .repeats import Repeats

    tensor = scalar_read(node, context)
    if not isinstance(tensor, (cst.Name, cst.Attribute)):
        return
    repeats = Repeats.of(node, tensor, context)
    if repeats is None or repeats.counted[1] is not node:
        return
    read = f"{repeats.name}.item()"
    name = repeats.fresh_name()
    yield Flag(
        node,
        _REPEATED.of(read=read, times=len(repeats.counted)),
        title=f"Read `{repeats.name}` once",
        edits=_edits(repeats, name, context) if name is not None else (),
        applicability=Applicability.SAFE if repeats.is_unchanged() else Applicability.UNSAFE,
        doubts=weighed(RULE, _doubts(repeats, tensor, context)),
    )


def _doubts(repeats: Repeats, tensor: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against reading the value once, in the order of what it costs to know."""
    from torchlint.analyses.sync.adjacent_waits import is_beside_a_wait
    from torchlint.analyses.sync.avoidable import wait_doubts

    again = repeats.counted[1:]
    if all(is_beside_a_wait(read, tensor, context) for read in again):
        yield Doubt.WAITS_ANYWAY
    yield from wait_doubts(again[0], tensor, context)


def _edits(repeats: Repeats, name: str, context: Context) -> tuple[NodeEdit, ...]:
    """`loss_value = loss.item()` above the first line, and that name in the place of every read."""
    indent = context.tree.indentation(repeats.first_line)
    return (
        Insert(repeats.first_line, f"{name} = {repeats.name}.item()\n{indent}", before=True),
        *(Replace(read, f"({name})" if read.lpar else name) for read in repeats.reads),
    )
