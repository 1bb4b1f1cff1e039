"""Programs that set PyTorch's precision where they are loaded are measured as they are, and on other accelerators too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="torch 2.9 brought the names"),
]

SETS = {
    "tf32": 'torch.backends.cuda.matmul.fp32_precision = "tf32"',
    "bfloat16": "torch.set_default_dtype(torch.bfloat16)",
}
PROGRAM = """\
import torch

{sets}


def bench_step():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = [torch.randn(32, 64, device=device) for _ in range(10)]

    def step():
        total = 0.0
        for batch in batches:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    yield step, model
"""
# Stands for a build of torch with an accelerator: it is found, and has a name and nothing to wait for.
XPU = """\
import types
import torch

torch.xpu.synchronize = lambda device=None: None
torch.xpu.get_device_name = lambda device=None: "a made-up XPU"
torch.accelerator.is_available = lambda: True
torch.accelerator.current_accelerator = lambda *_: types.SimpleNamespace(type="xpu")
"""


def verified(folder: Path, name: str, device: str, *words: str, path: str = "") -> tuple[int, dict[str, Any], str]:
    (folder / "pyproject.toml").touch()
    source = PROGRAM.format(sets=SETS[name])
    (folder / "bench_it.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "torchlint", "verify", "bench_it.py", "--device", device, "--unsafe-fixes"]
    command += ["--no-cache", "--max-replicates", "4", "--output-format", "json", *words]
    env = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=folder, env=env)
    report = json.loads(done.stdout)["reports"][0] if done.stdout else {}
    return done.returncode, report, done.stderr


@pytest.mark.parametrize("name", SETS)
def test_a_program_that_sets_its_precision_has_figures(tmp_path: Path, name: str) -> None:
    status, found, error = verified(tmp_path, name, "sim")
    assert (status, error) == (0, "")
    (row,) = found["rows"]
    assert (row["code"], row["verdict"], row["syncs"]) == ("TL301", "fewer-syncs", {"before": 10, "after": 1})
    assert row["numerics"].startswith("close")


def test_an_accelerator_that_is_not_nvidias_has_times_and_no_counts(tmp_path: Path) -> None:
    stands_for = tmp_path / "site"
    stands_for.mkdir()
    (stands_for / "sitecustomize.py").write_text(XPU, encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    status, found, error = verified(project, "bfloat16", "xpu", path=str(stands_for))
    assert status == 0, error
    assert error == (
        "note: on XPU, results are compared and time is measured by the wall clock; waits, copies, launches, memory and "
        "clocks are not looked at\n"
    )
    (row,) = found["rows"]
    assert row["numerics"].startswith("close")
    assert row["alone"]["n"] == 4
    assert row["syncs"] is None
    assert "a made-up XPU" in found["device"]
