"""Putting a fixed file in the place of the old one, wholly or not at all."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from torchlint import owned
from torchlint.userfolder import Seal, key

CHANGED = "changed while torchlint was working; not written"

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class NotWrittenError(Exception):
    """A file that is as it was; the message says why in one line."""


def write(path: Path, old: bytes, new: bytes) -> None:
    """Replace the content of `path`, which has to be `old` still, by `new`. Raises `NotWrittenError`.

    The new content goes to a file beside it that then takes its name, so that whoever reads the file, and whatever
    stops this process, finds one of the two contents. Mode bits stay, and the owner where the system allows it; a link
    stays a link, and what it leads to is replaced. Another hard link to the file keeps the old content.
    """
    try:
        target = Path(os.path.realpath(path))
        status = target.stat()
        # A rename asks for no right to the file itself, and root has every right: what is read-only is meant to be.
        if not status.st_mode & _WRITABLE or not os.access(target, os.W_OK):
            raise NotWrittenError("the file is read-only; not written")
        _replace(target, status, old, new)
    except OSError as error:
        raise NotWrittenError(f"cannot write: {error.strerror or error}; the file is as it was") from None


def _replace(target: Path, status: os.stat_result, old: bytes, new: bytes) -> None:
    clear(target.parent)
    temporary = target.with_name(temporary_name(os.getpid(), os.urandom(4).hex()))
    try:
        with temporary.open("xb") as file:
            temporary.chmod(stat.S_IMODE(status.st_mode))
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        _keep_owner(temporary, status)
        # The comparison comes last: a change that somebody makes after it is lost.
        if target.read_bytes() != old:
            raise NotWrittenError(CHANGED)  # noqa: TRY301 - the temporary file goes in one place
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _keep_owner(temporary: Path, status: os.stat_result) -> None:
    made = temporary.stat()
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        with suppress(OSError):  # only root gives files away
            os.chown(temporary, status.st_uid, status.st_gid)
            temporary.chmod(stat.S_IMODE(status.st_mode))  # a new owner clears the set-id bits


# What a run that was killed has left


@lru_cache(maxsize=1024)  # once a run
def clear(folder: Path) -> None:
    """Remove the files that a killed run of this user on this machine has left in a folder, and no other one's."""
    with suppress(OSError):
        for name in os.listdir(folder) if _seal() is not None else ():
            made = _MADE.fullmatch(name)
            if made is None or name != temporary_name(int(made[1]), made[2]):
                continue
            with suppress(OSError):
                status = (folder / name).lstat()
                if not _is_alive(int(made[1])) or status.st_mtime < time.time() - _DAY:
                    owned.remove(folder / name)


_MADE = re.compile(r"\.torchlint-([0-9]{1,9})-([0-9a-f]{8})[0-9a-f]{12}\.tmp")
_DAY = 86_400


def temporary_name(process: int, number: str) -> str:
    """A name that only this user's torchlint gives, for a process of this machine: none that came with a tree."""
    seal = _seal()
    mark = seal.of(_machine(), str(process).encode(), number.encode())[:6] if seal is not None else bytes(6)
    return f".torchlint-{process}-{number}{mark.hex()}.tmp"


@lru_cache(maxsize=1)
def _seal() -> Seal | None:
    secret = key(make=True)
    return None if secret is None else Seal(secret, "temporary")


@lru_cache(maxsize=1)
def _machine() -> bytes:
    """What tells the numbers of processes here from those of another machine or container."""
    import platform  # for the few runs that write

    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{platform.node()} {space}".encode()


def _is_alive(process: int) -> bool:
    """Whether there is a process of this number; where asking could end it, there is."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
