"""What the other files of a project say about the functions of one: who calls them, how often, with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from torchlint.finding import Frequency  # noqa: TC001 - the cache resolves annotations

# A function by its name, a method as `Class.method`.
FunctionName: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Passed:
    """What a call passes for one parameter: `place` counts positional arguments, `keyword` names others.

    `kind` and `device` are names in `torchlint.model.values`.
    """

    place: int | None
    keyword: str
    kind: str
    device: str


@dataclass(frozen=True, slots=True)
class Called:
    """One call from another file. `where` is its path and row; `arguments` is None where `*` or `**` hides some.

    `grad` is the value of a `torchlint.model.grad.GradMode`, `purpose`, what is done with the result, that of a
    `torchlint.model.purpose.Purpose`.
    """

    where: str
    frequency: Frequency
    grad: str
    purpose: str
    arguments: tuple[Passed, ...] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The calls from other files of those functions that a lint asked about, sorted. Hashable: part of cache keys."""

    calls: tuple[tuple[FunctionName, tuple[Called, ...]], ...] = ()

    def of(self, function: FunctionName) -> tuple[Called, ...]:
        """The calls of one function."""
        return next((found for name, found in self.calls if name == function), ())

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.calls)


@dataclass(frozen=True, slots=True)
class Answers:
    """The calls in one file of functions that are defined in others, by the qualified names that were asked for.

    `questions` are the functions of this file whose callers the answer depends on.
    """

    calls: tuple[tuple[str, tuple[Called, ...]], ...] = ()
    questions: tuple[FunctionName, ...] = ()


NOTHING = Facts()
