"""Which findings are new since a revision: those on lines that were changed, and those that a change elsewhere made."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchlint import baseline, revision
from torchlint.configfile import ConfigError, reason
from torchlint.discover import SUFFIXES, discover
from torchlint.finding import Span
from torchlint.progress import Progress
from torchlint.regular import MOST_BYTES
from torchlint.report.diff import common
from torchlint.report.summary import count
from torchlint.revision import RevisionError
from torchlint.settle import Settled
from torchlint.source import DecodeError, SourceFile
from torchlint.sweep import Means, Sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchlint.baseline import Known
    from torchlint.config import Configs
    from torchlint.finding import Finding
    from torchlint.revision import Blob, Revision


# Of lines alike that are compared; a file of which every second line changed has a hundred thousand.
_MOST_PAIRS = 300_000


class Run(NamedTuple):
    """What was linted, and what it may take to lint what was there before."""

    cwd: Path
    paths: Sequence[str]
    configs: Configs
    means: Means


def new_since(settled: Sequence[Settled], name: str, run: Run) -> tuple[list[Settled], list[str]]:
    """The same without what was there at the revision `name`, and what is to be said of that. Raises `ConfigError`."""
    try:
        there = revision.find(run.cwd, name)
        blobs = there.files()
        files = _compared(settled, there, blobs, run.cwd)
        has_lost = any(path.endswith(SUFFIXES) and not os.path.lexists(there.root / path) for path in blobs)
        old: Counter[Known] = Counter()
        if any(file.is_open(has_lost=has_lost) for file in files):
            old = _found_at(there, blobs, run)
    except RevisionError as error:
        raise ConfigError(f"--diff-base {name}: {error}") from None
    except OSError as error:
        raise ConfigError(f"--diff-base {name}: cannot write what was there: {reason(error)}") from None
    sources = {file.path: file.one.after.source for file in files}
    covered, _ = baseline.match(
        old,
        [key for file in files for key in baseline.known(file.path, file.one.after.source, file.findings)],
        lambda path: os.path.lexists(there.root / path),
        lambda path: baseline.scopes(sources[path]),
    )
    verdicts = iter(covered)
    kept = [file.without([next(verdicts) for _ in file.findings]) for file in files]
    hidden = len(covered) - sum(len(one.after.result.findings) for one in kept)
    were = "it was" if hidden == 1 else "they were"
    said = f"{count(hidden, 'finding')} not shown: {were} there at {name} ({there.commit[:12]})."
    return kept, [said] if hidden else []


@dataclass(frozen=True, slots=True)
class _Compared:
    """A file, its path from the root of the repository, and the rows that changed; None where it was not there."""

    one: Settled
    path: str
    rows: frozenset[int] | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.one.after.result.findings

    def is_on_changed_row(self, finding: Finding) -> bool:
        """Whether one of its places is. Of a notebook the rows are those of its JSON."""
        for span in (finding.span, *finding.places):
            source, stored, _ = self.one.after.source.stored(span)
            first, last = source.position(stored.start)[0], source.position(stored.end)[0]
            if self.rows and not self.rows.isdisjoint(range(first, last + 1)):
                return True
        return False

    def is_open(self, *, has_lost: bool) -> bool:
        """Whether what was found there has to be known: a file may be one of those that the tree `has_lost`."""
        if self.rows is None:
            return has_lost and bool(self.findings)
        return not all(map(self.is_on_changed_row, self.findings))

    def without(self, covered: Sequence[bool]) -> Settled:
        """The same without the findings that are covered, and on no changed row."""
        findings = tuple(
            finding
            for finding, is_covered in zip(self.findings, covered, strict=True)
            if not is_covered or self.is_on_changed_row(finding)
        )
        if findings == self.findings:
            return self.one
        after = self.one.after
        return Settled(self.one.before, replace(after, result=replace(after.result, findings=findings)))


def _compared(settled: Sequence[Settled], there: Revision, blobs: Mapping[str, Blob], cwd: Path) -> list[_Compared]:
    """Each file with the rows in which it differs from what was there."""
    paths = [_from_root(cwd / one.after.source.path, there.root) for one in settled]
    readable = [path for path in paths if path in blobs and blobs[path].size <= MOST_BYTES]
    contents = dict(zip(readable, there.contents([blobs[path] for path in readable]), strict=True))
    return [
        _Compared(one, path, changed_rows(one.after.source, contents.get(path, b"")) if path in blobs else None)
        for one, path in zip(settled, paths, strict=True)
    ]


def _from_root(path: Path, root: Path) -> str:
    """Of a file outside of the repository its whole path, which no file in it has."""
    path = Path(os.path.normpath(path))
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def changed_rows(source: SourceFile, data: bytes) -> frozenset[int]:
    """The rows of the file that are not as they were, from 1, whatever ends a line."""
    new = _rows(source)
    try:
        old = _rows(SourceFile.from_bytes(source.path, data))
    except DecodeError:
        return frozenset(range(1, len(new) + 1))
    head = common(old, new)
    old, new = old[head:], new[head:]
    tail = common(old[::-1], new[::-1])
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    return frozenset(head + row + 1 for row in _changed(old, new))


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[int]:
    """The indices of new lines; where comparing would take long, of those that there are more of than there were."""
    left = Counter(old)
    if sum(left[line] for line in new) <= _MOST_PAIRS:
        for tag, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                yield from range(start, end)
        return
    for index, line in enumerate(new):
        left[line] -= 1
        if left[line] < 0:
            yield index


def _rows(source: SourceFile) -> list[str]:
    stored = source.stored(Span(0, 0)).source if source.notebook is None or source.text else source
    return _NEWLINE.split(stored.text)


_NEWLINE = re.compile(r"\r\n|\r|\n")


def _found_at(there: Revision, blobs: Mapping[str, Blob], run: Run) -> Counter[Known]:
    """What is found in a copy of the code as it was, under today's configuration, so that code alone makes news."""
    paths = [os.path.normpath(run.cwd / path) for path in run.paths]
    named = {_from_root(Path(path), there.root) for path in paths}
    wanted = [
        path
        for path, blob in sorted(blobs.items())
        if blob.size <= MOST_BYTES and (path.endswith(SUFFIXES) or path in named)
    ]
    found: Counter[Known] = Counter()
    with tempfile.TemporaryDirectory(prefix="torchlint-") as folder:
        copy = Path(os.path.realpath(folder))
        for path, data in zip(wanted, there.contents([blobs[path] for path in wanted]), strict=True):
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_bytes(data)
        cwd = copy / _from_root(run.cwd, there.root)
        cwd.mkdir(parents=True, exist_ok=True)
        configs = run.configs.moved(there.root, copy)
        copied = [str(copy / _from_root(Path(path), there.root)) for path in paths if _is_below(path, there.root)]
        files, _ = discover(copied, configs, cwd)
        for swept in Sweep(files, configs, cwd, run.means, Progress(len(files), None)):
            if swept.result.findings:
                source = SourceFile.from_bytes(swept.file.shown, swept.data)
                found.update(baseline.known(_from_root(swept.file.path, copy), source, swept.result.findings))
    return found


def _is_below(path: str, root: Path) -> bool:
    return Path(path).is_relative_to(root)
