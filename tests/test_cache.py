"""What was found before is found again without linting, and no state of the cache costs a run."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import torchlint
from torchlint import cache as cache_module
from torchlint import userfolder
from torchlint.cache import Cache, Stamp, clean, digest
from torchlint.finding import (
    Applicability,
    Diagnostic,
    Edit,
    Fault,
    Finding,
    Fix,
    Frequency,
    Result,
    Span,
)
from torchlint.owned import NotOwnedError
from torchlint.settings import Settings

SETTINGS = Settings(rules=("item-in-train-loop",), options=(("item-in-train-loop", (("every", 10),)),))
OTHER = Settings(rules=("item-in-train-loop",), target_torch=(2, 4))
FIX = Fix("Keep it é", (Edit(Span(3, 3), "x"), Edit(Span(4, 9), "")), Applicability.UNSAFE)
RESULT = Result(
    (
        Finding("item-in-train-loop", "TL301", Span(3, 9), "`.item()` waits — é", Frequency.BATCH, FIX),
        Finding("data-parallel", "TL701", Span(10, 12), "slow"),
    ),
    (
        Diagnostic("E999", "invalid-syntax", "syntax error", span=Span(1, 1)),
        Diagnostic("E000", "internal-error", "crash", Fault.INTERNAL),
    ),
)
CONTENT = digest(b"import torch\n")
LONG_AGO = Stamp(13, 1_000, 2_000)
PATH = Path("/project/train.py")


def filled(folder: Path) -> Path:
    """Make a cache with one result, and return its database."""
    cache = Cache(folder)
    cache.keep_result(CONTENT, SETTINGS, RESULT)
    cache.keep_content(PATH, LONG_AGO, CONTENT)
    cache.close()
    (database,) = folder.glob("*.sqlite")
    return database


def found(folder: Path, settings: Settings = SETTINGS) -> Result | None:
    with closing(Cache(folder)) as cache:
        return cache.result(CONTENT, settings)


def found_content(folder: Path, path: Path, stamp: Stamp) -> bytes | None:
    with closing(Cache(folder)) as cache:
        return cache.content(path, stamp)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".torchlint_cache"


@pytest.mark.parametrize("bulk", [False, True])
def test_what_was_kept_is_found(folder: Path, bulk: bool) -> None:  # noqa: FBT001 - a parameter of the test
    filled(folder)
    cache = Cache(folder, bulk=bulk)
    assert cache.result(CONTENT, SETTINGS) == RESULT
    assert cache.content(PATH, LONG_AGO) == CONTENT
    assert cache.result(CONTENT, OTHER) is None
    assert cache.result(digest(b"import torch"), SETTINGS) is None
    assert cache.content(Path("/project/other.py"), LONG_AGO) is None
    cache.close()


def test_types_survive(folder: Path) -> None:
    filled(folder)
    cache = Cache(folder)
    result = cache.result(CONTENT, SETTINGS)
    cache.close()
    assert result is not None
    first, second = result.findings
    assert isinstance(first.frequency, Frequency)
    assert first.fix is not None
    assert isinstance(first.fix.applicability, Applicability)
    assert isinstance(first.fix.edits[0], Edit)
    assert second.fix is None
    assert [diagnostic.fault for diagnostic in result.diagnostics] == [Fault.FILE, Fault.INTERNAL]


@pytest.mark.parametrize("changes", [{"size": 14}, {"modified": 1_001}, {"changed": 2_001}])
def test_another_stamp_is_another_content(folder: Path, changes: dict[str, int]) -> None:
    filled(folder)
    cache = Cache(folder)
    assert cache.content(PATH, LONG_AGO._replace(**changes)) is None
    cache.close()


def test_the_stamp_of_a_file_that_was_just_written_is_not_trusted(folder: Path) -> None:
    cache = Cache(folder)
    fresh = Stamp(13, time.time_ns(), 0)
    cache.keep_content(PATH, fresh, CONTENT)
    cache.close()
    assert found_content(folder, PATH, fresh) is None


def test_the_folder_says_what_it_is(folder: Path) -> None:
    filled(folder)
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (folder / ".gitignore").read_text() == "*\n"


def test_nothing_new_writes_nothing(folder: Path) -> None:
    Cache(folder).close()
    assert not folder.exists()
    database = filled(folder)
    before = database.stat().st_mtime_ns
    cache = Cache(folder, bulk=True)
    cache.result(CONTENT, SETTINGS)
    cache.content(PATH, LONG_AGO)
    cache.close()
    assert database.stat().st_mtime_ns == before


def garbage(database: Path) -> None:
    database.write_bytes(b"this is no database, and has been none since it was written" * 40)


def empty(database: Path) -> None:
    database.write_bytes(b"")


def cut_short(database: Path) -> None:
    database.write_bytes(database.read_bytes()[: database.stat().st_size // 2])


def cut_in_the_first_page(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:50])


def zeros_at_the_end(database: Path) -> None:
    data = database.read_bytes()
    database.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))


def other_tables(database: Path) -> None:
    database.unlink()
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE results (something TEXT)")
        connection.execute("CREATE TABLE files (a, b, c, d, e, f)")
        connection.execute("INSERT INTO files VALUES (1, 'x', NULL, 2.5, 'content', 'day')")
        connection.execute("INSERT INTO results VALUES ('x')")
    connection.close()


def change_values(database: Path, change: Callable[[bytes], object]) -> None:
    with sqlite3.connect(database) as connection:
        for key, value in connection.execute("SELECT key, value FROM results").fetchall():
            connection.execute("UPDATE results SET value = ? WHERE key = ?", (change(value), key))
    connection.close()


def a_value_of_another_shape(database: Path) -> None:
    key = userfolder.key()
    assert key is not None
    seal = userfolder.Seal(key, f"cache {cache_module._installation()}")  # noqa: SLF001 - as it is made
    with sqlite3.connect(database) as connection:
        for row in connection.execute("SELECT key, value FROM results").fetchall():
            assert seal.opened(row[1], row[0]) is not None
            connection.execute("UPDATE results SET value = ?", (seal.closed(b"\x93\x01\x02\x03", row[0]),))
    connection.close()


def a_flipped_bit(database: Path) -> None:
    change_values(database, lambda value: value[:-3] + bytes([value[-3] ^ 1]) + value[-2:])


def a_cut_value(database: Path) -> None:
    change_values(database, lambda value: value[:-5])


def a_value_of_another_type(database: Path) -> None:
    change_values(database, lambda _: "text")


DAMAGES = [
    garbage,
    empty,
    cut_short,
    cut_in_the_first_page,
    zeros_at_the_end,
    other_tables,
    a_flipped_bit,
    a_cut_value,
    a_value_of_another_type,
    a_value_of_another_shape,
]


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_a_miss_and_is_mended(
    folder: Path,
    damage: Callable[[Path], None],
    bulk: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    damage(filled(folder))
    cache = Cache(folder, bulk=bulk)
    assert cache.result(CONTENT, SETTINGS) is None
    assert cache.content(PATH, LONG_AGO) in (None, CONTENT)
    cache.keep_result(CONTENT, SETTINGS, RESULT)
    cache.close()
    after = Cache(folder, bulk=bulk)
    assert after.result(CONTENT, SETTINGS) == RESULT
    after.close()


def test_a_journal_left_by_a_killed_run_is_not_played_into_a_new_database(folder: Path) -> None:
    database = filled(folder)
    garbage(database)
    journal = database.with_name(database.name + "-journal")
    journal.write_bytes(os.urandom(600))
    cache = Cache(folder)
    assert cache.result(CONTENT, SETTINGS) is None
    cache.keep_result(CONTENT, SETTINGS, RESULT)
    cache.close()
    assert not journal.exists()
    assert found(folder) == RESULT


def test_a_cache_in_use_is_a_miss_and_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_PATIENCE", 0.01)
    database = filled(folder)
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache = Cache(folder)
    assert cache.result(CONTENT, SETTINGS) is None
    cache.keep_result(CONTENT, OTHER, RESULT)
    cache.close()
    other.execute("ROLLBACK")
    other.close()
    assert found(folder) == RESULT


def a_file_in_its_place(folder: Path) -> None:
    folder.write_text("here first")


def a_folder_in_place_of_the_database(folder: Path) -> None:
    database = filled(folder)
    database.unlink()
    database.mkdir()


def a_link_to_nowhere(folder: Path) -> None:
    folder.symlink_to(folder.parent / "gone" / "further")


@pytest.mark.parametrize("obstacle", [a_file_in_its_place, a_folder_in_place_of_the_database, a_link_to_nowhere])
def test_a_folder_that_cannot_be_written_costs_nothing(folder: Path, obstacle: Callable[[Path], None]) -> None:
    obstacle(folder)
    cache = Cache(folder)
    assert cache.result(CONTENT, SETTINGS) is None
    cache.keep_result(CONTENT, SETTINGS, RESULT)
    cache.close()


def test_a_disk_without_room_costs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens = os.open

    def fail(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(28, "No space left on device", str(path))
        return opens(path, flags, mode)

    userfolder.key(make=True)
    monkeypatch.setattr(os, "open", fail)
    cache = Cache(folder)
    cache.keep_result(CONTENT, SETTINGS, RESULT)
    cache.close()
    assert cache.problem == f"`{folder / 'CACHEDIR.TAG'}`: no space left on device"
    assert found(folder) is None
    monkeypatch.undo()
    filled(folder)
    assert found(folder) == RESULT, "what was begun is ended"


def at_day(monkeypatch: pytest.MonkeyPatch, day: int) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: day * 86_400 * 1_000_000_000)


def test_what_nobody_asks_for_is_forgotten_and_what_is_used_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_day(monkeypatch, 20_000)
    cache = Cache(folder)
    for settings in (SETTINGS, OTHER):
        cache.keep_result(CONTENT, settings, RESULT)
    cache.close()
    at_day(monkeypatch, 20_020)
    cache = Cache(folder)
    assert cache.result(CONTENT, SETTINGS) == RESULT
    cache.close()
    at_day(monkeypatch, 20_045)
    cache = Cache(folder)
    cache.keep_content(PATH, LONG_AGO, CONTENT)
    cache.close()
    cache = Cache(folder)
    assert cache.result(CONTENT, SETTINGS) == RESULT
    assert cache.result(CONTENT, OTHER) is None
    cache.close()


def test_caches_of_other_installations_go_when_they_are_old(folder: Path) -> None:
    filled(folder).unlink()
    old, recent = folder / f"torchlint-0.0.1-{'0' * 16}.sqlite", folder / f"torchlint-0.0.2-{'1' * 16}.sqlite"
    old.touch()
    recent.touch()
    long_ago = time.time() - 40 * 86_400
    os.utime(old, (long_ago, long_ago))
    cache = Cache(folder)
    cache.keep_result(CONTENT, SETTINGS, RESULT)
    cache.close()
    assert not old.exists()
    assert recent.exists()


def test_a_path_that_is_no_text_is_kept(folder: Path) -> None:
    path = Path(os.fsdecode(b"/project/\xff.py"))
    cache = Cache(folder)
    cache.keep_content(path, LONG_AGO, CONTENT)
    cache.close()
    assert found_content(folder, path, LONG_AGO) == CONTENT


def test_a_message_that_is_no_text_is_not_kept(folder: Path) -> None:
    cache = Cache(folder)
    cache.keep_result(CONTENT, SETTINGS, Result((Finding("r", "TL1", Span(0, 1), "\udcff"),)))
    cache.close()
    assert found(folder) is None


def of(span: Span, code: str = "TL301", rule: str = "item-in-train-loop", **more: object) -> Result:
    return Result((replace(Finding(rule, code, span, "slow"), **more),))  # type: ignore[arg-type]  # of the field


@pytest.mark.parametrize(
    ("result", "is_possible"),
    [
        (of(Span(0, 13)), True),
        (of(Span(13, 13)), True),
        (of(Span(0, 14)), False),
        (of(Span(-1, 3)), False),
        (of(Span(3, 2)), False),
        (of(Span(0, 1), cause=Span(0, 14)), False),
        (of(Span(0, 1), fix=Fix("", (Edit(Span(0, 14), ""),), Applicability.SAFE)), False),
        (Result(diagnostics=(Diagnostic("E999", "invalid-syntax", "", span=Span(14, 14)),)), False),
        (Result(diagnostics=(Diagnostic("E999", "invalid-syntax", ""),)), True),
        (of(Span(0, 1), code="TL302"), False),
        (of(Span(0, 1), code="\x1b[2J"), False),
        (of(Span(0, 1), rule="no-such-rule"), False),
    ],
)
def test_what_cannot_be_found_in_a_file_is_a_miss(folder: Path, result: Result, *, is_possible: bool) -> None:
    """Of thirteen bytes, by rules that there are."""
    cache = Cache(folder)
    cache.keep_result(CONTENT, SETTINGS, result)
    cache.close()
    with closing(Cache(folder)) as cache:
        assert cache.result(CONTENT, SETTINGS, size=13) == (result if is_possible else None)


def test_what_is_too_large_is_not_read_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(folder)
    monkeypatch.setattr(cache_module, "_MOST_AT_ONCE", 100)
    with closing(Cache(folder, bulk=True)) as cache:
        assert cache._results is None  # noqa: SLF001 - nothing else shows it
        assert cache.result(CONTENT, SETTINGS) == RESULT


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
@pytest.mark.parametrize("what", ["CACHEDIR.TAG", ".gitignore", "database", "journal"])
def test_a_pipe_is_not_waited_for(folder: Path, what: str) -> None:
    database = filled(folder)
    names = {"database": database.name, "journal": f"{database.name}-journal"}
    path = folder / names.get(what, what)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    cache = Cache(folder)
    assert cache.result(CONTENT, SETTINGS) == (RESULT if what == ".gitignore" else None)
    cache.keep_result(CONTENT, OTHER, RESULT)
    cache.close()
    assert bool(cache.problem) is (what != ".gitignore")
    assert path.is_fifo()


def test_a_changed_rule_is_another_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "rule.py"
    source.write_text("A = 1\n")
    sources = cache_module._sources  # noqa: SLF001 - what it lists is the point
    listed = sources()
    assert Path(torchlint.__file__).resolve() in listed
    assert any(path.name == "unused_ignore.py" for path in listed)
    monkeypatch.setattr(cache_module, "_sources", lambda: [*listed, source])
    before = cache_module._installation()  # noqa: SLF001 - as above
    assert cache_module._installation() == before  # noqa: SLF001 - as above
    status = source.stat()
    source.write_text("A = 2\n")
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache_module._installation() != before  # noqa: SLF001 - as above


def test_another_libcst_is_another_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_module._installation()  # noqa: SLF001 - as above
    assert "1." in cache_module._libcst()  # noqa: SLF001 - as above
    monkeypatch.setattr(cache_module, "_libcst", lambda: "2.0.0")
    assert cache_module._installation() != before  # noqa: SLF001 - as above


def test_the_cache_needs_no_libcst(folder: Path) -> None:
    filled(folder)
    code = (
        "import json, sys, pathlib\n"
        "from torchlint.cache import Cache, Stamp\n"
        "cache = Cache(pathlib.Path(sys.argv[1]), bulk=True)\n"
        "print(json.dumps(sorted(name for name in sys.modules if name in ('libcst', 'pickle'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_clean_removes_what_torchlint_made_and_no_more(folder: Path) -> None:
    assert not clean(folder)
    filled(folder)
    assert clean(folder)
    assert not folder.exists()
    filled(folder)
    (folder / "thesis.txt").write_text("mine")
    assert clean(folder)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_clean_leaves_a_folder_that_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "mine.sqlite").write_text("mine")
    with pytest.raises(NotOwnedError, match="not a cache folder that torchlint made"):
        clean(tmp_path)
    assert (tmp_path / "mine.sqlite").exists()
