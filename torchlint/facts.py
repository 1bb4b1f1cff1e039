"""What the other files of a project say about the functions of one: who calls them, how often, with what."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

# Named tuples: they are made in a tenth of the time that a dataclass takes, at each start.
from torchlint.finding import Frequency  # noqa: TC001 - the cache resolves annotations

# A function by its name, a method as `Class.method`.
FunctionName: TypeAlias = str


class Passed(NamedTuple):
    """What a call passes for one parameter: `place` counts positional arguments, `keyword` names others.

    `kind` and `device` are names in `torchlint.model.values`.
    """

    place: int | None
    keyword: str
    kind: str
    device: str


class Called(NamedTuple):
    """One call from another file. `where` is its path and row; `arguments` is None where `*` or `**` hides some.

    `grad` is the value of a `torchlint.model.grad.GradMode`, `purpose`, what is done with the result, that of a
    `torchlint.model.purpose.Purpose`.
    """

    where: str
    frequency: Frequency
    grad: str
    purpose: str
    arguments: tuple[Passed, ...] | None = None


class Facts(NamedTuple):
    """The calls from other files of those functions that a lint asked about, sorted. Hashable: part of cache keys."""

    calls: tuple[tuple[FunctionName, tuple[Called, ...]], ...] = ()

    def of(self, function: FunctionName) -> tuple[Called, ...]:
        """The calls of one function."""
        return next((found for name, found in self.calls if name == function), ())

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.calls)


class Answers(NamedTuple):
    """The calls in one file of functions that are defined in others, by the qualified names that were asked for.

    `questions` are the functions of this file whose callers the answer depends on.
    """

    calls: tuple[tuple[str, tuple[Called, ...]], ...] = ()
    questions: tuple[FunctionName, ...] = ()


class Telling(NamedTuple):
    """What the model knows of one line, in words. `held` are the names on it, each with what it holds.

    `questions` are the functions whose callers in other files it hangs on.
    """

    frequency: str
    why: tuple[str, ...]
    grad: str
    held: tuple[tuple[str, str], ...]
    questions: tuple[FunctionName, ...] = ()


NOTHING = Facts()
