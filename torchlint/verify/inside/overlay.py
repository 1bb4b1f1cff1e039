"""Shows this process and all that it starts a folder with other files in it, at the same path, and takes its writes.

A mount namespace of its own (as root), or one in a user namespace of its own in which the user stays who he is, and
overlayfs: Linux 5.11 and later without privilege. Nothing outside the process sees a difference, and with its last
child the namespace is gone. The kernel's side: user_namespaces(7), mount_namespaces(7), and
https://docs.kernel.org/filesystems/overlayfs.html.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 14, 1 << 18
_CAPABILITY_VERSION_3 = 0x20080522


def separate() -> bool:
    """Enter a mount namespace of this process's own; whether it took a user namespace to get there.

    The process must have one thread. Raises `OSError` where the kernel, a container or a policy refuses.
    """
    user, group = os.getuid(), os.getgid()
    try:
        _call("unshare", _CLONE_NEWNS)  # root needs no more, and keeps its rights to everybody's files
    except PermissionError:
        _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS)
        # Since Linux 3.19 a group may be mapped only by who gave up setgroups(2).
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_bytes(text.encode())
        is_user = True
    else:
        is_user = False
    _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    return is_user


def lay(over: str, folder: str, work: str, *, is_user: bool) -> None:
    """Show at the path `folder` what `over` holds, and below it what `folder` held; take all writes in `work`.

    `over` may be empty: then `folder` looks as it did. `work` is a folder of this process's own, on a file system that
    overlayfs can write to; where it cannot (another overlay, NFS), writes are held in memory. Raises `OSError`.
    """
    inside = submounts(folder)
    if inside:
        raise OSError(f"{inside[0]} is a file system of its own inside {folder}")
    try:
        _lay(over, folder, tempfile.mkdtemp(dir=work), is_user=is_user)
    except OSError:
        memory = tempfile.mkdtemp(dir=work)
        _call("mount", b"tmpfs", os.fsencode(memory), b"tmpfs", ctypes.c_ulong(_MS_NOSUID | _MS_NODEV), b"mode=700")
        _lay(over, folder, memory, is_user=is_user)


def _lay(over: str, folder: str, work: str, *, is_user: bool) -> None:
    upper, scratch = Path(work, "upper"), Path(work, "work")
    upper.mkdir()
    scratch.mkdir()
    mode = Path(folder).stat().st_mode & 0o7777
    upper.chmod(mode)  # the mounted folder's own mode is that of its uppermost layer
    # Descriptors in place of paths: a path would have to be escaped, and all options fit in one page.
    places = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (over, folder, upper, scratch)]
    try:
        above, below, top, room = (f"/proc/self/fd/{place}" for place in places)
        options = f"lowerdir={above}:{below},upperdir={top},workdir={room}" + (",userxattr" if is_user else "")
        flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
        _call("mount", b"overlay", os.fsencode(folder), b"overlay", flags, options.encode())
    finally:
        for place in places:
            os.close(place)


def memory_folder(folder: str) -> None:
    """Put an empty file system in memory, as big as the one that is there, at the path `folder`. Raises `OSError`."""
    room = os.statvfs(folder)
    options = f"mode=1777,size={room.f_blocks * room.f_frsize}"
    _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(_MS_NOSUID | _MS_NODEV), options.encode())


def give_up_capabilities() -> None:
    """Be again the user who started this process, no more. Raises `OSError`."""

    # What a user namespace gives lets a process write even the user's own read-only files.
    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    header = Header(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _call("capset", ctypes.byref(header), nothing)


def submounts(folder: str) -> Sequence[str]:
    """The mount points below `folder`, which an overlay would not show."""
    below = folder.rstrip("/") + "/"
    found = []
    with suppress(FileNotFoundError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            # The kernel writes space, tab, newline and backslash in octal.
            point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), line.split(" ")[4])
            if point.startswith(below):
                found.append(point)
    return found


def _call(function: str, *arguments: object) -> None:
    if not sys.platform.startswith("linux"):
        raise OSError(f"{function}: not on {sys.platform}")
    if getattr(ctypes.CDLL(None, use_errno=True), function)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
