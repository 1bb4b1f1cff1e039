"""Lints the files of one repository from memory: no path of theirs is opened, and nothing is remembered."""

from __future__ import annotations

import gc
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from torchlint.config import Config, Configs, Overrides
from torchlint.discover import SUFFIXES, Found, is_excluded
from torchlint.engine import names_torch
from torchlint.facts import Answers
from torchlint.finding import Fault, Finding, Frequency, Result
from torchlint.pool import Job, Outcome, Outcomes, outcome
from torchlint.progress import Progress
from torchlint.role import is_of_tests
from torchlint.source import Place, SourceFile
from torchlint.sweep import Means, Sweep

# Where files are said to be: no folder, and no name that an import could have.
_ROOT = Path("/-")
_SEPARATORS = re.compile(r"[/\\]+")
_BYTES_BETWEEN_COLLECTIONS = 8 * 1024 * 1024


class Status(Enum):
    """What became of a file. The value is what stands in the column `status`."""

    CHECKED = "checked"
    """It was linted; `findings` has all that was found."""
    SKIPPED = "skipped"
    """`check` of its repository would not lint it; `message` says why."""
    UNREADABLE = "unreadable"
    """It is no text in the encoding that it declares, too large, or has no content."""
    SYNTAX_ERROR = "syntax-error"
    """It cannot be parsed."""
    DUPLICATE = "duplicate"
    """Another row of its repository in this batch has its path, and was checked."""
    FAILED = "failed"
    """torchlint has a defect; what else was found is there."""
    TIMEOUT = "timeout"
    """A step of it took longer than is allowed, and was ended."""
    OUT_OF_MEMORY = "out-of-memory"
    """It took more memory than is allowed."""
    CRASHED = "crashed"
    """The process that linted it died."""


class Text(NamedTuple):
    """A file: its path as the row has it, and what it holds."""

    path: str
    data: bytes


class Step(Enum):
    """What is done with a file: it is linted, or its text is looked at for what files are to each other."""

    LINT = "lint"
    LOOK = "look"


class Issue(NamedTuple):
    """A finding as the column `findings` has it. Rows and columns count from 1, columns in code points."""

    code: str
    name: str
    severity: str
    message: str
    help: str
    start: Place
    end: Place
    frequency: str | None
    called_from: str | None
    doubts: tuple[str, ...]
    fix: str | None
    places: tuple[tuple[Place, Place], ...]


class Checked(NamedTuple):
    """What is said of a file."""

    status: Status
    message: str | None = None
    issues: tuple[Issue, ...] = ()


class Watch(NamedTuple):
    """Who is told what is under way, by the number of the file, and each outcome by a name for its job.

    `lost` are files of which no more is to be asked, `known` the outcomes of jobs that were done before.
    """

    begins: Callable[[int, Step], None]
    keeps: Callable[[bytes, Outcome], None]
    lost: frozenset[int] = frozenset()
    known: Mapping[bytes, Outcome] = MappingProxyType({})


def lint(files: Mapping[int, Text], overrides: Overrides, watch: Watch) -> dict[int, Checked]:
    """What is said of each file that is not lost, as `check --isolated` of a folder that holds them all says it."""
    configs = Configs(replace(overrides, isolated=True), _ROOT)
    config = configs.for_directory(_ROOT)
    checked: dict[int, Checked] = {}
    texts: dict[Path, tuple[int, bytes]] = {}
    found: list[Found] = []
    for number, text in files.items():
        shown = within(text.path)
        path = _ROOT / shown
        if not shown.endswith(SUFFIXES):
            checked[number] = Checked(Status.SKIPPED, "by its name, neither Python nor a notebook")
        elif is_excluded(str(path), configs):
            checked[number] = Checked(Status.SKIPPED, "in a folder that is not checked, such as `build`")
        elif path in texts:
            checked[number] = Checked(Status.DUPLICATE, "another row of the repository has this path")
        else:
            texts[path] = number, text.data
            found.append(Found(path, shown))
    found.sort(key=lambda file: file.shown)
    numbers = {file.shown: texts[file.path][0] for file in found}
    work = _Work(numbers, watch)
    means = Means(processes=1, instead=_Looks(texts, watch), work=work.outcomes)
    results = {swept.file.shown: swept for swept in Sweep(found, configs, _ROOT, means, Progress(0, None))}
    for file in found:
        number, data = texts[file.path]
        if file.shown in results:
            checked[number] = _said(file, data, results[file.shown].result, config)
        elif file.shown not in work.linted:
            checked[number] = Checked(Status.SKIPPED, _why_skipped(data))
        elif is_of_tests(config.role(file.path), partial(data.decode, errors="replace")):
            checked[number] = Checked(Status.SKIPPED, "it is one of tests")
        else:
            checked[number] = Checked(Status.CHECKED)
    return checked


def within(path: str) -> str:
    """A path as one below a folder: whatever leads out of it is left out."""
    return "/".join(part for part in _SEPARATORS.split(path) if part not in ("", ".", ".."))


class _Looks(Mapping[Path, bytes]):
    """What files hold, each look at one told."""

    def __init__(self, texts: Mapping[Path, tuple[int, bytes]], watch: Watch) -> None:
        self._texts = texts
        self._begins = watch.begins

    def __getitem__(self, path: Path) -> bytes:
        number, data = self._texts[path]
        self._begins(number, Step.LOOK)
        return data

    def __contains__(self, path: object) -> bool:
        return path in self._texts

    def __iter__(self) -> Iterator[Path]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class _Work:
    """Does jobs one by one, each told before it begins; what was done before, or is lost, is not begun."""

    def __init__(self, numbers: Mapping[str, int], watch: Watch) -> None:
        self.linted: set[str] = set()
        self._numbers = numbers
        self._watch = watch
        self._bytes = 0

    def outcomes(self, jobs: Iterable[Job]) -> Outcomes:
        """Each job with its outcome."""
        for job in jobs:
            if job.lints:
                self.linted.add(job.shown)
            yield job, self._outcome(job)

    def _outcome(self, job: Job) -> Outcome:
        number, watch = self._numbers[job.shown], self._watch
        if number in watch.lost:
            return Outcome(Result(), answers=None if job.lints else Answers(asked=job.asked))
        name = hashlib.sha256(repr(job._replace(data=b"")).encode(errors="backslashreplace")).digest()
        done = watch.known.get(name)
        if done is None:
            self._collect(len(job.data))
            watch.begins(number, Step.LINT)
            done = outcome(job)
            watch.keeps(name, done)
        return done

    def _collect(self, size: int) -> None:
        """The collector is off, as in `pool`."""
        self._bytes += size
        if self._bytes > _BYTES_BETWEEN_COLLECTIONS:
            gc.collect()
            self._bytes = size


def _why_skipped(data: bytes) -> str:
    return "it has nothing that a rule looks at" if names_torch(data) else "it does not name torch"


def _said(file: Found, data: bytes, result: Result, config: Config) -> Checked:
    """What the row of a file with something to say is."""
    issues: tuple[Issue, ...] = ()
    if findings := result.at_least(config.level).findings:
        source = SourceFile.from_bytes(file.shown, data)
        issues = tuple(_issue(source, finding) for finding in sorted(findings, key=_place))
    faults = sorted(result.diagnostics, key=lambda one: one.fault is not Fault.INTERNAL)
    if not faults:
        return Checked(Status.CHECKED, issues=issues)
    return Checked(_STATUSES.get(faults[0].code, Status.CHECKED), faults[0].message, issues)


# By the code of a diagnostic. What a comment gets wrong (`hot` of no function) does not keep a file from being checked.
_STATUSES = {"E000": Status.FAILED, "E902": Status.UNREADABLE, "E999": Status.SYNTAX_ERROR}


def _place(finding: Finding) -> tuple[int, int, str]:
    return finding.span.start, finding.span.end, finding.code


def _issue(source: SourceFile, finding: Finding) -> Issue:
    fix = finding.fix
    return Issue(
        finding.code,
        finding.rule,
        str(finding.severity),
        finding.message,
        finding.help or (fix.title if fix is not None else ""),
        source.place(finding.span.start),
        source.place(finding.span.end),
        None if finding.frequency is Frequency.UNKNOWN else str(finding.frequency),
        finding.origin or None,
        tuple(doubt.value for doubt in finding.doubts),
        None if fix is None else str(fix.applicability),
        tuple((source.place(span.start), source.place(span.end)) for span in finding.places),
    )
