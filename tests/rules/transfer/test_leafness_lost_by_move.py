"""TL207: parameters that are moved when they are made are flagged where a leaf is needed."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed

from torchlint.finding import Applicability

RULE = "leafness-lost-by-move"


def module(value: str) -> str:
    return (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n, device):\n"
        f"        super().__init__()\n        self.w = {value}\n"
    )


def optimized(value: str) -> str:
    return (
        "import torch\nfrom torch import nn\nfrom torch.autograd import Variable\n\n\ndef start(n, data, device):\n"
        f"    w = {value}\n    return w, torch.optim.SGD([w], lr=0.1)\n"
    )


MODULES = {
    "nn.Parameter(torch.zeros(n)).cuda()": "nn.Parameter(torch.zeros(n).cuda())",
    "nn.Parameter(torch.zeros(n)).to(device)": "nn.Parameter(torch.zeros(n).to(device))",
    "torch.nn.Parameter(torch.randn(n) / n).cuda(0)": "torch.nn.Parameter((torch.randn(n) / n).cuda(0))",
    "nn.Parameter(torch.zeros(n), requires_grad=True).to('cuda')": (
        "nn.Parameter(torch.zeros(n).to('cuda'), requires_grad=True)"
    ),
}
OPTIMIZED = {
    "torch.zeros(n, requires_grad=True).cuda()": "torch.zeros(n).cuda().requires_grad_()",
    "torch.randn(n, n, requires_grad=True, dtype=torch.float64).to(device)": (
        "torch.randn(n, n, dtype=torch.float64).to(device).requires_grad_()"
    ),
    "torch.tensor([0.5], requires_grad=True).to(device=device)": "torch.tensor([0.5]).to(device=device).requires_grad_()",
    "Variable(torch.zeros(n), requires_grad=True).cuda()": "Variable(torch.zeros(n).cuda(), requires_grad=True)",
    "nn.Parameter(torch.zeros(n)).cuda()": "nn.Parameter(torch.zeros(n).cuda())",
}
SILENT = (
    "nn.Parameter(torch.zeros(n))",
    "nn.Parameter(torch.zeros(n).cuda())",
    "nn.Parameter(torch.zeros(n, device=device)).to(device)",
    "nn.Parameter(torch.zeros(n), requires_grad=False).cuda()",
    "nn.Parameter(torch.zeros(n)).to(torch.float16)",
    "nn.Parameter(torch.zeros(n)).to('cpu')",
    "nn.Parameter(data).cuda()",
    "torch.zeros(n).cuda()",
    "torch.zeros(n, requires_grad=False).cuda()",
    "torch.zeros(n, requires_grad=True, device=device).cuda()",
    "nn.Linear(n, n).cuda()",
)


@pytest.mark.parametrize(("before", "after"), MODULES.items())
def test_parameters_of_modules(before: str, after: str) -> None:
    check_snippet(module(f"{before}  # <- {RULE}"), RULE, fixed=module(after))
    assert fixed(module(before), RULE, Applicability.SAFE) == module(before)


@pytest.mark.parametrize(("before", "after"), OPTIMIZED.items())
def test_what_is_optimized(before: str, after: str) -> None:
    assert fixed(optimized(before), RULE, Applicability.UNSAFE) == optimized(after)


@pytest.mark.parametrize("value", SILENT)
def test_silent(value: str) -> None:
    assert not findings(optimized(value), RULE)
    assert not findings(module(value), RULE)


USES = {
    "w.sum().backward()\n    return w.grad": 1,
    "return torch.optim.Adam([{'params': [w], 'lr': 0.1}])": 1,
    "w.sum().backward()": 0,
    "w.retain_grad()\n    w.sum().backward()\n    return w.grad": 0,
    "return torch.autograd.grad(w.sum(), w)": 0,
    "w = w * 2\n    return w.grad": 0,
}


@pytest.mark.parametrize(("uses", "count"), USES.items())
def test_who_needs_a_leaf(uses: str, count: int) -> None:
    code = f"import torch\n\ndef f(n):\n    w = torch.zeros(n, requires_grad=True).cuda()\n    {uses}\n"
    assert len(findings(code, RULE)) == count


@pytest.mark.parametrize(
    "code",
    [
        module("(nn.Parameter(torch.zeros(n))).cuda()"),
        module("nn.Parameter(\n            torch.zeros(n)  # a bias\n        ).cuda()"),
    ],
)
def test_reported_only(code: str) -> None:
    assert [finding.fix for finding in findings(code, RULE)] == [None]


def test_what_the_page_says_of_leaves() -> None:
    """A copy to another device is an operation like this one."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    copied = parameter.to(torch.float64)
    copied.sum().backward()
    assert not copied.is_leaf
    assert not isinstance(copied, torch.nn.Parameter)
    assert parameter.grad is not None
    with pytest.raises(ValueError, match="non-leaf"):
        torch.optim.SGD([copied], lr=0.1)
