"""The first minute: one script, what is found in it, the fix, and what it saves."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from torchlint import cli, demo
from torchlint.demo import SCRIPT

ROOT = Path(__file__).parents[1]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder, in which nothing is to stay."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def counted(out: str) -> dict[str, list[str]]:
    """What the table at the end says, before and after."""
    return {line[:25].strip(): line[25:].split() for line in out.splitlines()[-5:] if line[:1].strip()}


def test_without_torch_it_shows_what_it_can_and_says_so(
    empty: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    assert cli.run(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line for line in out.splitlines() if line.startswith("$ ")] == [
        "$ cat train.py",
        "$ torchlint check train.py",
        "$ torchlint fix --unsafe-fixes --diff train.py",
        "$ torchlint verify train.py --device sim --only-count",
    ]
    for line in SCRIPT.splitlines():
        assert f"  {line}\n" in out
    assert "train.py:18:18: TL301 [*] `loss.item()` synchronizes with the GPU every batch\n" in out
    assert "\n-        total += loss.item()\n" in out
    assert "not run: there is no torch here (`pip install 'torchlint[verify]'` brings it)" in out
    assert counted(out)["the CPU waits for the GPU"] == ["5", "2.25"]
    assert list(empty.iterdir()) == []


def test_what_cannot_be_counted_is_said_in_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: object())
    monkeypatch.setattr(sys, "executable", sys.executable)
    monkeypatch.setattr(demo, "_COUNT", ("verify", "nothing.py", "--device", "sim", "--only-count"))
    assert cli.run(["demo"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not counted here: ")]
    assert "nothing.py" in line


def test_the_configuration_around_has_no_say(empty: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    monkeypatch.setenv("TORCHLINT_OUTPUT_FORMAT", "json")
    (empty / "torchlint.toml").write_text('ignore = ["ALL"]\n')
    assert cli.run(["demo"]) == 0
    assert "train.py:12:18: TL201" in capsys.readouterr().out


def test_the_script_can_be_had(capsys: Capture) -> None:
    assert cli.run(["demo", "--script"]) == 0
    assert capsys.readouterr() == (SCRIPT, "")
    compile(SCRIPT, "train.py", "exec")


@pytest.mark.slow
def test_with_torch_it_counts_what_the_fix_saves(empty: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "torchlint", "demo"]
    environment = os.environ | {"TMPDIR": str(empty), "TORCHLINT_OUTPUT_FORMAT": "json"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    rows = counted(done.stdout)
    for what in ("the CPU waits for the GPU", "copies to the GPU", "copies to the CPU"):
        before, after = map(float, rows[what])
        assert before > after >= 0
    assert list(empty.iterdir()) == []
    # What is said where there is no torch is what was counted.
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    assert cli.run(["demo"]) == 0
    assert counted(capsys.readouterr().out) == rows


def test_the_first_command_of_the_readme_shows_the_slow_files_alone(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.run(["check", "--quiet", "--output-format", "concise", "fixtures"]) == 1
    found = {line.partition(":")[0] for line in capsys.readouterr().out.splitlines()}
    assert {Path(path).name for path in found} == {"slow.py"}
    assert len(found) > 40
