"""What the command line and the configuration come to for `verify`, what it refuses at once, and its progress."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from torchlint import cli
from torchlint.verify import progress as shown_progress
from torchlint.verify import selfcheck
from torchlint.verify.arms import BaselineError, Failure
from torchlint.verify.machine import Machine, UsageError
from torchlint.verify.progress import Progress, seconds
from torchlint.verify.proof import configured

if TYPE_CHECKING:
    from pathlib import Path

NOTHING: dict[str, Any] = {
    "path": None, "entry": None, "arguments": (), "device": None, "allow_write": (), "python": None, "budget": None,
    "steps": None, "select": None, "unsafe_fixes": None, "html": None, "raw": None, "rule": None, "size": None, "evidence": None,
    "synthetic_data": None, "cache_dir": None, "no_cache": False,
}  # fmt: skip
CONFIG = """\
[verify]
entry = "train.py"
args = ["--epochs", "1"]
device = "sim"
allow-write = ["runs"]
python = ".venv/bin/python"
budget = "1.5m"
steps = 20
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "torchlint.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "train.py").touch()
    for folder in ("runs", "sub"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_configuration_says_what_the_command_line_leaves_open(project: Path) -> None:
    found = configured(NOTHING, project / "sub")
    assert found["path"] == str(project / "train.py")
    assert found["arguments"] == ("--epochs", "1")
    assert (found["device"], found["budget"], found["steps"]) == ("sim", 90.0, 20)
    assert found["allow_write"] == (str(project / "runs"),)
    assert found["python"] == str(project / ".venv/bin/python")


def test_the_command_line_wins(project: Path) -> None:
    given = {
        "path": "other.py",
        "device": "cpu",
        "budget": 5.0,
        "steps": 3,
        "python": "python3",
        "allow_write": ("sub",),
    }
    found = configured(NOTHING | given, project)
    assert {key: found[key] for key in given} == given
    assert found["arguments"] == ()  # those are of the entry that is configured
    named = configured(NOTHING | {"entry": "train.py:step"}, project)
    assert (named["path"], named["entry"], named["arguments"]) == (None, "train.py:step", ())


def test_an_entry_that_is_a_function(project: Path) -> None:
    (project / "torchlint.toml").write_text('[verify]\nentry = "package.steps:step"\n', encoding="utf-8")
    found = configured(NOTHING, project / "sub")
    assert (found["path"], found["entry"], found["device"]) == (str(project), "package.steps:step", "cuda")


def test_the_configuration_is_that_of_the_program(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert configured(NOTHING | {"path": str(project / "train.py")}, elsewhere)["device"] == "sim"
    assert configured(NOTHING | {"path": "train.py"}, elsewhere)["device"] == "cuda"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": ("gpu",)}, "`--size` goes with `--rule`"),
        ({"evidence": "fixtures"}, "`--evidence` goes with `--rule`"),
        ({"allow_write": ("nowhere",)}, "`--allow-write nowhere`: there is no such folder"),
        ({"html": "nowhere/report.html"}, "`--html nowhere/report.html`: there is no such folder"),
        ({"html": "runs"}, "`--html runs`: that is a folder"),
        ({"raw": "nowhere/raw.gz"}, "`--raw nowhere/raw.gz`: there is no such folder"),
        ({"select": ("TL999",)}, "unknown rule"),
    ],
)
def test_what_would_be_in_the_way_at_the_end_is_said_at_once(project: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        configured(NOTHING | given, project)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["verify", "nowhere.py"], 2, "no such file"),
        (["verify", "--rule", "TL301", "train.py"], 2, "does not go with PATH"),
        (["verify", "--rule", "TL301", "--html", "x.html"], 2, "does not go with `--html`"),
        (["verify", "--self-check", "--device", "sim"], 2, "the simulated device does not have"),
        (["verify", "--budget", "nan", "train.py"], 2, "no length of time"),
        (["verify", "--device", "tpu", "train.py"], 2, "tpu"),
        (["verify", "sub"], 3, "sub: nothing to run here"),
        (["fix", "--entry", "train.py:step"], 2, "`--entry` goes with `--verified`"),
        (["fix", "--verified", "--diff", "train.py"], 2, "`--diff` does not go with `--verified`"),
        (["fix", "--verified", "--device", "sim", "train.py"], 2, "proves nothing faster"),
        (["fix", "--verified", "train.py"], 2, "proves nothing faster"),  # by the configuration
    ],
)
@pytest.mark.usefixtures("project")
def test_exit_statuses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, words: str
) -> None:
    class NoClerk:
        """Stands for the process with torch, which takes seconds to start."""

        def __init__(self, *_: object) -> None: ...

        def machine(self) -> Machine:
            return Machine(cuda=True, devices=1, why="", name="a GPU")

        def close(self) -> None: ...

    monkeypatch.setattr("torchlint.verify.command.Clerk", NoClerk)
    monkeypatch.setattr("torchlint.verify.command.require", lambda *_: None)
    assert cli.run(arguments) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert words in said.err


def test_the_schema_of_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["verify", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"]


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_lengths_of_time(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "0", "0s", "-5s", "nan", "inf", "5d", "1m30s", "s"])
def test_no_lengths_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="no length of time"):
        seconds(text)


class Terminal(io.StringIO):
    """A terminal of 40 columns."""

    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(shown_progress, "terminal_width", lambda _: 40)
    now = iter([100.0, 165.0, 400.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    line = Progress(quiet=False, budget=120.0)
    line.note("stage A: replicate 3 of at most 16")
    line.note("späť\x1b[31m")
    line.clear()
    first, second, third = stream.getvalue().split("\r\x1b[K")[1:]
    assert first == "1m05s, at most 0m55s left  stage A: re…"
    assert len(first) < 40 + 1
    assert second.startswith("5m00s, at most 0m00s left  späť")
    assert "\x1b" not in second
    assert third == ""


@pytest.mark.parametrize("quiet", [True, False])
def test_no_progress_on_a_pipe_or_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch, *, quiet: bool) -> None:
    stream = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    line = Progress(quiet=quiet, budget=None)
    line.note("reading the program")
    line.clear()
    assert stream.getvalue() == ""


def test_a_self_check_whose_steps_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> None:
        raise BaselineError(Failure("oom", "OutOfMemoryError: planted"))

    monkeypatch.setattr(selfcheck, "check", fail)
    assert cli.run(["verify", "--self-check", "--device", "cpu"]) == 3
    assert capsys.readouterr().err == "error: the steps of the self-check fail on cpu: OutOfMemoryError: planted\n"
