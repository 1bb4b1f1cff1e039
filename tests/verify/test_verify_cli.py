"""`torchlint verify` as it is called: exit statuses, JSON, benches, and Ctrl-C, over real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

FAILING = {
    "arguments.py": (
        "from argparse import ArgumentParser as P\np = P()\np.add_argument('--data', required=True)\np.parse_args()\n",
        "the following arguments are required: --data",
    ),
    "imports.py": ("import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found' (imports.py:1)\n  --python"),
    "ends.py": ("print('done')\n", "ends.py came to its end without a step"),
    "syntax.py": ("def f(:\n", "SyntaxError: invalid syntax (syntax.py, line 1)"),
}
BENCH = """\
import torch


def bench_sum():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    values = torch.ones(8, device=device)

    def step():
        values.add_(1)
        return values.sum().item()

    yield step, values


def bench_nothing():
    return 1
"""
ENDLESS = """\
import time
import torch

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
while True:
    weight.sum().backward()
    optimizer.step()
    open({place!r}, "w").close()
    time.sleep(0.01)
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torchlint", "verify", *arguments]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Its temporary files have a folder of their own, in which none may be left."""
    scratch = tmp_path / "t"
    scratch.mkdir()
    yield {**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "TMPDIR": str(scratch)}
    assert [path.name for path in scratch.iterdir()] == []


def verify(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.parametrize("name", FAILING)
def test_a_program_that_fails_as_it_is(tmp_path: Path, environment: dict[str, str], name: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    text, said = FAILING[name]
    (folder / name).write_text(text, encoding="utf-8")
    done = verify(folder, environment, "--device", "sim", name)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_benches_and_their_report_in_json_and_html(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "bench_sum.py").write_text(BENCH, encoding="utf-8")
    page = tmp_path / "report.html"
    done = verify(folder, environment, "--device", "sim", "--output-format", "json", "--html", str(page), ".")
    assert (done.returncode, done.stderr) == (0, "")
    whole: dict[str, Any] = json.loads(done.stdout)
    assert whole["schema"] == "torchlint.verify/1"
    first, second = whole["reports"]
    assert [first["title"], second["title"]] == [
        "torchlint verify bench_sum.py:bench_sum",
        "torchlint verify bench_sum.py:bench_nothing",
    ]
    (site,) = first["sites"]
    assert (site["path"], site["line"], site["per_unit"]) == ("bench_sum.py", 10, 1)
    assert site["counts"] == {"syncs": 1, "d2h": 1}
    assert second["sites"] == []
    assert page.read_text(encoding="utf-8").count("<header>") == 2
    assert [path.name for path in folder.iterdir()] == ["bench_sum.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="no signals of this kind")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_it_is_interrupted(tmp_path: Path, environment: dict[str, str], number: signal.Signals) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    place = tmp_path / "out"
    place.mkdir()
    (folder / "train.py").write_text(ENDLESS.format(place=str(place / "here")), encoding="utf-8")
    arguments = command("--device", "sim", "--allow-write", str(place), "train.py")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    mark = f"ctrl-c-{os.getpid()}-{time.monotonic_ns()}"
    marked = {"TORCHLINT_TEST_MARK": mark, "TMPDIR": str(temporary)}
    running = subprocess.Popen(arguments, cwd=folder, env=environment | marked, stdout=-1, stderr=-1, text=True)
    until = time.monotonic() + 120
    while not (place / "here").exists() and running.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    running.send_signal(number)
    printed, said = running.communicate(timeout=60)
    assert (running.returncode, printed, said) == (130, "", "torchlint: interrupted\n")
    assert not _marked(mark)
    assert list(temporary.iterdir()) == []


def _marked(mark: str) -> list[str]:
    """The processes that have it in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text(errors="replace"))
        except OSError:
            continue
    return found
