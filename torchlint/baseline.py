"""A baseline: findings that are accepted for now, in a file, known by the code they are about and not by its place."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from torchlint import regular
from torchlint.finding import Finding, Severity
from torchlint.source import SourceFile

VERSION = 1
_MOST_BYTES = 20_000_000
_LONGEST_LINE = 160


class BaselineError(ValueError):
    """A file that is no baseline, or cannot be read; the message says why in one line."""


class Known(NamedTuple):
    """What a baseline knows a finding by.

    `path` starts at the folder of the baseline. `scope` names the functions and classes around the line, outermost
    first; `line` is the line with its blanks made one.
    """

    path: str
    rule: str
    severity: Severity
    scope: str
    line: str


class _Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    rule: str
    line: str
    scope: str = ""
    severity: Literal["note", "warning"] = "warning"
    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class _Document(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    version: Literal[1]
    files: dict[str, list[_Entry]]


def read(path: Path, shown: str) -> Counter[Known]:
    """What is known, and how many there are of each. Raises `BaselineError`."""
    try:
        document = msgspec.json.decode(regular.read(path, _MOST_BYTES), type=_Document)
    except FileNotFoundError:
        remedy = f"`torchlint check --write-baseline {shown}` writes one"
        raise BaselineError(f"{shown}: no such file; {remedy}") from None
    except OSError as error:
        raise BaselineError(f"{shown}: cannot read the baseline: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BaselineError(f"{shown}: not a baseline that this torchlint reads: {error}") from None
    return Counter(
        {
            Known(file, entry.rule, Severity[entry.severity.upper()], entry.scope, entry.line): entry.count
            for file, entries in document.files.items()
            for entry in entries
        }
    )


def text(known: Mapping[Known, int]) -> str:
    """The file: sorted, one finding to a line, in ASCII, so that a difference can be reviewed."""
    files: dict[str, list[str]] = defaultdict(list)
    for key in sorted(known):
        values = {"rule": key.rule, "severity": str(key.severity), "scope": key.scope, "line": key.line}
        files[key.path].append(json.dumps(values | {"count": known[key]}))
    blocks = [f"    {json.dumps(path)}: [\n      " + ",\n      ".join(rows) + "\n    ]" for path, rows in files.items()]
    body = "{\n" + ",\n".join(blocks) + "\n  }" if blocks else "{}"
    return f'{{\n  "version": {VERSION},\n  "files": {body}\n}}\n'


def known(path: str, source: SourceFile, findings: Sequence[Finding]) -> list[Known]:
    """What each finding of a file would be known by."""
    if not findings:
        return []
    rows = scope_of_rows(source.text)
    return [
        Known(
            _plain(path),
            finding.rule,
            finding.severity,
            _plain(rows[source.position(finding.span.start)[0] - 1]),
            _line(source, finding),
        )
        for finding in findings
    ]


def scopes(source: SourceFile) -> frozenset[str]:
    """All scopes that there are in a file."""
    return frozenset(map(_plain, scope_of_rows(source.text)))


def match(
    baseline: Mapping[Known, int],
    found: Sequence[Known],
    is_file: Callable[[str], bool],
    scopes_of: Callable[[str], Collection[str]],
) -> tuple[list[bool], Counter[Known]]:
    """Which of those found are in the baseline, and how many of what is in it were not found.

    A known warning covers a note, never the other way: a line that has become hot is news. What was in a function, or
    a file, that is gone may be somewhere else; what was in one that is still there was fixed. `scopes_of` is asked of
    files in which something was found. The time goes by how much there is, whatever a baseline holds.
    """
    left = Counter(baseline)
    covered = [False] * len(found)
    warnings_first = sorted(range(len(found)), key=lambda index: -found[index].severity)
    paths = {key.path for key in found}

    def settle(alike: Callable[[Known], object], may: Callable[[Known], bool]) -> None:
        waiting: dict[object, tuple[list[Known], ...]] = defaultdict(lambda: tuple([] for _ in Severity))
        for key in sorted(left, reverse=True):
            if left[key] and may(key):
                waiting[alike(key)][key.severity].append(key)
        for index in warnings_first:
            key = found[index]
            stacks = waiting.get(alike(key), ()) if not covered[index] else ()
            for stack in stacks[key.severity :]:
                while stack and not left[stack[-1]]:
                    stack.pop()
                if stack:
                    left[stack[-1]] -= 1
                    covered[index] = True
                    break

    def is_renamed(old: Known) -> bool:
        return old.path in paths and old.scope not in scopes_of(old.path)

    def is_moved(old: Known) -> bool:
        return not is_file(old.path)

    settle(lambda key: key, lambda _: True)
    settle(lambda key: key._replace(severity=Severity.WARNING), lambda _: True)
    settle(lambda key: (key.path, key.rule, key.line), is_renamed)
    settle(lambda key: (key.rule, key.scope, key.line), is_moved)
    settle(lambda key: (key.rule, key.path.rpartition("/")[2], key.line), is_moved)
    return covered, +left


def _line(source: SourceFile, finding: Finding) -> str:
    view = source.seen(finding.span)
    line = " ".join(view.source.line(view.source.position(view.span.start)[0]).split())
    if len(line) > _LONGEST_LINE:
        from hashlib import sha256  # few lines are so long

        line = f"{line[:_LONGEST_LINE]}... {sha256(line.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return _plain(line)


def _plain(text: str) -> str:
    """Without halves of surrogate pairs, which JSON does not hold."""
    return text.encode("utf-8", "backslashreplace").decode()


_OPENING = re.compile(r"\s*(?:async\s+def|def|class)\s+(\w+)")


def scope_of_rows(text: str) -> list[str]:
    """For each row the names of the functions and classes around it, by indentation alone.

    So it is the same under every version of Python, and of a file that does not parse.
    """
    return list(_walk(re.split(r"\r\n|\r|\n", text)))


def _walk(rows: list[str]) -> Iterator[str]:
    around: list[tuple[int, str]] = []
    for row in rows:
        code = row.lstrip()
        if code and not code.startswith(("#", ")", "]", "}")):
            indent = len(row.expandtabs()) - len(row.expandtabs().lstrip())
            while around and around[-1][0] >= indent:
                around.pop()
        yield ".".join(name for _, name in around)
        opening = _OPENING.match(row)
        if opening is not None:
            around.append((len(row.expandtabs()) - len(row.expandtabs().lstrip()), opening[1]))
