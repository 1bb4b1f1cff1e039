"""TL710: parameters and gradients that are sent by a collective each."""

from __future__ import annotations

import textwrap
from importlib.resources import files

import pytest
from laws import check_snippet

RULE = "collective-per-tensor"
MARK = f"  # <- {RULE}"
HEAD = "import torch\nimport torch.distributed as dist\n"


def step(*lines: str) -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"{HEAD}def train(model, loader, optimizer, criterion, tensors, found):\n    for x, y in loader:\n"
        f"        criterion(model(x), y).backward()\n{body}\n        optimizer.step()\n"
    )


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("for p in model.parameters():", "dist.all_reduce(p.grad)"),
        ("for p in model.parameters():", "dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)"),
        ("for p in model.parameters():", "dist.all_reduce(p.grad, async_op=False)"),
        ("for name, p in model.named_parameters():", "dist.broadcast(p.data, 0)"),
        ("for name, p in model.state_dict().items():", "dist.broadcast(p, 0)"),
        ("for i, p in enumerate(model.buffers()):", "dist.all_reduce(tensor=p.detach())"),
        ("for p in list(filter(lambda p: p.requires_grad, model.parameters())):", "dist.reduce(p.grad, 0)"),
        ("for p in [p for p in model.parameters() if p.grad is not None]:", "dist.all_gather(found, p.grad)"),
        ("for p in tensors:", "dist.all_reduce(p.grad)"),
    ],
)
def test_flagged(loop: str, line: str) -> None:
    result = check_snippet(step(loop, f"    {line}{MARK}"), RULE)
    assert "every batch" in result.findings[0].message


def test_through_names() -> None:
    check_snippet(
        step(
            "chosen = [p for p in model.parameters() if p.grad is not None]",
            "for p in chosen:",
            "    gradient = p.grad.data",
            f"    dist.all_reduce(gradient){MARK}",
        ),
        RULE,
    )


def test_groups_of_an_optimizer() -> None:
    lines = (
        "for group in optimizer.param_groups:",
        "    for p in group['params']:",
        f"        dist.all_reduce(p.grad){MARK}",
    )
    result = check_snippet(step(*lines), RULE)
    assert "every batch" in result.findings[0].message


def test_a_comprehension() -> None:
    check_snippet(step(f"[dist.all_reduce(p.grad) for p in model.parameters()]{MARK}"), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("for t in tensors:", "    dist.all_reduce(t)"),
        ("for p in model.parameters():", "    dist.all_reduce(p.grad, async_op=True)"),
        ("for p in model.parameters():", "    dist.all_reduce(p.grad, async_op=found)"),
        ("for p in model.parameters():", "    dist.all_reduce(*tensors)"),
        ("with dist._coalescing_manager():", "    for p in model.parameters():", "        dist.all_reduce(p.grad)"),
        ("for p in model.parameters():", "    found.all_reduce(p.grad)"),
        ("for p in model.parameters():", "    dist.all_reduce(x)"),
        ("for name in found['params']:", "    dist.all_reduce(tensors)"),
    ],
)
def test_silent(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


def test_once_at_the_start() -> None:
    check_snippet(
        f"{HEAD}model = torch.nn.Linear(2, 2)\nfor p in model.parameters():\n    dist.broadcast(p.data, 0)\n", RULE
    )


def test_a_helper_that_nobody_calls_is_a_note() -> None:
    check_snippet(
        f"{HEAD}def average(model):\n    for p in model.parameters():\n        dist.all_reduce(p.grad){MARK}?\n", RULE
    )


def test_one_of_torchs_averagers() -> None:
    code = """
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        def train(model, loader, optimizer, criterion):
            averager = PeriodicModelAverager(period=4)
            for x, y in loader:
                criterion(model(x), y).backward()
                optimizer.step()
                {}
    """
    check_snippet(code.format(f"for p in model.parameters(): averager.average_parameters(iter(p)){MARK}"), RULE)
    check_snippet(code.format("averager.average_parameters(model.parameters())"), RULE)


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("collective_per_tensor/ok.py").read_text("utf-8"), RULE)
