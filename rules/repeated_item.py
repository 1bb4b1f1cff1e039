"""The same value read back twice in one block: the second read waits for nothing new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Flag, Insert, Method, Replace, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="repeated-item",
    code="TL303",
    group="sync",
    summary="The same scalar is read back from the device several times in one block.",
    since="0.1.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
)


@RULE.on(Method("item"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the second read of a value that the block has already read; the fix names the value once."""
    from torchlint.model.reads import is_hot, scalar_read
    from torchlint.model.repeats import Repeats

    tensor = scalar_read(node, context)
    if not isinstance(tensor, (cst.Name, cst.Attribute)) or not is_hot(node, context):
        return
    repeats = Repeats.of(node, tensor, context)
    if repeats is None or repeats.reads[1] is not node:
        return
    read = context.code(node)
    count = len(repeats.reads)
    name = repeats.fresh_name()
    edits = ()
    if name is not None:
        indent = context.tree.indentation(repeats.first_line)
        edits = (
            Insert(repeats.first_line, f"{name} = {read}\n{indent}", before=True),
            *(Replace(found, name) for found in repeats.reads),
        )
    yield Flag(
        node,
        f"`{read}` is read {count} times in this block, and each read asks the device again; read it once",
        title=f"Read it once, as `{name}`",
        edits=edits,
        applicability=Applicability.SAFE if repeats.is_unchanged() else Applicability.UNSAFE,
    )
