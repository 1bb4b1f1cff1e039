"""Questions about the code whose answers may depend on each other, through loops, calls and recursion."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

A = TypeVar("A")
T = TypeVar("T")

# Beyond this depth a question is not followed: the interpreter's stack is not endless.
_DEEPEST = 300
# An answer that has changed so often may do so for ever, since what it is made of is not monotone: from then on it only
# grows. One that grows for long is given up, so that a group costs no more than its size allows.
_FREE_CHANGES = 4
_MOST_CHANGES = 24


class Ends(NamedTuple):
    """How questions end that do not settle by themselves.

    `unknown` is the answer where nothing is known when the others have settled. `join` makes of two answers one that
    holds for both, and `top` holds for all.
    """

    unknown: Any
    top: Any
    join: Callable[[tuple[Any, Any]], Any]


class _Open(NamedTuple):
    """A question that was answered while one that it depends on, at the depth `floor`, was still open."""

    bottom: Any
    find: Callable[[Any], Any]
    argument: Any
    floor: int
    answer: Any
    ends: Ends


class Questions:
    """What was asked about one module, and the answers.

    The answer to a question does not depend on which was asked first: those that depend on each other are answered
    together, in rounds. First nothing is known of all, then each is asked with what the round before gave for the
    others, as long as that changes. That of which nothing is known even then is unknown to those that ask, who may
    find something else; and so on.
    """

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}
        # The questions being asked, by their depth, and those that wait for one of them.
        self._active: dict[Hashable, int] = {}
        self._open: dict[Hashable, _Open] = {}
        # What the last round gave for a group, with the group's depth.
        self._rounds: dict[Hashable, tuple[Any, int]] = {}
        self._groups = 0
        # What was asked since the innermost question of a group was taken up, as far as it was not known for good.
        self._reads: set[Hashable] = set()
        # The least depth that what was found since the innermost question began depends on.
        self._floor = _DEEPEST + 1

    def settled(self, key: Hashable, bottom: T, find: Callable[[A], T], argument: A, ends: Ends | None = None) -> T:
        """What `find` gives for the argument, which may ask for the same again, and is given `bottom` at first.

        Without `ends` the answer is `bottom`, too, where it does not settle.
        """
        if key in self.known:
            return self.known[key]  # type: ignore[no-any-return]
        self._reads.add(key)
        if key in self._active:
            self._floor = min(self._floor, self._active[key])
            return bottom
        if key in self._rounds:
            answer, depth = self._rounds[key]
            self._floor = min(self._floor, depth)
            return answer  # type: ignore[no-any-return]
        if key in self._open:
            self._floor = min(self._floor, self._open[key].floor)
            return self._open[key].answer  # type: ignore[no-any-return]
        depth = len(self._active) + self._groups
        if depth >= _DEEPEST:
            self._floor = -1
            return bottom
        self._active[key] = depth
        outer, self._floor = self._floor, _DEEPEST + 1
        try:
            answer = find(argument)
        finally:
            del self._active[key]
            floor, self._floor = self._floor, outer
        if floor > depth:
            if ends is not None and answer is bottom:
                answer = ends.unknown
            self.known[key] = answer
            return answer  # type: ignore[no-any-return]
        self._open[key] = _Open(bottom, find, argument, floor, answer, ends or Ends(bottom, bottom, itemgetter(1)))
        if floor < depth and depth > 0:
            self._floor = min(self._floor, floor)
            return answer
        return self._agreed(key, depth)  # type: ignore[no-any-return]

    def _agreed(self, key: Hashable, depth: int) -> Any:  # noqa: ANN401 - as the question says
        """Settle the questions that depend on each other and on none further out."""
        group = self._taken(depth)
        order = {asked: place for place, asked in enumerate(group)}
        outer, outer_reads, kept = self._floor, self._reads, self._rounds
        self._rounds = {**kept, **{asked: (entry.bottom, depth) for asked, entry in group.items()}}
        self._groups += 1
        readers: dict[Hashable, set[Hashable]] = {}
        changes: dict[Hashable, int] = {}
        stale = set(group)
        try:
            while stale:
                changed: dict[Hashable, Any] = {}
                for asked in sorted(stale, key=order.__getitem__):
                    self._reads = set()
                    answer = group[asked].find(group[asked].argument)
                    for read in self._reads:
                        readers.setdefault(read, set()).add(asked)
                    before = self._rounds[asked][0]
                    if answer is group[asked].bottom and before is not answer:
                        answer = group[asked].ends.unknown  # something was known of it
                    if changes.get(asked, 0) >= _FREE_CHANGES:
                        answer = group[asked].ends.join((before, answer))
                    if answer != before:
                        changes[asked] = changes.get(asked, 0) + 1
                        changed[asked] = answer if changes[asked] < _MOST_CHANGES else group[asked].ends.top
                joined = self._taken(depth)
                group.update(joined)
                order.update((asked, len(order) + place) for place, asked in enumerate(joined))
                changed.update((asked, entry.bottom) for asked, entry in joined.items())
                self._rounds.update((asked, (answer, depth)) for asked, answer in changed.items())
                stale = set(joined).union(*(readers.get(asked, ()) for asked in changed))
                if not stale:
                    left = self._ended(group)
                    self._rounds.update((asked, (answer, depth)) for asked, answer in left.items())
                    stale = set().union(*(readers.get(asked, ()) for asked in left))
                stale = {asked for asked in stale if changes.get(asked, 0) < _MOST_CHANGES}
            self.known.update((asked, self._rounds[asked][0]) for asked in group)
        finally:
            self._groups -= 1
            self._rounds, self._floor, self._reads = kept, outer, outer_reads
        return self.known[key]

    def _ended(self, group: dict[Hashable, _Open]) -> dict[Hashable, Any]:
        """Those of a group at rest of which nothing is known, and what others are told of them from now on."""
        return {
            asked: entry.ends.unknown
            for asked, entry in group.items()
            if self._rounds[asked][0] is entry.bottom and entry.ends.unknown is not entry.bottom
        }

    def _taken(self, depth: int) -> dict[Hashable, _Open]:
        """The open questions that depend on nothing further out; they are open no more."""
        taken = {asked: entry for asked, entry in self._open.items() if entry.floor >= depth or depth == 0}
        for asked in taken:
            del self._open[asked]
        return taken
