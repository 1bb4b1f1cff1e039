"""A tensor made on the CPU only to be copied to the device."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from torchlint.analyses.tensors.factories import NAMES, Sameness
from torchlint.rule import Applicability, Call, Doubt, Flag, Message, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.analyses.tensors.factories import Factory
    from torchlint.analyses.transfer.moves import Move
    from torchlint.semantics.context import Context

RULE = Rule(
    name="host-factory-then-move",
    code="TL201",
    group="transfer",
    summary="A tensor is created on the CPU and then copied to the GPU.",
    since="0.1.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="random numbers come from another generator, or rounding differs on the GPU",
    eager=True,
    doubts=(
        (Doubt.SMALL, ""),
        (Doubt.RUNS_ONCE, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.OPTION_DECIDES, ""),
        (Doubt.RARE, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
    ),
)
_ON_THE_CPU = Message(
    "on-the-cpu", "`torch.{factory}` is {verb} on the CPU and then copied to the {place}", help="{advice}"
)
# Fewer elements than this take no time worth a word, unless it adds up.
_SMALL = 10_000
_TINY = 100


@RULE.on(*(Call(name) for name in NAMES))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the move of what a factory makes: in the same expression, or by the next use of the name it is given."""
    from torchlint.analyses.tensors.element_counts import amount
    from torchlint.analyses.tensors.factories import factory, is_made_on_a_gpu_by_default
    from torchlint.analyses.transfer.moves import move
    from torchlint.semantics.execution.first_time import is_for_another

    from .placement import is_same, placed

    made = factory(node, context)
    moved = move(made, context, joins=True) if made is not None else None
    if made is None or moved is None:
        return
    number = amount(made.call, context)
    if number == 0 or is_for_another(moved.call, context.names):
        return
    doubts = tuple(dict.fromkeys(_doubts(made, moved, number, context)))
    if is_made_on_a_gpu_by_default(context):
        return
    verb = "drawn" if made.sameness is Sameness.RANDOM else "allocated" if made.successor == "empty" else "filled"
    yield Flag(
        moved.call,
        _ON_THE_CPU.of(
            factory=made.name,
            verb=verb,
            place="GPU" if moved.method == "cuda" else "device",
            advice=_advice(made, moved),
        ),
        title=f"Create it with `device={moved.destination.device}`",
        edits=() if Doubt.OPTION_DECIDES in doubts else placed(made, moved, context),
        applicability=Applicability.SAFE if is_same(made, moved) else Applicability.UNSAFE,
        doubts=doubts,
    )


def _doubts(made: Factory, moved: Move, number: int | None, context: Context) -> Iterator[Doubt]:
    """Why it may cost too little to tell: little is copied, and that once; of `number` elements, if that is known."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.analyses.execution.occasions import (
        is_made_once,
        is_made_to_look,
        is_named_preparation,
        is_preparation,
        runs_once,
    )
    from torchlint.analyses.execution.rarity import is_named_diagnostic
    from torchlint.analyses.sync.finite_checks import is_exceptional
    from torchlint.analyses.tensors.element_counts import sizes
    from torchlint.analyses.transfer.moves import is_enlarged

    if context.argument(made.call, "generator") is not None:
        yield Doubt.OPTION_DECIDES  # one of the CPU draws there
    asked = (is_exceptional, is_preparation, is_made_to_look)
    if any(is_such(moved.call, context) for is_such in asked):
        yield Doubt.RARE
    if is_named_preparation(moved.call, context) or is_named_diagnostic(moved.call, context):
        yield Doubt.NAMED_RARE
    axes = sizes(made.call, context)
    is_no_block = axes is not None and axes.count(None) <= 1 and prod(size or 1 for size in axes) < _SMALL
    if is_made_once(moved.call, context):
        yield from (Doubt.SMALL, Doubt.RUNS_ONCE) if is_no_block else (Doubt.RUNS_ONCE,)
    # A move in another block is one that somebody thought about.
    limit = _SMALL if _share_a_block(made.call, moved.call, context) else _TINY
    is_small = number is not None and number < limit and not is_enlarged(moved)
    if is_small and runs_once(moved.call, context):
        yield from (Doubt.SMALL, Doubt.RUNS_ONCE)
    yield from rate_doubts(moved.call, context)  # last, since other files may have to say it


def _share_a_block(first: cst.CSTNode, second: cst.CSTNode, context: Context) -> bool:
    lines = (context.tree.line(first), context.tree.line(second))
    blocks = [context.parent(line) for line in lines if line is not None]
    return len(blocks) == len(lines) and blocks[0] is blocks[1]


def _advice(made: Factory, moved: Move) -> str:
    where = f"device={moved.destination.device}" if moved.destination.device else "device="
    if made.legacy:
        way = f"use `torch.{made.successor}` with `{where}`"
    elif moved.binding is None:
        way = f"create it there with `{where}`"
    else:
        way = f"create it there with `{where}` in `torch.{made.name}`"
    if moved.destination.may_be_none:
        return f"{way}, but `device=None` is the CPU where `.cuda(None)` is the current GPU"
    return way
