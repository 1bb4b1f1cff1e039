"""TL604: float16 autocast whose loss goes backward as it is, and autocast that is or does something else."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "fp16-without-scaler"


def program(
    cast: str = "torch.autocast('cuda', dtype=torch.float16)",
    *,
    loss: str = "loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())",
    between: str = "pass",
    backward: str = "loss.backward()",
    step: str = "optimizer.step()",
    extra: str = "",
    flagged: bool,
) -> str:
    mark = f"  # <- {RULE}" if flagged else ""
    return f"""
import torch
from torch import nn
from torch.cuda.amp import autocast
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
n = 4
dtype = torch.float16
{extra}
for x, y in loader:
    optimizer.zero_grad()
    with {cast}:
        {loss}
    {between}
    {backward}{mark}
    {step}
"""


@pytest.mark.parametrize(
    "cast",
    [
        "torch.autocast('cuda', dtype=torch.float16)",
        "torch.autocast('cuda', torch.half)",
        "torch.autocast(device_type='cuda')",
        "torch.amp.autocast('cuda', enabled=True)",
        "torch.cuda.amp.autocast()",
        "autocast()",
        "autocast(True)",
        "autocast(dtype=dtype)",
    ],
)
def test_float16_for_certain(cast: str) -> None:
    check_snippet(program(cast, flagged=True), RULE)


def test_a_loss_that_is_divided() -> None:
    check_snippet(program(between="loss = loss / n", flagged=True), RULE)


@pytest.mark.parametrize(
    "cast",
    [
        "torch.autocast('cpu')",
        "torch.autocast(device.type)",
        "torch.autocast('cuda', dtype=option)",
        "torch.autocast('cuda', enabled=option)",
        "torch.autocast('cuda', torch.float16, False)",
        "torch.autocast(**options)",
        "autocast(option)",
        "autocast(enabled=False)",
        "torch.no_grad()",
    ],
)
def test_not_float16_for_certain(cast: str) -> None:
    check_snippet(program(cast, flagged=False), RULE)


@pytest.mark.parametrize(
    "extra",
    [
        "scaler = torch.amp.GradScaler('cuda')",
        "loss_scale = 1024.0",
        "import lightning",
        "import accelerate",
        "import deepspeed",
        "torch.set_autocast_gpu_dtype(kind)",
        "dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16",
    ],
)
def test_somebody_sees_to_it(extra: str) -> None:
    check_snippet(program(extra=extra, flagged=False), RULE)


def test_a_loss_of_elsewhere() -> None:
    check_snippet(program(backward="losses().backward()", flagged=False), RULE)
    check_snippet(program(backward="(loss * 1024).backward()", flagged=False), RULE)
    check_snippet(program(between="loss = loss * 1024", flagged=False), RULE)
    check_snippet(program(loss="loss = model(x.cuda()).sum() * 1024", flagged=False), RULE)
    check_snippet(program(between="loss = model(x.cuda()).sum()", flagged=False), RULE)
    check_snippet(program(loss="loss = nn.functional.mse_loss(x, y)", flagged=False), RULE)


def test_nothing_learns() -> None:
    check_snippet(program(step="pass", flagged=False), RULE)


def test_autocast_switched_off_inside() -> None:
    loss = "with autocast(enabled=False):\n            loss = model(x.cuda()).sum()"
    check_snippet(program(loss=loss, flagged=False), RULE)
