"""Puts an arm's files in place: the user's tree with some files replaced, which nothing that runs there can change.

Three tiers, each for where the one before it is refused:

* `overlay`: the code sees its tree at the tree's own path, with the arm's files in it; writes vanish with the process.
* `copy`: a copy of the sources and the small files, links to the large ones, and Landlock, so that the kernel refuses
  writes anywhere but in the copy, the arm's scratch folder and shared memory.
* `audit`: the same copy, of larger files too, and an audit hook: no kernel stands behind it (macOS, Windows, Linux
  before 5.11). A program that the code starts, or C++, can write to what a link leads to; the manifest tells.

In all of them the code runs as the user who started torchlint. This keeps the user's files as they are under code
that means no harm; it is no sandbox for code that does.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from torchlint.verify import mirror, remains
from torchlint.verify.inside import overlay

TIERS = ("overlay", "copy", "audit")
FORCED = "TORCHLINT_VERIFY_ISOLATION"
TASKS = 4096

_HOLDS = {"overlay": ("overlay", "landlock"), "copy": ("copy", "landlock", "audit"), "audit": ("copy", "audit")}


class NotPlacedError(Exception):
    """An arm cannot be put in place; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The folder of the user's project: what `root` names is resolved."""

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(os.path.realpath(self.root)))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an arm's code sees the tree (`root`), where it may write, and what its process has to do first.

    `scratch` is a folder of the arm's own for temporary files, caches and output. `isolation` is what is expected to
    hold, in the words of `torchlint.verify.inside.confine.confine`, which takes `confinement` (JSON) and says what
    does hold.
    """

    root: Path
    scratch: Path
    tier: str
    isolation: tuple[str, ...]
    confinement: dict[str, object]


def place(
    tree: Tree,
    name: str,
    files: Mapping[str, bytes],
    scratch: Path,
    *,
    tier: str | None = None,
    allow_write: Sequence[Path] = (),
) -> Placement:
    """Put the arm `name` in place below `scratch`: `tree` with `files` (by path relative to its root) replaced.

    All arms' paths are of one length, whatever their names. Placing an arm again, while no process of it runs, makes
    its copy again; in the overlay each process starts from the tree and the files anyway. Sockets have paths of at most
    107 bytes, so `scratch` should be short. Raises `NotPlacedError` and `OSError`.
    """
    tier = tier or _fitting(tree)
    if tier not in TIERS:
        raise NotPlacedError(f"no isolation is called {tier!r}; there are {', '.join(TIERS)}")
    scratch = Path(os.path.realpath(scratch))
    if scratch.is_relative_to(tree.root):
        raise NotPlacedError(f"the scratch folder {scratch} lies inside the tree {tree.root}; set TMPDIR to another")
    inside = {_inside(tree.root, path): data for path, data in files.items()}
    arm = scratch / f"arm-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    temporary = arm / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    if tier == "overlay":
        root, changed = tree.root, arm / "changed"
        remains.remove(changed)
        mirror.layer(tree.root, changed, inside)
    else:
        root, changed = arm / "copy" / tree.root.name, None
        remains.remove(arm / "copy")
        limits = mirror.UNGUARDED if tier == "audit" else mirror.GUARDED
        mirror.copy(tree.root, root, inside, limits)
    confinement: dict[str, object] = {
        "tier": tier,
        "tree": str(tree.root),
        "root": str(root),
        "arm": str(arm),
        "changed": str(changed) if changed else None,
        "caches": _caches(tree.root, scratch) if tier == "overlay" else [],
        "write": [os.path.realpath(path) for path in allow_write],
        "environment": _environment(temporary),
        "parent": os.getpid(),
        "tasks": TASKS,
    }
    return Placement(root, temporary, tier, _HOLDS[tier], confinement)


def clear(placement: Placement) -> None:
    """Free the room that writes to the tree took of processes that have ended; temporary files and caches stay."""
    for folder in Path(str(placement.confinement["arm"])).glob("run-*"):
        remains.remove(folder)


def available_tier() -> str:
    """The first tier that holds on this machine, tried once in a process of its own.

    The environment variable `TORCHLINT_VERIFY_ISOLATION` names one, tried or not. Raises `NotPlacedError`.
    """
    forced = os.environ.get(FORCED)
    if forced and forced not in TIERS:
        raise NotPlacedError(f"{FORCED}={forced}: the tiers are {', '.join(TIERS)}")
    return forced or _first_that_holds()


def _fitting(tree: Tree) -> str:
    tier = available_tier()
    if tier == "overlay" and FORCED not in os.environ and overlay.submounts(str(tree.root)):
        return "copy" if _holds("copy") else "audit"  # an overlay would not show what is mounted inside the tree
    return tier


@cache
def _first_that_holds() -> str:
    return next((tier for tier in TIERS[:-1] if _holds(tier)), TIERS[-1])


_TRIAL = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from torchlint.verify.inside.confine import confine
confinement = json.loads(sys.argv[2])
confine(confinement)
for folder in (confinement["root"], confinement["tree"]):
    try:
        with open(os.path.join(folder, "file"), "w") as file:
            file.write("written")
    except PermissionError:
        pass
print(open(os.path.join(confinement["root"], "file")).read())
"""

_STARTS = """
import ctypes
try:
    print(ctypes.CDLL("libcuda.so.1").cuInit(0))
except OSError:
    print(0)  # there is no driver
"""


def _holds(tier: str) -> bool:
    """Whether code in that tier can write to its tree, the tree is as it was, and CUDA starts as it does outside."""
    if not sys.platform.startswith("linux"):
        return False
    with tempfile.TemporaryDirectory(prefix="tl-") as folder:
        file = Path(folder, "tree", "file")
        file.parent.mkdir()
        file.write_text("user", encoding="utf-8")
        scratch = Path(folder, "s")
        try:
            confinement = place(Tree(file.parent), tier, {}, scratch, tier=tier).confinement
            said = _run(_TRIAL + _STARTS, str(Path(__file__).parents[2]), json.dumps(confinement))
            if said != "written\n0\n" and said != f"written\n{_run(_STARTS)}":
                return False
        except (OSError, subprocess.SubprocessError):
            return False
        finally:
            remains.remove(scratch)
        return file.read_text(encoding="utf-8") == "user"


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-I", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout  # noqa: S603 - our own


def _inside(root: Path, path: str) -> PurePosixPath:
    """The path, relative to `root`, of the file that `path` leads to."""
    found = Path(os.path.realpath(root / path))
    if PurePosixPath(path).is_absolute() or not found.is_relative_to(root) or found == root:
        raise NotPlacedError(f"{path} leads out of {root}")
    return PurePosixPath(found.relative_to(root).as_posix())


def _caches(root: Path, scratch: Path) -> list[str]:
    """Folders that libraries read models and data from, and write locks and indexes to."""
    home = Path("~").expanduser()
    named = (
        os.environ.get("XDG_CACHE_HOME") or home / ".cache",
        os.environ.get("HF_HOME"),
        os.environ.get("TORCH_HOME"),
    )
    found: list[Path] = []
    for path in (Path(os.path.realpath(name)) for name in named if name):
        apart = not any(path.is_relative_to(other) or other.is_relative_to(path) for other in (root, scratch, *found))
        if apart and path.is_dir():
            found.append(path)
    return [str(path) for path in found]


def _environment(temporary: Path) -> dict[str, str]:
    """Where programs and libraries keep what they write; where they read models from stays as it is."""
    caches = temporary / "cache"
    environment = {
        name: str(caches / folder)
        for name, folder in (
            ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
            ("TRITON_CACHE_DIR", "triton"),
            ("CUDA_CACHE_PATH", "cuda"),
            ("MPLCONFIGDIR", "matplotlib"),
            ("NUMBA_CACHE_DIR", "numba"),
            ("TORCH_EXTENSIONS_DIR", "extensions"),
            ("WANDB_DIR", "wandb"),
        )
    }
    for folder in environment.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    return {**environment, "WANDB_MODE": "offline"}
