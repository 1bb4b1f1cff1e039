"""A tensor that a module keeps on the CPU and copies to the device in each forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Context, Flag, Message, Method, NodeEdit, Replace, Rule

if TYPE_CHECKING:
    import libcst as cst

    from .attributes import Unregistered

RULE = Rule(
    name="tensor-attribute-not-buffer",
    code="TL512",
    group="modules",
    summary="A tensor that a module keeps as a plain attribute is copied to the GPU in every forward pass.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="the buffer is cast with its module, and `DistributedDataParallel` sends it to all ranks",
)
_NO_BUFFER = Message(
    "no-buffer",
    "`{move}` copies the same tensor to the device{often}",
    help='make it a buffer: `self.register_buffer("{name}", …, persistent=False)`',
)


# `to` alone stands in every file that holds `torch`.
_MOVES = (b".to(", b".cuda(", b".type_as(")


@RULE.on(Method("to", _MOVES), Method("cuda", _MOVES), Method("type_as", _MOVES))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the first move of an attribute that could be a buffer; the fix registers it where it is made."""
    from torchlint.edits.messages import how_often

    from .attributes import unregistered

    found = unregistered(node, context)
    if found is None or found.moves[0] is not node:
        return
    yield Flag(
        node,
        _NO_BUFFER.of(move=context.shown(node), name=found.name, often=how_often(node, context)),
        title=f"Register `{found.name}` as a buffer that is not saved",
        edits=_edits(found, context),
        places=found.moves[1:],
    )


def _edits(found: Unregistered, context: Context) -> tuple[NodeEdit, ...]:
    """The buffer in the place of the attribute. Moves stay: they leave alone what is there already."""
    from .attributes import may_be_registered

    entry = found.entry
    if entry.value is None or not may_be_registered(found, context):
        return ()
    value = context.bare_code(entry.value)
    return (Replace(entry.node, f'{found.owner}.register_buffer("{found.name}", {value}, persistent=False)'),)
