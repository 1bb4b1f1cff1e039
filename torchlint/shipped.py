"""What comes with torchlint beside its code: the pages of its rules, and the fixtures with their evidence.

In a checkout, and where one is installed as editable, they are files. A wheel holds each of both folders as one file,
a tenth of their size, which `setup.py` packs: hundreds of small files take long to install.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal


class UnpackableError(Exception):
    """Python lacks here what unpacks it."""


Folder = Literal["fixtures", "rules"]


def read(folder: Folder, path: str) -> bytes:
    """A file below one of the two folders, by its POSIX path. Raises `FileNotFoundError`."""
    packed = _packed(folder)
    if packed is None:
        return files(f"torchlint.{folder}").joinpath(*path.split("/")).read_bytes()
    try:
        return packed[path].encode()
    except KeyError:
        raise FileNotFoundError(f"torchlint/{folder}/{path}") from None


def names(folder: Folder, path: str) -> tuple[str, ...]:
    """The names of what stands right in a folder, "" for the top, sorted; none where there is no such folder."""
    packed = _packed(folder)
    if packed is not None:
        below = f"{path}/" if path else ""
        return tuple(sorted({name[len(below) :].partition("/")[0] for name in packed if name.startswith(below)}))
    found = files(f"torchlint.{folder}").joinpath(*path.split("/"))
    return tuple(sorted(entry.name for entry in found.iterdir())) if found.is_dir() else ()


def has(folder: Folder, path: str) -> bool:
    """Whether there is such a file."""
    packed = _packed(folder)
    return path in packed if packed is not None else files(f"torchlint.{folder}").joinpath(*path.split("/")).is_file()


@cache
def _packed(folder: Folder) -> Mapping[str, str] | None:
    """The texts of a folder by their paths, None where they are files."""
    try:
        data = (files("torchlint") / f"{folder}.json.bz2").read_bytes()
    except FileNotFoundError:
        return None
    try:
        import bz2  # only where torchlint is installed from a wheel
    except ModuleNotFoundError:
        why = f"torchlint's {folder} are packed with bz2, which this Python lacks: build it with libbz2"
        raise UnpackableError(why) from None
    paths, *parts = json.loads(bz2.decompress(data))
    return dict(zip(paths, map("".join, zip(*parts, strict=True)), strict=True))
