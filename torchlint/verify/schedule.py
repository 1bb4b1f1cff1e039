"""Decides which pieces of work are begun within a budget, one after the other or several at once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from torchlint.verify.workload import Workload

Piece = tuple[Workload, str]
"""A rule's pair, and the name of a size."""

Result = TypeVar("Result")
_Made_co = TypeVar("_Made_co", covariant=True)

_LAST = 3


class Crew(Protocol[_Made_co]):
    """Who does the work: `at_once` pieces at a time."""

    at_once: int

    def now(self) -> float:
        """Seconds, as the deadline counts them."""

    def begin(self, piece: Piece) -> None:
        """Begin a piece; at most `at_once` are begun and not ended."""

    def ended(self) -> tuple[Piece, _Made_co]:
        """Wait for one of those that were begun."""


@dataclass(slots=True)
class Scheduled(Generic[Result]):
    """The pieces in their order, of which each is begun that is likely to end before `deadline`.

    `known` says how many seconds a piece took when it was last done to its end; of one that never was, the longest of
    the last three says how long it may take. One that does not fit is passed over, and others are done. `left` are
    those that were passed over, or not come to.
    """

    crew: Crew[Result]
    known: Callable[[Piece], float | None]
    deadline: float
    left: list[Piece] = field(default_factory=list)
    _stopped: bool = False

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped = True

    def run(self, pieces: Sequence[Piece]) -> Generator[tuple[Piece, float, Result], None, None]:
        """Each piece as it ends, with the seconds that it took. What is begun is waited for, unless this is closed."""
        waiting = list(pieces)
        begun: dict[tuple[str, str], float] = {}
        took: list[float] = []
        self.left = []
        try:
            while waiting or begun:
                while waiting and len(begun) < self.crew.at_once:
                    piece = waiting.pop(0)
                    now = self.crew.now()
                    if not self._fits(piece, now, took):
                        self.left.append(piece)
                        continue
                    self.crew.begin(piece)
                    begun[_name(piece)] = now
                if begun:
                    piece, result = self.crew.ended()
                    took.append(self.crew.now() - begun.pop(_name(piece)))
                    yield piece, took[-1], result
        finally:
            self.left += waiting

    def _fits(self, piece: Piece, now: float, took: Sequence[float]) -> bool:
        known = self.known(piece)
        return not self._stopped and now <= self.deadline and now + _expected(known, took) <= self.deadline


@dataclass(slots=True)
class Virtual(Generic[Result]):
    """A crew whose clock jumps to the next end: what would be done within a budget, without doing it.

    `takes` says for how many seconds a piece is at work, `makes` what comes of it.
    """

    at_once: int
    takes: Callable[[Piece], float]
    makes: Callable[[Piece], Result]
    clock: float = 0.0
    _running: list[tuple[float, int, Piece]] = field(default_factory=list)
    _begun: int = 0

    def now(self) -> float:
        """Where the clock stands."""
        return self.clock

    def begin(self, piece: Piece) -> None:
        """It ends when it is done."""
        heapq.heappush(self._running, (self.clock + self.takes(piece), self._begun, piece))
        self._begun += 1

    def ended(self) -> tuple[Piece, Result]:
        """The one that ends first."""
        self.clock, _, piece = heapq.heappop(self._running)
        return piece, self.makes(piece)


def _expected(known: float | None, took: Sequence[float]) -> float:
    return max(took[-_LAST:], default=0.0) if known is None else known


def _name(piece: Piece) -> tuple[str, str]:
    pair, size = piece
    return pair.rule.name, size
