"""A run that is repeated whenever a file changes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint import cli
from torchlint.config import Overrides
from torchlint.configfile import ConfigError
from torchlint.run import Order
from torchlint.watch import stamps, watch

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def changing(*changes: Callable[[], object]) -> Callable[[float], None]:
    """What to sleep by: each time the next change happens, and there are no more sleeps than changes."""
    left = list(changes)

    def sleep(_seconds: float) -> None:
        left.pop(0)()

    return sleep


def test_it_checks_again_behind_each_change(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = Order(project, overrides=Overrides(output_format="concise"))
    changes = (
        lambda: None,
        lambda: (project / "net.py").write_text(FAST),
        lambda: (project / "new.py").write_text(SLOW),
        lambda: (project / "torchlint.toml").write_text("ignore = ['ALL']\n"),
        (project / "new.py").unlink,
    )
    assert watch(order, changing(*changes), times=5) == 0
    out, err = capsys.readouterr()
    said = [line for line in out.splitlines() if line.startswith(("Found", "All"))]
    assert said == ["Found 1 finding.", "All checks passed!", "Found 1 finding.", *["All checks passed!"] * 2]
    assert err.count("Watching for changes.") == 5
    assert "\x1b" not in out


def test_a_configuration_that_is_being_written_ends_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = project / "torchlint.toml"
    changes = (lambda: config.write_text("ignore = ["), lambda: config.write_text("ignore = []\n"))
    assert watch(Order(project), changing(*changes), times=3) == 1
    assert "error: torchlint.toml:1: invalid TOML" in capsys.readouterr().err
    config.write_text("ignore = [")
    with pytest.raises(ConfigError):
        watch(Order(project), changing(), times=1)


def test_what_a_run_writes_itself_is_no_change(project: Path) -> None:
    order = Order(project, overrides=Overrides(fix=True))
    assert watch(order, changing(lambda: None, lambda: (project / "net.py").write_text(SLOW)), times=2) == 0
    assert (project / "net.py").read_text() == FAST


def test_files_that_no_run_reads_are_not_looked_at(project: Path) -> None:
    for name in ("notes.txt", ".venv/lib.py", "torchlint.toml", "sub/deep.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("")
    found = {
        Path(path).relative_to(project).as_posix() for path in stamps(Order(project)) if project in Path(path).parents
    }
    assert found == {"net.py", "torchlint.toml", "sub/deep.py"}


def test_what_changes_during_a_run_is_seen(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []

    def check(order: Order) -> int:
        checks.append(order)
        if len(checks) == 1:
            (project / "net.py").write_text(FAST)
        return 0

    monkeypatch.setattr("torchlint.watch.check", check)
    watch(Order(project), changing(), times=2)
    assert len(checks) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C reaches a group of processes there")
def test_ctrl_c_ends_it_with_one_line(project: Path) -> None:
    # A process in the background may have been told to ignore it.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from torchlint.__main__ import main\nmain()\n"
    )
    command = [sys.executable, "-u", "-c", code, "check", "--watch", "--output-format", "concise"]
    process = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = threading.Timer(60, process.kill)
    end.start()
    try:
        assert process.stderr is not None
        assert "Watching for changes." in process.stderr.readline()
        (project / "net.py").write_text(FAST)
        assert "Watching for changes." in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    finally:
        end.cancel()
        process.kill()
    assert (process.returncode, err) == (130, "torchlint: interrupted\n")
    assert out.splitlines()[-1] == "All checks passed!"


@pytest.mark.parametrize("arguments", [("-",), ("--write-baseline", "b"), ("--add-ignore",), ("--show-files",)])
def test_what_cannot_be_watched(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert cli.run(["check", "--watch", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: `--watch` ")
