"""What a run reports, in terms of text: spans, edits, fixes, findings and diagnostics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import NamedTuple


class Applicability(IntEnum):
    """How far a fix may be trusted; a run applies the fixes at or above its threshold."""

    DISPLAY = 0
    UNSAFE = 1
    SAFE = 2

    def __str__(self) -> str:
        return self.name.lower()


class Frequency(IntEnum):
    """How often a line runs, from the loops, entry points and callers around it.

    CALL: once for each call of a function whose callers are not in sight. It may be as often as anything; since nobody
    knows, it counts less than what is known, and what is compared with ONCE or more holds for it as for UNKNOWN.
    """

    UNKNOWN = 0
    CALL = 1
    ONCE = 2
    EPOCH = 3
    BATCH = 4
    SAMPLE = 5

    def __str__(self) -> str:
        return _FREQUENCY_WORDS[self]


_FREQUENCY_WORDS = {
    Frequency.UNKNOWN: "unknown",
    Frequency.CALL: "per call",
    Frequency.ONCE: "once",
    Frequency.EPOCH: "per epoch",
    Frequency.BATCH: "per batch",
    Frequency.SAMPLE: "per sample",
}


class Severity(IntEnum):
    """How much a finding weighs: a warning is certain and recurs, a note is true and has a doubt."""

    NOTE = 0
    WARNING = 1

    def __str__(self) -> str:
        return self.name.lower()


class Doubt(Enum):
    """Why a claim that is true may not be worth acting on. The value is its id, which users meet in JSON."""

    RATE_UNKNOWN = "rate-unknown"
    RUNS_ONCE = "runs-once"
    RARE = "rare"
    NAMED_RARE = "named-rare"
    DEVICE_UNKNOWN = "device-unknown"
    VALUE_DECIDES = "value-decides"
    USE_UNKNOWN = "use-unknown"
    DATA_UNKNOWN = "data-unknown"
    WORK_UNKNOWN = "work-unknown"
    OPTION_DECIDES = "option-decides"
    COSTS_MEMORY = "costs-memory"
    HOST_NEEDS_IT = "host-needs-it"
    WAITS_ANYWAY = "waits-anyway"
    WAITS_TOO = "waits-too"
    SMALL = "small"
    MEMORY = "memory"
    PER_ROW = "per-row"
    UNCALLED = "uncalled"
    BY_CONVENTION = "by-convention"
    MEANT = "meant"
    NAMED_OTHERWISE = "named-otherwise"
    HOST_BOUND = "host-bound"
    SIZE_UNKNOWN = "size-unknown"
    ONCE_AN_EPOCH = "once-an-epoch"
    CALLED_BY_NAME = "called-by-name"

    @property
    def sentence(self) -> str:
        """What it says, as a clause that follows a message."""
        return _SENTENCES[self]


_SENTENCES = {
    Doubt.RATE_UNKNOWN: "how often this runs is not in sight",
    Doubt.RUNS_ONCE: "this runs only once",
    Doubt.RARE: "this runs only now and then",
    Doubt.NAMED_RARE: "a name suggests that this runs only now and then",
    Doubt.DEVICE_UNKNOWN: "nothing in sight puts this on a GPU",
    Doubt.VALUE_DECIDES: "the program needs this value to go on",
    Doubt.USE_UNKNOWN: "what the value is used for is not in sight",
    Doubt.DATA_UNKNOWN: "what the tensor is made of is not in sight",
    Doubt.WORK_UNKNOWN: "what it costs to make a sample is not in sight",
    Doubt.OPTION_DECIDES: "an option of the program decides this",
    Doubt.COSTS_MEMORY: "the alternative takes more memory",
    Doubt.HOST_NEEDS_IT: "what takes this value works on the CPU",
    Doubt.WAITS_ANYWAY: "a line next to it synchronizes anyway",
    Doubt.WAITS_TOO: "a line next to it would still synchronize",
    Doubt.SMALL: "there is little work in it",
    Doubt.MEMORY: "all rows at once take more memory",
    Doubt.PER_ROW: "whether all rows can be taken at once is not in sight",
    Doubt.UNCALLED: "nothing in this project calls this function",
    Doubt.BY_CONVENTION: "only a name says what this is",
    Doubt.MEANT: "a comment or a name says that this is intended",
    Doubt.NAMED_OTHERWISE: "by a name, this may be something that needs no change",
    Doubt.SIZE_UNKNOWN: "how large the tensors are is not in sight",
    Doubt.ONCE_AN_EPOCH: "it pays where epochs are short",
    Doubt.CALLED_BY_NAME: "only the name of this method says what calls it",
    Doubt.HOST_BOUND: "it pays only where the GPU waits for the CPU",
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
    so in this file: what a loop goes over, a call, or the name of a function. `doubts` say why it is a note, unless
    the configuration says how severe it is. `places` are further ones of which the same holds, for the same cause.
    `help` is what to do about it, in one sentence; `message_id` is the id of the message, among those of its rule.
    `within` is the name of the definition in which findings alike are reported as one.
    """

    rule: str
    code: str
    span: Span
    message: str
    frequency: Frequency = Frequency.UNKNOWN
    fix: Fix | None = None
    origin: str = ""
    cause: Span | None = None
    doubts: tuple[Doubt, ...] = ()
    severity: Severity = Severity.WARNING
    places: tuple[Span, ...] = ()
    help: str = ""
    message_id: str = ""
    within: Span | None = None

    @property
    def doubtful(self) -> str:
        """Its doubts in words, as a clause that follows the message; empty for none."""
        return "; ".join(doubt.sentence for doubt in self.doubts)


class Fault(Enum):
    """Whose fault a diagnostic is, for the exit status: the file's (1) or that of torchlint itself (2)."""

    FILE = "file"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something other than a rule's finding that the user has to know about one file.

    `code` is `E902` (cannot be read), `E903` (lacks a function that `hot` names), `E999` (cannot be parsed)
    or `E000` (a rule or torchlint failed); `name` the same in words. `span` is None where no place in the text can be
    named.
    """

    code: str
    name: str
    message: str
    fault: Fault = Fault.FILE
    span: Span | None = None


class Wanted(NamedTuple):
    """What other files could tell: who calls these functions of the file, what these classes are that it imports.

    A function goes by its name, a method is `Class.method`; a class by the qualified name that it has in the file.
    `*.method` are the calls of methods of that name of objects that nobody knows; `torch.compile` is asked for in the
    programs that the file is part of.
    `pins` asks whether any file that works with this one speaks of pinning what loaders give. `returns` are imported
    functions and classes, by qualified names, of which it matters what a call gives. `unused` are definitions of the
    file itself: does anybody bring them? `readers` are imported functions that may do nothing but read a tensor.
    """

    functions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    pins: bool = False
    returns: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return any(self)

    @property
    def of_returns(self) -> Wanted:
        """What is asked of what calls give."""
        return Wanted(returns=self.returns)


NOTHING_WANTED = Wanted()


@dataclass(frozen=True, slots=True)
class Result:
    """What linting one file gave: findings sorted by span, and diagnostics.

    `questions` are those whose answers could change it.
    """

    findings: tuple[Finding, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    questions: Wanted = NOTHING_WANTED

    def at_least(self, severity: Severity) -> Result:
        """The same with those findings that are so severe."""
        if all(finding.severity >= severity for finding in self.findings):
            return self
        return replace(self, findings=tuple(finding for finding in self.findings if finding.severity >= severity))

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
