"""A tensor made on the CPU only to be copied to the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.model.factories import NAMES, Sameness
from torchlint.rule import Applicability, Call, Flag, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.model.context import Context
    from torchlint.model.factories import Factory
    from torchlint.model.moves import Move

RULE = Rule(
    name="host-factory-then-move",
    code="TL201",
    group="transfer",
    summary="A tensor is made on the CPU and then copied to the device.",
    since="0.1.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
)


@RULE.on(*(Call(name) for name in NAMES))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the move of what a factory makes: in the same expression, or by the next use of the name it is given."""
    from torchlint.model.factories import factory
    from torchlint.model.moves import move
    from torchlint.model.placement import is_same, placed

    made = factory(node, context)
    moved = move(made, context) if made is not None else None
    if made is None or moved is None:
        return
    verb = "draws" if made.sameness is Sameness.RANDOM else "fills"
    yield Flag(
        moved.call,
        f"`torch.{made.name}` {verb} on the CPU and `.{moved.method}()` copies to the device; {_advice(made, moved)}",
        title=f"Make it on the device: `device={moved.destination.device}`",
        edits=placed(made, moved, context),
        applicability=Applicability.SAFE if is_same(made, moved) else Applicability.UNSAFE,
    )


def _advice(made: Factory, moved: Move) -> str:
    if moved.destination.may_be_none:
        return "`device=` makes it there, but `device=None` is the CPU where `.cuda(None)` is the current GPU"
    return "`device=` makes it there" if moved.binding is None else f"`device=` in `torch.{made.name}` makes it there"
