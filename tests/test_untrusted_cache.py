"""A cache that came with a tree is not believed, and nothing that torchlint did not make is deleted or written to."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from torchlint import cli, userfolder
from torchlint.cache import Cache
from torchlint.config import Overrides
from torchlint.finding import Finding, Result, Span, Wanted
from torchlint.lsp.analysis import Analyst, Inquire, Place

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FOUND = "net.py:5:12: TL201 "
FORTY_DAYS = 40 * 86_400
ESCAPE = "\x1b]0;owned\x07\n::warning::owned"
# More than are read outright, so that the cache is read as a whole, too.
MANY = 20
ENDLESS = "(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT count(*) FROM r)"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "net.py").write_text(SLOW)
    return folder


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder of somebody else, with files that nobody has written for forty days."""
    folder = tmp_path / "h" / "data"
    folder.mkdir(parents=True)
    for name in ("places.sqlite", f"torchlint-0.1.0-{'0' * 16}.sqlite", f"verified-{'0' * 16}.json", "verified.json"):
        (folder / name).write_text("x")
        os.utime(folder / name, (time.time() - FORTY_DAYS,) * 2)
    return folder


class Done(NamedTuple):
    status: int
    out: str
    err: str


class User:
    """Somebody with a cache folder of their own."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def run(self, project: Path, *arguments: str, **environment: str) -> Done:
        with self._monkeypatch.context() as patched:
            patched.chdir(project)
            for name, value in {**self._environment(), **environment}.items():
                patched.setenv(name, value)
            self._capsys.readouterr()
            return Done(cli.run(list(arguments)), *self._capsys.readouterr())

    def check(self, project: Path, *arguments: str) -> str:
        """What is found, on one line each; nothing else may be said."""
        done = self.run(project, *CHECK, *arguments)
        assert done.err == ""
        return done.out

    def check_in_time(self, project: Path, *arguments: str) -> str:
        """As `check`, by a process that is ended where it does not end."""
        command = [sys.executable, "-m", "torchlint", *CHECK, *arguments]
        environment = {**os.environ, **self._environment()}
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False, timeout=60)
        assert done.stderr == b""
        return done.stdout.decode()

    def _environment(self) -> dict[str, str]:
        home = str(self.home)
        return {"HOME": home, "USERPROFILE": home, "XDG_CACHE_HOME": str(self.home / "caches")}


CHECK = ("check", "--output-format", "concise", "--quiet", "--jobs", "1")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    return User(tmp_path / "h", monkeypatch, capsys)


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    return User(tmp_path / "other", monkeypatch, capsys)


def state(folder: Path) -> dict[str, tuple[bytes | str | None, int]]:
    """All that is in a folder, links as links, with when it was written."""
    return {
        path.relative_to(folder).as_posix(): (
            str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
            path.lstat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    }


COMMANDS = [["check"], ["check", "--diff"], ["fix"], ["clean"]]


# What is not torchlint's


OUTSIDE = ["../h/data", "~/data", "absolute", ".", "sub/../..", "sub/../../h/data", "x/link/data"]


@pytest.mark.parametrize(
    ("said", "command", "file"),
    [(said, ["check"], "pyproject.toml") for said in OUTSIDE]
    + [(OUTSIDE[0], command, "torchlint.toml") for command in COMMANDS],
)
def test_a_configuration_names_no_folder_outside_of_its_own(
    project: Path, foreign: Path, user: User, said: str, command: list[str], file: str
) -> None:
    table = "[tool.torchlint]\n" if file == "pyproject.toml" else ""
    written = str(foreign) if said == "absolute" else said
    (project / "x").mkdir()
    (project / "x" / "link").symlink_to("../../h")
    (project / file).write_text(f"{table}preview = true\ncache-dir = '{written}'\n")
    before = state(foreign)
    done = user.run(project, *command)
    assert done.status == 2
    assert done.out == ""
    assert done.err == (
        f"error: {file}:{len(table.splitlines()) + 2}: `cache-dir`: `{written}` is not a folder inside of `{project}`; "
        "name one, or give any other with `--cache-dir` or TORCHLINT_CACHE_DIR\n"
    )
    assert state(foreign) == before


@pytest.mark.parametrize("said", ["~nosuchuser/x", "a\\u0000b"])
@pytest.mark.parametrize("by", ["file", "--config", "--cache-dir"])
def test_what_is_no_path_gets_a_configuration_error(project: Path, user: User, said: str, by: str) -> None:
    if by == "--cache-dir":
        said = said.replace("\\u0000", "")
    if by == "file":
        (project / "torchlint.toml").write_text(f'cache-dir = "{said}"\n')
    arguments = {"file": [], "--config": ["--config", f'cache-dir = "{said}"'], "--cache-dir": ["--cache-dir", said]}
    done = user.run(project, "check", *arguments[by])
    if said == "ab":
        assert done.status == 1
    else:
        assert done.status == 2
        assert "is not a path: " in done.err
        assert "please report" not in done.err


def test_a_very_long_name_is_an_error_of_the_configuration(project: Path, user: User) -> None:
    (project / "torchlint.toml").write_text(f"cache-dir = '{'x' * 5000}'\n")
    done = user.run(project, *CHECK)
    assert done.status == 2
    assert done.err.endswith("is not a path: more than 1000 characters; name another\n")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", [".torchlint_cache", "kept"])
def test_a_committed_link_is_not_followed(
    project: Path, foreign: Path, user: User, command: list[str], name: str
) -> None:
    (project / name).symlink_to("../h/data")
    before = state(foreign)
    if name == "kept":
        (project / "torchlint.toml").write_text("cache-dir = 'kept'\n")
    done = user.run(project, *command)
    assert done.status == (2 if name == "kept" else {"clean": 0, "fix": 0}.get(command[0], 1))
    assert state(foreign) == before
    assert (project / name).is_symlink()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("by", ["--cache-dir", "TORCHLINT_CACHE_DIR", "link", "file in the tree", "link in the tree"])
def test_a_folder_that_held_something_else_is_left_alone(
    project: Path, foreign: Path, user: User, command: list[str], by: str
) -> None:
    """Whoever names it: no file of it goes, and no mark comes into it."""
    if by.endswith("tree"):
        inner = foreign.rename(project / "data")
        if by == "link in the tree":
            (project / "link").symlink_to("data")
        said = "link" if by == "link in the tree" else "data"
        (project / "torchlint.toml").write_text(f"cache-dir = '{said}'\n")
        foreign = inner
    if by == "link":
        (project.parent / "link").symlink_to(foreign)
    before = state(foreign)
    given = ["--cache-dir", "../link" if by == "link" else str(foreign)] if by in ("--cache-dir", "link") else []
    environment = {"TORCHLINT_CACHE_DIR": str(foreign)} if by == "TORCHLINT_CACHE_DIR" else {}
    done = user.run(project, *command, *given, **environment)
    assert state(foreign) == before
    if command == ["clean"]:
        assert done.status == 2
        why = "is a link" if "link" in by else "is not a cache folder that torchlint made for this user"
        assert done.err.endswith(f"` {why}; nothing was removed\n")
    else:
        assert done.status in (0, 1)
        assert "mask" in done.out or command == ["fix"]


def test_why_there_is_no_cache_is_said_where_one_asks(project: Path, foreign: Path, user: User) -> None:
    done = user.run(project, "check", "--cache-dir", str(foreign))
    assert "cache" not in done.err
    done = user.run(project, "check", "--cache-dir", str(foreign), "--verbose")
    assert done.err.count("cache: ") == 1
    reason = f"`{foreign}` is not a cache folder that torchlint made for this user"
    assert done.err.endswith(f"; cache: none ({reason})\n")


@pytest.mark.parametrize("command", ["check", "clean"])
def test_what_somebody_else_put_into_our_folder_stays(project: Path, foreign: Path, user: User, command: str) -> None:
    """Names alike, links with our names, and folders: none of them is a file that torchlint made."""
    place = ("--cache-dir", "../kept")
    folder = project.parent / "kept"
    user.check(project, *place)
    (ours,) = folder.glob("torchlint-*.sqlite")
    long_ago = (time.time() - FORTY_DAYS,) * 2
    for name in ("places.sqlite", "torchlint.sqlite", f"torchlint-1-{'0' * 16}.sqlite.bak", "verified.json"):
        (folder / name).write_text("x")
        os.utime(folder / name, long_ago)
    (folder / f"torchlint-0.0.1-{'0' * 16}.sqlite").symlink_to(foreign / "places.sqlite")
    (folder / f"torchlint-0.0.2-{'0' * 16}.sqlite").mkdir()
    (folder / f"verified-{'0' * 16}.json").symlink_to(foreign / "places.sqlite")
    ours.unlink()
    before = state(folder)
    others = state(foreign)
    user.run(project, command, *place)
    after = state(folder)
    assert state(foreign) == others
    assert {name: after[name] for name in before if name not in ("CACHEDIR.TAG", ".gitignore")} == {
        name: before[name] for name in before if name not in ("CACHEDIR.TAG", ".gitignore")
    }
    assert (ours.name in after) is (command == "check")


def test_a_link_in_the_place_of_the_database_is_not_written_through(project: Path, foreign: Path, user: User) -> None:
    place = ("--cache-dir", "../kept")
    user.check(project, *place)
    (database,) = (project.parent / "kept").glob("torchlint-*.sqlite")
    copy = foreign / "copy.sqlite"
    database.rename(copy)
    database.symlink_to(copy)
    before = state(foreign)
    (project / "net.py").write_text(SLOW + "\n")
    assert user.check(project, *place).startswith(FOUND)
    assert state(foreign) == before
    assert database.is_symlink()


def test_nothing_is_written_into_the_project(project: Path, user: User) -> None:
    before = state(project)
    for _ in range(2):
        assert user.check(project).startswith(FOUND)
    assert state(project) == before
    (folder,) = (user.home / "caches" / "torchlint" / "projects").iterdir()
    assert folder.name.startswith("project-")
    assert list(folder.glob("torchlint-*.sqlite"))
    done = user.run(project, "clean")
    assert (done.status, done.err) == (0, f"Removed {folder}\n")
    assert not folder.exists()


@pytest.mark.parametrize("by", ["file", "client", "link"])
def test_opening_a_file_in_an_editor_deletes_nothing(
    project: Path, foreign: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.parent / "caches"))
    (project / "torchlint.toml").write_text("cache-dir = '../h/data'\n" if by == "file" else "")
    if by == "link":
        (project / ".torchlint_cache").symlink_to("../h/data")
    overrides = Overrides(config=("cache-dir = '../h/data'",)) if by == "client" else Overrides()
    before = state(foreign)
    place = Place(str(project), str(project / "net.py"), "net.py", overrides, is_workspace=True)
    Analyst().inquire(Inquire(place, SLOW.encode(), Wanted(functions=("mask",)), {}))
    assert state(foreign) == before


# What came with the tree


def change(database: Path, script: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(script)


def all_is_clean(database: Path) -> None:
    change(database, "UPDATE results SET value = x''")


def a_code_with_escapes(database: Path) -> None:
    """Rows as the first version believed them, with a checksum, and as one that seals them may."""
    finding = Finding("host-factory-then-move", ESCAPE, Span(0, 3), ESCAPE)
    payload = msgspec.msgpack.encode(Result((finding,)))
    value = zlib.crc32(payload).to_bytes(4, "little") + payload
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE results SET value = ?", (value,))
        connection.commit()


def an_endless_view_of_results(database: Path) -> None:
    view = f"CREATE VIEW results AS SELECT x'00' AS key, {ENDLESS} AS value, 1 AS day"
    change(database, f"DROP TABLE results; {view}")


def an_endless_view_of_files(database: Path) -> None:
    columns = "x'00' AS path, 1 AS size, 1 AS modified, 1 AS changed, 1 AS content"
    change(database, f"DROP TABLE files; CREATE VIEW files AS SELECT {columns}, {ENDLESS} AS day")


def a_trigger_that_fills_the_disk(database: Path) -> None:
    rows = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 20) SELECT randomblob(1000000) FROM r"
    trigger = f"CREATE TRIGGER fill AFTER INSERT ON results BEGIN INSERT INTO junk {rows}; END"
    change(database, "UPDATE results SET value = x'00'; CREATE TABLE junk (data)")
    change(database, trigger)


def a_column_that_is_no_text(database: Path) -> None:
    data = database.read_bytes()
    assert b" changed INTEGER" in data
    assert b" value BLOB" in data
    database.write_bytes(
        data.replace(b" changed INTEGER", b" ch\xffnged INTEGER").replace(b" value BLOB", b" v\xfflue BLOB")
    )


def a_type_that_is_no_text(database: Path) -> None:
    data = database.read_bytes()
    change(database, "PRAGMA writable_schema = ON; UPDATE sqlite_master SET type = CAST(x'ff' AS TEXT)")
    assert database.read_bytes() != data


HARMS = [
    all_is_clean,
    a_code_with_escapes,
    an_endless_view_of_results,
    an_endless_view_of_files,
    a_trigger_that_fills_the_disk,
    a_column_that_is_no_text,
    a_type_that_is_no_text,
]


@pytest.fixture
def many(project: Path) -> Path:
    (project / "torchlint.toml").write_text("cache-dir = 'kept'\n")
    for number in range(MANY):
        (project / f"net{number}.py").write_text(f"{SLOW}# {number}\n")
    return project


def harmless(user: User, project: Path, expected: str) -> None:
    """Neither a run over all files, which reads a cache as a whole, nor one over a single file is harmed."""
    assert user.check_in_time(project) == expected
    assert user.check_in_time(project, "net.py") == expected.splitlines(keepends=True)[0]
    assert sum(path.stat().st_size for path in (project / "kept").iterdir()) < 500_000


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
def test_a_cache_that_came_with_the_tree_is_not_believed(
    many: Path, user: User, other: User, harm: Callable[[Path], None]
) -> None:
    """All findings are there, nothing else is in the output, and nothing in the folder changes."""
    expected = other.check(many)
    assert expected.count("TL201") == MANY + 1
    (database,) = (many / "kept").glob("*.sqlite")
    harm(database)
    before = state(many)
    harmless(user, many, expected)
    assert state(many) == before


def test_another_users_cache_is_not_believed_under_the_right_name(many: Path, user: User, other: User) -> None:
    """Not even with this user's mark and the name that this user's database has: the rows are sealed, too."""
    expected = user.check(many)
    (own,) = (many / "kept").glob("*.sqlite")
    (many / "kept").rename(many / "own")
    other.check(many)
    (database,) = (many / "kept").glob("*.sqlite")
    assert database.name != own.name
    all_is_clean(database)
    (many / "own" / own.name).write_bytes(database.read_bytes())
    (many / "kept").rename(many / "others")
    (many / "own").rename(many / "kept")
    harmless(user, many, expected)


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
def test_our_own_database_that_somebody_changed_is_a_miss_and_is_replaced(
    many: Path, user: User, harm: Callable[[Path], None]
) -> None:
    expected = user.check(many)
    (database,) = (many / "kept").glob("*.sqlite")
    harm(database)
    harmless(user, many, expected)
    assert list((many / "kept").glob("*.sqlite")) == [database]
    with closing(sqlite3.connect(database)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
        values = connection.execute("SELECT value FROM results").fetchall()
    assert names == ["files", "results"]
    assert all(len(value) >= 16 for (value,) in values)


def test_a_query_ends(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project / "kept"
    content = bytes(16)
    with closing(Cache(folder)) as cache:
        cache.keep_facts(content, {})
    monkeypatch.setattr("torchlint.cache._STEPS", 1)
    monkeypatch.setattr("torchlint.cache._LONGEST_QUERY", -1)
    with closing(Cache(folder)) as cache:
        assert cache.facts(content) is None
    monkeypatch.setattr("torchlint.cache._LONGEST_QUERY", 60)
    with closing(Cache(folder)) as cache:
        assert cache.facts(content) == {}


# The user's own folder


def own(user: User) -> Path:
    return user.home / "caches" / "torchlint"


def is_warm(user: User, project: Path, *arguments: str) -> bool:
    """Whether a run finds the same without linting."""
    done = user.run(project, "check", "--verbose", *arguments)
    assert done.status == 1
    assert "net.py:5:12" in done.out
    return ", 0 linted, " in done.err


def test_the_key_is_the_users_alone(project: Path, user: User, other: User) -> None:
    assert not is_warm(user, project)
    assert is_warm(user, project)
    key = own(user) / "key"
    assert len(key.read_bytes()) == 32
    assert sys.platform == "win32" or key.stat().st_mode & 0o777 == 0o600
    other.check(project)
    assert (own(other) / "key").read_bytes() != key.read_bytes()
    assert sorted(path.name for path in own(user).iterdir()) == ["key", "projects"]


def shorter(key: Path) -> None:
    key.write_bytes(b"short")


def longer(key: Path) -> None:
    key.write_bytes(bytes(33))


def empty(key: Path) -> None:
    key.write_bytes(b"")


def gone(key: Path) -> None:
    key.unlink()


def readable_by_all(key: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("there are no such modes")
    key.chmod(0o644)


def link(key: Path) -> None:
    key.rename(key.with_name("elsewhere"))
    key.symlink_to("elsewhere")


@pytest.mark.parametrize("damage", [shorter, longer, empty, gone, readable_by_all, link])
def test_a_key_that_cannot_be_used_is_replaced(project: Path, user: User, damage: Callable[[Path], None]) -> None:
    """What was kept under the old one is a miss; the project's folder is used again, one in the tree is not."""
    inside = ("--cache-dir", "kept")
    is_warm(user, project)
    is_warm(user, project, *inside)
    key = own(user) / "key"
    before = key.read_bytes()
    damage(key)
    assert not is_warm(user, project)
    assert is_warm(user, project)
    assert key.read_bytes() != before
    assert len(key.read_bytes()) == 32
    assert not key.is_symlink()
    kept = state(project / "kept")
    for _ in range(2):
        assert not is_warm(user, project, *inside)
    assert state(project / "kept") == kept
    assert user.run(project, "clean").status == 0
    assert list((own(user) / "projects").iterdir()) == []


def a_file_in_the_way(user: User) -> None:
    user.home.mkdir()
    (user.home / "caches").write_text("a file")


def a_folder_in_the_place_of_the_key(user: User) -> None:
    (own(user) / "key").mkdir(parents=True)


def no_right(user: User) -> None:
    if sys.platform == "win32" or os.geteuid() == 0:
        pytest.skip("who runs this has every right")
    user.home.mkdir()
    user.home.chmod(0o500)


@pytest.mark.parametrize("obstacle", [a_file_in_the_way, a_folder_in_the_place_of_the_key, no_right])
@pytest.mark.parametrize("place", [(), ("--cache-dir", "kept")])
def test_a_home_that_cannot_be_used_costs_nothing(
    project: Path, user: User, obstacle: Callable[[User], None], place: tuple[str, ...]
) -> None:
    obstacle(user)
    before = state(project)
    for _ in range(2):
        assert user.check(project, *place).startswith(FOUND)
    done = user.run(project, "check", "--verbose", *place)
    assert done.err.endswith(f"; cache: none (there can be no key in `{own(user)}`)\n")
    assert state(project) == before


def test_without_a_home_there_is_no_cache(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as Python answers where nobody knows
    monkeypatch.setattr(sys, "platform", "linux")
    assert userfolder.top() is None
    before = state(project)
    assert cli.run(["check", "--verbose"]) == 1
    assert capsys.readouterr().err.endswith("; cache: none (no folder for it is set in the environment)\n")
    assert cli.run(["clean"]) == 2
    assert "there is no cache folder" in capsys.readouterr().err
    assert cli.run(["config"]) == 0
    assert json.loads(capsys.readouterr().out)["options"]["cache-dir"] is None
    assert state(project) == before


@pytest.mark.parametrize("relative", ["caches", "./caches", "../h", ""])
def test_a_relative_cache_home_is_ignored(project: Path, user: User, relative: str) -> None:
    """It would be a folder of the tree."""
    before = state(project)
    done = user.run(project, "check", "--verbose", XDG_CACHE_HOME=relative, LOCALAPPDATA=str(user.home))
    assert done.status == 1
    assert str(user.home) in done.err.partition("; cache: ")[2]
    assert state(project) == before
    assert list(user.home.rglob("key"))


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache/torchlint"), ("darwin", "Library/Caches/torchlint"), ("win32", "AppData/Local/torchlint/Cache")],
)
def test_the_folder_of_each_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, expected: str
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "AppData" / "Local"))
    monkeypatch.setattr(sys, "platform", platform)
    assert userfolder.top() == tmp_path / expected


def test_it_is_where_platformdirs_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    for home in (str(tmp_path), ""):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        if sys.platform != "win32" or not home:
            assert userfolder.top() == platformdirs.user_cache_path("torchlint", appauthor=False)


def test_projects_of_one_name_have_folders_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    first, second = userfolder.of_project(tmp_path / "a" / "x y"), userfolder.of_project(tmp_path / "b" / "x y")
    assert first is not None
    assert second is not None
    assert first != second
    assert first.name.startswith("x_y-")
    assert userfolder.of_project(tmp_path / "link" / "x y") == first
    assert userfolder.of_project(Path(tmp_path.anchor)) is not None


def test_projects_that_are_gone_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def kept(name: str) -> Path:
        folder = userfolder.of_project(Path("/") / name)
        assert folder is not None
        with closing(Cache(folder)) as cache:
            cache.keep_facts(bytes(16), {})
        return folder

    gone, measured, mine, changed = kept("gone"), kept("measured"), kept("mine"), kept("changed")
    (measured / f"verified-{'0' * 16}.json").write_text("x")
    (mine / "thesis.txt").write_text("mine")
    (changed / "CACHEDIR.TAG").write_text("not ours any more, and long enough not to be the beginning of our mark")
    foreign = gone.with_name("foreign")
    foreign.mkdir()
    (foreign / f"torchlint-0.1.0-{'0' * 16}.sqlite").write_text("x")
    link = gone.with_name("link")
    link.symlink_to(foreign)
    now = time.time_ns() + FORTY_DAYS * 1_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: now)
    new = kept("new")
    assert sorted(path.name for path in gone.parent.iterdir()) == sorted(
        path.name for path in (measured, mine, changed, foreign, link, new)
    )
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
    assert not list(measured.glob("*.sqlite"))
    assert list(measured.glob("verified-*"))
    assert list(changed.glob("*.sqlite"))
    assert list(foreign.iterdir())
