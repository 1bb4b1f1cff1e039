"""TL418: maxima of hand-written softmaxes; that their gradient is zero, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet

RULE = "stabiliser-with-gradient"
HEAD = "import torch\nfrom torch_scatter import scatter\ndef train(loader, net, index):\n    for batch in loader:\n        x = net(batch.cuda())\n"
MARK = f"  # <- {RULE}?"
GROUPED = (
    f"m = scatter(x, index, reduce='max'){MARK}\n        m = m.index_select(0, index)\n        e = (x - m).exp()\n"
    "        s = scatter(e, index, reduce='sum')\n        (e / s.index_select(0, index)).sum().backward()"
)
END = "(e / e.sum(-1, keepdim=True)).sum().backward()"


@pytest.mark.parametrize(
    "lines",
    [
        f"e = torch.exp(x - x.max(-1, keepdim=True)[0]){MARK}\n        {END}",
        f"m, _ = x.max(-1, keepdim=True){MARK}\n        e = (x - m).exp()\n        {END}",
        f"e = (x - torch.amax(x, -1, keepdim=True)).exp(){MARK}\n        s = e.sum(-1) + 1e-9\n        (e / s).sum().backward()",
        GROUPED,
    ],
)
def test_it_cancels(lines: str) -> None:
    check_snippet(f"{HEAD}        {lines}\n", RULE)


@pytest.mark.parametrize(
    "lines",
    [
        f"e = torch.exp(x - x.max(-1, keepdim=True)[0].detach())\n        {END}",
        f"e = torch.exp(x - x.detach().max(-1, keepdim=True)[0])\n        {END}",
        "torch.exp(x - x.amax(-1, keepdim=True)).sum().backward()",
        "e = torch.exp(x - x.amax(-1, keepdim=True))\n        (e / e.sum() + e).sum().backward()",
        "e = torch.exp(x - x.mean(-1, keepdim=True))\n        (e / e.sum()).sum().backward()",
        "e = torch.exp(x - x.amax(-1, keepdim=True))\n        (e / x.sum()).sum().backward()",
    ],
)
def test_it_does_not(lines: str) -> None:
    check_snippet(f"{HEAD}        {lines}\n", RULE)


def test_its_gradient_is_zero() -> None:
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    top = x.detach().amax(-1, keepdim=True).requires_grad_()
    e = (x - top).exp()
    (e / e.sum(-1, keepdim=True)).square().sum().backward()
    assert top.grad is not None
    assert top.grad.abs().max() < 1e-12
