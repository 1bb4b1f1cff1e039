"""The user's own cache folder, which comes with no tree: where it is, and the key that tells what this user made."""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path

from torchlint.owned import opened, read

_KEY = "key"
KEY_SIZE = 32
_SEAL_SIZE = 16
_LONGEST_NAME = 40


def top() -> Path | None:
    """The folder; None where the environment names no absolute one.

    These are the places that platformdirs gives. It takes 10 ms to import, a tenth of a run in which nothing is new.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():  # another one is to be ignored: https://specifications.freedesktop.org/basedir-spec
        return given / "torchlint"
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA", ""))
        return local / "torchlint" / "Cache" if local.is_absolute() else None
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` raises where nobody knows
    if not home.is_absolute():
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "torchlint"


def projects() -> Path | None:
    """The folder in it that holds one for each project."""
    found = top()
    return None if found is None else found / "projects"


def of_project(root: Path) -> Path | None:
    """The folder for what is remembered of the project in this folder."""
    found = projects()
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", root.name)[:_LONGEST_NAME] or "root"
    return None if found is None else found / f"{readable}-{place_digest(root)}"


def place_digest(root: Path) -> str:
    """Sixteen hexadecimal digits that stand for a folder by its path, links followed."""
    from hashlib import blake2b  # 5 ms that a run without news does not need

    return blake2b(os.fsencode(os.path.realpath(root)), digest_size=8).hexdigest()


def key(*, make: bool = False) -> bytes | None:
    """The secret of this user; None where there is none, or where somebody else may know or have written it.

    With `make` there is one afterwards, in the place of one that cannot be used, unless the system refuses.
    """
    folder = top()
    if folder is None:
        return None
    try:
        found = _read_key(folder)
        if found is None and make:
            _make_key(folder)
            found = _read_key(folder)
    except (OSError, ValueError):
        return None
    return found


class Seal:
    """What nobody can make without the key, for one `use` of it: sixteen bytes that stand for others."""

    __slots__ = ("_state",)

    def __init__(self, key: bytes, use: str) -> None:
        from hashlib import blake2b  # as above

        self._state = blake2b(use.encode(), key=key, digest_size=_SEAL_SIZE)

    def of(self, *parts: bytes) -> bytes:
        """The seal of these bytes; other parts with the same bytes in a row have another one."""
        state = self._state.copy()
        state.update(b"".join([len(part).to_bytes(8, "little") + part for part in parts]))
        return state.digest()

    def closed(self, value: bytes, *parts: bytes) -> bytes:
        """A value behind the seal of it and of `parts`."""
        return self.of(value, *parts) + value

    def opened(self, sealed: bytes, *parts: bytes) -> bytes | None:
        """The value behind a seal; None if it is not the seal of it and of `parts`."""
        value = sealed[_SEAL_SIZE:]
        return value if self.of(value, *parts) == sealed[:_SEAL_SIZE] else None


def _read_key(folder: Path) -> bytes | None:
    path = folder / _KEY
    found = read(path, KEY_SIZE)
    if found is None or len(found) != KEY_SIZE:
        return None
    is_secret = not hasattr(os, "getuid") or not stat.S_IMODE(path.stat().st_mode) & 0o077
    return found if is_secret else None


def _make_key(folder: Path) -> None:
    """Write a new key, wholly or not at all; one that another run has just made stays. Raises `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, temporary = folder / _KEY, folder / f".{_KEY}-{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        with os.fdopen(opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(os.urandom(KEY_SIZE))
        try:
            path.lstat()
        except FileNotFoundError:
            with suppress(OSError):  # another run was first, or there are no links on this file system
                os.link(temporary, path)
        if _read_key(folder) is None:
            temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()
