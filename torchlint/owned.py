"""Which files and folders torchlint made: regular ones of this user, and no links, in a folder with its mark."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

TAG = "CACHEDIR.TAG"

# With this file in it, backups leave a folder out: https://bford.info/cachedir/
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# torchlint made this folder; delete it whenever you like.\n# {}\n"
_IGNORES = ".gitignore"
_LONGEST_MARK = 1000


class NotOwnedError(OSError):
    """A file or folder that torchlint did not make, and leaves alone; the message says what it is, in one line."""


class Marks:
    """The files that say of a folder that torchlint made it. Nobody else knows the `secret` in one of them.

    They keep git and backups out of it. With `adopts`, a folder that carries the marks of another secret is one too.
    """

    def __init__(self, secret: bytes, *, adopts: bool = False) -> None:
        self._contents = {TAG: _TAG.format(secret.hex()).encode(), _IGNORES: b"*\n"}
        self._adopts = adopts

    def are_on(self, folder: Path) -> bool:
        """Whether torchlint made the folder. False for one that is not there, or that holds nothing.

        Raises `NotOwnedError` for one that holds something else, and `OSError`.
        """
        try:
            status = folder.lstat()
        except FileNotFoundError:
            return False
        if not is_own_folder(status):
            kind = "is a link" if _is_link(status) else "is no folder of this user"
            raise NotOwnedError(f"`{folder}` {kind}")
        tag = read(folder / TAG, _LONGEST_MARK)
        if tag is not None and (tag == self._contents[TAG] or (self._adopts and self._is_alike(tag))):
            return True
        if all(name in self._contents and self._begins(folder / name, name) for name in os.listdir(folder)):
            return False
        raise NotOwnedError(f"`{folder}` is not a cache folder that torchlint made for this user")

    def put_on(self, folder: Path) -> None:
        """Make a folder if there is none, and mark it. Raises as `are_on` does."""
        if self.are_on(folder) and read(folder / TAG, _LONGEST_MARK) == self._contents[TAG]:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self.are_on(folder)  # it may be another one by now
        for name, content in self._contents.items():
            if name == TAG or not os.path.lexists(folder / name) or self._begins(folder / name, name):
                with os.fdopen(opened(folder / name, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
                    file.write(content)

    def take_off(self, folder: Path) -> None:
        """Remove the marks of a folder that has them, and the folder where nothing else is in it. Raises `OSError`."""
        for name, content in self._contents.items():
            if name == TAG or read(folder / name, _LONGEST_MARK) == content:
                remove(folder / name)
        with suppress(OSError):  # something of somebody else's is in it
            folder.rmdir()

    def _is_alike(self, tag: bytes) -> bool:
        start = _TAG.partition("{}")[0].encode()
        return tag.startswith(start) and len(tag) == len(self._contents[TAG])

    def _begins(self, path: Path, name: str) -> bool:
        """Whether a file is a mark that another run is just writing, or could not end."""
        found = read(path, _LONGEST_MARK)
        return found is not None and self._contents[name].startswith(found)


def read(path: Path, limit: int) -> bytes | None:
    """The content of a regular file of this user; None for anything else, and for more than `limit` bytes."""
    try:
        if not is_own_file(path.lstat()):  # without `O_NOFOLLOW`, the one chance
            return None
        with os.fdopen(opened(path, os.O_RDONLY), "rb") as file:
            found = file.read(limit + 1) if is_own_file(os.fstat(file.fileno())) else None
    except (OSError, ValueError):
        return None
    return found if found is not None and len(found) <= limit else None


def remove(path: Path) -> bool:
    """Remove a regular file of this user; False if it is something else, which stays. Raises `OSError`."""
    try:
        is_file = is_own_file(path.lstat())
    except FileNotFoundError:
        return False
    if is_file:
        path.unlink()
    return is_file


def remove_old(folder: Path, is_made: Callable[[str], object], before: int) -> None:
    """Remove the files with names that `is_made` knows and that nobody has written since `before`, in ns."""
    for name in os.listdir(folder):
        with suppress(OSError):
            if is_made(name) and (folder / name).lstat().st_mtime_ns < before:
                remove(folder / name)


def opened(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of a file and of no link, for this process alone; a pipe is not waited for. Raises `OSError`."""
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, name, 0)
    return os.open(path, flags, mode)


def is_own_file(status: os.stat_result) -> bool:
    """Whether `os.lstat` speaks of a regular file of this user."""
    return stat.S_ISREG(status.st_mode) and _is_own(status)


def is_own_folder(status: os.stat_result) -> bool:
    """Whether `os.lstat` speaks of a folder of this user, and of no link or junction to one."""
    return stat.S_ISDIR(status.st_mode) and not _is_link(status) and _is_own(status)


def _is_link(status: os.stat_result) -> bool:
    attributes = getattr(status, "st_file_attributes", 0)  # Windows, where a junction is no link
    return stat.S_ISLNK(status.st_mode) or bool(attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()
