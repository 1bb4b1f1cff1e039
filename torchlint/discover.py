"""Which files a run checks: those named, and below folders the Python files and notebooks that nothing excludes."""

# A walk looks at many thousand paths, and making a `Path` of one costs as much as looking at it.
# ruff: noqa: PTH116, PTH118, PTH120

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.configfile import reason
from torchlint.gitignore import Ignores
from torchlint.globs import posix

if TYPE_CHECKING:
    from torchlint.config import Config, Configs

SUFFIXES = (".py", ".pyi", ".ipynb")


@dataclass(frozen=True, slots=True)
class Found:
    """A file to check: its absolute path, and how it is shown (POSIX, from the working directory where below it).

    `named` says that somebody has asked for it by its name.
    """

    path: Path
    shown: str
    named: bool = False


def discover(paths: Sequence[str], configs: Configs, cwd: Path) -> tuple[list[Found], list[tuple[str, str]]]:
    """The files, each once and sorted by how they are shown, and the problems: what could not be read, and why.

    A file that is named is checked whatever its suffix, and though a pattern excludes it, unless `force-exclude` is
    set; a folder that is named is walked though git ignores it. Below one, links to folders are not followed, nor links
    to files that lead out of it. Of several paths to one file, the one without links counts. Raises `ConfigError`.
    """
    files: dict[str, str] = {}
    named = set()
    problems: list[tuple[str, str]] = []
    for path in dict.fromkeys(os.path.normpath(os.path.join(cwd, path)) for path in paths):
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            problems.append((path, reason(error)))
            continue
        if is_force_excluded(path, configs):
            continue
        if stat.S_ISDIR(mode):
            for file, real in _walk(path, configs, problems):
                _add(files, file, real)
        elif stat.S_ISREG(mode):
            _add(files, path, real := os.path.realpath(path))
            named.add(real)
        else:
            problems.append((path, "not a regular file"))
    below = os.path.join(cwd, "")
    found = [Found(Path(path), _shown(path, below), real in named) for real, path in files.items()]
    found.sort(key=lambda file: file.shown)
    return found, sorted({(_shown(path, below), message) for path, message in problems})


def _add(files: dict[str, str], path: str, real: str) -> None:
    """Keep one path of each real file: the real one, else the first in order."""
    known = files.get(real)
    if known is None or path == real or (known != real and path < known):
        files[real] = path


def _shown(path: str, below: str) -> str:
    return posix(path.removeprefix(below))


def is_force_excluded(path: str, configs: Configs) -> bool:
    """Whether `force-exclude` is set, and a walk of the project that `path` is in would not get to it."""
    return configs.for_directory(os.path.dirname(path)).force_exclude and is_excluded(path, configs)


def is_excluded(path: str, configs: Configs) -> bool:
    """Whether a walk of the project that `path` is in would not get to it."""
    in_project = False
    while True:
        folder, name = os.path.split(path)
        config = configs.for_directory(folder)
        left_project = in_project and config.file is None
        if left_project or path in (folder, str(config.root)):
            return False
        if config.excludes(path, name):
            return True
        in_project = config.file is not None
        path = folder


def _walk(top: str, configs: Configs, problems: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The Python files and notebooks below a folder, each with its real path."""
    real_top = os.path.realpath(top)
    stack = [(top, Ignores.above(top))]
    while stack:
        folder, ignores = stack.pop()
        try:
            with os.scandir(folder) as scan:
                entries = list(scan)
        except OSError as error:
            problems.append((folder, f"cannot list the folder: {reason(error)}"))
            continue
        names = {entry.name for entry in entries}
        config = configs.for_directory(folder, names)
        if config.respect_gitignore:
            ignores = ignores.entering(folder, names)
            problems += ignores.problems
        for entry, is_folder in _kept(entries, config, ignores if config.respect_gitignore else Ignores()):
            if is_folder:
                stack.append((entry.path, ignores))
            elif _is_file(entry):
                real = os.path.realpath(entry.path) if entry.is_symlink() else real_top + entry.path[len(top) :]
                if real.startswith(os.path.join(real_top, "")):  # what leads out of the tree is not part of it
                    yield entry.path, real


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Not a pipe, nor a link to a folder, to itself, or to nothing, such as an editor's lock."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _kept(
    entries: Iterable[os.DirEntry[str]], config: Config, ignores: Ignores
) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """The folders, and what is named as Python files or notebooks are, without what is excluded or ignored."""
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if (
            (is_folder or entry.name.endswith(SUFFIXES))
            and not config.excludes(entry.path, entry.name)
            and not ignores.match(entry.path, entry.name, is_folder=is_folder)
        ):
            yield entry, is_folder
