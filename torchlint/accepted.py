"""Which findings of a run its baselines accept, what of them is gone, and a new baseline of what was found."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from torchlint import baseline
from torchlint.baseline import BaselineError, Known
from torchlint.configfile import ConfigError, reason
from torchlint.report.summary import count
from torchlint.settle import Settled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from torchlint.config import Configs
    from torchlint.discover import Found
    from torchlint.source import SourceFile


class Looked(NamedTuple):
    """What a run looked at: the paths as given, and the files found below them, by their paths."""

    cwd: Path
    paths: Sequence[str]
    files: Mapping[Path, Found]
    configs: Configs

    def knows(self, path: Path, rule: str, broken: frozenset[str]) -> bool:
        """Whether a finding of this rule would have been seen, were it there; not in files that are `broken`."""
        file = self.files.get(path)
        if file is not None:
            return file.shown not in broken and rule in self.configs.for_file(path).settings_for(path).rules
        roots = [os.path.normpath(self.cwd / given) for given in self.paths]
        return not _exists(path) and any(path.is_relative_to(root) for root in roots)


def accepted(settled: Sequence[Settled], looked: Looked) -> tuple[list[Settled], list[str]]:
    """The same without what is in a baseline, and what is to be said of that. Raises `ConfigError`."""
    by_file: dict[Path, list[Settled]] = defaultdict(list)
    of_run = looked.configs.for_directory(looked.cwd).baseline
    if of_run is not None:
        by_file[of_run] = []
    kept = []
    for one in settled:
        file = looked.configs.for_file(looked.cwd / one.after.source.path).baseline
        if file is None:
            kept.append(one)
        else:
            by_file[file].append(one)
    said: list[str] = []
    for file, group in by_file.items():
        remaining, lines = _of_one(file, group, looked)
        kept += remaining
        said += lines
    return kept, said


def _of_one(file: Path, settled: Sequence[Settled], looked: Looked) -> tuple[list[Settled], list[str]]:
    shown = _shown(file, looked.cwd)
    known = _read(file, shown)
    sources = {_path(file, one, looked.cwd): one.after.source for one in settled}
    found = [key for one in settled for key in _known(file, one, looked.cwd)]
    scopes: dict[str, frozenset[str]] = {}

    def scopes_of(path: str) -> frozenset[str]:
        if path not in scopes:
            scopes[path] = baseline.scopes(sources[path])
        return scopes[path]

    are_there = {path: _exists(file.parent / path) for path in {key.path for key in known}}
    covered, left = baseline.match(known, found, are_there.__getitem__, scopes_of)
    verdicts = iter(covered)
    kept = [_without(one, [next(verdicts) for _ in one.after.result.findings]) for one in settled]
    broken = frozenset(one.after.source.path for one in settled if one.after.result.diagnostics)
    gone = sum(number for key, number in left.items() if looked.knows(_place(file, key), key.rule, broken))
    said = []
    if any(covered):
        said.append(f"{count(sum(covered), 'finding')} in {shown} not shown.")
    if gone:
        verb = "is" if gone == 1 else "are"
        said.append(
            f"{count(gone, 'finding')} of {shown} {verb} gone: `--write-baseline {shown}` removes {_IT[gone > 1]}."
        )
    return kept, said


_IT = ("it", "them")


def write(settled: Sequence[Settled], file: Path, looked: Looked) -> str:
    """Write a baseline of all that was found, and say so; what it held of other files and rules stays in it.

    Raises `ConfigError` where there is something else in its place, or where it cannot be written.
    """
    shown = _shown(file, looked.cwd)
    found = Counter(key for one in settled for key in _known(file, one, looked.cwd))
    old: Counter[Known] = Counter()
    if os.path.lexists(file):
        try:
            old = baseline.read(file, shown)
        except BaselineError as error:
            raise ConfigError(f"{error}; remove it, or name another file, to write a baseline") from None
    broken = frozenset(one.after.source.path for one in settled if one.after.result.diagnostics)
    stays = Counter(
        {
            key: number
            for key, number in old.items()
            if not looked.knows(_place(file, key), key.rule, broken) and _exists(_place(file, key))
        }
    )
    try:
        file.write_text(baseline.text(found | stays), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"{shown}: cannot write the baseline: {reason(error)}") from None
    files = len({key.path for key in found})
    return f"Wrote {count(found.total(), 'finding')} of {count(files, 'file')} to {shown}{_change(old, found | stays)}."


def _change(old: Counter[Known], new: Counter[Known]) -> str:
    if not old:
        return ""
    return f" ({(new - old).total()} new, {(old - new).total()} gone)"


def _read(file: Path, shown: str) -> Counter[Known]:
    try:
        return baseline.read(file, shown)
    except BaselineError as error:
        raise ConfigError(str(error)) from None


def _without(one: Settled, covered: Sequence[bool]) -> Settled:
    if not any(covered):
        return one
    result = one.after.result
    findings = tuple(finding for finding, is_covered in zip(result.findings, covered, strict=True) if not is_covered)
    return Settled(one.before, replace(one.after, result=replace(result, findings=findings)))


def _known(file: Path, one: Settled, cwd: Path) -> list[Known]:
    source: SourceFile = one.after.source
    return baseline.known(_path(file, one, cwd), source, one.after.result.findings)


def _path(file: Path, one: Settled, cwd: Path) -> str:
    """The path of a file from the folder of the baseline, with the separators of POSIX."""
    path = os.path.normpath(cwd / one.after.source.path)
    try:
        return os.path.relpath(path, file.parent).replace(os.sep, "/")
    except ValueError:  # on another drive
        return path.replace(os.sep, "/")


def _place(file: Path, key: Known) -> Path:
    return file.parent / os.path.normpath(file.parent / key.path)


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 -- a path in a baseline may be none, for which `Path.exists` raises


def _shown(file: Path, cwd: Path) -> str:
    return (file.relative_to(cwd) if file.is_relative_to(cwd) else file).as_posix()
