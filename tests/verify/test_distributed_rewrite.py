"""`DataParallel` rewritten as `DistributedDataParallel`, as the page advises, trains the same on two processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

RULE = "data_parallel"
LARGEST = 1e-6
STEPS = 20

pytestmark = pytest.mark.xdist_group("distributed-rewrite")  # all programs are trained once


def replaced(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def by_the_page(fast: str) -> str:
    """The suggestion, with the page's example in the place of its own words, and CPUs in the place of GPUs."""
    page = (files("torchlint.rules") / "distributed" / f"{RULE}.md").read_text("utf-8")
    (example,) = re.findall(r"^```python good\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    on_cpu = replaced(
        example,
        ("    torch.cuda.set_device(rank)\n", ""),
        ('"nccl"', '"gloo"'),
        ("model.cuda(), device_ids=[rank]", "model"),
    )
    wrapped = 'DistributedDataParallel(model, device_ids=[torch.cuda.current_device()] if device == "cuda" else None)'
    return on_cpu + replaced(
        fast,
        (wrapped, "build(model)"),
        ("join(device)\n    sizes", "int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n    sizes"),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each process of each program ended with."""
    pair = files("torchlint.fixtures") / RULE
    slow, fast = (pair / "slow.py").read_text("utf-8"), (pair / "fast.py").read_text("utf-8")
    programs = {
        "whole": {"source": slow, "ranks": 1},
        "alone": {"source": fast, "ranks": 1},
        "shared": {"source": fast, "ranks": 2},
        "page": {"source": by_the_page(fast), "ranks": 2},
        # Past the wrapper, so that nothing is averaged.
        "planted": {"source": replaced(fast, ("model(inputs)", "model.module(inputs)")), "ranks": 2},
    }
    folder = tmp_path_factory.mktemp("trained")
    (folder / "programs.json").write_text(json.dumps(programs), encoding="utf-8")
    script = Path(__file__).with_name("ranks.py")
    command = [sys.executable, str(script), "programs.json", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    return {path.stem: json.loads(path.read_bytes()) for path in folder.glob("*-*.json")}


def farthest(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference of two numbers in the same place of the parameters."""
    mine, theirs = one["parameters"], other["parameters"]
    assert mine.keys() == theirs.keys()
    pairs = [(a, b) for name in mine for a, b in zip(mine[name], theirs[name], strict=True)]
    assert len(pairs) > 1000
    return float(max(abs(a - b) for a, b in pairs))


@pytest.mark.parametrize("name", ["alone-0", "shared-0", "shared-1", "page-0", "page-1"])
def test_two_processes_train_as_one_does(trained: dict[str, Any], name: str) -> None:
    whole = trained["whole-0"]
    assert farthest(whole, trained[name]) <= LARGEST
    assert trained[name]["losses"] == pytest.approx(whole["losses"], rel=1e-5)
    assert len(whole["losses"]) == STEPS


def test_both_processes_hold_the_same_model(trained: dict[str, Any]) -> None:
    assert trained["shared-0"]["parameters"] == trained["shared-1"]["parameters"]


def test_training_moves_the_parameters_farther_than_that(trained: dict[str, Any]) -> None:
    losses = trained["whole-0"]["losses"]
    assert min(losses[-4:]) < min(losses[:4])


def test_gradients_that_are_not_averaged_are_seen(trained: dict[str, Any]) -> None:
    assert farthest(trained["whole-0"], trained["planted-0"]) > 100 * LARGEST
    assert farthest(trained["planted-0"], trained["planted-1"]) > 100 * LARGEST
