"""What a tree brings along hangs no run, fills no memory, and leads neither reading nor writing out of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint import cli, options, regular, source
from torchlint.gitignore import MOST_BYTES

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')
FOUND = "net.py:5:12: TL201 "

has_links = pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege on Windows")
has_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "net.py").write_text(SLOW)
    return folder


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The status of a run in the project, and the lines that it prints."""
    monkeypatch.chdir(project)

    def run(*arguments: str) -> tuple[int, list[str]]:
        status = cli.run([arguments[0], "--quiet", "--output-format", "concise", *arguments[1:]])
        return status, capsys.readouterr().out.splitlines()

    return run


def check_within_a_minute(project: Path) -> list[str]:
    """What is found by a process that may use two gigabytes, so that what hangs or fills the memory fails here."""
    code = (
        "import resource, sys\n"
        "from torchlint.cli import run\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "sys.exit(run(['check', '--quiet', '--jobs', '1', '--output-format', 'concise']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


# What a run reads


@pytest.mark.slow
@has_pipes
@pytest.mark.parametrize("name", [".git", ".gitignore", ".ignore", "torchlint.toml", "pyproject.toml", "x.py"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "zeros"])
def test_only_regular_files_are_read(project: Path, name: str, make: Callable[[Path], None]) -> None:
    if name == ".git":
        (project / ".git").rmdir()
    make(project / name)
    (line,) = check_within_a_minute(project)
    assert line.startswith(FOUND)


@has_links
def test_a_file_that_becomes_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            regular.read(path)


@pytest.mark.parametrize(
    "text",
    [
        "a" + "*a" * 40 + "*b",
        " " * 200_000 + "x",
        "x" + " " * 200_000 + "x",
        "[" * 900_000,
        "\n".join(["[" * 4_000] * 100),
        "\n".join(f"*a{i}*" for i in range(1_900)),
        "\n".join(f"a{i}/b" for i in range(60_000)),
    ],
    ids=["stars", "blanks", "blanks between", "brackets", "lines of brackets", "globs", "paths"],
)
@pytest.mark.slow
def test_no_line_of_an_ignore_file_takes_long(project: Path, text: str) -> None:
    (project / ".gitignore").write_text(f"{text}\nother.py\n")
    (project / "other.py").write_text(SLOW)
    (line,) = check_within_a_minute(project)
    assert line.startswith(FOUND)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a*\n" * 2_001,
            "there are 2001 patterns with wildcards; torchlint takes up to 2000; the file counts for nothing",
        ),
        ("a\n!b\n" * 501, "lines with and without `!` alternate more than 1000 times; the file counts for nothing"),
        ("#" * MOST_BYTES + "#", "more than the 1 MB that torchlint reads of such a file"),
    ],
    ids=["globs", "turns", "large"],
)
def test_an_ignore_file_that_would_take_long_is_named_and_passed_over(
    project: Path, run: Run, text: str, message: str
) -> None:
    (project / ".gitignore").write_text(f"net.py\n{text}")
    (project / "below").mkdir()  # where the file holds, too, and is said of once
    status, (line, found) = run("check")
    assert status == 1
    assert line == f".gitignore:1:1: E902 {message}"
    assert found.startswith(FOUND)


@pytest.mark.parametrize("suffix", ["py", "ipynb"])
def test_a_file_with_too_much_code_is_named_and_costs_no_other_one(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(source, "MOST_CODE", len(SLOW))
    code = SLOW + "# and more\n"
    if suffix == "ipynb":
        cell = f'{{"cell_type": "code", "metadata": {{}}, "outputs": [], "execution_count": null, "source": {code!r}}}'
        cell = cell.replace("'", '"')
        code = f'{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}'
    (project / f"large.{suffix}").write_text(code)
    status, lines = run("check", "--no-cache")
    assert status == 1
    (line,) = (line for line in lines if not line.startswith(FOUND))
    assert line.startswith(f"large.{suffix}:1:1: E902 ")
    assert line.endswith(f" MB of code; torchlint reads up to {regular.size(len(SLOW))} of a file; exclude it")


@pytest.mark.slow
def test_a_file_of_50_megabytes_takes_neither_time_nor_memory(project: Path) -> None:
    (project / "large.py").write_text("import torch\n" + "x = torch.zeros(3).cuda()\n" * 2_000_000)
    line, found = check_within_a_minute(project)
    assert line == "large.py:1:1: E902 52 MB of code; torchlint reads up to 10 MB of a file; exclude it"
    assert found.startswith(FOUND)


def test_a_file_that_is_too_large_is_not_read(project: Path, run: Run) -> None:
    with (project / "large.py").open("wb") as file:
        file.truncate(20_000_000_000)  # zeros that take no room
    status, (line, found) = run("check")
    assert (status, line) == (1, "large.py:1:1: E902 more than the 100 MB that torchlint reads of such a file")
    assert found.startswith(FOUND)


# Links


@has_links
def test_no_link_leads_out_of_the_tree_unless_it_is_named(project: Path, tmp_path: Path, run: Run) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "theirs.py").write_text(SLOW)
    (project / "net.py").unlink()
    (project / "link.py").symlink_to("../elsewhere/theirs.py")
    (project / "folder").symlink_to("../elsewhere")
    (project / "chain.py").symlink_to("link.py")
    for command in (("check",), ("fix",), ("fix", "--unsafe-fixes"), ("check", "--add-ignore")):
        assert run(*command) == (0, [] if command[0] == "fix" else run("check", "--isolated")[1])
        assert (outside / "theirs.py").read_text() == SLOW
    assert run("fix", "link.py")[0] == 0
    assert (outside / "theirs.py").read_text() == FAST


@has_links
def test_a_link_within_the_tree_is_followed(project: Path, run: Run) -> None:
    (project / "below").mkdir()
    (project / "net.py").rename(project / "below" / "net.txt")
    (project / "net.py").symlink_to("below/net.txt")
    assert run("fix")[0] == 0
    assert (project / "below" / "net.txt").read_text() == FAST
    assert (project / "net.py").is_symlink()


# What a configuration names


# Every key that names a path, or may: who adds one says here what it can lead to.
PATHS = {"baseline", "cache-dir", "entry", "extend", "hot", "allow-write", "python", "args"}
NO_PATHS = {
    "select",
    "ignore",
    "extend-select",
    "target-torch",
    "device",
    "budget",
    "level",
    "fail-on",
    "output-format",
}
GLOBS = {"exclude", "extend-exclude", "per-file-ignores", "extend-per-file-ignores", "per-file-severity", "severity"}


def test_each_key_that_holds_words_is_known_to_name_a_path_or_not() -> None:
    tables = ((options.Options, options.properties()), (options.Verify, options.properties()["verify"]["properties"]))
    flags = {"boolean", "integer"}
    words = {key for table, schema in tables for key in options.keys(table) if schema[key].get("type") not in flags}
    assert words == PATHS | NO_PATHS | GLOBS | {"rules", "verify"}


@pytest.mark.skipif(sys.platform == "win32", reason="the program that must not run is a shell script")
def test_nothing_that_a_configuration_names_is_run_or_written_by_a_check_or_a_fix(
    project: Path, tmp_path: Path, run: Run
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    evil = project / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {outside}/ran\n")
    evil.chmod(0o755)
    (project / "b.json").write_text('{"version": 1, "files": {}}')
    (project / "base.toml").write_text("[verify]\nsteps = 1\n")
    (project / "torchlint.toml").write_text(
        "extend = 'base.toml'\ncache-dir = 'cache'\nhot = ['entry.py:f']\nbaseline = 'b.json'\n"
        f"[verify]\npython = '{evil}'\nentry = 'entry.py'\nargs = ['{outside}']\nallow-write = ['{outside}']\n"
    )
    (project / "entry.py").write_text(f"import torch\n\nopen({str(outside / 'ran')!r}, 'w')\n\n\ndef f():\n    pass\n")
    assert run("check")[0] == 1
    assert run("fix")[0] == 0
    assert (project / "net.py").read_text() == FAST
    assert list(outside.iterdir()) == []
