"""Refuses what Python itself would write below a folder: the guard where the kernel offers none.

An audit hook (PEP 578) sees what Python code does and nothing of what C++ code or another program does: `torch.save`
raises no `open` event, and that of `os.open` does not name its `dir_fd`. It makes mistakes harmless; it does not hold
back who means it. An event costs about 0.2 µs, and `id()` is one.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

# https://docs.python.org/3/library/audit_events.html: for each event, which arguments are paths, which argument says
# relative to which folder, and whether the last part of the path is followed where it is a link.
_EVENTS: dict[str, tuple[tuple[int, int | None, bool], ...]] = {
    "open": ((0, None, True),),
    "os.chflags": ((0, None, True),),
    "os.chmod": ((0, 2, True),),
    "os.chown": ((0, 3, True),),
    "os.link": ((0, 2, False), (1, 3, False)),
    "os.mkdir": ((0, 2, False),),
    "os.remove": ((0, 1, False),),
    "os.removexattr": ((0, None, True),),
    "os.rename": ((0, 2, False), (1, 3, False)),
    "os.rmdir": ((0, 1, False),),
    "os.setxattr": ((0, None, True),),
    "os.symlink": ((1, 2, False),),
    "os.truncate": ((0, None, True),),
    "os.utime": ((0, 3, True),),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def refuse_writes(folder: str, allowed: Sequence[str]) -> None:
    """Raise `PermissionError` in whoever writes, makes or removes something below `folder` but not below `allowed`.

    Holds in this process and those forked from it, not in programs that they start; it cannot be taken back.
    """
    protected = _whole(folder)
    free = tuple(_whole(path) for path in allowed)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        places = _EVENTS.get(event)
        if places is None or (event == "open" and not _writes(*arguments[1:3])):
            return
        for index, anchor, follows in places:
            base = arguments[anchor] if anchor is not None and anchor < len(arguments) else None
            path = _resolved(arguments[index], base, follows=follows)
            if path.startswith(protected) and not path.startswith(free):
                raise PermissionError(errno.EACCES, "torchlint verify lets nothing write to the user's files", path)

    sys.addaudithook(hook)


def _whole(path: str) -> str:
    return os.path.realpath(path).rstrip(os.sep) + os.sep


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return not _WRITING_MODES.isdisjoint(mode)
    return isinstance(flags, int) and bool(flags & _WRITING)


_WRITING_MODES = frozenset("wax+")


def _resolved(path: object, base: object, *, follows: bool) -> str:
    """The path that is meant, with a separator at its end, so that a folder lies below itself; empty if unknown."""
    if isinstance(path, int):
        name = _opened(path)
    else:
        try:
            name = os.fsdecode(path)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return ""
        if isinstance(base, int) and base >= 0:
            name = os.path.join(_opened(base), name)  # noqa: PTH118 - pathlib resolves links of its own accord
    if not name:
        return ""
    if follows:
        return os.path.realpath(name) + os.sep
    parent, last = os.path.split(name.rstrip(os.sep))
    return os.path.join(os.path.realpath(parent), last) + os.sep  # noqa: PTH118 - as above


def _opened(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - as above
    except OSError:
        return ""
