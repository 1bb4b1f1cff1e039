"""Finds and clears what a measured process left behind: processes, shared memory, folders."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# The variable by which a process is known that left its parent and its session (`Popen(env=...)` sets it).
TAG = "TORCHLINT_VERIFY_ID"
_PROC = Path("/proc")
_SHARED = Path("/dev/shm")  # noqa: S108 - not a temporary folder of ours: we look for what others left
# torch (`torch_<pid>_...`), Python's shared_memory and semaphores, joblib, NCCL, OpenMP, Open MPI and gloo.
_KNOWN = re.compile(r"(?:torch_|psm_|sem\.|joblib_|loky-|nccl-|__KMP_REGISTERED_LIB_|vader_segment|gloo)")


@dataclass(frozen=True, slots=True)
class Trace:
    """What the processes of one arm have in common.

    They are of its session (its first process called `setsid`, or `Popen(start_new_session=True)` did), or carry its
    tag in their environment, or live in its mount namespace (`mnt:[inode]`), or descend from one that does.
    """

    session: int
    tag: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Remains:
    """What `stop` found: processes other than the first, by number, and what they shared, by device and inode."""

    processes: tuple[int, ...]
    shared: frozenset[tuple[int, int]]


def trace(process: int, tag: str) -> Trace:
    """The trace of an arm by its first process, which has to be alive, and confined if it is to be."""
    ours, theirs = _namespace("self"), _namespace(str(process))
    return Trace(process, tag, theirs if theirs != ours else "")


def processes(of: Trace) -> list[int]:
    """The numbers of the arm's processes that live, ascending; empty where there is no /proc."""
    return sorted(process.number for process in _found(of, frozenset()))


def stop(of: Trace, *, patience: float = 5.0) -> Remains:
    """Kill every process of the arm, and say what there was; what still lives after `patience` seconds is left.

    All are stopped, the group in one call, until no new one appears, and only then killed: one that forks faster than
    it is killed would get away otherwise, and a child be lost with its parent. Where there is no /proc, the group is
    all that is found.
    """
    _signal_group(of.session, _STOP)
    seen: frozenset[_Process] = frozenset()
    shared: frozenset[tuple[int, int]] = frozenset()
    end = time.monotonic() + patience
    pause = 0.001
    while True:
        living = _found(of, seen)
        while (more := living - seen) and time.monotonic() < end:
            _signal(more, _STOP)
            seen |= more
            living = _found(of, seen)
        shared |= _held(process.number for process in living)
        _signal_group(of.session, _KILL)
        _signal(living, _KILL)
        if not living or time.monotonic() > end:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    return Remains(tuple(sorted({process.number for process in seen} - {of.session})), shared)


def shared_memory() -> frozenset[str]:
    """The names in /dev/shm; empty where there is no such folder."""
    try:
        return frozenset(os.listdir(_SHARED))
    except OSError:
        return frozenset()


def clear_shared_memory(before: Collection[str], shared: Collection[tuple[int, int]] = ()) -> list[str]:
    """Remove from /dev/shm what is new since `before`, ours, and the arm's; the names removed, sorted.

    The arm's is what its processes held (`Remains.shared`), and what has a name that torch and its companions give,
    where no process uses it: another program of this user may do as much at the same time.
    """
    removed = []
    candidates = {}
    for name in shared_memory().difference(before):
        with suppress(OSError):
            status = (_SHARED / name).lstat()
            if status.st_uid == os.getuid():
                candidates[name] = (status.st_dev, status.st_ino)
    used = _held(process.number for process, *_ in _living()) if candidates else frozenset()
    for name, identity in sorted(candidates.items()):
        if identity not in used and (identity in shared or _KNOWN.match(name)):
            with suppress(OSError):
                (_SHARED / name).unlink()
                removed.append(name)
    return removed


def remove(folder: Path) -> None:
    """Remove a folder of ours and what is in it, whatever the modes; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir() and not folder.is_symlink():
        # overlayfs leaves folders that not even their owner may read.
        folder.chmod(stat.S_IRWXU)
        for place, names, _ in os.walk(folder):
            for name in names:
                if not Path(place, name).is_symlink():
                    with suppress(OSError):
                        Path(place, name).chmod(stat.S_IRWXU)
        shutil.rmtree(folder, ignore_errors=True)


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows SIGTERM ends a process outright
_STOP = getattr(signal, "SIGSTOP", _KILL)


class _Process(NamedTuple):
    """A process, and when it started, in ticks since the machine did: a number alone may be given again."""

    number: int
    start: int


def _found(of: Trace, known: frozenset[_Process]) -> frozenset[_Process]:
    """The living processes of the arm: `known` ones, ones that carry its marks, and descendants of any of them."""
    found: dict[int, _Process] = {}
    others: dict[int, tuple[int, _Process]] = {}
    mark = f"{TAG}={of.tag}".encode() if of.tag else None
    for process, parent, group, session in _living():
        number = process.number
        is_ours = process in known or of.session in (number, group, session)
        if is_ours or _is_marked(number, mark, of.namespace):
            found[number] = process
        else:
            others[number] = (parent, process)
    more = set(found)
    while more:  # a child that took off tag and session both
        more = {number for number, (parent, _) in others.items() if parent in more and number not in found}
        found.update((number, others[number][1]) for number in more)
    found.pop(os.getpid(), None)
    return frozenset(found.values())


def _living() -> Iterator[tuple[_Process, int, int, int]]:
    """Every process that has not ended, with its parent, group and session."""
    try:
        names = os.listdir(_PROC)
    except OSError:
        return
    for name in names:
        if not name.isdecimal():
            continue
        with suppress(OSError, ValueError):
            # proc_pid_stat(5): the second field is the program's name in parentheses and may hold any character.
            fields = (_PROC / name / "stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                yield _Process(int(name), int(fields[19])), int(fields[1]), int(fields[2]), int(fields[3])


def _is_marked(process: int, mark: bytes | None, namespace: str) -> bool:
    if namespace and _namespace(str(process)) == namespace:
        return True
    if mark:
        with suppress(OSError):
            return mark in (_PROC / str(process) / "environ").read_bytes().split(b"\0")
    return False


def _namespace(process: str) -> str:
    try:
        return str((_PROC / process / "ns" / "mnt").readlink())
    except OSError:
        return ""


def _signal_group(session: int, number: int) -> None:
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(session, number)
    else:
        command = ["taskkill", "/F", "/T", "/PID", str(session)]
        subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - a number of ours


def _signal(targets: Iterable[_Process], number: int) -> None:
    for process in targets:
        with suppress(OSError):
            os.kill(process.number, number)


def _held(numbers: Iterable[int]) -> frozenset[tuple[int, int]]:
    """What these processes map or have open in /dev/shm, by device and inode."""
    held = set()
    prefix = f"{_SHARED}/"
    for process in numbers:
        folder = _PROC / str(process)
        with suppress(OSError, ValueError):
            for line in (folder / "maps").read_text(encoding="utf-8", errors="replace").splitlines():
                # address permissions offset device inode path
                fields = line.split(maxsplit=5)
                if len(fields) == 6 and fields[5].startswith(prefix):
                    major, minor = (int(part, 16) for part in fields[3].split(":"))
                    held.add((os.makedev(major, minor), int(fields[4])))
        with suppress(OSError):
            for name in os.listdir(folder / "fd"):
                with suppress(OSError):
                    if str((folder / "fd" / name).readlink()).startswith(prefix):
                        status = (folder / "fd" / name).stat()
                        held.add((status.st_dev, status.st_ino))
    return frozenset(held)
