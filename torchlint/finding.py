"""What a run reports, in terms of text: spans, edits, fixes, findings and diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Applicability(IntEnum):
    """How far a fix may be trusted; a run applies the fixes at or above its threshold."""

    DISPLAY = 0
    UNSAFE = 1
    SAFE = 2

    def __str__(self) -> str:
        return self.name.lower()


class Frequency(IntEnum):
    """How often a line runs, from the loops, entry points and callers around it."""

    UNKNOWN = 0
    ONCE = 1
    EPOCH = 2
    BATCH = 3
    SAMPLE = 4

    def __str__(self) -> str:
        return _FREQUENCY_WORDS[self]


_FREQUENCY_WORDS = {
    Frequency.UNKNOWN: "unknown",
    Frequency.ONCE: "once",
    Frequency.EPOCH: "per epoch",
    Frequency.BATCH: "per batch",
    Frequency.SAMPLE: "per sample",
}


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of code points in `SourceFile.text`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text of `span` by `text`; an empty span inserts."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all of them are applied, or none."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a rule holds. `rule` is the rule's name, `code` its short code.

    `origin` is the place in another file, `path:row`, whose call makes it run as often as it does; `cause` is what does
    so in this file: what a loop goes over, a call, or the name of a function.
    """

    rule: str
    code: str
    span: Span
    message: str
    frequency: Frequency = Frequency.UNKNOWN
    fix: Fix | None = None
    origin: str = ""
    cause: Span | None = None


class Severity(Enum):
    """What a diagnostic does to the exit status: an error of the file (1) or of torchlint itself (2)."""

    FILE = "file"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something other than a rule's finding that the user has to know about one file.

    `code` is `E902` (cannot be read), `E999` (cannot be parsed) or `E000` (a rule or torchlint failed);
    `name` the same in words. `span` is None where no place in the text can be named.
    """

    code: str
    name: str
    message: str
    severity: Severity = Severity.FILE
    span: Span | None = None


class Wanted(NamedTuple):
    """What other files could tell: who calls these functions of the file, what these classes are that it imports.

    A function goes by its name, a method is `Class.method`; a class by the qualified name that it has in the file.
    `*.method` are the calls of methods of that name of objects that nobody knows; `torch.compile` is asked for in the
    programs that the file is part of.
    `pins` asks whether any file that works with this one speaks of pinning what loaders give.
    """

    functions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    pins: bool = False

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self.functions or self.classes or self.pins)


NOTHING_WANTED = Wanted()


@dataclass(frozen=True, slots=True)
class Result:
    """What linting one file gave: findings sorted by span, and diagnostics.

    `questions` are those whose answers could change it.
    """

    findings: tuple[Finding, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    questions: Wanted = NOTHING_WANTED

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to report."""
        return not (self.findings or self.diagnostics)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """`text` with edits made that do not overlap; those at one place in the order given."""
    parts: list[str] = []
    place = 0
    for edit in sorted(edits, key=lambda edit: edit.span):
        parts += (text[place : edit.span.start], edit.text)
        place = edit.span.end
    return "".join((*parts, text[place:]))


def sort_key(finding: Finding) -> tuple[int, int, str]:
    """The order in which findings of one file are reported."""
    return (finding.span.start, finding.span.end, finding.code)
