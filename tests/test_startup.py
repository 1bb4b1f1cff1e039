"""What a run loads: nothing that it does not need, and LibCST only where there is code to read."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')
# Its fix is not applied unasked.
UNSAFE = "from torch import nn\n\nnet = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n"
# What costs 5 ms and more each, or starts what a short run should not start.
HEAVY = {
    "asyncio",
    "concurrent",
    "hashlib",
    "importlib.metadata",
    "importlib.resources",
    "json",
    "libcst",
    "msgspec",
    "multiprocessing",
    "random",
    "sqlite3",
    "tempfile",
    "tomli",
    "torch",
    "urllib.request",
    "yaml",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text("print(1)\n")
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "fast.py").write_text(FAST)
    return tmp_path


def loaded(project: Path, *arguments: str, status: int = 0) -> set[str]:
    """The modules that a command has run the code of; one whose loading is put off is of another type."""
    code = (
        "import atexit, sys, types\n"
        "before = set(sys.modules)\n"
        "atexit.register(lambda: print([name for name, module in sys.modules.items()"
        " if name not in before and type(module) is types.ModuleType], file=sys.stderr))\n"
        "from torchlint.__main__ import main\n"
        "main()\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TORCHLINT_")}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return set(ast.literal_eval(done.stderr.splitlines()[-1]))


def heavy(modules: set[str]) -> set[str]:
    return {name for name in HEAVY if any(module == name or module.startswith(f"{name}.") for module in modules)}


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["--version"], ["rules"], ["clean"]])
def test_what_reads_no_code_loads_nothing_heavy(project: Path, arguments: list[str]) -> None:
    modules = loaded(project, *arguments)
    assert heavy(modules) <= ({"hashlib", "sqlite3"} if arguments == ["clean"] else set())
    assert "click" in modules


@pytest.mark.parametrize("command", ["check", "fix"])
def test_a_file_without_torch_loads_nothing_heavy_and_no_rule(project: Path, command: str) -> None:
    modules = loaded(project, command, "plain.py")
    assert heavy(modules) == set()
    assert not any(module.startswith("torchlint.rules.") for module in modules)
    assert not modules & {
        "torchlint.accepted",
        "torchlint.since",
        "torchlint.cache",
        "torchlint.pool",
        "torchlint.fixer",
        "torchlint.packs",
        "torchlint.suppress",
        "torchlint.write",
    }
    assert not any(module.startswith("torchlint.traces") for module in modules)


def test_code_is_read_with_libcst_and_without_its_slow_parts(project: Path) -> None:
    modules = loaded(project, "check", "slow.py", status=1)
    assert "libcst._nodes.module" in modules
    assert not modules & {"libcst.codemod", "libcst.matchers", "libcst.tool"}
    assert not modules & {"torchlint.notebook.ipynb", "torchlint.notebook.ipython", "torchlint.notebook.cells"}
    assert heavy(modules) <= {"hashlib", "json", "libcst", "msgspec", "random", "sqlite3", "tempfile"}
    assert not any(module.startswith("torchlint.traces") for module in modules)
    assert not modules & {"torchlint.report.where", "torchlint.report.measured", "torchlint.spoken"}


def test_a_notebook_without_torch_is_not_even_read(project: Path) -> None:
    (project / "plain.ipynb").write_text('{"cells": [], "nbformat": 4}')
    modules = loaded(project, "check", "plain.ipynb")
    assert heavy(modules) == set()
    assert not modules & {"torchlint.notebook.ipynb", "torchlint.notebook.ipython", "torchlint.notebook.cells"}


def test_fixing_loads_no_torch(project: Path) -> None:
    modules = loaded(project, "fix", "slow.py")
    assert (project / "slow.py").read_text() == FAST
    assert not modules & {"libcst.codemod", "libcst.matchers", "torch", "multiprocessing", "concurrent.futures"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 40])
@pytest.mark.parametrize(("command", "status"), [("check", 1), ("fix", 1), ("fix --diff", 0), ("fix --fix-only", 0)])
def test_a_warm_cache_needs_no_libcst(tmp_path: Path, command: str, status: int, number: int) -> None:
    """`fix` as little as `check`, where nothing is left that it may fix."""
    for i in range(number):
        (tmp_path / f"net{i}.py").write_text(UNSAFE)
    cold = loaded(tmp_path, *command.split(), status=status)
    warm = loaded(tmp_path, *command.split(), status=status)
    assert "libcst._nodes.module" in cold
    assert heavy(warm) <= {"hashlib", "msgspec", "sqlite3"}
    assert "torchlint.fixer" not in warm


def test_the_command_starts_no_thread_and_no_process(project: Path) -> None:
    """So that `fork` is sound when a pool is needed."""
    modules = loaded(project, "check", status=1)
    assert not any(name.startswith(("concurrent", "multiprocessing")) for name in modules)
