"""TL919: arithmetic that makes several passes over tensors; what is no blend, or next to a network, is silent."""

from __future__ import annotations

import pytest
from laws import check_snippet

from torchlint.finding import Doubt

RULE = "extra-elementwise-pass"
MARK = "  # <- extra-elementwise-pass?"


def program(
    expression: str, mark: str = MARK, given: str = "x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor"
) -> str:
    return (
        f"import torch\n\n\ndef step(batches, {given}, w, index):\n    for _ in batches:\n"
        f"        made = {expression}{mark}\n    return made\n"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "w * x + (1 - w) * y",
        "x * (1.0 - w) + y * w",
        "(~mask) * x + y * mask",
        "mask * x + mask.logical_not() * y",
        "x + w * (y - x)",
        "x + (y - x) / (w + 1)",
        "x + (x - y)",
        "x.mul_(1 - w).add_(y, alpha=w)",
        "x.mul_(w).add_(y, alpha=1 - w)",
        "x.topk(1, -1)[1]",
        "torch.topk(x, k=1, largest=False)",
        "(x - y).pow(2).sum(-1, keepdim=True).sqrt()",
        "torch.sqrt(torch.sum((x - y) ** 2, dim=1))",
        "torch.square(x).sum().sqrt()",
    ],
)
def test_several_passes(expression: str) -> None:
    check_snippet(program(expression), RULE)


@pytest.mark.parametrize(
    "expression",
    [
        "w * x + (1 - index) * y",
        "w * x - (1 - w) * y",
        "x + w * (y + x)",
        "x.mul_(1 - w).add_(y, alpha=index)",
        "x.topk(w)",
        "((x - y) ** 2).mean(-1).sqrt()",
        "torch.sqrt((x ** 2).sum(-1) + 1e-6)",
        "w * x.sum() + (1 - w) * y.sum()",
        "w * torch.ones(3) + (1 - w) * torch.zeros(3)",
        "(x - y) * 2 + (x - y)",
    ],
)
def test_what_is_no_such_thing(expression: str) -> None:
    check_snippet(program(expression, ""), RULE)


@pytest.mark.parametrize(("call", "mark"), [("self.inner(x)", ""), ("x.relu()", MARK)])
def test_beside_a_network_a_pass_costs_nothing(call: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torch import nn
        class Gated(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(8, 8)
            def forward(self, x: torch.Tensor, gate: torch.Tensor):
                y = {call}
                return gate * x + (1 - gate) * y{mark}
        """,
        RULE,
    )


def test_what_is_called_a_loss_may_be_one_number() -> None:
    result = check_snippet(program("w * loss + (1 - w) * y", given="loss: torch.Tensor, y: torch.Tensor, mask"), RULE)
    assert Doubt.NAMED_OTHERWISE in result.findings[0].doubts
