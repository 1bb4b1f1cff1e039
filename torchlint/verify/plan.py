"""What a run over pairs would do within its budget: which sizes, in which order, and how long each takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchlint.verify import catalogue, schedule
from torchlint.verify.journal import Journal
from torchlint.verify.machine import Machine
from torchlint.verify.pairs import Order
from torchlint.verify.schedule import Piece


@dataclass(frozen=True, slots=True)
class Planned:
    """A piece, with the seconds from the start at which it begins and ends.

    `remembered`: it took as long when it was last measured; else that is an estimate.
    """

    piece: Piece
    begins: float
    ends: float
    remembered: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done, in the order of its begin, and what there would be no time for; `at_once` at a time."""

    planned: tuple[Planned, ...]
    left: tuple[Piece, ...]
    at_once: int
    phases: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """When the last one ends."""
        return max((each.ends for each in self.planned), default=0.0)


def plan(chosen: catalogue.Selected, order: Order, machine: Machine, budget: float | None) -> Plan:
    """What the run would do if each piece took what is expected of it: the same choices, by a clock that jumps."""
    journal = Journal.of(chosen.folder, machine.device_name(order.device))
    expected = catalogue.expected(chosen, order, machine)
    crew = schedule.Virtual(order.at_once, lambda piece: expected(piece)[0], lambda _: None)
    work = schedule.Scheduled(crew, lambda piece: journal.seconds(*piece, order.phases), budget or math.inf)
    ready, unready = catalogue.ready(chosen, order, machine)
    found = [
        Planned(piece, crew.now() - seconds, crew.now(), expected(piece)[1]) for piece, seconds, _ in work.run(ready)
    ]
    places = {piece: place for place, piece in enumerate((each.rule.name, size) for each, size in chosen.pieces)}
    found.sort(key=lambda each: (each.begins, places[each.piece[0].rule.name, each.piece[1]]))
    return Plan(tuple(found), (*work.left, *unready), order.at_once, order.phases)


def lines(found: Plan, device: str, *, budget: float | None) -> Iterator[str]:
    """It as text, a line each."""
    rows = [_row(each) for each in found.planned]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for row in rows:
        begins, *rest = (cell.ljust(wide) for cell, wide in zip(row, widths, strict=True))
        yield "  ".join((begins.rstrip().rjust(widths[0]), *rest)).rstrip()
    beside = f", {found.at_once} at a time" if found.at_once > 1 else ""
    within = f" of {clock(budget)}" if budget else ""
    sizes = len(found.planned)
    yield (
        f"{sizes} size{'' if sizes == 1 else 's'} on {device} ({', '.join(found.phases)}){beside}: "
        f"about {clock(found.seconds)}{within}; {len(found.left)} left"
    )
    guessed = sum(not each.remembered for each in found.planned)
    if guessed:
        yield f"{guessed} of them were not measured on this device yet: their times are estimates"


def as_json(found: Plan) -> dict[str, Any]:
    """It as JSON; times in seconds."""
    return {
        "at_once": found.at_once,
        "phases": found.phases,
        "seconds": found.seconds,
        "planned": [
            {**_named(each.piece), "begins": each.begins, "ends": each.ends, "remembered": each.remembered}
            for each in found.planned
        ],
        "left": [_named(piece) for piece in found.left],
    }


def clock(seconds: float) -> str:
    """`9m05s`."""
    return f"{int(seconds) // 60}m{int(seconds) % 60:02d}s"


def _row(each: Planned) -> tuple[str, ...]:
    pair, size = each.piece
    how = "" if each.remembered else " (estimate)"
    return clock(each.begins), f"{pair.rule.code} {pair.rule.name}", size, f"{each.ends - each.begins:.0f} s{how}"


def _named(piece: Piece) -> dict[str, str]:
    pair, size = piece
    return {"rule": pair.rule.name, "size": size}
