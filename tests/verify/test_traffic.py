"""The bytes that a run has to fetch: what was there before and is read whole, each tensor once, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from torchlint.verify.inside.traffic import Traffic

MIB = 1 << 20
N = MIB // 4
A, B = torch.ones(N), torch.ones(N)
SQUARE = torch.ones(512, 512)
INDEX = torch.zeros(8, dtype=torch.int64)
MASK = torch.zeros(N, dtype=torch.bool)


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests have compiled in this process."""
    monkeypatch.setattr(sys.modules.get("torch._dynamo.utils", SimpleNamespace()), "counters", {}, raising=False)


def fetched(run: Callable[[], object], device: str = "cpu") -> int:
    traffic = Traffic(device)
    with traffic:
        run()
    return traffic.fetched


@pytest.mark.parametrize(
    ("run", "mib"),
    [
        (lambda: A + B, 2),
        (lambda: A + A, 1),
        (lambda: (A + B).relu().sum(), 2),
        (lambda: [A * 2 for _ in range(3)], 1),
        (lambda: SQUARE @ SQUARE, 1),
        (lambda: SQUARE.t() @ SQUARE[:, :256].contiguous(), 1),
        (lambda: torch.softmax(SQUARE, 1), 1),
        (lambda: A[: N // 2] + 1, 0.5),
        (lambda: (A[: N // 2] + 1, A[N // 2 :] + 1), 0.5),
        (lambda: SQUARE[0].expand(512, 512) + 1, 512 * 4 / MIB),
        (lambda: torch.nn.functional.layer_norm(SQUARE, (512,)), 1),
        (A.clone, 1),
        (lambda: torch.addmm(SQUARE, SQUARE.t().contiguous(), SQUARE.neg()), 1),
        (lambda: torch.addmm(SQUARE, torch.ones(512, 1), torch.ones(1, 512), beta=0), 0),
        (lambda: torch.nn.functional.conv2d(A.view(1, 1, 512, 512), torch.ones(1, 1, 1, 1), stride=2), 0),
        (A.any, 0),
        (lambda: SQUARE[INDEX], 0),
        (lambda: A[MASK], 0),
        (lambda: torch.where(MASK, A, B), 0),
        (lambda: A.clone().fill_(0), 1),
        (lambda: torch.empty_like(A).copy_(A), 0),
        (lambda: torch.zeros(N).add(torch.ones(N)), 0),
        (lambda: A.view(512, 512).t(), 0),
    ],
)
def test_what_has_to_be_fetched(run: Callable[[], object], mib: float) -> None:
    assert fetched(run) == mib * MIB


@pytest.mark.parametrize(("frames", "mib"), [({}, 2), ({"ok": 0, "total": 3}, 2), ({"ok": 2, "total": 3}, 0)])
def test_compiled_code_may_fetch_less_than_is_written(
    frames: dict[str, int], mib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimpleNamespace(counters={"frames": frames})
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", cast("Any", made))
    assert fetched(lambda: A + B) == mib * MIB


def test_what_is_elsewhere_is_not_fetched() -> None:
    assert fetched(lambda: A + B, "cuda") == 0


def test_a_step_of_training_fetches_its_parameters_and_what_the_optimizer_remembers() -> None:
    model = torch.nn.Linear(512, 512, bias=False)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        model(SQUARE).sum().backward()
        optimizer.step()

    step()
    found = fetched(step)
    assert 4 * MIB <= found < 4 * MIB + 1024, "inputs, parameters, two moments, a counter"


def test_memory_that_is_used_again_is_not_taken_for_what_was_there() -> None:
    def run() -> None:
        for _ in range(50):
            made = torch.ones(N)
            made += 1
            del made

    assert fetched(run) == 0
