"""Whatever it is given, torchlint says one clear line, exits with the right status, and costs nobody a file."""

from __future__ import annotations

import codecs
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SLOW = "import torch\n\n\ndef mask(size):\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')
TORCH = b"import torch\nx = torch.zeros(3).cuda()\n"
HIT = "TL201"

is_root = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one file that has a finding, so that each test sees that it is still found."""
    (tmp_path / "good.py").write_text(SLOW)
    return tmp_path


def start(project: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torchlint", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TORCHLINT_")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    return subprocess.Popen(command, cwd=project, env=environment, **pipes, **options)  # type: ignore[call-overload, no-any-return]


def torchlint(project: Path, *arguments: str) -> tuple[int, list[str], list[str]]:
    """Status, and the lines on standard output and standard error, which hold no traceback."""
    with start(project, *arguments) as process:
        out, err = process.communicate(timeout=120)
    assert "Traceback" not in out + err
    return process.returncode, out.splitlines(), err.splitlines()


def check(project: Path, *arguments: str) -> tuple[int, list[str]]:
    """Status and findings, the one in `good.py` aside, which has to be among them; nothing on standard error."""
    status, out, err = torchlint(project, "check", "--quiet", "--output-format", "concise", *arguments)
    assert err == []
    others = [line for line in out if not line.startswith("good.py:5:12: TL201 ")]
    assert len(others) == len(out) - 1, out
    return status, others


# Paths


def test_a_missing_path(project: Path) -> None:
    status, (line,) = check(project, "gone.py", ".")
    assert status == 1
    assert line == "gone.py:1:1: E902 no such file or directory"


def test_a_folder_without_python(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("torch")
    status, out, err = torchlint(tmp_path, "check")
    assert status == 0
    assert out == ["All checks passed!"]
    assert err == ["warning: no Python files found under the given paths"]


@pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege on Windows")
def test_a_loop_of_links(project: Path) -> None:
    (project / "a.py").symlink_to("b.py")
    (project / "b.py").symlink_to("a.py")
    (project / "folder").mkdir()
    (project / "folder" / "up").symlink_to("..", target_is_directory=True)
    assert check(project, ".") == (1, [])
    status, (line,) = check(project, "a.py", "good.py")
    assert status == 1
    assert line.startswith("a.py:1:1: E902 too many levels of symbolic links")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_not_read(project: Path) -> None:
    os.mkfifo(project / "pipe.py")
    assert check(project, ".") == (1, [])
    status, (line,) = check(project, "pipe.py", "good.py")
    assert status == 1
    assert line == "pipe.py:1:1: E902 not a regular file"


@pytest.mark.skipif(is_root, reason="root may read everything")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits")
def test_an_unreadable_file_and_folder(project: Path) -> None:
    (project / "secret.py").write_text(SLOW)
    (project / "secret.py").chmod(0)
    (project / "folder").mkdir(mode=0)
    try:
        status, lines = check(project, ".")
    finally:
        (project / "folder").chmod(0o755)
    assert status == 1
    assert lines == [
        "folder:1:1: E902 cannot list the folder: permission denied",
        "secret.py:1:1: E902 permission denied",
    ]


def test_a_file_that_the_system_does_not_let_be_read(project: Path) -> None:
    """As above, for whom the system lets read everything: the refusal is acted."""
    (project / "secret.py").write_text(SLOW)
    code = (
        "import pathlib, sys\n"
        "read = pathlib.Path.read_bytes\n"
        "def refuse(path):\n"
        "    if path.name == 'secret.py':\n"
        "        raise PermissionError(13, 'Permission denied')\n"
        "    return read(path)\n"
        "pathlib.Path.read_bytes = refuse\n"
        "from torchlint.cli import run\n"
        "sys.exit(run(['check', '--quiet', '--output-format', 'concise']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert HIT in first
    assert second == "secret.py:1:1: E902 permission denied"


# Contents


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (b"import torch\ntorch.zeros(3).cuda(\n", 1, "E999 syntax error"),
        (b"import torch\nprint torch.zeros(3).cuda()\n", 1, "E999 syntax error"),
        (b"import torch\nif x:\n\ty = torch.zeros(3).cuda()\n        z = 1\n", 1, "E999 syntax error"),
        (TORCH + b"# caf\xe9\n", 1, "E902 not utf-8: byte 0xe9 on line 3"),
        (b"# coding: klingon\n" + TORCH, 1, "E902 unknown encoding: klingon"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n" + TORCH, 1, "E902 encoding problem: utf-8"),
        (TORCH.decode().encode("utf-16"), 1, None),
        (TORCH + b"x = 1\x00\n", 1, "E999 "),
        (b"\x00" * 1000 + TORCH, 1, "E999 "),
        (b"", 1, None),
        (b"\n\n\n", 1, None),
        (b"\\", 1, None),
        (codecs.BOM_UTF8, 1, None),
        (b"# torch", 1, None),
        (b"import torch\nx = '" + b"torch.zeros(3).cuda()" * 100_000 + b"'\n", 1, None),
    ],
    ids=[
        "syntax",
        "Python 2",
        "tabs and blanks",
        "not UTF-8",
        "unknown encoding",
        "contradiction",
        "UTF-16",
        "NUL",
        "NULs",
        "empty",
        "blank lines",
        "backslash",
        "BOM alone",
        "comment without newline",
        "2 MB line",
    ],
)
def test_a_file_that_cannot_be_read_or_holds_nothing(
    project: Path, data: bytes, status: int, message: str | None
) -> None:
    (project / "odd.py").write_bytes(data)
    for _ in range(2):  # the second time from the cache
        found, lines = check(project)
        assert found == status
        assert len(lines) == (message is not None), lines
        assert message is None or message in lines[0], lines
    torchlint(project, "fix", "--unsafe-fixes")
    assert (project / "odd.py").read_bytes() == data
    assert (project / "good.py").read_text() == FAST


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (codecs.BOM_UTF8 + TORCH, "2:5"),
        (TORCH.replace(b"\n", b"\r\n"), "2:5"),
        (TORCH.replace(b"\n", b"\r"), "2:5"),
        (b"\x0c\n" + TORCH, "3:5"),
        (b"import torch\n\x0c\nx = torch.zeros(3).cuda()\n", "3:5"),
        (b"# coding: latin-1\n# caf\xe9\n" + TORCH, "4:5"),
        (b"#!/usr/bin/python\n# -*- coding: cp1252 -*-\ns = '\x80'\n" + TORCH, "5:5"),
        (TORCH[:-1], "2:5"),
        (b"import torch\nif 1:\n\tx = torch.zeros(3).cuda()\n", "3:6"),
        ("import torch\nü, 𝔘 = torch.zeros(3).cuda(), 1\n".encode(), "2:8"),
        (b"import torch\ns = '''\r\n\n\r'''\nx = torch.zeros(3).cuda()\r\n", "6:5"),
    ],
    ids=[
        "BOM",
        "CRLF",
        "CR",
        "form feed",
        "form feed between",
        "latin-1",
        "cp1252",
        "no newline at the end",
        "tab",
        "beyond ASCII",
        "mixed newlines",
    ],
)
def test_an_unusual_file_is_checked_and_nothing_but_the_fix_changes(project: Path, data: bytes, place: str) -> None:
    (project / "odd.py").write_bytes(data)
    status, (line,) = check(project)
    assert status == 1
    assert line.startswith(f"odd.py:{place}: TL201 ")
    status, _, _ = torchlint(project, "fix", "odd.py")
    assert status == 0
    assert (project / "odd.py").read_bytes() == data.replace(b"3).cuda()", b'3, device="cuda")')


def test_a_file_of_5_megabytes(project: Path) -> None:
    data = b"import torch\n" + b"x = [1, 2, 3]  # as it is\n" * 200_000 + b"y = torch.zeros(3).cuda()\n"
    assert len(data) > 5_000_000
    (project / "large.py").write_bytes(data)
    with start(project, "check", "--quiet", "--output-format", "concise", "--no-cache") as process:
        out, err = process.communicate(timeout=500)
    assert (process.returncode, err) == (1, "")
    assert [line.partition(" ")[0] for line in out.splitlines()] == ["good.py:5:12:", "large.py:200002:5:"]


DEEP = {
    "parentheses": "x = " + "(" * 2_000 + "1" + ")" * 2_000,
    "lists": "x = " + "[" * 2_000 + "]" * 2_000,
    "calls": "x = " + "f(" * 2_000 + ")" * 2_000,
    "unclosed": "x = " + "(" * 2_000,
    "blocks": "".join(" " * i + "if x:\n" for i in range(2_000)) + " " * 2_000 + "pass",
    "else if": "if x: pass\n" + "elif x: pass\n" * 2_000,
    "minus": "x = " + "-" * 2_000 + "1",
    "not": "x = " + "not " * 2_000 + "1",
    "sum": "x = " + "1 + " * 2_000 + "1",
    "attributes": "x = a" + ".b" * 2_000,
    "method chain": "x = a" + ".b()" * 2_000,
    "lambdas": "x = " + "lambda: " * 2_000 + "1",
    "choices": "x = " + "1 if a else " * 2_000 + "1",
    "powers": "x = " + "2 ** " * 2_000 + "1",
    "strings": "x = " + "'a' " * 2_000,
    "and": "x = " + "a and " * 2_000 + "a",
}


@pytest.mark.parametrize("kind", DEEP)
def test_code_that_nests_2000_deep(project: Path, kind: str) -> None:
    (project / "deep.py").write_bytes(TORCH + DEEP[kind].encode() + b"\n")
    status, lines = check(project, "--no-cache")
    assert status == 1
    assert len(lines) == 1, lines
    assert "TL201" in lines[0] or "E999" in lines[0]


@pytest.mark.parametrize("kind", ["minus", "attributes", "sum", "else if", "lambdas"])
def test_code_that_nests_20000_deep(project: Path, kind: str) -> None:
    (project / "deep.py").write_bytes(TORCH + DEEP[kind].replace("1", "1").encode() * 10 + b"\n")
    status, lines = check(project, "--no-cache")
    assert status == 1
    assert len(lines) == 1, lines
