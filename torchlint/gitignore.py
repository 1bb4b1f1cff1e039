"""What git ignores: .gitignore files up to the repository's root, .git/info/exclude, and ripgrep's .ignore."""

# Paths are strings here, as in `torchlint.discover`.
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import codecs
import errno
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from torchlint.globs import LONGEST_PATTERN, Globs, check_count, is_literal, is_literal_path, translate
from torchlint.regular import read

NAMES = (".git", ".gitignore", ".ignore")
MOST_BYTES = 1_000_000
MOST_TURNS = 1_000
_LONGEST_PATH = 10_000


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one file; they are about paths from the character `start` on.

    `for_files` and `for_folders` are the patterns in the order in which they decide, the last line first, those next
    to each other that decide alike as one. A file that is not heard has a `problem`: its path, and why.
    """

    start: int
    for_files: tuple[tuple[Globs, bool], ...]
    for_folders: tuple[tuple[Globs, bool], ...]
    problem: tuple[str, str] | None = None

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Whether the last line that matches ignores this path or takes it back; `None` if none matches."""
        relative = path[self.start :]
        for globs, is_ignored in self.for_folders if is_folder else self.for_files:
            if globs.match(relative, name):
                return is_ignored
        return None


@dataclass(frozen=True, slots=True)
class Ignores:
    """The ignore files that hold in one folder, the nearest first. Outside of a repository .gitignore means nothing.

    Of the kinds `.ignore` wins over `.gitignore`, that over `info/exclude`, however near the others are: the order
    of ripgrep and ruff.
    """

    ignore: tuple[IgnoreFile, ...] = ()
    gitignore: tuple[IgnoreFile, ...] = ()
    exclude: tuple[IgnoreFile, ...] = ()
    in_repository: bool = False

    @classmethod
    def above(cls, folder: str) -> Ignores:
        """Those that hold for a folder itself."""
        ancestors = []
        ancestor = folder
        while (parent := os.path.dirname(ancestor)) != ancestor:
            ancestors.append(parent)
            ancestor = parent
        ignores = cls()
        for ancestor in reversed(ancestors):
            names = [name for name in NAMES if os.path.lexists(os.path.join(ancestor, name))]
            ignores = ignores.entering(ancestor, names)
        return ignores

    def entering(self, folder: str, names: Collection[str]) -> Ignores:
        """Those that hold for what is in a folder below, which has entries of these names."""
        ignores = self
        if ".git" in names:
            exclude = _load(os.path.join(_git_folder(folder), "info", "exclude"), folder)
            ignores = replace(ignores, gitignore=(), exclude=exclude, in_repository=True)
        if ".gitignore" in names and ignores.in_repository:
            found = _load(os.path.join(folder, ".gitignore"), folder)
            ignores = replace(ignores, gitignore=found + ignores.gitignore)
        if ".ignore" in names:
            ignores = replace(ignores, ignore=_load(os.path.join(folder, ".ignore"), folder) + ignores.ignore)
        return ignores

    @property
    def problems(self) -> list[tuple[str, str]]:
        """The files that are not heard, and why."""
        files = (*self.ignore, *self.gitignore, *self.exclude)
        return [file.problem for file in files if file.problem is not None]

    def match(self, path: str, name: str, *, is_folder: bool) -> bool:
        """Whether an absolute path with this last part is ignored itself, whatever holds for the folder it is in."""
        for files in (self.ignore, self.gitignore, self.exclude):
            for file in files:
                verdict = file.verdict(path, name, is_folder=is_folder)
                if verdict is not None:
                    return verdict
        return False


def _git_folder(folder: str) -> str:
    """Where the repository of a folder keeps its own files: not in `.git` if that is the file of a work tree."""
    git = os.path.join(folder, ".git")
    with suppress(OSError, ValueError):
        git = os.path.join(folder, os.fsdecode(read(git, _LONGEST_PATH)).removeprefix("gitdir:").strip())
        git = os.path.join(git, os.fsdecode(read(os.path.join(git, "commondir"), _LONGEST_PATH)).strip())
    return git


def _load(file: str, folder: str) -> tuple[IgnoreFile, ...]:
    """The patterns of a file as a tuple of one; empty if it has none, or is no file that can be read."""
    start = len(os.path.join(folder, ""))
    try:
        data = read(file, MOST_BYTES)
    except OSError as error:
        return (IgnoreFile(start, (), (), (file, str(error.strerror))),) if error.errno == errno.EFBIG else ()
    text = data.removeprefix(codecs.BOM_UTF8).decode(errors="surrogateescape")
    lines = [line for row in text.split("\n") if (line := _parse(row)) is not None]
    if not lines:
        return ()
    lines.reverse()
    try:
        for_files = _decisions([line for line in lines if not line.only_folders])
        return (IgnoreFile(start, for_files, _decisions(lines)),)
    except ValueError as error:
        return (IgnoreFile(start, (), (), (file, f"{error}; the file counts for nothing")),)


class _Line(NamedTuple):
    pattern: str
    is_ignored: bool
    only_folders: bool
    regex: str


def _parse(text: str) -> _Line | None:
    """One line by the rules of gitignore(5); `None` if it has no pattern, or one that git passes over."""
    pattern = text.rstrip("\r\n")
    if pattern.startswith("#"):
        return None
    stripped = pattern.rstrip()
    pattern = pattern[: len(stripped) + stripped.endswith("\\")]  # a blank behind a backslash stays
    is_ignored = not pattern.startswith("!")
    pattern = pattern[not is_ignored :]
    only_folders = pattern.endswith("/")
    pattern = pattern[: -1 if only_folders else None]
    if not pattern or len(pattern) > LONGEST_PATTERN:  # no path is as long
        return None
    try:
        regex = "" if is_literal_path(pattern) else translate(pattern.removeprefix("/"), as_git=True)
    except ValueError:
        return None
    return _Line(pattern.removeprefix("**/"), is_ignored, only_folders, regex)


def _decisions(lines: Iterable[_Line]) -> tuple[tuple[Globs, bool], ...]:
    lines = list(lines)
    check_count(line.pattern for line in lines)
    decisions: list[tuple[Globs, bool]] = []
    for is_ignored, run in groupby(lines, key=lambda line: line.is_ignored):
        if len(decisions) > MOST_TURNS:
            raise ValueError(f"lines with and without `!` alternate more than {MOST_TURNS} times")
        names, paths, name_regexes, path_regexes = [], [], [], []
        for line in run:
            if is_literal(line.pattern):
                names.append(line.pattern)
            elif not line.regex:
                paths.append(line.pattern.removeprefix("/"))
            elif "/" in line.pattern:
                path_regexes.append(line.regex)
            else:
                name_regexes.append(line.regex)
        decisions.append((Globs.of(names, paths, name_regexes, path_regexes), is_ignored))
    return tuple(decisions)
