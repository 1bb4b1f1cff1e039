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
    together, in rounds. First all are unknown, then each is asked with what the round before gave for the others, until
    nothing changes.
    """

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}
        # The questions being asked, by their depth, and those that wait for one of them.
        self._active: dict[Hashable, int] = {}
        self._open: dict[Hashable, _Open] = {}
        # What the last round gave for a group, with the group's depth.
        self._rounds: dict[Hashable, tuple[Any, int]] = {}
        self._groups = 0
        # The least depth that what was found since the innermost question began depends on.
        self._floor = _DEEPEST + 1

    def settled(self, key: Hashable, unknown: T, find: Callable[[A], T], argument: A) -> T:
        """What `find` gives for the argument, which may ask for the same again; `unknown` where it does not settle."""
        if key in self.known:
            return self.known[key]  # type: ignore[no-any-return]
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
        answers = {asked: entry.unknown for asked, entry in group.items()}
        outer, kept = self._floor, self._rounds
        self._groups += 1
        try:
            rounds = 0
            while True:
                self._rounds = {**kept, **{asked: (answer, depth) for asked, answer in answers.items()}}
                new = {asked: entry.find(entry.argument) for asked, entry in group.items()}
                rounds += 1
                joined = self._taken(depth)
                group.update(joined)
                new.update((asked, entry.unknown) for asked, entry in joined.items())
                if new == answers:
                    break
                if rounds > len(group) + _MORE_ROUNDS:
                    new = {
                        asked: answer if answer == answers[asked] else group[asked].unknown
                        for asked, answer in new.items()
                    }
                    break
                answers = new
        finally:
            self._groups -= 1
            self._rounds, self._floor = kept, outer
        self.known.update(new)
        return new[key]

    def _taken(self, depth: int) -> dict[Hashable, _Open]:
        """The open questions that depend on nothing further out; they are open no more."""
        taken = {asked: entry for asked, entry in self._open.items() if entry.floor >= depth or depth == 0}
        for asked in taken:
            del self._open[asked]
        return taken
