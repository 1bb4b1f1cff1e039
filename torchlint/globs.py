"""Path patterns as regular expressions, as ruff reads them in a configuration and as git in .gitignore."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Glob(NamedTuple):
    """A pattern, and the folder (absolute, POSIX separators) that it is relative to."""

    pattern: str
    folder: str


@dataclass(frozen=True, slots=True)
class Globs:
    """Several patterns as one question.

    `names` are the bare patterns without a wildcard, which are most of them; `name` and `path` the other ones,
    against the last part of a path and against all of it.
    """

    names: frozenset[str]
    name: re.Pattern[str] | None
    path: re.Pattern[str] | None

    @classmethod
    def compile(cls, globs: Iterable[Glob]) -> Globs:
        """Patterns as ruff reads them. Raises `ValueError`, whose message names the pattern that is none."""
        names, bare, paths = [], [], []
        for glob in globs:
            if is_literal(glob.pattern):
                names.append(glob.pattern)
                continue
            if "/" not in glob.pattern:
                bare.append(translate(glob.pattern))
            paths.append(_anchored(glob))
        return cls.of(names, bare, paths)

    @classmethod
    def of(cls, names: Iterable[str], name_regexes: Iterable[str], path_regexes: Iterable[str]) -> Globs:
        """Any of these names, or what any of these regular expressions match in full."""
        return cls(frozenset(names), _any_of(name_regexes), _any_of(path_regexes))

    def match(self, path: str, name: str) -> bool:
        """Whether a pattern matches `path`, whose last part is `name`."""
        return (
            name in self.names
            or (self.name is not None and self.name.fullmatch(name) is not None)
            or (self.path is not None and self.path.fullmatch(posix(path)) is not None)
        )


def posix(path: str) -> str:
    """`path` with the separators that patterns use."""
    return path if os.sep == "/" else path.replace(os.sep, "/")


def is_literal(pattern: str) -> bool:
    """Whether a pattern is a name that stands for itself."""
    return not any(letter in pattern for letter in "/*?[{}\\")


def _any_of(regexes: Iterable[str]) -> re.Pattern[str] | None:
    whole = "|".join(regexes)
    return re.compile(whole, re.DOTALL) if whole else None


def _anchored(glob: Glob) -> str:
    """The regular expression of the pattern from its folder; the folder's own characters mean themselves."""
    whole = posixpath.normpath(posixpath.join(glob.folder, glob.pattern))
    folder = glob.folder.rstrip("/") + "/"
    if whole.startswith(folder):
        return re.escape(folder) + translate(whole[len(folder) :])
    return translate(whole)


_PART = re.compile(r"^\*\*/|/\*\*/|/\*\*$|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", re.DOTALL)
_RUFF = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "/.*", "*": ".*", "?": ".", "{": "(?:", "}": ")"}
_GIT = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "/.+", "*": "[^/]*", "?": "[^/]"}


def translate(pattern: str, *, as_git: bool = False) -> str:
    """The regular expression of a glob. Raises `ValueError`.

    `**` between slashes stands for any number of folders, none included; `{a,b}` for either; `[!a-z]` for a
    character that is not in the range; a backslash takes a character's meaning away. As in ruff `*` and `?` match a
    slash too. `as_git` they do not, and braces mean themselves.
    """
    if pattern == "**":
        return ".*"
    meanings = _GIT if as_git else _RUFF
    regex = []
    braces = 0
    for part in _PART.findall(re.sub(r"(?:/\*\*)+(?=/|$)", "/**", pattern)):
        if not as_git:
            braces += (part == "{") - (part == "}")
        if braces < 0:
            break
        if part in meanings:
            regex.append(meanings[part])
        elif part[0] == "*":
            regex.append(meanings["*"])
        elif part[0] == "[":
            regex.append(_character_class(part, pattern, as_git=as_git))
        elif part == "," and braces:
            regex.append("|")
        else:
            regex.append(re.escape(part[1:] if part[0] == "\\" and len(part) > 1 else part))
    if braces:
        raise ValueError(f"`{pattern}` is not a pattern: a brace without its other half")
    return "".join(regex)


def _character_class(part: str, pattern: str, *, as_git: bool) -> str:
    if part == "[":
        raise ValueError(f"`{pattern}` is not a pattern: a bracket that nothing closes")
    inverted = part[1] in "!^"
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", part[1 + inverted : -1])
    regex = f"{'(?!/)' * as_git}[{'^' * inverted}{members}]"
    try:
        re.compile(regex)
    except re.error:
        raise ValueError(f"`{pattern}` is not a pattern: `{part}` is not a range of characters") from None
    return regex
