"""Path patterns as regular expressions, as ruff reads them in a configuration and as git in .gitignore."""

from __future__ import annotations

import itertools
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


LONGEST_PATTERN = 4_096
# Up to here a second or two prepares them, and some milliseconds match a path.
MOST_WILDCARDS = 2_000
_LONGEST_REGEX = 300_000


@dataclass(frozen=True, slots=True)
class Globs:
    """Several patterns as one question, answered in a time that goes by the length of the path.

    `names` are the bare patterns without a wildcard, which are most of them, `paths` those with a slash; `name` and
    `path` the other ones, against the last part of a path and against all of it.
    """

    names: frozenset[str]
    paths: frozenset[str]
    name: re.Pattern[str] | None
    path: re.Pattern[str] | None

    @classmethod
    def compile(cls, globs: Iterable[Glob]) -> Globs:
        """Patterns as ruff reads them. Raises `ValueError`, whose message names the pattern that is none."""
        globs = list(globs)
        check_count(glob.pattern for glob in globs)
        names, bare, literal, paths = [], [], [], []
        for glob in globs:
            check(glob.pattern)
            if is_literal(glob.pattern):
                names.append(glob.pattern)
                continue
            if "/" not in glob.pattern:
                bare.append(translate(glob.pattern))
            elif is_literal_path(glob.pattern):
                literal.append(_joined(glob))
                continue
            paths.append(_anchored(glob))
        return cls.of(names, literal, bare, paths)

    @classmethod
    def of(
        cls, names: Iterable[str], paths: Iterable[str], name_regexes: Iterable[str], path_regexes: Iterable[str]
    ) -> Globs:
        """Any of these names or paths, or what any of these regular expressions match in full.

        Raises `ValueError` where there are too many of the latter.
        """
        return cls(frozenset(names), frozenset(paths), _any_of(name_regexes), _any_of(path_regexes))

    def match(self, path: str, name: str) -> bool:
        """Whether a pattern matches `path`, whose last part is `name`."""
        return (
            name in self.names
            or (self.name is not None and self.name.fullmatch(name) is not None)
            or (bool(self.paths) and posix(path) in self.paths)
            or (self.path is not None and self.path.fullmatch(posix(path)) is not None)
        )


def posix(path: str) -> str:
    """`path` with the separators that patterns use."""
    return path if os.sep == "/" else path.replace(os.sep, "/")


def is_literal(pattern: str) -> bool:
    """Whether a pattern is a name that stands for itself."""
    return not any(letter in pattern for letter in "/*?[{}\\")


def is_literal_path(pattern: str) -> bool:
    """Whether a pattern is a path that stands for itself."""
    return not any(letter in pattern for letter in "*?[{}\\")


def check_count(patterns: Iterable[str]) -> None:
    """Raises `ValueError` where more of the patterns have a wildcard than are taken."""
    count = sum(not is_literal_path(pattern) for pattern in patterns)
    if count > MOST_WILDCARDS:
        raise ValueError(f"there are {count} patterns with wildcards; torchlint takes up to {MOST_WILDCARDS}")


def check(pattern: str) -> None:
    """Raises `ValueError` for what is no pattern, as ruff reads it; the message says why."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"`{pattern[:40]}…` has {len(pattern)} characters; a pattern may have {LONGEST_PATTERN}")
    if not is_literal_path(pattern):
        translate(pattern)


def _any_of(regexes: Iterable[str]) -> re.Pattern[str] | None:
    whole = "|".join(regexes)
    if len(whole) > _LONGEST_REGEX:
        raise ValueError("the patterns with wildcards are too long together; write fewer, or shorter ones")
    return re.compile(whole, re.DOTALL) if whole else None


def _joined(glob: Glob) -> str:
    return posixpath.normpath(posixpath.join(glob.folder, glob.pattern))


def _anchored(glob: Glob) -> str:
    """The regular expression of the pattern from its folder; the folder's own characters mean themselves."""
    whole = _joined(glob)
    folder = glob.folder.rstrip("/") + "/"
    if whole.startswith(folder):
        return re.escape(folder) + translate(whole[len(folder) :])
    return translate(whole)


# A regular expression with several stars tries each place for the first with each for the second, and so on. Here no
# choice but the last is ever made again: the first place where what follows a star fits is as good as any later one,
# since the next star passes over what is between them. What stands between two stars is of one length, so braces are
# expanded first.

_PART = re.compile(r"^\*\*/|/\*\*/|/\*\*$|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", re.DOTALL)
_MOST_PARTS = 20_000
_DEEPEST_BRACES = 10
_groups = itertools.count()


def translate(pattern: str, *, as_git: bool = False) -> str:
    """The regular expression of a glob, which takes no longer than length times length. Raises `ValueError`.

    `**` between slashes stands for any number of folders, none included; `{a,b}` for either; `[!a-z]` for a
    character that is not in the range; a backslash takes a character's meaning away. As in ruff `*` and `?` match a
    slash too. `as_git` they do not, and braces mean themselves.
    """
    if pattern == "**":
        return ".*"
    parts = _PART.findall(re.sub(r"(?:/\*\*)+(?=/|$)", "/**", pattern))
    if as_git:
        return _as_git([_letter(part, pattern, as_git=True) for part in parts])
    choices = _spelt_out([_letter(part, pattern, as_git=False) for part in parts], pattern)
    whole = "|".join(map(_as_ruff, choices))
    return f"(?:{whole})" if len(choices) > 1 else whole


def _letter(part: str, pattern: str, *, as_git: bool) -> str:
    """A part as the regular expression of one character, or as it is if it has another meaning."""
    if part in _DEEP or part[0] == "*" or (not as_git and part in _BRACES):
        return part
    if part == "?":
        return "[^/]" if as_git else "."
    if part[0] == "[":
        return _character_class(part, pattern, as_git=as_git)
    if part == "\\,":
        return "[,]"  # what `re.escape` gives would divide braces
    return re.escape(part[1:] if part[0] == "\\" and len(part) > 1 else part)


_DEEP = ("**/", "/**/", "/**")
_BRACES = ("{", ",", "}")


def _spelt_out(parts: list[str], pattern: str) -> list[list[str]]:
    """The sequences of parts that a pattern with braces stands for."""
    # Of each open brace, what its branches that have ended stand for, and the one that has not; outermost first.
    ended: list[list[list[str]]] = []
    open_: list[list[list[str]]] = [[[]]]
    for part in parts:
        if part == "{":
            ended.append([])
            open_.append([[]])
        elif part == "," and ended:
            ended[-1] += open_[-1]
            open_[-1] = [[]]
        elif part == "}":
            if not ended:
                raise ValueError(f"`{pattern}` is not a pattern: a brace without its other half")
            choices = ended.pop() + open_.pop()
            if len(choices) * len(open_[-1]) * len(parts) > _MOST_PARTS:
                raise ValueError(f"`{pattern[:40]}…` stands for too many patterns; write fewer braces")
            open_[-1] = [[*before, *choice] for before in open_[-1] for choice in choices]
        else:
            for each in open_[-1]:
                each.append(part)
        if len(ended) > _DEEPEST_BRACES:
            raise ValueError(f"`{pattern[:40]}…`: braces nest more than {_DEEPEST_BRACES} deep")
    if ended:
        raise ValueError(f"`{pattern}` is not a pattern: a brace without its other half")
    return open_[0]


def _as_ruff(parts: list[str]) -> str:
    """The regular expression of a sequence in which a star matches slashes too."""
    pieces = [["", ""]]  # what may be passed over, and what follows
    for part in parts:
        if part not in _DEEP and part[0] != "*":
            pieces[-1][1] += part
            continue
        if part[0] == "/":
            pieces[-1][1] += "/"
        gap = "**/" if part.endswith("**/") else "*"
        if len(pieces) > 1 and not pieces[-1][1]:
            pieces[-1][0] = gap
        else:
            pieces.append([gap, ""])
    (_, first), *between = pieces[:-1] or [pieces[0]]
    found = first + "".join(_once(_FIRST_PLACE[gap] + text) for gap, text in between)
    return found + (_ANY_PLACE[pieces[-1][0]] + pieces[-1][1] if len(pieces) > 1 else "")


_FIRST_PLACE = {"*": ".*?", "**/": "(?:.*?/)??"}
_ANY_PLACE = {"*": ".*", "**/": "(?:.*/)?"}


def _as_git(parts: list[str]) -> str:
    """The regular expression of a sequence in which a star stays within one part of the path."""
    blocks = [""]  # between two `**`
    component = [""]  # between two stars
    for part in parts:
        if part[0] == "*" and part not in _DEEP:
            component.append("")
        elif part in ("/", *_DEEP):
            blocks[-1] += _component(component) + ("" if part == "**/" else "/")
            component = [""]
            if part.endswith("**/"):
                blocks.append("")
            elif part == "/**":
                blocks[-1] += ".+"
        else:
            component[-1] += part
    blocks[-1] += _component(component)
    first, *between = blocks[:-1] or blocks
    folders = "(?:[^/]*/)*?"
    found = first + "".join(_once(folders + block) for block in between)
    return found + (folders + blocks[-1] if len(blocks) > 1 else "")


def _component(texts: list[str]) -> str:
    first, *between = texts[:-1] or texts
    found = first + "".join(_once("[^/]*?" + text) for text in between)
    return found + ("[^/]*" + texts[-1] if len(texts) > 1 else "")


def _once(regex: str) -> str:
    """An expression whose first match counts: `(?>…)`, which Python has since 3.11."""
    name = f"g{next(_groups)}"
    return f"(?=(?P<{name}>{regex}))(?P={name})"


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
