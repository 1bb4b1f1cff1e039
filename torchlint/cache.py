"""What earlier runs found, by content and settings, so that nothing is linted twice.

One SQLite file per installation of torchlint. A result that cannot be read was never there, one that cannot be kept is
forgotten: whatever is wrong with the cache, no run fails of it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import zlib
from contextlib import suppress
from hashlib import blake2b
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torchlint
from torchlint.facts import NOTHING, Answers, Facts
from torchlint.finding import Result
from torchlint.project import Outline
from torchlint.registry import PACK, pack_sources
from torchlint.source import is_notebook

if TYPE_CHECKING:
    from torchlint.settings import Settings

ValueT = TypeVar("ValueT")

VERIFIED = "verified.json"
"""The file beside the databases that `torchlint.verified` keeps."""

# With this file in it, backups leave a folder out: https://bford.info/cachedir/
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# torchlint made this folder; delete it whenever you like.\n"
_MARKS = {"CACHEDIR.TAG": _TAG, ".gitignore": "*\n"}
_SUFFIX = ".sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value BLOB, day INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files
(path BLOB PRIMARY KEY, size INTEGER, modified INTEGER, changed INTEGER, content BLOB, day INTEGER) WITHOUT ROWID
"""
_PATIENCE = 0.5  # seconds to wait for another run that is just writing
_DIGEST_SIZE = 16
_NOTEBOOK = b"notebook"
_SECOND_NS = 1_000_000_000
_DAY_NS = 86_400 * _SECOND_NS
_DAYS_KEPT = 30
_DAYS_FRESH = 7  # the day of a row in use is renewed once a week, so that most runs write nothing
# A file that was modified this shortly ago may change again without a change of its times.
_RACY_NS = 2 * _SECOND_NS


class Stamp(NamedTuple):
    """What the file system says of a file; where none of it has changed, the content has not. Times are in ns."""

    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """What `os.stat` answered."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def digest(data: bytes, name: str = "") -> bytes:
    """What stands for a content, of a file of this name: a notebook is read otherwise than the same bytes elsewhere."""
    return blake2b(data, digest_size=_DIGEST_SIZE, person=_NOTEBOOK if is_notebook(name) else b"").digest()


class Cache:
    """What this installation of torchlint has found before. `close` writes what was added.

    `bulk` reads everything at once, which pays where most of it will be asked for.
    """

    def __init__(self, folder: Path, *, bulk: bool = False) -> None:
        self._folder = folder
        self._file = folder / f"{_installation()}{_SUFFIX}"
        self._now = time.time_ns()
        self._damaged = False
        self._digests: dict[object, bytes] = {}
        self._new_results: dict[bytes, bytes] = {}
        self._new_files: dict[bytes, tuple[Stamp, bytes]] = {}
        self._connection = self._connect() if self._file.is_file() else None
        self._results: dict[bytes, tuple[Any, ...]] | None = None
        self._files: dict[bytes, tuple[Any, ...]] | None = None
        if bulk:
            self._results = {row[0]: row for row in self._ask("SELECT * FROM results")}
            self._files = {row[0]: row for row in self._ask("SELECT * FROM files")}

    def content(self, path: Path, stamp: Stamp) -> bytes | None:
        """The digest of the file's content, if its stamp is what it was when the file was last read."""
        key = os.fsencode(path)
        row = self._one("SELECT * FROM files WHERE path = ?", key) if self._files is None else self._files.get(key)
        match row:
            case (_, stamp.size, stamp.modified, stamp.changed, bytes(content), int(day)):
                if self._is_old(day):
                    self._new_files[key] = stamp, content
                return content
        return None

    def result(self, content: bytes, settings: Settings, facts: Facts = NOTHING) -> Result | None:
        """What linting gave for the content with this digest, where other files say this."""
        value = self._value(content + self._digest(settings, facts))
        return None if value is None else Result() if not value else _unpacked(value, Result)

    def answers(self, content: bytes, settings: Settings, facts: Facts) -> tuple[Answers, ...]:
        """What a file with this content said, each time that it was asked, where other files say this of it."""
        value = self._value(content + self._digest(Answers, settings, facts))
        return () if value is None else _unpacked(value, tuple[Answers, ...]) or ()

    def facts(self, question: bytes) -> dict[str, Facts] | None:
        """What a whole project said to a question with this digest."""
        value = self._value(question)
        return None if value is None else _unpacked(value, dict[str, Facts])

    def outline(self, content: bytes) -> Outline | None:
        """The outline of a file with this content."""
        value = self._value(content + self._digest(Outline))
        return None if value is None else _unpacked(value, Outline)

    def _value(self, key: bytes) -> bytes | None:
        row = self._one("SELECT * FROM results WHERE key = ?", key) if self._results is None else self._results.get(key)
        match row:
            case (_, bytes(value), int(day)):
                if self._is_old(day):
                    self._new_results[key] = value
                return value
        return None

    def keep_content(self, path: Path, stamp: Stamp, content: bytes) -> None:
        """Note the digest of what a file with this stamp holds."""
        if stamp.modified + _RACY_NS < self._now:
            self._new_files[os.fsencode(path)] = stamp, content

    def keep_result(self, content: bytes, settings: Settings, result: Result, facts: Facts = NOTHING) -> None:
        """Note what linting gave for the content with this digest. The usual result, nothing, is no bytes at all."""
        self._keep(content + self._digest(settings, facts), None if result == Result() else result)

    def keep_answers(self, content: bytes, settings: Settings, facts: Facts, answers: tuple[Answers, ...]) -> None:
        """Note all that a file with this content has said so far."""
        self._keep(content + self._digest(Answers, settings, facts), answers)

    def keep_facts(self, question: bytes, facts: dict[str, Facts]) -> None:
        """Note what a whole project said."""
        self._keep(question, facts)

    def keep_outline(self, content: bytes, outline: Outline) -> None:
        """Note the outline of a file with this content."""
        self._keep(content + self._digest(Outline), outline)

    def _keep(self, key: bytes, value: object) -> None:
        with suppress(UnicodeEncodeError):  # a name that is no text, in a message
            self._new_results[key] = b"" if value is None else _packed(value)

    def close(self) -> None:
        """Write what is new, in one transaction."""
        with suppress(OSError, sqlite3.Error):  # no room, no permission, a file where the folder should be
            try:
                self._save()
            except sqlite3.Error as error:
                self._give_up(error)
                if self._damaged:
                    self._save()
        if self._connection is not None:
            self._connection.close()

    def _digest(self, *parts: object) -> bytes:
        """What stands for settings and facts."""
        found = self._digests.get(parts)
        if found is None:
            text = repr(tuple(part for part in parts if part != NOTHING))
            found = self._digests[parts] = digest(text.encode(errors="backslashreplace"))
        return found

    def _is_old(self, day: int) -> bool:
        return self._now // _DAY_NS - day >= _DAYS_FRESH

    def _connect(self) -> sqlite3.Connection | None:
        try:
            return sqlite3.connect(self._file, timeout=_PATIENCE, isolation_level=None)
        except sqlite3.Error:
            return None

    def _one(self, question: str, key: bytes) -> tuple[Any, ...] | None:
        rows = self._ask(question, key)
        return rows[0] if rows else None

    def _ask(self, question: str, *values: bytes) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(question, values).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _give_up(self, error: sqlite3.Error) -> None:
        """Go on without a connection."""
        self._damaged = "locked" not in str(error)  # what another run uses is sound
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _save(self) -> None:
        if not (self._new_results or self._new_files):
            return
        if self._damaged:
            self._remove()
        self._prepare_folder()
        if self._connection is None:
            self._connection = self._connect()
        if self._connection is None:
            return
        today = self._now // _DAY_NS
        execute, each = self._connection.execute, self._connection.executemany
        execute("PRAGMA synchronous = OFF")  # what a power cut damages is a miss
        execute("BEGIN IMMEDIATE")
        for table in _TABLES.split(";"):
            execute(table)
        results = ((key, value, today) for key, value in self._new_results.items())
        each("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", results)
        files = (
            (key, stamp.size, stamp.modified, stamp.changed, content, today)
            for key, (stamp, content) in self._new_files.items()
        )
        each("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", files)
        for table in ("results", "files"):
            execute(f"DELETE FROM {table} WHERE day < ?", (today - _DAYS_KEPT,))  # noqa: S608 - both names stand here
        execute("COMMIT")

    def _prepare_folder(self) -> None:
        prepare(self._folder)
        if not self._file.exists():
            for other in self._folder.glob(f"*{_SUFFIX}"):
                if self._now - other.stat().st_mtime_ns > _DAYS_KEPT * _DAY_NS:
                    other.unlink()

    def _remove(self) -> None:
        """Remove the database, and its journal: SQLite would play that back into the next one."""
        for suffix in ("", "-journal"):
            with suppress(OSError):
                self._file.with_name(self._file.name + suffix).unlink()


def prepare(folder: Path) -> None:
    """Make a cache folder, and mark it as one that git and backups leave out. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _MARKS.items():
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")


def clean(folder: Path) -> bool:
    """Remove a cache folder, as far as torchlint made it. False if there was none. Raises `OSError`."""
    if not (folder / "CACHEDIR.TAG").is_file():
        return False
    for pattern in (f"*{_SUFFIX}", f"*{_SUFFIX}-journal", VERIFIED, f".{VERIFIED}-*.tmp", *_MARKS):
        for file in folder.glob(pattern):
            file.unlink()
    with suppress(OSError):  # something of somebody else's is in it
        folder.rmdir()
    return True


def _packed(value: object) -> bytes:
    """A value with a checksum."""
    import msgspec  # 10 ms that a run without findings does not need

    payload = msgspec.msgpack.encode(value)
    return zlib.crc32(payload).to_bytes(4, "little") + payload


def _unpacked(value: bytes, kind: type[ValueT]) -> ValueT | None:
    if zlib.crc32(value[4:]) != int.from_bytes(value[:4], "little"):
        return None
    import msgspec  # as above

    try:
        return msgspec.msgpack.decode(value[4:], type=kind)
    except msgspec.DecodeError:
        return None


def _installation() -> str:
    """A name for this version of torchlint on these versions of Python and LibCST.

    Its own source is part of it, and that of rule packs, so that a changed rule is asked again.
    """
    summary = blake2b(digest_size=8)
    summary.update(repr((sys.implementation.cache_tag, _libcst())).encode())
    for path in (*_sources(), *pack_sources()):
        summary.update(path.name.encode())
        with suppress(OSError):  # an editor is just replacing it
            summary.update(path.read_bytes())
    return f"{torchlint.__version__}-{summary.hexdigest()}"


def _sources() -> list[Path]:
    """The modules of torchlint and its rules, wherever the latter are."""
    roots = {os.path.realpath(folder) for folder in (*torchlint.__path__, *import_module(PACK).__path__)}
    found = set()
    for root in roots:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ("__pycache__", "fixtures")]
            found |= {Path(folder, name) for name in names if name.endswith((".py", ".pyc"))}
    return sorted(found)


def _libcst() -> str:
    """What tells versions of LibCST apart, without importing it."""
    spec = PathFinder.find_spec("libcst")
    if spec is None or spec.origin is None:
        return ""
    version = Path(spec.origin).with_name("_version.py")
    try:
        return version.read_text(encoding="utf-8")
    except OSError:
        return f"{spec.origin} {Path(spec.origin).stat().st_mtime_ns}"
