"""TL516: triangular masks that are built at each call."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "mask-rebuilt-per-call"
MODULE = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.held = None
    def mask(self, n):
        {inner}
    def forward(self, x):
        n = x.shape[1]
        {lines}
        return x
"""
MARK = f"  # <- {RULE}?"


@pytest.mark.parametrize(
    "expression",
    [
        "torch.tril(torch.ones(n, n))",
        "torch.ones((n, n), device=x.device).triu(1)",
        "torch.triu(torch.full((n, n), -1e9), diagonal=1)",
    ],
)
def test_masks_of_each_call(expression: str) -> None:
    check_snippet(MODULE.format(inner="pass", lines=f"x = x + {expression}{MARK}"), RULE)
    helper = expression.replace(", device=x.device", "")
    check_snippet(MODULE.format(inner=f"return {helper}{MARK}", lines="x = x + self.mask(n)"), RULE)


@pytest.mark.parametrize(
    ("inner", "lines"),
    [
        ("pass", "x = x + torch.tril(x @ x.mT)"),
        ("pass", "x = x + torch.tril(torch.ones(4, 4))"),
        ("pass", "x = x + torch.tril(torch.ones(n, 8))"),
        ("pass", "self.held = torch.tril(torch.ones(n, n))"),
        ("return torch.tril(torch.ones(n, n))", "self.held = self.mask(n)"),
        (
            "return torch.tril(torch.ones(n, n)).bool()",
            "if self.held is None:\n            self.held = self.mask(n).to(x)",
        ),
    ],
)
def test_what_is_kept_or_computed(inner: str, lines: str) -> None:
    check_snippet(MODULE.format(inner=inner, lines=lines), RULE)
