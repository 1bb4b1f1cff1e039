"""TL916: matrix products that only scale; what the message says computes the same."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet

RULE = "scaling-by-matmul"
HEAD = "import torch\ndef train(loader, net, adj: torch.Tensor):\n    for x in loader:\n        u, s, vh = torch.linalg.svd(net(x.cuda()))\n        d = adj.sum(-1, keepdim=True).clamp(min=1).pow(-0.5)\n"
MARK = f"  # <- {RULE}?"


@pytest.mark.parametrize(
    "line",
    [
        "(u @ torch.diag(s) @ vh).sum().backward()",
        "torch.mm(torch.diag(s.sqrt()), vh).sum().backward()",
        "u.matmul(torch.diag_embed(s)).sum().backward()",
        "(torch.bmm(d, d.permute(0, 2, 1)) * adj).sum().backward()",
        "(adj * torch.matmul(d, d.mT)).sum().backward()",
    ],
)
def test_products_that_scale(line: str) -> None:
    check_snippet(f"{HEAD}        {line}{MARK}\n", RULE)


@pytest.mark.parametrize(
    "line",
    [
        "(u @ torch.diag(adj) @ vh).sum().backward()",
        "(torch.diag(s) + vh).sum().backward()",
        "torch.bmm(d, d.permute(0, 2, 1)).sum().backward()",
        "(torch.bmm(d, d.permute(0, 2, 1)) * 2).sum().backward()",
        "(torch.bmm(adj, adj.permute(0, 2, 1)) * adj).sum().backward()",
    ],
)
def test_products_that_do_more(line: str) -> None:
    check_snippet(f"{HEAD}        {line}\n", RULE)


def test_broadcasting_computes_the_same() -> None:
    adj, x, s = torch.rand(2, 5, 5), torch.rand(5, 3), torch.rand(5)
    d = adj.sum(-1, keepdim=True)
    torch.testing.assert_close(torch.bmm(d, d.mT) * adj, adj * d * d.mT)
    torch.testing.assert_close(torch.diag(s) @ x, s.unsqueeze(-1) * x)
    torch.testing.assert_close(x.mT @ torch.diag(s), x.mT * s)
