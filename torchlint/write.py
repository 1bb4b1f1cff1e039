"""Putting a fixed file in the place of the old one, wholly or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

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
    temporary = target.with_name(f".torchlint-{os.getpid()}-{os.urandom(4).hex()}.tmp")
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
