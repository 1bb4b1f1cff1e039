"""TL321: a cast to a CPU type of what is on the device is flagged, and done on the device."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "legacy-type-cast"
MARK = "  # <- legacy-type-cast"


def step(line: str) -> str:
    """A training loop that computes this from tensors on the device."""
    return (
        "import torch\n\n\n"
        "def train(model, loader, optimizer, device, table):\n"
        "    for inputs, targets in loader:\n"
        "        x = inputs.to(device)\n"
        "        y = model(x)\n"
        f"        {line}\n"
        "        (y * w).mean().backward()\n"
        "        optimizer.step()\n"
    )


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("w = x.type(torch.FloatTensor)", "w = x.float()"),
        ("w = x.type('torch.LongTensor')", "w = x.long()"),
        ("w = (y > 0.5).type(torch.FloatTensor).to(device)", "w = (y > 0.5).float().to(device)"),
        ("w = (y > 0.5).type(torch.HalfTensor,).cuda()", "w = (y > 0.5).half().cuda()"),
        ("w = y.abs().type(torch.DoubleTensor).to(x.device)", "w = y.abs().double().to(x.device)"),
    ],
)
def test_at_each_batch(line: str, fixed: str) -> None:
    check_snippet(step(line + MARK), RULE, fixed=step(fixed))


@pytest.mark.parametrize(
    "line",
    [
        "w = x.type(torch.float32)",
        "w = x.type(torch.cuda.FloatTensor)",
        "w = x.type()",
        "w = x.type_as(y)",
        "w = targets.type(torch.FloatTensor).to(device)",
        "w = (y > 0.5).type(torch.FloatTensor) if not x.is_cuda else y",
        "w = table[0] = x.type(torch.FloatTensor)  # <- legacy-type-cast?",
        "w = x.type(torch.FloatTensor, non_blocking=True)",
    ],
)
def test_look_alikes(line: str) -> None:
    check_snippet(step(line), RULE)


def test_once() -> None:
    check_snippet(
        """
        import torch
        def prepare(weights: torch.Tensor):
            return (weights.cuda() > 0).type(torch.FloatTensor)  # <- legacy-type-cast?
        """,
        RULE,
    )


def test_a_comment_in_the_brackets_stays() -> None:
    code = """
        import torch
        def train(model, loader, optimizer):
            for inputs in loader:
                y = model(inputs.cuda())
                w = (y > 0).type(%s
                    torch.FloatTensor  # as before
                ).cuda()
                (y * w).mean().backward()
                optimizer.step()
        """
    check_snippet(code % MARK, RULE, fixed=code % "")
