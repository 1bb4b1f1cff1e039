"""Data copied to the CPU, and back to the device, though nothing on the way needs the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Rule, Said, Status

if TYPE_CHECKING:
    from torchlint.analyses.round_trips.trips import Trip

RULE = Rule(
    name="device-round-trip",
    code="TL206",
    group="transfer",
    summary="A tensor goes to the CPU and back for what PyTorch can do on the GPU.",
    since="0.2.0",
    status=Status.PREVIEW,
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "One trip costs microseconds."),
        (Doubt.RARE, "A trip now and then costs next to nothing."),
        (Doubt.WAITS_ANYWAY, "Where the CPU has just waited, a copy costs next to nothing."),
    ),
)
_TRIP = Message(
    "round-trip", "`{read}` synchronizes with the GPU{often}, and `{back}` copies the data back", help="{advice}"
)
_MOST_NAMED = 2


@RULE.on(Method("cpu"), Method("tolist"), Method("item"), Method("numpy"), Call("float"), Call("int"), Call("bool"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the call with which the data leaves the device, if all that is made of it goes back."""
    from torchlint.analyses.round_trips.trips import Trips

    trip = context[Trips].of(node)
    if trip is not None and trip.reads[0] is node:
        yield Flag(node, _said(trip, context), doubts=trip.doubts)


@RULE.on(Method("to", (b'"cpu"', b"'cpu'")))
def check_move(node: cst.Call, context: Context) -> Iterator[Flag]:
    """As above for `t.to("cpu")`."""
    yield from check(node, context)


def _said(trip: Trip, context: Context) -> Said:
    from torchlint.edits.messages import how_often

    read = trip.reads[0]
    back = _end(trip.back, context)
    return _TRIP.of(read=context.shown(read), often=how_often(read, context), back=back, advice=_advice(trip))


def _end(back: cst.Call, context: Context) -> str:
    """`.to(device)` of a move, `torch.tensor(…)` of a factory."""
    assert isinstance(back.func, cst.Attribute)
    method = back.func.attr.value
    if method not in ("cuda", "to", "type_as"):
        return f"{context.shown(back.func)}(…)"
    return f".{method}({'…' if len(back.args) > 1 else ''.join(context.shown(given.value) for given in back.args)})"


def _advice(trip: Trip) -> str:
    if not trip.done:
        return "stay on the GPU: nothing on the way needs the CPU"
    named = " and ".join(f"`{name}`" for name in trip.done[:_MOST_NAMED])
    if len(trip.done) > _MOST_NAMED:
        return f"stay on the GPU: torch has {named} and all else that is done on the way"
    return f"stay on the GPU: {named} {'does' if len(trip.done) == 1 else 'do'} the same there"
