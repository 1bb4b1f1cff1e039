"""Makes a process that is about to run the user's code unable to change the user's files or to outlive us.

Called first, before torch is imported and while the process has one thread. What it is given is the `confinement` of a
`torchlint.verify.placement.Placement`.
"""

from __future__ import annotations

import ctypes
import glob
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import cast

from torchlint.verify.inside import audit, landlock, overlay

# What computing needs besides the tree: memory shared between processes, GPUs (NVIDIA, AMD, Intel), network cards that
# reach them, NVIDIA's multi-process service, terminals that a process makes for its own children.
_DEVICES = (
    "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/shm /dev/ptmx /dev/pts /dev/fuse "
    "/dev/nvidia* /dev/dri /dev/kfd /dev/dxg /dev/infiniband /dev/gdrdrv /tmp/nvidia-mps"
).split()
# CUDA's driver names its threads in /proc/PID/task/TID/comm, and fails where it cannot; Landlock knows no patterns.
_PROCESSES = ("/proc",)
_SET_PARENT_DEATH_SIGNAL = 1


def confine(confinement: dict[str, object]) -> list[str]:
    """Set the environment, the limits and the walls of this process; the names of those that hold.

    `overlay` (the tree is the arm's, its writes vanish), `copy`, `shm` (`/dev/shm` of its own), `landlock`, `audit`,
    `parent-death`, `no-core-dumps`, `memory`, `tasks`. Raises `OSError`, whose message begins with the tier, where the
    tier asked for does not hold; the process is then fit for nothing but to say so and end.
    """
    tier = str(confinement["tier"])
    os.environ.update(cast("dict[str, str]", confinement.get("environment", {})))
    tempfile.tempdir = None  # it may have been chosen before
    try:
        held = _TIERS[tier](confinement)
    except OSError as error:
        raise OSError(error.errno or 0, f"{tier}: {error.strerror or error}") from error
    held += _limit(confinement)
    # Last, since a change of credentials resets it.
    return held + _follow(cast("int | None", confinement.get("parent")))


def _overlay(confinement: dict[str, object]) -> list[str]:
    root, arm = str(confinement["root"]), str(confinement["arm"])
    here = _working_folder()
    is_user = overlay.separate()
    held = []
    with suppress(OSError):
        # Nobody else's memory to sweep up afterwards; but a multi-process service meets its clients there.
        if "CUDA_MPS_PIPE_DIRECTORY" not in os.environ and not Path("/tmp/nvidia-mps").exists():  # noqa: S108 - NVIDIA's
            overlay.memory_folder("/dev/shm")  # noqa: S108 - as above
            held.append("shm")
    work = tempfile.mkdtemp(prefix="run-", dir=arm)
    overlay.lay(str(confinement["changed"]), root, work, is_user=is_user)
    nothing = tempfile.mkdtemp(dir=work)
    caches = []
    for cache in _paths(confinement, "caches"):
        with suppress(OSError):
            overlay.lay(nothing, cache, tempfile.mkdtemp(dir=work), is_user=is_user)
            caches.append(cache)
    if here:
        os.chdir(here)  # the folder below the mount is another one
    if is_user and os.getuid():
        overlay.give_up_capabilities()
    if landlock.version():
        landlock.restrict(_writable(confinement, root, *caches), _PROCESSES)
        held.append("landlock")
    return ["overlay", *held]


def _copy(confinement: dict[str, object]) -> list[str]:
    held = _redirect(confinement)
    landlock.restrict(_writable(confinement), _PROCESSES)
    # Landlock leaves modes and times to the owner.
    audit.refuse_writes(str(confinement["tree"]), _paths(confinement, "write"))
    return [*held, "landlock", "audit"]


def _audit(confinement: dict[str, object]) -> list[str]:
    held = _redirect(confinement)
    audit.refuse_writes(str(confinement["tree"]), _paths(confinement, "write"))
    return [*held, "audit"]


_TIERS = {"overlay": _overlay, "copy": _copy, "audit": _audit}


def _redirect(confinement: dict[str, object]) -> list[str]:
    """Import from the copy what would be imported from the tree, and be in it."""
    tree, root = str(confinement["tree"]), str(confinement["root"])

    def there(path: str) -> str:
        if not path:
            return path
        found = os.path.realpath(path)
        if found != tree and not found.startswith(tree + os.sep):
            return path
        copy = root + found[len(tree) :]
        # What the copy has as a link only, such as a virtual environment, keeps its one path.
        return copy if f"{os.path.realpath(copy)}{os.sep}".startswith(f"{root}{os.sep}") else path

    sys.path[:] = map(there, sys.path)
    if "PYTHONPATH" in os.environ:
        os.environ["PYTHONPATH"] = os.pathsep.join(map(there, os.environ["PYTHONPATH"].split(os.pathsep)))
    # An editable installation by setuptools finds packages by a table of its own.
    for finder in sys.meta_path:
        table = getattr(sys.modules.get(str(getattr(finder, "__module__", ""))), "MAPPING", None)
        if isinstance(table, dict):
            table.update({name: there(path) for name, path in table.items() if isinstance(path, str)})
    here = _working_folder()
    if here:
        os.chdir(there(here))
    return ["copy"]


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _writable(confinement: dict[str, object], *more: str) -> list[str]:
    devices = [path for pattern in _DEVICES for path in glob.glob(pattern)]  # noqa: PTH207 - patterns are absolute
    mps = os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
    return [str(confinement["arm"]), *_paths(confinement, "write"), *devices, *((mps,) if mps else ()), *more]


def _paths(confinement: dict[str, object], key: str) -> list[str]:
    return cast("list[str]", confinement.get(key, []))


def _limit(confinement: dict[str, object]) -> list[str]:
    try:
        import resource  # Windows has none
    except ImportError:
        return []
    held = []
    wanted = {
        "no-core-dumps": (resource.RLIMIT_CORE, 0),
        "memory": (resource.RLIMIT_AS, cast("int | None", confinement.get("memory"))),
        "tasks": (resource.RLIMIT_NPROC, _tasks(cast("int | None", confinement.get("tasks")))),
    }
    for name, (kind, most) in wanted.items():
        if most is None:
            continue
        _, hard = resource.getrlimit(kind)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):  # macOS has no RLIMIT_AS worth the name
            resource.setrlimit(kind, (limit, limit))
            held.append(name)
    return held


def _tasks(margin: int | None) -> int | None:
    """How many processes and threads the user may have: those there are, and so many more.

    The limit is the user's, not the process's, but in a user namespace of its own (Linux 5.14) it counts from there.
    It does not bind root: for root, and for everything else, the controller counts (`torchlint.verify.remains`).
    """
    if margin is None or not os.getuid():
        return None
    there = 0
    for folder in glob.glob("/proc/[0-9]*"):  # noqa: PTH207 - a pattern without a folder to start at
        with suppress(OSError):
            if Path(folder).stat().st_uid == os.getuid():
                there += len(os.listdir(f"{folder}/task"))
    return there + margin if there else None


def _follow(parent: int | None) -> list[str]:
    """Die when the thread that started this process does (prctl(2)); children do not inherit it."""
    if not sys.platform.startswith("linux"):
        return []
    zero = ctypes.c_ulong(0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_SET_PARENT_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL), zero, zero, zero):
        return []
    if parent and os.getppid() != parent:  # it may be gone already, or there is a launcher in between
        try:
            os.kill(parent, 0)
        except ProcessLookupError:
            raise OSError("the process that started this one is gone") from None
        except PermissionError:
            pass
    return ["parent-death"]
