"""What earlier runs of this user found, by content and settings, so that nothing is linted twice.

One SQLite file per installation of torchlint. Every row carries a seal that only this user's key makes (`userfolder`),
so that what came with a tree is a miss. A result that cannot be read was never there, one that cannot be kept is
forgotten: whatever is wrong with the cache, no run fails of it. It deletes what it made and nothing else (`owned`).
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torchlint
from torchlint import userfolder
from torchlint.facts import NOTHING, Answers, Facts, Returned
from torchlint.finding import Result, Wanted
from torchlint.owned import Marks, NotOwnedError, is_own_file, remove, remove_old
from torchlint.project import Outline
from torchlint.registry import PACK, UnknownRuleError, find, pack_sources
from torchlint.settings import Settings
from torchlint.source import is_notebook
from torchlint.userfolder import Seal

ValueT = TypeVar("ValueT")

# Names that nobody else gives: the databases with what SQLite puts beside them, and what `torchlint.verified` keeps.
_DATABASE = re.compile(r"torchlint-[0-9A-Za-z.+]+-[0-9a-f]{16}\.sqlite(?:-journal|-wal|-shm)?")
_VERIFIED = re.compile(r"verified-[0-9a-f]{16}\.json|\.verified-[0-9a-f]{16}\.json-[0-9]+-[0-9a-f]{8}\.tmp")
_BESIDE = ("-journal", "-wal", "-shm")
_TABLES = {
    "results": "CREATE TABLE results (key BLOB PRIMARY KEY, value BLOB, day INTEGER) WITHOUT ROWID",
    "files": "CREATE TABLE files (path BLOB PRIMARY KEY, size INTEGER, modified INTEGER, changed INTEGER, content BLOB,"
    " day INTEGER) WITHOUT ROWID",
}
_SCHEMA = sorted((b"table", name.encode(), name.encode(), text.encode()) for name, text in _TABLES.items())
_RESULT = "SELECT key, value, day FROM results WHERE key = ?"
_FILE = "SELECT path, size, modified, changed, content, day FROM files WHERE path = ?"
_PATIENCE = 0.5  # seconds to wait for another run that is just writing
_LONGEST_QUERY = 10.0  # seconds; reading 100,000 rows takes 0.2
_STEPS = 100_000  # of SQLite's machine between two looks at the clock
_MOST_AT_ONCE = 1 << 28  # bytes of a database that is read as a whole
_DIGEST_SIZE = 16
_NOTEBOOK = b"notebook"
_SECOND_NS = 1_000_000_000
_DAY_NS = 86_400 * _SECOND_NS
_DAYS_KEPT = 30
_DAYS_FRESH = 7  # the day of a row in use is renewed once a week, so that most runs write nothing
# A file that was modified this shortly ago may change again without a change of its times.
_RACY_NS = 2 * _SECOND_NS
# What SQLite and its module for Python raise for a file that is damaged, or made to do harm.
_DAMAGES = (sqlite3.Error, ValueError, OverflowError, MemoryError)


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

    `bulk` reads everything at once, which pays where most of it will be asked for. Without a folder, or where the
    folder cannot be used, everything is a miss and nothing is kept; `problem` then says why, in one line.
    """

    def __init__(self, folder: Path | None, *, bulk: bool = False) -> None:
        self.problem = "" if folder is not None else "no folder for it is set in the environment"
        self._folder = folder
        self._now = time.time_ns()
        self._damaged = False
        self._digests: dict[object, bytes] = {}
        self._new_results: dict[bytes, bytes] = {}
        self._new_files: dict[bytes, tuple[Stamp, bytes]] = {}
        self._connection: sqlite3.Connection | None = None
        self._ends = 0.0
        self._results: dict[bytes, tuple[Any, ...]] | None = None
        self._files: dict[bytes, tuple[Any, ...]] | None = None
        self._key = userfolder.key() if folder is not None else None
        if self._key is not None:
            self._unlock(self._key)
            size = self._open()
            if bulk and size <= _MOST_AT_ONCE:
                self._results = {row[0]: row for row in self._ask(_RESULT.partition(" WHERE")[0])}
                self._files = {row[0]: row for row in self._ask(_FILE.partition(" WHERE")[0])}

    def content(self, path: Path, stamp: Stamp) -> bytes | None:
        """The digest of the file's content, if its stamp is what it was when the file was last read."""
        key = os.fsencode(path)
        row = self._one(_FILE, key) if self._files is None else self._files.get(key)
        match row:
            case (_, stamp.size, stamp.modified, stamp.changed, bytes(sealed), int(day)):
                content = self._seal.opened(sealed, key, *_numbers(stamp))
                if content is not None and self._is_old(day):
                    self._new_files[key] = stamp, content
                return content
        return None

    def result(
        self, content: bytes, settings: Settings, facts: Facts = NOTHING, *, size: int | None = None
    ) -> Result | None:
        """What linting gave for the content with this digest, where other files say this.

        No place in it lies outside of a file of that many bytes.
        """
        value = self._value(content + self._digest(settings, facts))
        found = None if value is None else Result() if not value else _unpacked(value, Result)
        return found if found is not None and _is_possible(found, size) else None

    def answers(self, content: bytes, settings: Settings, facts: Facts) -> tuple[Answers, ...]:
        """What a file with this content said, each time that it was asked, where other files say this of it."""
        value = self._value(content + self._digest(Answers, settings, facts))
        return () if value is None else _unpacked(value, tuple[Answers, ...]) or ()

    def wanted(self, content: bytes, settings: Settings) -> Wanted | None:
        """What linting the content wanted to know when it was told something of it at once; None if it never was."""
        value = self._value(content + self._digest(Wanted, settings))
        return None if value is None else _unpacked(value, Wanted)

    def passes_on(self, content: bytes, settings: Settings) -> tuple[str, ...] | None:
        """On what of other files hung what a file with this content last said that its functions give."""
        value = self._value(content + self._digest(Returned, settings))
        return None if value is None else _unpacked(value, tuple[str, ...])

    def facts(self, question: bytes) -> dict[str, Facts] | None:
        """What a whole project said to a question with this digest."""
        value = self._value(question)
        return None if value is None else _unpacked(value, dict[str, Facts])

    def outline(self, content: bytes) -> Outline | None:
        """The outline of a file with this content."""
        value = self._value(content + self._digest(Outline))
        return None if value is None else _unpacked(value, Outline)

    def _value(self, key: bytes) -> bytes | None:
        row = self._one(_RESULT, key) if self._results is None else self._results.get(key)
        match row:
            case (_, bytes(sealed), int(day)):
                value = self._seal.opened(sealed, key)
                if value is not None and self._is_old(day):
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

    def keep_wanted(self, content: bytes, settings: Settings, wanted: Wanted) -> None:
        """Note what linting the content with this digest wanted to know when it was told something of it at once."""
        self._keep(content + self._digest(Wanted, settings), wanted)

    def keep_passes_on(self, content: bytes, settings: Settings, names: tuple[str, ...]) -> None:
        """Note on what of other files hangs what a file with this content says that its functions give."""
        self._keep(content + self._digest(Returned, settings), names)

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
        try:
            if not self.problem and (self._new_results or self._new_files):
                self._save_or_start_again()
        except (OSError, *_DAMAGES) as error:  # no room, no permission, a file where the folder should be
            self.problem = _words(error)
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

    def _unlock(self, key: bytes) -> None:
        assert self._folder is not None
        installation = _installation()
        self._marks = _marks(self._folder, key)
        self._seal = Seal(key, f"cache {installation}")
        self._file = self._folder / f"torchlint-{torchlint.__version__}-{self._seal.of()[:8].hex()}.sqlite"

    def _open(self) -> int:
        """Connect to the database if there is one that may be read; its size in bytes."""
        assert self._folder is not None
        size = None
        try:
            if self._marks.are_on(self._folder):
                size = self._size()
                self._connection = None if size is None else self._connected()
        except _DAMAGES as error:
            self._give_up(error)
        except OSError as error:
            self.problem = _words(error)
        return size or 0

    def _size(self) -> int | None:
        """How many bytes the database has; None where there is none. Raises `OSError`."""
        for suffix in ("", *_BESIDE):
            path = self._file.with_name(self._file.name + suffix)
            with suppress(FileNotFoundError):
                if not is_own_file(path.lstat()):
                    raise NotOwnedError(f"`{path}` is not a regular file of this user")
        try:
            return self._file.stat().st_size
        except FileNotFoundError:
            return None

    def _connected(self, *, is_new: bool = False) -> sqlite3.Connection | None:
        """A connection to a database with our tables and nothing else in it; None to one that has none yet.

        With `is_new` a database without tables will do. Views and triggers are code of whoever wrote the file, which
        runs with a query. Raises what is in `_DAMAGES`.
        """
        connection = sqlite3.connect(self._file, timeout=_PATIENCE, isolation_level=None)
        is_sound = False
        try:
            connection.text_factory = bytes
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.set_progress_handler(self._is_too_late, _STEPS)
            self._ends = time.monotonic() + _LONGEST_QUERY
            query = f"SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT {len(_SCHEMA) + 1}"  # noqa: S608
            found = connection.execute(query).fetchall()
            is_sound = sorted(found) == _SCHEMA or (is_new and not found)
        finally:
            if not is_sound:
                connection.close()
        if found and not is_sound:
            raise sqlite3.DatabaseError("these are not the tables of torchlint")
        return connection if is_sound else None

    def _is_too_late(self) -> bool:
        return time.monotonic() > self._ends

    def _one(self, question: str, key: bytes) -> tuple[Any, ...] | None:
        rows = self._ask(question, key)
        return rows[0] if rows else None

    def _ask(self, question: str, *values: bytes) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        self._ends = time.monotonic() + _LONGEST_QUERY
        try:
            return self._connection.execute(question, values).fetchall()
        except _DAMAGES as error:
            self._give_up(error)
            return []

    def _give_up(self, error: Exception) -> None:
        """Go on without a connection."""
        self._damaged = "locked" not in str(error)  # what another run uses is sound
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _save_or_start_again(self) -> None:
        try:
            self._save()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._give_up(error)
            if self._damaged:
                self._save()

    def _save(self) -> None:
        if self._key is None:
            self._key = userfolder.key(make=True)
            if self._key is None:
                raise NotOwnedError(f"there can be no key in `{userfolder.top()}`")
            self._unlock(self._key)
        if self._damaged:
            self._remove()
        self._prepare_folder()
        if self._connection is None:
            self._connection = self._connected(is_new=True)
        assert self._connection is not None
        self._connection.set_progress_handler(None, 0)  # the tables are ours
        today = self._now // _DAY_NS
        execute, each = self._connection.execute, self._connection.executemany
        execute("PRAGMA synchronous = OFF")  # what a power cut damages is a miss
        execute("BEGIN IMMEDIATE")
        for table in _TABLES.values():
            execute(table.replace("TABLE", "TABLE IF NOT EXISTS", 1))
        seal = self._seal.closed
        results = ((key, seal(value, key), today) for key, value in self._new_results.items())
        each("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", results)
        files = (
            (key, *stamp, seal(content, key, *_numbers(stamp)), today)
            for key, (stamp, content) in self._new_files.items()
        )
        each("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", files)
        for table in _TABLES:
            execute(f"DELETE FROM {table} WHERE day < ?", (today - _DAYS_KEPT,))  # noqa: S608 - both names stand here
        execute("COMMIT")

    def _prepare_folder(self) -> None:
        assert self._folder is not None
        self._marks.put_on(self._folder)
        if self._size() is None:
            before = self._now - _DAYS_KEPT * _DAY_NS
            remove_old(self._folder, _DATABASE.fullmatch, before)
            if self._folder.parent == userfolder.projects():
                for other in _siblings(self._folder, before):
                    _forget(other, before)

    def _remove(self) -> None:
        """Remove the database, and its journal: SQLite would play that back into the next one."""
        if self._marks.are_on(self._file.parent):
            for suffix in ("", *_BESIDE):
                with suppress(OSError):
                    remove(self._file.with_name(self._file.name + suffix))


def prepare(folder: Path | None) -> bytes:
    """Make a cache folder, and mark it as one; the user's key. Raises `OSError` where that cannot be."""
    key = userfolder.key(make=True)
    if folder is None or key is None:
        raise NotOwnedError(f"there can be no key in `{userfolder.top()}`")
    _marks(folder, key).put_on(folder)
    return key


def clean(folder: Path) -> bool:
    """Remove a cache folder, as far as torchlint made it. False if there was none.

    Raises `OSError`, for a folder that this user's torchlint did not make too.
    """
    marks = _marks(folder, userfolder.key() or os.urandom(userfolder.KEY_SIZE))
    if not marks.are_on(folder):
        return False
    for name in os.listdir(folder):
        if _DATABASE.fullmatch(name) or _VERIFIED.fullmatch(name):
            remove(folder / name)
    marks.take_off(folder)
    return True


def _marks(folder: Path, key: bytes) -> Marks:
    """The marks of a cache folder. What lies in the user's own came with no tree, even where its key is lost."""
    return Marks(Seal(key, "folder").of(), adopts=folder.parent == userfolder.projects())


def _siblings(folder: Path, before: int) -> Iterator[Path]:
    """The folders of other projects in which nothing was written since."""
    for name in os.listdir(folder.parent):
        other = folder.with_name(name)
        with suppress(OSError):
            if other != folder and other.lstat().st_mtime_ns < before:
                yield other


def _forget(folder: Path, before: int) -> None:
    """Remove the old databases of a project, and its folder where that is all there was."""
    with suppress(OSError):
        key = userfolder.key()
        if key is not None and (marks := _marks(folder, key)).are_on(folder):
            remove_old(folder, _DATABASE.fullmatch, before)
            if not any(_DATABASE.fullmatch(name) or _VERIFIED.fullmatch(name) for name in os.listdir(folder)):
                marks.take_off(folder)


def _numbers(stamp: Stamp) -> Iterator[bytes]:
    return (b"%d" % number for number in stamp)


def _words(error: Exception) -> str:
    """What is in the way, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"`{error.filename}`: {error.strerror.lower()}"
    return str(error)


def _packed(value: object) -> bytes:
    import msgspec  # 10 ms that a run without findings does not need

    return msgspec.msgpack.encode(value)


def _unpacked(value: bytes, kind: type[ValueT]) -> ValueT | None:
    import msgspec  # as above

    try:
        return msgspec.msgpack.decode(value, type=kind)
    except msgspec.DecodeError:
        return None


def _is_possible(result: Result, size: int | None) -> bool:
    """Whether all findings are of rules that there are, and at places that a file of this size has."""
    spans = [diagnostic.span for diagnostic in result.diagnostics]
    for finding in result.findings:
        try:
            if find(finding.rule).code != finding.code:
                return False
        except UnknownRuleError:
            return False
        spans += [finding.span, finding.cause, *finding.places]
        spans += [edit.span for edit in (finding.fix.edits if finding.fix is not None else ())]
    return all(span is None or 0 <= span.start <= span.end <= (span.end if size is None else size) for span in spans)


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
