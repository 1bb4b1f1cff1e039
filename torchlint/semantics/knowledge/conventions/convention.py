"""What a convention is, and how one is switched off for a run that measures what it changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")
# What is longer is code, of which few pieces are asked about twice.
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Convention:
    """A way in which people call things: what a name or a text that follows it suggests, and never proves.

    A name follows it by being one of `names`, any text by holding something that `pattern` describes. There is one of
    the two. `suggests_that` is what follows from it, `why` the reason to believe so.
    """

    id: str
    suggests_that: str
    why: str
    pattern: str = ""
    names: frozenset[str] = frozenset()
    ignore_case: bool = False

    def suggests(self, text: str) -> bool:
        """Whether a name or a text follows the convention."""
        found = text in self.names if self.names else self._first_in(text) is not None
        return found and _counts(self)

    def suggests_any(self, names: Iterable[str]) -> bool:
        """Whether one of the names follows the convention."""
        return any(map(self.suggests, names))

    def found_in(self, text: str) -> str:
        """What in the text follows the convention: the first of it, "" where there is nothing."""
        found = self._first_in(text)
        return found if found is not None and _counts(self) else ""

    def _first_in(self, text: str) -> str | None:
        """What the pattern describes first, remembered: names recur, from file to file too, and the code of a file."""
        search = _in_a_name if len(text) < _LONGEST_NAME else _in_a_text
        return search(self.pattern, self.ignore_case, text)


@cache
def _compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:  # noqa: FBT001 - as the field
    # A file asks for a few of all patterns, and `--help` for none.
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def _searched(pattern: str, ignore_case: bool, text: str) -> str | None:  # noqa: FBT001 - as above
    found = _compiled(pattern, ignore_case).search(text)
    return found[0] if found is not None else None


_in_a_name = lru_cache(maxsize=1 << 15)(_searched)
_in_a_text = lru_cache(maxsize=64)(_searched)


@contextmanager
def switched_off(*conventions: Convention) -> Iterator[None]:
    """Within the block these conventions suggest nothing, in this process and in no other."""
    global _off  # noqa: PLW0603 - the conventions are constants of the program, and so is what counts of them
    before, _off = _off, _off | {convention.id for convention in conventions}
    try:
        yield
    finally:
        _off = before


@contextmanager
def watched() -> Iterator[set[str]]:
    """The ids of the conventions that have suggested anything since the block began, in this process."""
    global _seen  # noqa: PLW0603 - as above
    before, _seen = _seen, set()
    try:
        yield _seen
    finally:
        _seen = before


def remembered(size: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """As `lru_cache`, for what a function makes of a text with conventions; while one is off or all are watched, none.

    What is remembered would hide that a convention was asked, or that it is off.
    """

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        fast = lru_cache(maxsize=size)(function)

        @wraps(function)
        def asked(text: str) -> T:
            return fast(text) if _seen is None and not _off else function(text)

        return asked

    return decorate


_off: frozenset[str] = frozenset()
_seen: set[str] | None = None


def _counts(convention: Convention) -> bool:
    """Whether what the convention suggests counts in this run."""
    if _seen is not None:
        _seen.add(convention.id)
    return convention.id not in _off
