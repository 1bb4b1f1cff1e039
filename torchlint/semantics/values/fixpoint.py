"""Questions about the code whose answers may depend on each other, through loops, calls and recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

A = TypeVar("A")
T = TypeVar("T")

# Beyond this depth a question is not followed: the interpreter's stack is not endless.
_DEEPEST = 300
# In a group that does not come to rest, what changes stays unknown.
_MORE_ROUNDS = 4


class _Open(NamedTuple):
    """A question that was answered while one that it depends on, at the depth `floor`, was still open."""

    unknown: Any
    find: Callable[[Any], Any]
    argument: Any
    floor: int
    answer: Any


class Questions:
    """What was asked about one module, and the answers.

    The answer to a question does not depend on which was asked first: those that depend on each other are answered
    together, in rounds. First all are unknown, then each is asked with what the round before gave for the others, as
    long as that changes.
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

    def settled(self, key: Hashable, unknown: T, find: Callable[[A], T], argument: A) -> T:
        """What `find` gives for the argument, which may ask for the same again; `unknown` where it does not settle."""
        if key in self.known:
            return self.known[key]  # type: ignore[no-any-return]
        self._reads.add(key)
        if key in self._active:
            self._floor = min(self._floor, self._active[key])
            return unknown
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
            return unknown
        self._active[key] = depth
        outer, self._floor = self._floor, _DEEPEST + 1
        try:
            answer = find(argument)
        finally:
            del self._active[key]
            floor, self._floor = self._floor, outer
        if floor > depth:
            self.known[key] = answer
            return answer
        self._open[key] = _Open(unknown, find, argument, floor, answer)
        if floor < depth and depth > 0:
            self._floor = min(self._floor, floor)
            return answer
        return self._agreed(key, depth)  # type: ignore[no-any-return]

    def _agreed(self, key: Hashable, depth: int) -> Any:  # noqa: ANN401 - as the question says
        """Settle the questions that depend on each other and on none further out."""
        group = self._taken(depth)
        outer, outer_reads, kept = self._floor, self._reads, self._rounds
        self._rounds = {**kept, **{asked: (entry.unknown, depth) for asked, entry in group.items()}}
        self._groups += 1
        readers: dict[Hashable, set[Hashable]] = {}
        stale = set(group)
        rounds = 0
        try:
            while stale:
                rounds += 1
                changed: dict[Hashable, Any] = {}
                for asked in [asked for asked in group if asked in stale]:
                    self._reads = set()
                    answer = group[asked].find(group[asked].argument)
                    for read in self._reads:
                        readers.setdefault(read, set()).add(asked)
                    if answer != self._rounds[asked][0]:
                        changed[asked] = answer
                joined = self._taken(depth)
                if rounds > len(group) + _MORE_ROUNDS:
                    changed = {asked: group[asked].unknown for asked in changed}
                group.update(joined)
                changed.update((asked, entry.unknown) for asked, entry in joined.items())
                self._rounds.update((asked, (answer, depth)) for asked, answer in changed.items())
                if rounds > len(group) + _MORE_ROUNDS:
                    break
                stale = set(joined).union(*(readers.get(asked, ()) for asked in changed))
            self.known.update((asked, self._rounds[asked][0]) for asked in group)
        finally:
            self._groups -= 1
            self._rounds, self._floor, self._reads = kept, outer, outer_reads
        return self.known[key]

    def _taken(self, depth: int) -> dict[Hashable, _Open]:
        """The open questions that depend on nothing further out; they are open no more."""
        taken = {asked: entry for asked, entry in self._open.items() if entry.floor >= depth or depth == 0}
        for asked in taken:
            del self._open[asked]
        return taken
