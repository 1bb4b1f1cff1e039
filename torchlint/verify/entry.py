"""What `torchlint verify PATH` runs: the program itself, a function of it, or its `bench_*` functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlint.config import Configs, Overrides
from torchlint.discover import discover
from torchlint.source import is_notebook
from torchlint.verify.machine import CannotRunError, UsageError

_ROOTS = ("pyproject.toml", "torchlint.toml", ".torchlint.toml", "setup.py", "setup.cfg", ".git")
_BENCH = "bench_"
_PROGRAMS = ("", ".py", ".pyw")


@dataclass(frozen=True, slots=True)
class Way:
    """One way in: the message for the measured process, the file it begins in (relative to the root), and words."""

    message: Mapping[str, Any]
    file: str
    shown: str
    words: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The root of the project and the ways into it."""

    root: Path
    ways: tuple[Way, ...]


def resolve(path: str | None, function: str | None, arguments: Sequence[str], cwd: Path) -> Wanted:
    """What to run. Raises `UsageError` for what does not exist, `CannotRunError` where there is nothing to run."""
    if path is None and function is None:
        raise UsageError(
            "nothing to verify: name a program (`torchlint verify train.py -- --epochs 1`), a function "
            "(`--entry package.module:function`) or a rule (`--rule TL301`), or set `entry` in [tool.torchlint.verify]"
        )
    where = cwd if path is None else (cwd / path).resolve()
    if not where.exists():
        raise UsageError(f"{path}: no such file or folder")
    root = root_of(where)
    if function is not None:
        if not where.is_dir() or arguments:
            raise UsageError(
                "`--entry` runs a function, which takes no arguments: PATH, if any, is the folder of the project"
            )
        return Wanted(root, (_function(function, root),))
    if where.is_dir():
        return Wanted(root, _in_folder(where, root, str(path), arguments))
    if is_notebook(where.name):
        raise UsageError(
            f"{path}: a notebook cannot be run here; make it a program first: `jupyter nbconvert --to script {path}`"
        )
    if where.suffix not in _PROGRAMS:
        raise UsageError(f"{path}: no Python program, by its name")
    if where.name.startswith(_BENCH) and not arguments:
        benches = tuple(_benches(where, root))
        if benches:
            return Wanted(root, benches)
    return Wanted(root, (_script(where, root, arguments),))


def root_of(where: Path) -> Path:
    """The folder of the project that a path belongs to: that of the nearest marker, or the file's own."""
    folder = (where if where.is_dir() else where.parent).resolve()
    for candidate in (folder, *folder.parents):
        if any((candidate / marker).exists() for marker in _ROOTS):
            return candidate
    return folder


def _script(path: Path, root: Path, arguments: Sequence[str]) -> Way:
    file = path.relative_to(root).as_posix()
    message = {"kind": "script", "file": file, "arguments": list(arguments), "clock": "auto"}
    shown = " ".join([file, *arguments])
    return Way(message, file, shown, f"{file}, by the steps of its optimizer or the calls of its model")


def _function(name: str, root: Path) -> Way:
    module, _, attribute = name.rpartition(":")
    if not module or not attribute:
        raise UsageError(f"`--entry {name}`: write `package.module:function` or `file.py:function`")
    file = module if module.endswith(".py") else f"{module.replace('.', '/')}.py"
    for candidate in (file, f"src/{file}", f"{file[:-3]}/__init__.py", f"src/{file[:-3]}/__init__.py"):
        path = (root / candidate).resolve()
        if path.is_file():
            if not path.is_relative_to(root):
                raise UsageError(f"`--entry {name}`: {candidate} is not in the project, which is {root}")
            inside = path.relative_to(root).as_posix()
            written = f"{inside}:{attribute}" if module.endswith(".py") else name
            return Way({"kind": "function", "name": written}, inside, name, f"{name}, called again and again")
    raise UsageError(f"`--entry {name}`: there is no {file} below {root}")


def _in_folder(folder: Path, root: Path, shown: str, arguments: Sequence[str]) -> tuple[Way, ...]:
    if arguments:
        raise UsageError(f"{shown} is a folder, and arguments are for a program; name its file")
    found, _ = discover([str(folder)], Configs(Overrides(), root), root)
    ways = tuple(
        way
        for each in found
        if each.path.name.startswith(_BENCH) and not is_notebook(each.path.name)
        for way in _benches(each.path, root)
    )
    if not ways:
        raise CannotRunError(
            f"{shown}: nothing to run here\n"
            f"  torchlint verify {shown}/train.py -- ARGUMENTS   runs a program, step by step of its optimizer\n"
            f"  torchlint verify {shown} --entry module:function   runs a function\n"
            "  def bench_step(): ... in a file bench_*.py   is found and run"
        )
    return ways


def _benches(path: Path, root: Path) -> Iterator[Way]:
    """The functions `bench_*` of a file, which is not run."""
    file = path.relative_to(root).as_posix()
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise CannotRunError(f"{file}:{error.lineno or 1}: {error.msg}; mend it, then verify it") from None
    except ValueError as error:  # null bytes, which Python up to 3.11 has no place for
        raise CannotRunError(f"{file}: {error}; mend it, then verify it") from None
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name.startswith(_BENCH):
            name = f"{file}:{statement.name}"
            yield Way({"kind": "function", "name": name}, file, name, f"{name}, called again and again")
