"""Lets this process and all that it starts write in named places only: Landlock, Linux 5.13 and later, no privilege.

The rights and their versions are those of https://docs.kernel.org/userspace-api/landlock.html. Landlock knows nothing
of what changes a file's attributes: `chmod`, `chown`, `utime` and extended attributes stay possible to the owner.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

# <asm-generic/unistd.h>; x86-64 and arm64 agree, as all architectures do for system calls this young.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_SET_NO_NEW_PRIVS = 38

_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
# Remove a folder or a file; make a character device, folder, file, socket, pipe, block device, symbolic link.
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
_SINCE = ((1, _WRITE_FILE | _CHANGE_FOLDER), (2, _REFER), (3, _TRUNCATE))


def version() -> int:
    """The version of Landlock that the kernel offers; 0 where there is none or it is switched off."""
    if not sys.platform.startswith("linux"):
        return 0  # the number means something else there
    return max(0, int(_library().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))


def restrict(writable: Iterable[str], written: Iterable[str] = ()) -> int:
    """Refuse every write (`EACCES`) but those below, or to, the paths `writable`; the version that holds.

    Files below `written` may be written to, but none made or removed. What does not exist is left out. Files opened
    before stay writable. There is no way back, for children either, and set-user-id programs lose their privilege.
    Raises `OSError`.
    """
    offered = version()
    if not offered:
        raise OSError("Landlock: the kernel has none, or it is switched off")
    handled = sum(rights for since, rights in _SINCE if since <= offered)
    library = _library()
    # A shorter structure than the kernel's is one whose other fields are zero.
    attribute = struct.pack("=Q", handled)
    ruleset = _checked(
        "landlock_create_ruleset", library.syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), 0)
    )
    try:
        for path in writable:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(library, ruleset, path, handled)
        for path in written:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(library, ruleset, path, handled & (_WRITE_FILE | _TRUNCATE))
        zero = ctypes.c_ulong(0)
        _checked("PR_SET_NO_NEW_PRIVS", library.prctl(_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero))
        _checked("landlock_restrict_self", library.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return offered


def _allow(library: ctypes.CDLL, ruleset: int, path: str, handled: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
        rights = handled if is_folder else handled & (_WRITE_FILE | _TRUNCATE)
        rule = struct.pack("=Qi", rights, place)
        _checked(f"landlock_add_rule {path}", library.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(place)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
