"""On a machine with a GPU: the simulated device counts what the profiler sees of the same workloads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from torchlint.registry import all_rules
from torchlint.verify import checks
from torchlint.verify.arms import Arm, Subject
from torchlint.verify.session import session
from torchlint.verify.workload import FILE, workload

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.rule import Rule

pytestmark = pytest.mark.slow

COMPARED = ("syncs", "h2d_pageable", "h2d_pinned", "d2h")
MEASURED = [rule for rule in all_rules() if rule.checks]


@pytest.fixture(scope="module", autouse=True)
def _needs_cuda() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.mark.parametrize("rule", MEASURED, ids=lambda rule: rule.name)
@pytest.mark.parametrize("side", ["slow", "fast"])
def test_counts_are_those_of_the_profiler(rule: Rule, side: str, tmp_path: Path) -> None:
    each = workload(rule)
    if each.devices > 1:
        pytest.skip(f"needs {each.devices} CUDA devices")
    source = each.slow if side == "slow" else each.fast
    seen = {device: counted(source, device, tmp_path) for device in ("cuda", "sim")}
    assert seen["sim"] == seen["cuda"]


def counted(source: bytes, device: str, folder: Path) -> dict[str, int]:
    (folder / FILE).write_bytes(source)
    subject = Subject(folder, {"kind": "workload", "file": FILE, "size": "smoke"}, device, 1, sys.executable)
    with session(subject) as running, running.running(Arm("null"), seed=checks.SEED) as worker:
        worker.ask("start", running.patience.check, seed=checks.SEED)
        said = worker.ask("count", running.patience.check, units=1, warm=1)
    return {kind: said["counts"][kind] for kind in COMPARED}
