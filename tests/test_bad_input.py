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

from torchlint import cli, userfolder

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')
TORCH = b"import torch\nx = torch.zeros(n).cuda()\n"
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
        "import sys\n"
        "from torchlint import regular\n"
        "read = regular.read\n"
        "def refuse(path):\n"
        "    if path.name == 'secret.py':\n"
        "        raise PermissionError(13, 'Permission denied')\n"
        "    return read(path)\n"
        "regular.read = refuse\n"
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
    ("text", "place"),
    [("x = (1\n     + 2))\n", "3:10"), ("x = 1\ny = $\n", "3:5"), ("a = '''\nb\n", "2:5")],
    ids=["bracket", "character", "string"],
)
def test_an_error_of_the_tokenizer_is_shown_where_it_is(project: Path, text: str, place: str) -> None:
    (project / "odd.py").write_text("import torch\n" + text)
    status, lines = check(project)
    assert status == 1
    assert [line[: line.index(" error") + 6] for line in lines] == [f"odd.py:{place}: E999 syntax error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (b"import torch\ntorch.zeros(3).cuda(\n", 1, "E999 syntax error"),
        (b"import torch\nprint torch.zeros(n).cuda()\n", 1, "E999 syntax error"),
        (b"import torch\nif x:\n\ty = torch.zeros(n).cuda()\n        z = 1\n", 1, "E999 syntax error"),
        (TORCH + b"# caf\xe9\n", 1, "E902 not utf-8: byte 0xe9 on line 3"),
        (b"# coding: klingon\n" + TORCH, 1, "E902 unknown encoding: klingon"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n" + TORCH, 1, "E902 encoding problem: utf-8"),
        (codecs.BOM_UTF8 * 2 + TORCH, 1, "E999 syntax error: invalid non-printable character U+FEFF"),
        (b"import torch\n(torch\n): int = torch.zeros(n).cuda()\n", 1, "E999 LibCST, which torchlint parses with,"),
        (TORCH.decode().encode("utf-16"), 1, None),
        (TORCH + b"x = 1\x00\n", 1, "E999 "),
        (b"\x00" * 1000 + TORCH, 1, "E999 "),
        (b"", 1, None),
        (b"\n\n\n", 1, None),
        (b"\\", 1, None),
        (codecs.BOM_UTF8, 1, None),
        (b"# torch", 1, None),
        (b"import torch\nx = '" + b"torch.zeros(n).cuda()" * 100_000 + b"'\n", 1, None),
    ],
    ids=[
        "syntax",
        "Python 2",
        "tabs and blanks",
        "not UTF-8",
        "unknown encoding",
        "contradiction",
        "two BOMs",
        "not for LibCST",
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "place"),
    [
        (codecs.BOM_UTF8 + TORCH, "2:5"),
        (TORCH.replace(b"\n", b"\r\n"), "2:5"),
        (TORCH.replace(b"\n", b"\r"), "2:5"),
        (b"\x0c\n" + TORCH, "3:5"),
        (b"import torch\n\x0c\nx = torch.zeros(n).cuda()\n", "3:5"),
        (b"# coding: latin-1\n# caf\xe9\n" + TORCH, "4:5"),
        (b"#!/usr/bin/python\n# -*- coding: cp1252 -*-\ns = '\x80'\n" + TORCH, "5:5"),
        (TORCH[:-1], "2:5"),
        (b"import torch\nif 1:\n\tx = torch.zeros(n).cuda()\n", "3:6"),
        ("import torch\nü, \N{MATHEMATICAL FRAKTUR CAPITAL U} = torch.zeros(n).cuda(), 1\n".encode(), "2:8"),
        (b"import torch\ns = '''\r\n\n\r'''\nx = torch.zeros(n).cuda()\r\n", "6:5"),
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
    assert line.startswith(f"odd.py:{place}: note: TL201 ")
    status, _, _ = torchlint(project, "fix", "odd.py")
    assert status == 0
    assert (project / "odd.py").read_bytes() == data.replace(b"n).cuda()", b'n, device="cuda")')


NO_ENCODINGS = (
    "base64",
    "bz2",
    "cp037",
    "hex",
    "idna",
    "punycode",
    "quopri",
    "rot13",
    "undefined",
    "utf-16",
    "utf-16-le",
    "uu",
    "zlib",
)


def test_what_is_no_encoding_for_code_costs_no_other_file(project: Path) -> None:
    for name in NO_ENCODINGS:
        (project / f"{name}.py").write_bytes(f"# coding: {name}\n".encode() + TORCH)
    status, lines = check(project)
    assert status == 1
    files = [f"{name}.py" for name in NO_ENCODINGS]
    assert sorted(line.partition(":1:1: E902 ")[0] for line in lines) == sorted(files)
    reason = "is no encoding for source code; save the file as UTF-8"
    assert all(reason in line for line in lines if "utf-16" not in line)  # which finds an odd byte first


@pytest.mark.parametrize(
    ("encoding", "line"),
    [("unicode_escape", b"# as it was"), ("iso2022_jp", b'# \x1b$B$"\x1b(B\x1b(B'), ("utf-7", b"# +AGE-")],
)
def test_what_would_be_written_otherwise_than_it_is_read_is_not_written(
    project: Path, encoding: str, line: bytes
) -> None:
    data = b"# coding: " + encoding.encode() + b"\n" + line + b"\n" + TORCH
    (project / "odd.py").write_bytes(data)
    status, out, _ = torchlint(project, "fix", "--quiet", "--output-format", "concise")
    assert status == 1
    assert out[0] == (
        f"odd.py:1:1: E902 the file cannot be written in {encoding} as it was; not written; save it as UTF-8"
    )
    assert (project / "odd.py").read_bytes() == data
    assert (project / "good.py").read_text() == FAST


def test_a_file_of_5_megabytes(project: Path) -> None:
    data = b"import torch\n" + b"x = 1  # " + b"as it was, " * 25 + b"\n"
    data += data.partition(b"\n")[2] * 18_000 + b"y = torch.zeros(n).cuda()\n"
    assert len(data) > 5_000_000
    (project / "large.py").write_bytes(data)
    status, (line,) = check(project)
    assert status == 1
    assert line.startswith("large.py:18003:5: note: TL201")


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda depth: "x = " + "(" * depth + "1" + ")" * depth,
    "lists": lambda depth: "x = " + "[" * depth + "]" * depth,
    "calls": lambda depth: "x = " + "f(" * depth + ")" * depth,
    "unclosed": lambda depth: "x = " + "(" * depth,
    "blocks": lambda depth: "".join(" " * i + "if x:\n" for i in range(min(depth, 2_000))) + " " * depth + "pass",
    "else if": lambda depth: "if x: pass\n" + "elif x: pass\n" * depth,
    "minus": lambda depth: "x = " + "-" * depth + "1",
    "not": lambda depth: "x = " + "not " * depth + "1",
    "sum": lambda depth: "x = " + "1 + " * depth + "1",
    "sum in lines": lambda depth: "x = (\n" + "    a +\n" * depth + "    1\n)",
    "attributes": lambda depth: "x = a" + ".b" * depth,
    # LibCST's time goes by the square of its length
    "method chain": lambda depth: "x = (\n    a\n" + "    .b()\n" * (depth // 3) + ")",
    "lambdas": lambda depth: "x = " + "lambda: " * depth + "1",
    "choices": lambda depth: "x = " + "1 if a else " * depth + "1",
    "powers": lambda depth: "x = " + "2 ** " * depth + "1",
    "strings": lambda depth: "x = " + "'a' " * depth,
    "and": lambda depth: "x = " + "a and " * depth + "a",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "depth"),
    # The others that overflow the native stack take LibCST minutes, which go by the square of the depth.
    [
        *((kind, 2_000) for kind in DEEP),
        *((kind, 20_000) for kind in ("parentheses", "else if", "not", "lambdas", "and")),
    ],
)
def test_code_that_nests_deep(project: Path, kind: str, depth: int) -> None:
    (project / "deep.py").write_bytes(TORCH + DEEP[kind](depth).encode() + b"\n")
    status, lines = check(project)
    assert len(lines) == 1, lines
    assert any(code in lines[0] for code in (HIT, "E999", "E000")), lines
    assert status == (2 if "E000" in lines[0] else 1)


# Fixing


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if sys.platform != "linux" or not is_root or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root mounts a small disk, on Linux and where the system lets it")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk(disk: Path) -> None:
    large = SLOW + "# " + "x" * 600_000 + "\n"
    (disk / "large.py").write_text(large)
    (disk / "small.py").write_text(SLOW)
    status, out, err = torchlint(disk, "fix", "--quiet", "--output-format", "concise")
    assert err == []
    assert status == 1
    assert out[0] == "large.py:1:1: E902 cannot write: No space left on device; the file is as it was"
    assert out[1].startswith("large.py:5:12: TL201")
    assert len(out) == 2
    assert (disk / "large.py").read_text() == large
    assert (disk / "small.py").read_text() == FAST
    assert sorted(path.name for path in disk.iterdir() if path.suffix != "") == ["large.py", "small.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits")
def test_a_read_only_file(project: Path) -> None:
    (project / "good.py").chmod(0o444)
    (project / "other.py").write_text(SLOW)
    status, out, err = torchlint(project, "fix", "--quiet", "--output-format", "concise")
    assert (status, err) == (1, [])
    assert out[0] == "good.py:1:1: E902 the file is read-only; not written"
    assert out[1].startswith("good.py:5:12: TL201")
    assert len(out) == 2
    assert (project / "good.py").read_text() == SLOW
    assert (project / "other.py").read_text() == FAST


@pytest.mark.slow
def test_a_kill_in_the_middle_of_fixing_costs_no_file(project: Path) -> None:
    old = SLOW + "# " + "x" * 50_000 + "\n"
    new = FAST + "# " + "x" * 50_000 + "\n"
    files = [project / f"train{i:02}.py" for i in range(60)]
    for file in files:
        file.write_text(old)
    states = set()
    for _ in range(4):
        with start(project, "fix", "--no-cache", "--jobs", "1") as process:
            done = sum(file.read_text() == new for file in files)
            deadline = time.monotonic() + 60
            while sum(file.read_text() == new for file in files) <= done + 2 and time.monotonic() < deadline:
                time.sleep(0.001)
            process.kill()
        texts = [file.read_text() for file in files]
        assert all(text in (old, new) for text in texts)
        states.add(texts.count(new))
    assert len(states) > 1
    assert min(states) < len(files), "the run was over before it was killed"
    status, _, _ = torchlint(project, "fix", "--silent")
    assert status == 0
    assert all(file.read_text() == new for file in files)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signals")
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("to_group", [True, False], ids=["Ctrl-C", "kill -INT"])
def test_ctrl_c(project: Path, jobs: str, to_group: bool) -> None:  # noqa: FBT001 - a parameter of the test
    for i in range(400):
        (project / f"train{i}.py").write_text(SLOW * 15 + f"# {i}\n")
    with start(project, "check", "--jobs", jobs, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not uses_libcst(process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        assert process.poll() is None, "the run was over before it was interrupted"
        if to_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err == "torchlint: interrupted\n"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nobody is left


def uses_libcst(process: int) -> bool:
    if not Path("/proc/self/maps").exists():
        time.sleep(1)
        return True
    return "libcst/native" in Path(f"/proc/{process}/maps").read_text()


# Configuration


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("torchlint.toml", "select = [", "torchlint.toml:1"),
        ("pyproject.toml", "[tool.torchlint\n", "pyproject.toml:1"),
        ("torchlint.toml", "\nslect = []\n", "torchlint.toml:2: unknown key `slect`; did you mean `select`?"),
        ("torchlint.toml", 'select = "TL2"\n', "torchlint.toml:1"),
        ("torchlint.toml", 'select = ["TL2", "TL999"]\n', "torchlint.toml:1"),
        ("torchlint.toml", 'ignore = ["data-paralel"]\n', "did you mean `data-parallel`?"),
        ("torchlint.toml", 'extend = "gone.toml"\n', "gone.toml"),
        ("torchlint.toml", 'extend = "torchlint.toml"\n', "torchlint.toml"),
        ("torchlint.toml", 'extend-exclude = ["[z-a]"]\n', "[z-a]"),
        ("torchlint.toml", "\ufffe", "torchlint.toml"),
    ],
)
def test_a_configuration_that_is_wrong(project: Path, name: str, text: str, message: str) -> None:
    (project / name).write_text(text, encoding="utf-8")
    for command in ("check", "fix"):
        status, out, (line,) = torchlint(project, command)
        assert status == 2
        assert out == []
        assert line.startswith("error: ")
        assert message in line
    assert (project / "good.py").read_text() == SLOW


ODD_CONFIGURATIONS = {
    "deep array": ("x = " + "[" * 5_000 + "]" * 5_000, "invalid TOML: it nests too deeply"),
    "deep table": (f"[{'a.' * 5_000}a]", "invalid TOML: it nests too deeply"),
    "digits": (f"dataloader-workers = {'1' * 10_000}", "invalid TOML: Exceeds the limit (4300 digits)"),
    "version": (f'target-torch = "{"1" * 10_000}.1"', "`target-torch`: expected a string such as"),
    "large": (f"# {'x' * 1_000_000}", "more than the 1 MB that torchlint reads of such a file"),
    "braces": (f'exclude = ["{"{" * 2_000}{"}" * 2_000}"]', "`exclude`: `{{{{"),
    "globs": (f"exclude = {[f'a{i}*' for i in range(60_000)]}", "there are 60000 patterns with wildcards"),
    "many rows": ("\n".join(["# exclude"] * 50_000) + '\nexclude = ["{"]', "`{` is not a pattern"),
    "entries": ("[per-file-ignores]\n" + "".join(f"x{i} = []\n" for i in range(1_001)), "1001 patterns"),
    "no user in a list": ("verify.allow-write = ['~nosuchuser']", "is not a path: no such user"),
    **{
        f"{key} {name}": (f"{key} = {value}", f"is not a path: {message}")
        for key in ("baseline", "cache-dir", "extend", "verify.python", "verify.entry")
        for name, value, message in (
            ("no user", "'~nosuchuser/x'", "no such user, or one without a home folder"),
            ("NUL", '"a\\u0000b"', "embedded null byte"),
            ("long", f"'{'a' * 5_000}'", "more than 1000 characters"),
        )
    },
}


@pytest.mark.parametrize("name", ODD_CONFIGURATIONS)
def test_an_odd_configuration_is_named_and_takes_no_time(
    project: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, message = ODD_CONFIGURATIONS[name]
    (project / "torchlint.toml").write_text(text)
    monkeypatch.chdir(project)
    started = time.process_time()
    assert cli.run(["check"]) == 2
    assert time.process_time() - started < 10
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert (out, line[:21]) == ("", "error: torchlint.toml")
    assert message in line
    assert len(line) < 1_200


def test_a_configuration_that_is_no_text(project: Path) -> None:
    (project / "torchlint.toml").write_bytes(b"select = ['\xff']\n")
    status, out, (line,) = torchlint(project, "check")
    assert (status, out) == (2, [])
    assert line.startswith("error: torchlint.toml")


def test_a_wrong_configuration_in_a_folder_below(project: Path) -> None:
    (project / "below").mkdir()
    (project / "below" / "train.py").write_text(SLOW)
    (project / "below" / "torchlint.toml").write_text("slect = []\n")
    status, out, (line,) = torchlint(project, "fix")
    assert (status, out) == (2, [])
    assert line.startswith("error: below/torchlint.toml:1: unknown key `slect`")
    assert (project / "good.py").read_text() == SLOW


def test_an_unknown_rule(project: Path) -> None:
    status, out, (line,) = torchlint(project, "check", "--select", "TL999")
    assert (status, out) == (2, [])
    assert line.startswith("error: --select: unknown rule `TL999`")


# The cache


def cut_short(database: Path) -> None:
    database.write_bytes(database.read_bytes()[: database.stat().st_size // 3])


def of_another_version(database: Path) -> None:
    database.unlink()
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE results (key, value)")
    connection.close()


def a_folder(database: Path) -> None:
    database.unlink()
    database.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [cut_short, of_another_version, a_folder])
def test_a_damaged_cache(project: Path, damage: Callable[[Path], None]) -> None:
    first = check(project)
    folder = userfolder.of_project(project)
    assert folder is not None
    (database,) = folder.glob("*.sqlite")
    damage(database)
    for _ in range(2):
        assert check(project) == first


def test_a_cache_that_cannot_be_made(project: Path) -> None:
    folder = userfolder.of_project(project)
    assert folder is not None
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file")
    assert check(project) == (1, [])
    assert folder.read_text() == "a file"


@pytest.mark.slow
def test_two_runs_at_once(project: Path) -> None:
    for i in range(20):
        (project / f"train{i}.py").write_text(SLOW + f"# {i}\n")
    runs = [start(project, "check", "--quiet", "--output-format", "concise") for _ in range(3)]
    outputs = []
    for process in runs:
        with process:
            outputs.append((process.communicate(timeout=60), process.returncode))
    assert outputs[0] == outputs[1] == outputs[2]
    (out, err), status = outputs[0]
    assert (len(out.splitlines()), err, status) == (21, "", 1)
