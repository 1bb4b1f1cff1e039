"""What is read and written: the row groups of Parquet files, and a folder with one file for each of them.

A row group that is finished has its part, put there wholly or not at all, so that a run that was ended goes on with the
others. Paths in the rows are data; of the paths here both are named by the user.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from torchlint import __version__
from torchlint.corpus.table import SCHEMA, Options, TableError, check_schema

# Of a row group so much is looked at together, more where no repository ends, and four times as much at most.
MOST_BYTES = 64 << 20
_ROWS = 256
_MANIFEST, _SUCCESS = "_torchlint.json", "_SUCCESS"
_COUNTS = b"torchlint"
PEAK = "peak"


class PartsError(Exception):
    """What cannot be read or written, in one line."""


class Unit(NamedTuple):
    """A row group: the number of its file in the input, the file, and its own number there."""

    number: int
    file: str
    group: int

    @property
    def part(self) -> str:
        """The name of the file for it."""
        return f"part-{self.number:05}-{self.group:05}.parquet"


class Input(NamedTuple):
    """The row groups to check, and what tells the same input from another one."""

    units: tuple[Unit, ...]
    known_by: tuple[object, ...]


def read_input(path: Path, options: Options) -> Input:
    """The row groups of a file, or of the files in a folder. Raises `PartsError` where there is none of files."""
    files = _files(path)
    units: list[Unit] = []
    known_by: list[object] = []
    for number, file in enumerate(files):
        try:
            with pq.ParquetFile(file) as opened:
                check_schema(opened.schema_arrow, options)
                groups = [opened.metadata.row_group(group) for group in range(opened.num_row_groups)]
                sizes = [(group.num_rows, group.total_byte_size) for group in groups]
        except TableError as error:
            raise PartsError(f"{file}: {error}") from None
        except (OSError, pa.ArrowException) as error:
            raise PartsError(f"{file}: no Parquet file that can be read: {_line(error)}") from None
        units += [Unit(number, str(file), group) for group in range(len(sizes))]
        digest = hashlib.sha256(repr(sizes).encode()).hexdigest()
        known_by.append([file.name, file.stat().st_size, len(sizes), digest])
    return Input(tuple(units), tuple(known_by))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise PartsError(f"{path}: there is no such file")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.parquet") if not file.name.startswith((".", "_")) and file.is_file())
    if not files:
        raise PartsError(f"{path}: there is no .parquet file in this folder")
    return files


def batches(unit: Unit, options: Options) -> Iterator[pa.RecordBatch]:
    """The rows of a row group, in batches that end where a repository does, as far as that can be."""
    held: list[pa.RecordBatch] = []
    size, enough = 0, MOST_BYTES
    names = list(options.names())
    try:
        with pq.ParquetFile(unit.file, pre_buffer=False) as opened:
            for batch in opened.iter_batches(_ROWS, row_groups=[unit.group], columns=names):
                held.append(batch)
                size += batch.nbytes
                if size < enough:
                    continue
                whole = pa.concat_batches(held)
                end = whole.num_rows if size >= 4 * MOST_BYTES else _last_beginning(whole.column(names[0]))
                if end:
                    yield whole.slice(0, end)
                held = [whole.slice(end)]
                size = held[0].nbytes
                enough = MOST_BYTES if end else 2 * enough
            whole = pa.concat_batches(held) if held else None
            if whole is not None and whole.num_rows:
                yield whole
    except (OSError, pa.ArrowException) as error:
        raise PartsError(f"{unit.file}: row group {unit.group} cannot be read: {_line(error)}") from None


def _last_beginning(repositories: pa.Array) -> int:
    """The row at which the last repository begins."""
    last = len(repositories) - 1
    place = last
    while place > 0 and repositories[place - 1] == repositories[last]:
        place -= 1
    return place


class Output:
    """A folder of parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self, source: Input, options: Options) -> bool:
        """Make the folder, or find that it is of a run of the same that was ended: whether it is so.

        Raises `PartsError` for anything else that is there.
        """
        manifest = _manifest(source, options)
        try:
            self.folder.mkdir()
        except FileExistsError:
            self._refuse_other(manifest)
            return True
        except OSError as error:
            raise PartsError(f"{self.folder}: cannot make this folder: {error.strerror}") from None
        self._put(_MANIFEST, lambda file: file.write_text(manifest, encoding="utf-8"))
        return False

    def _refuse_other(self, manifest: str) -> None:
        try:
            there = (self.folder / _MANIFEST).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise PartsError(f"{self.folder} exists; name another place, or remove it") from None
        if (self.folder / _SUCCESS).exists():
            raise PartsError(f"{self.folder} exists and is complete; name another place, or remove it")
        if there != manifest:
            why = "another input, other options or another version of torchlint"
            raise PartsError(f"{self.folder} exists, from {why}; name another place, or remove it")

    def left(self, units: Iterable[Unit]) -> list[Unit]:
        """Those that have no part yet."""
        there = set(os.listdir(self.folder))
        return [unit for unit in units if unit.part not in there]

    def write(self, unit: Unit, rows: Iterable[pa.RecordBatch], counts: Callable[[], Counter[str]]) -> None:
        """Write the part of a row group, and what is counted once all is written."""

        def written(file: Path) -> None:
            with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
                for batch in rows:
                    writer.write_batch(batch)
                writer.add_key_value_metadata({_COUNTS: json.dumps(counts(), sort_keys=True)})

        self._put(unit.part, written)

    def counts(self, units: Iterable[Unit]) -> Counter[str]:
        """What was counted in all parts; of the most memory that a process has had, the most."""
        total: Counter[str] = Counter()
        for unit in units:
            metadata = pq.read_metadata(self.folder / unit.part).metadata or {}
            counts = Counter(json.loads(metadata.get(_COUNTS, b"{}")))
            peak = max(total[PEAK], counts[PEAK])
            total.update(counts)
            total[PEAK] = peak
        return total

    def finish(self) -> None:
        """Mark it as complete, as Spark and Hadoop do; what runs that were killed began to write goes."""
        for name in os.listdir(self.folder):
            if name.startswith(".part-"):
                (self.folder / name).unlink(missing_ok=True)
        self._put(_SUCCESS, Path.touch)

    def _put(self, name: str, write: Callable[[Path], Any]) -> None:
        """Write a file under another name, which readers of Parquet pass over, and put it in its place."""
        temporary = self.folder / f".{name}.{secrets.token_hex(8)}"
        try:
            try:
                write(temporary)
                temporary.replace(self.folder / name)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise PartsError(f"{self.folder / name}: cannot write: {error.strerror or error}") from None


def _manifest(source: Input, options: Options) -> str:
    """What the parts were made of, so that those of one run are never mixed with those of another."""
    described = {
        "torchlint": __version__,
        "options": [asdict(options.overrides), *options[1:]],
        "input": source.known_by,
    }
    return json.dumps(described, indent=1, sort_keys=True, default=list) + "\n"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
