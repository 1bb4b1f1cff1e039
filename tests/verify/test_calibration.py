"""On a machine with a GPU: the simulated device counts what the profiler sees of the same workloads."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from torchlint import evidence
from torchlint.registry import find
from torchlint.rule import Rule
from torchlint.verify import checks
from torchlint.verify.arms import Arm, Subject
from torchlint.verify.session import session
from torchlint.verify.workload import FILE, workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.evidence import Measurement

FIXTURES = Path(__file__).parents[2] / "fixtures"
COMPARED = ("syncs", "h2d_pageable", "h2d_pinned", "d2h")


# Waits, copies of each kind, both memories, and none of them: each takes a few seconds of a GPU's time.
SAMPLE = [
    find(name)
    for name in (
        "item-in-train-loop item-in-eval-loop boolean-mask-select dataloader-not-pinned host-factory-then-move "
        "blocking-h2d-in-batch-loop bulk-d2h-in-hot-loop cat-grow-in-loop naive-attention optimizer-not-fused"
    ).split()
]


def differences(sim: dict[str, int], cuda: dict[str, int]) -> dict[str, tuple[int, int]]:
    """What the two counted otherwise, the simulated device first.

    A copy from pageable memory makes the host wait, `non_blocking` or not, which the simulated device counts. CUDA does
    so inside of the copy, and makes no call that a profiler could see, unless torch makes one: of so many waits, any
    number may be missing.
    """
    found = {kind: (sim[kind], cuda[kind]) for kind in COMPARED if sim[kind] != cuda[kind]}
    if sim["syncs"] - sim["h2d_pageable"] <= cuda["syncs"] <= sim["syncs"]:
        found.pop("syncs", None)
    return found


@pytest.mark.parametrize(
    ("sim", "cuda", "expected"),
    [
        ((4, 0, 2, 1), (4, 0, 2, 1), {}),
        ((4, 3, 0, 1), (1, 3, 0, 1), {}),
        ((4, 3, 0, 1), (2, 3, 0, 1), {}),
        ((4, 3, 0, 1), (0, 3, 0, 1), {"syncs": (4, 0)}),
        ((4, 0, 3, 1), (1, 0, 3, 1), {"syncs": (4, 1)}),
        ((4, 3, 0, 1), (5, 3, 0, 1), {"syncs": (4, 5)}),
        ((4, 3, 0, 1), (4, 2, 1, 1), {"h2d_pageable": (3, 2), "h2d_pinned": (0, 1)}),
        ((1, 0, 0, 1), (1, 0, 0, 2), {"d2h": (1, 2)}),
    ],
)
def test_what_a_profiler_cannot_see_is_no_difference(
    sim: tuple[int, ...], cuda: tuple[int, ...], expected: dict[str, tuple[int, int]]
) -> None:
    assert differences(dict(zip(COMPARED, sim, strict=True)), dict(zip(COMPARED, cuda, strict=True))) == expected


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("rule", SAMPLE, ids=lambda rule: rule.name)
@pytest.mark.parametrize("side", ["slow", "fast"])
def test_counts_are_those_of_the_profiler(rule: Rule, side: str, tmp_path: Path) -> None:
    each = workload(rule)
    if each.devices > 1:
        pytest.skip(f"needs {each.devices} CUDA devices")
    source = each.slow if side == "slow" else each.fast
    seen = {device: counted(source, device, tmp_path) for device in ("cuda", "sim")}
    assert differences(seen["sim"], seen["cuda"]) == {}


# Of what was counted on GPUs: waits, copies of each kind, and none of them, at sizes that a CPU computes in seconds.
QUICK = frozenset(
    "constant-tensor-in-hot-path data-dependent-size empty-cache-in-loop item-in-train-loop list-to-device-in-hot-path "
    "synchronize-in-loop table-moved-per-call tensor-as-python-int".split()
)
WHOLE = "TORCHLINT_CALIBRATE_ALL" in os.environ
"""All of them: a quarter of an hour and more, and 16 GB of memory."""


def on_gpus() -> Iterator[tuple[Rule, Measurement]]:
    """What was counted on GPUs and is committed, of the pairs as they are."""
    for path in sorted(FIXTURES.glob("*/evidence/*.json")):
        found = evidence.read(path.read_bytes(), str(path))
        for each in found.measurements if WHOLE or found.rule in QUICK else ():
            if (
                each.device.type == "cuda"
                and each.counts
                and not evidence.is_stale(each, workload(find(found.rule)).digests)
            ):
                yield find(found.rule), each


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "measured"), [*on_gpus()], ids=lambda each: each.name if isinstance(each, Rule) else each.subject.size
)
def test_counts_are_those_that_a_gpu_gave(rule: Rule, measured: Measurement, tmp_path: Path) -> None:
    assert measured.counts
    sides = ((workload(rule).slow, measured.counts.before), (workload(rule).fast, measured.counts.after))
    for source, told in sides:
        sim = counted(source, "sim", tmp_path, measured.subject.size)
        assert differences(sim, {kind: int(told[kind]) for kind in COMPARED}) == {}


def counted(source: bytes, device: str, folder: Path, size: str = "smoke") -> dict[str, int]:
    (folder / FILE).write_bytes(source)
    subject = Subject(folder, {"kind": "workload", "file": FILE, "size": size}, device, 1, sys.executable)
    with session(subject) as running, running.running(Arm("null"), seed=checks.SEED) as worker:
        worker.ask("start", running.patience.check, seed=checks.SEED)
        said = worker.ask("count", running.patience.check, units=1, warm=1)
    assert not said["doubt"], said["doubt"]
    return {kind: said["counts"][kind] for kind in COMPARED}
