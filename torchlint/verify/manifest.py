"""Says whether a tree is what it was: names, sizes, times, links, and the content of the sources."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Written by whoever imports or measures, and by git when it only looks.
_LEFT_OUT = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".torchlint_cache"}
_UNREAD_IN_GIT = {"objects", "logs", "index", "FETCH_HEAD", "gc.log"}
_SOURCES = frozenset(
    ".py .pyi .pyx .ipynb .toml .cfg .ini .json .yaml .yml .txt .md .sh .c .cc .cpp .cu .h .cuh".split()
)
_LARGE = 4 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one path: mode, bytes, time of change (ns), digest of a source or target of a link.

    Of folders only the mode counts: what is in them has entries of its own.
    """

    mode: int
    size: int
    mtime_ns: int
    content: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries of a tree by POSIX path relative to its root, which is not among them."""

    root: Path
    entries: dict[str, Entry]


def take(root: Path) -> Manifest:
    """The manifest of the tree at `root`; links are not followed.

    Sources up to 4 MiB are read (sha256); of everything else size and time decide, so that data sets cost a `stat`
    each. git's objects and caches of tools are left out. What cannot be read has no entry.
    """
    return Manifest(root, dict(_entries(str(root), "")))


def changes(before: Manifest, after: Manifest) -> list[str]:
    """What differs, a line for each path, sorted: `added: runs/log.txt`; empty where nothing does."""
    lines = []
    for path in sorted(before.entries.keys() | after.entries.keys()):
        old, new = before.entries.get(path), after.entries.get(path)
        if old is None:
            lines.append(f"added: {path}")
        elif new is None:
            lines.append(f"removed: {path}")
        elif old != new:
            lines.append(f"{_difference(old, new)}: {path}")
    return lines


def _difference(old: Entry, new: Entry) -> str:
    if stat.S_IFMT(old.mode) != stat.S_IFMT(new.mode):
        return "replaced"
    if (old.size, old.content) != (new.size, new.content):
        return "changed"
    return "mode changed" if old.mode != new.mode else "touched"


def _entries(folder: str, prefix: str) -> Iterator[tuple[str, Entry]]:
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        if entry.name in _LEFT_OUT or (entry.name in _UNREAD_IN_GIT and prefix.endswith(".git/")):
            continue
        path = prefix + entry.name
        try:
            status = entry.stat(follow_symlinks=False)
            content = _content(entry, status)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            yield path, Entry(status.st_mode, 0, 0, "")
            yield from _entries(entry.path, f"{path}/")
        else:
            yield path, Entry(status.st_mode, status.st_size, status.st_mtime_ns, content)


def _content(entry: os.DirEntry[str], status: os.stat_result) -> str:
    path = Path(entry.path)
    if stat.S_ISLNK(status.st_mode):
        return str(path.readlink())
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGE or path.suffix not in _SOURCES:
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()
