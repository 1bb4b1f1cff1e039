"""What git ignores: .gitignore files up to the repository's root, .git/info/exclude, and ripgrep's .ignore."""

# Paths are strings here, as in `torchlint.discover`.
# ruff: noqa: PTH118, PTH120, PTH123

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from torchlint.globs import Globs, is_literal, translate

NAMES = (".git", ".gitignore", ".ignore")


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one file; they are about paths from the character `start` on.

    `for_files` and `for_folders` are the patterns in the order in which they decide, the last line first, those next
    to each other that decide alike as one.
    """

    start: int
    for_files: tuple[tuple[Globs, bool], ...]
    for_folders: tuple[tuple[Globs, bool], ...]

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
    try:
        with open(git, encoding="utf-8") as file:
            git = os.path.join(folder, file.read().removeprefix("gitdir:").strip())
        with open(os.path.join(git, "commondir"), encoding="utf-8") as file:
            git = os.path.join(git, file.read().strip())
    except (OSError, UnicodeDecodeError):
        pass
    return git


def _load(file: str, folder: str) -> tuple[IgnoreFile, ...]:
    """The patterns of a file as a tuple of one; empty if it has none or cannot be read."""
    try:
        with open(file, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as stream:
            lines = [line for text in stream if (line := _parse(text)) is not None]
    except OSError:
        return ()
    if not lines:
        return ()
    lines.reverse()
    for_files = [line for line in lines if not line.only_folders]
    return (IgnoreFile(len(os.path.join(folder, "")), _decisions(for_files), _decisions(lines)),)


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
    pattern = re.sub(r"(?<!\\)\s+$", "", pattern)
    is_ignored = not pattern.startswith("!")
    pattern = pattern[not is_ignored :]
    only_folders = pattern.endswith("/")
    pattern = pattern[: -1 if only_folders else None]
    if not pattern:
        return None
    try:
        regex = translate(pattern.removeprefix("/"), as_git=True)
    except ValueError:
        return None
    return _Line(pattern.removeprefix("**/"), is_ignored, only_folders, regex)


def _decisions(lines: Iterable[_Line]) -> tuple[tuple[Globs, bool], ...]:
    decisions = []
    for is_ignored, run in groupby(lines, key=lambda line: line.is_ignored):
        names, name_regexes, path_regexes = [], [], []
        for line in run:
            if is_literal(line.pattern):
                names.append(line.pattern)
            elif "/" in line.pattern:
                path_regexes.append(line.regex)
            else:
                name_regexes.append(line.regex)
        decisions.append((Globs.of(names, name_regexes, path_regexes), is_ignored))
    return tuple(decisions)
