from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from torchlint.report.diff import unified
from torchlint.report.style import Style

LINES = ("a\n", "b\n", "\n", "c\r\n", "\x0c\n", "d\x85e\u2028\n", "f\rg\n", "é日\n", "-- x\n", "++ y\n")


def test_the_layout_is_that_of_git() -> None:
    before = "".join(f"{row}\n" for row in range(20))
    after = before.replace("5\n", "five\n", 1).replace("16\n", "").replace("19\n", "19\n20")
    assert unified("src/train.py", before, after) == (
        """\
--- a/src/train.py
+++ b/src/train.py
@@ -3,7 +3,7 @@
 2
 3
 4
-5
+five
 6
 7
 8
@@ -14,7 +14,7 @@
 13
 14
 15
-16
 17
 18
 19
+20
\\ No newline at end of file
"""
    )


def test_no_difference_is_no_output() -> None:
    assert unified("a.py", "x\n", "x\n") == ""
    assert unified("a.py", "", "") == ""


def test_a_missing_newline_at_the_end_is_said_of_the_side_that_misses_it() -> None:
    assert unified("a.py", "x", "y\n") == (
        "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n"
    )
    assert unified("a.py", "x\nz", "y\nz").endswith("-x\n+y\n z\n\\ No newline at end of file\n")


def test_line_endings_are_kept() -> None:
    assert unified("a.py", "x\r\ny\r\n", "x\r\nz\r\n").endswith(" x\r\n-y\r\n+z\r\n")


def test_git_applies_it(tmp_path: Path) -> None:
    rng = random.Random(7)  # noqa: S311 - a sample is no secret
    patch, wanted = "", {}
    for number in range(60):
        before = [rng.choice(LINES) for _ in range(rng.randrange(40))]
        after = list(before)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(after) + 1)
            after[at : at + rng.randrange(3)] = [rng.choice(LINES) for _ in range(rng.randrange(3))]
        old, new = ("".join(lines) + rng.choice(("", "", "end", "end\r")) for lines in (before, after))
        path = f"f{number}.py"
        (tmp_path / path).write_bytes(old.encode())
        patch += unified(path, old, new)
        wanted[path] = new.encode()
    _apply(tmp_path, patch)
    assert {path: (tmp_path / path).read_bytes() for path in wanted} == wanted


@pytest.mark.parametrize("name", ["a b.py", 'quo"te\\.py', "tab\tnew\nli ne\x7f.py", "日本é.py", "x/y z.py"])
def test_git_finds_the_file_whatever_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("a\n")
    _apply(tmp_path, unified(name, "a\n", "b\n"))
    assert (tmp_path / name).read_text() == "b\n"


def test_an_absolute_path_becomes_a_relative_name() -> None:
    assert unified("/srv/x.py", "a\n", "b\n").startswith("--- a/srv/x.py\n+++ b/srv/x.py\n")


def test_for_eyes_nothing_steers_the_terminal() -> None:
    shown = unified("a\x1b.py", "x\r\n", "\x1b[31m\ty\r\n", exact=False)
    assert shown.endswith("-x\n+␛[31m    y\n")
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert unified("a\u202e.py", "x", "y", exact=False).startswith("--- a/a\ufffd.py\n")
    assert unified("a\u202e.py", "x", "y").startswith("--- a/a\u202e.py\n")


def test_colour() -> None:
    assert unified("a.py", "x\nz\n", "y\nz\n", Style(color=True)) == (
        "\x1b[1m--- a/a.py\x1b[0m\n\x1b[1m+++ b/a.py\x1b[0m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n"
        "\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n z\n"
    )


def test_one_change_in_a_big_file_of_lines_alike_takes_no_longer_than_reading_it() -> None:
    before = "".join(f"x{row % 500} = 1\n\n" for row in range(60_000))
    after = before[:400_000] + "#" + before[400_000:]
    started = time.process_time()
    assert len(unified("big.py", before, after).splitlines()) == 11
    assert time.process_time() - started < 3  # 0.2 s; without the common ends left out, minutes


def _apply(folder: Path, patch: str) -> None:
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"], input=patch.encode(), cwd=folder, check=True, capture_output=True
    )
