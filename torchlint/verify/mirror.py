"""Makes, beside a tree, the folder of its changed files, or a copy of it that links to what is large."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_MIB = 1 << 20
# Never read from a copy: compiled files would be the originals', and be trusted by their time stamps.
_LEFT_OUT = {"__pycache__"}
# Read from, whole: a repository's history, environments.
_LINKED = {".git", ".hg", ".svn", ".tox", ".nox", "node_modules"}
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
# A compiled file is trusted where it names its source's time, in whole seconds, and size.
_LATER = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Up to which size a file is copied, how many bytes and entries all together, and which folder is linked whole."""

    file: int
    total: int
    entries: int = 50_000
    folder: int = 1000


GUARDED = Limits(_MIB, 256 * _MIB)
UNGUARDED = Limits(16 * _MIB, 1024 * _MIB)


def layer(tree: Path, folder: Path, files: Mapping[PurePosixPath, bytes]) -> None:
    """Write `files` below `folder`, in folders with the modes that they have in `tree`."""
    folder.mkdir(parents=True)
    _keep_mode(tree, folder)
    for path, data in files.items():
        for parent in reversed(path.parents[:-1]):
            (folder / parent).mkdir(exist_ok=True)
            _keep_mode(tree / parent, folder / parent)
        _replace(tree / path, folder / path, data)


def copy(tree: Path, target: Path, files: Mapping[PurePosixPath, bytes], limits: Limits = GUARDED) -> None:
    """Copy `tree` to `target` with `files` replaced: Python files and small files copied, others linked.

    Folders of versions and environments, and large folders that hold no Python file, become one link each. Links that
    lead to a place in the tree lead to the same place in the copy.
    """
    kept = {tree / parent for path in files for parent in path.parents}
    room, entries = limits.total, limits.entries
    folders = [tree]
    while folders:
        folder = folders.pop()
        there = target / folder.relative_to(tree)
        found = _entries(folder)
        entries -= len(found)
        is_large = len(found) > limits.folder and not any(entry.name.endswith(".py") for entry in found)
        if folder != tree and folder not in kept and (is_large or entries < 0 or _is_linked(folder, found)):
            there.symlink_to(folder, target_is_directory=True)
            continue
        there.mkdir(parents=True)
        for entry in found:
            path = Path(entry.path)
            if entry.is_symlink():
                _relink(path, there / entry.name, tree, target)
            elif entry.is_dir():
                if entry.name not in _LEFT_OUT:
                    folders.append(path)
            elif entry.is_file() and PurePosixPath(path.relative_to(tree).as_posix()) not in files:
                size = entry.stat().st_size
                is_source = path.suffix == ".py"
                if is_source or size <= min(limits.file, room):
                    room -= 0 if is_source else size
                    with suppress(PermissionError):  # what cannot be read by us cannot be by the code
                        shutil.copy2(path, there / entry.name)
                else:
                    (there / entry.name).symlink_to(path)
    for relative, data in files.items():
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        _replace(tree / relative, target / relative, data)
    for made, _, _ in os.walk(target, topdown=False):
        _keep_mode(tree / Path(made).relative_to(target), Path(made))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except PermissionError:
        return []


def _is_linked(folder: Path, found: list[os.DirEntry[str]]) -> bool:
    return folder.name in _LINKED or any(entry.name in _ENVIRONMENT for entry in found)


def _relink(link: Path, there: Path, tree: Path, target: Path) -> None:
    leads_to = Path(os.path.normpath(link.parent / link.readlink()))
    if leads_to.is_relative_to(tree):
        leads_to = target / leads_to.relative_to(tree)
    there.symlink_to(leads_to)


def _replace(original: Path, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with suppress(FileNotFoundError):
        status = original.stat()
        path.chmod(status.st_mode & 0o7777)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + _LATER))


def _keep_mode(original: Path, folder: Path) -> None:
    with suppress(FileNotFoundError):
        folder.chmod(original.stat().st_mode & 0o7777 | 0o700)
