"""TL512: attributes of modules that are moved for each batch are flagged; the tests run what the fix makes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed

from torchlint.finding import Applicability

RULE = "tensor-attribute-not-buffer"


def module(
    made: str, forward: str, *, before: str = "super().__init__()", top: str = "", base: str = "nn.Module"
) -> str:
    return (
        "import torch\nfrom torch import nn\n\n\n"
        f"class Net({base}):\n{top}    def __init__(self, n=3):\n        {before}\n        {made}\n\n"
        f"    def forward(self, x):\n        return {forward}\n"
    )


MADE = (
    "torch.tensor([1.0, 2.0, 3.0])",
    "torch.arange(n)",
    "torch.ones(n) / n",
    "torch.linspace(0, 1, n).view(1, -1)",
    "torch.FloatTensor([1, 2, 3])",
    "torch.zeros(n, dtype=torch.float64).fill_(2)",
)
MOVES = (
    "x + self.a.to(x.device)",
    "x + self.a.to(device=x.device)",
    "x + self.a.to(x)",
    "x + self.a.to(x.device, x.dtype)",
    "x + self.a.to(x.device, non_blocking=True)",
    "x.to(x.device) + self.a.type_as(x)",
    "x + self.a.to('cuda' if x.is_cuda else 'cpu')",
)
SILENT = (
    ("self.a = torch.ones(n)", "x + self.a"),
    ("self.a = torch.ones(n)", "x + self.a.to(torch.float16)"),
    ("self.a = torch.ones(n)", "x + self.a.cpu()"),
    ("self.a = torch.ones(n)", "x + self.a[x].to(x.device)"),
    ("self.a = torch.ones(n)", "x + self.a.to(x.device), self.a.numpy()"),
    ("self.a = torch.ones(n)", "x + self.a.to(x.device), list(self.a)"),
    ("self.a = torch.ones(n).cuda()", "x + self.a.to(x.device)"),
    ("self.a = torch.ones(n, device='cuda')", "x + self.a.to(x.device)"),
    ("self.a = nn.Parameter(torch.ones(n))", "x + self.a.to(x.device)"),
    ("self.a = n", "x + self.a.to(x.device)"),
    ("self.a = nn.Linear(n, n)", "self.a.to(x.device)(x)"),
    ("self.register_buffer('a', torch.ones(n))", "x + self.a.to(x.device)"),
    ("self.a = torch.ones(n)\n        self.a = self.a.cuda()", "x + self.a.to(x.device)"),
)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("move", MOVES)
def test_the_fix_computes_the_same(made: str, move: str) -> None:
    code = module(f"self.a = {made}", move)
    after = fixed(code, RULE, Applicability.UNSAFE)
    assert after == code.replace(f"self.a = {made}", f'self.register_buffer("a", {made}, persistent=False)')
    assert fixed(code, RULE, Applicability.SAFE) == code
    x = torch.randn(2, 3)
    results = []
    for text in (code, after):
        net = built(text)
        results.append((net(x).tolist(), copy.deepcopy(net)(x).dtype, sorted(net.state_dict())))
    assert results[0] == results[1]
    assert "a" in dict(built(after).named_buffers())


def built(code: str) -> torch.nn.Module:
    names: dict[str, Any] = {}
    exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
    net = names["Net"]()
    assert isinstance(net, torch.nn.Module)
    return net


def test_the_laws_hold() -> None:
    made = "self.a = torch.ones(n)"
    check_snippet(
        module(made, f"x + self.a.to(x.device)  # <- {RULE}"),
        RULE,
        fixed=module('self.register_buffer("a", torch.ones(n), persistent=False)', "x + self.a.to(x.device)"),
    )


def test_what_the_page_says_may_differ() -> None:
    code = module("self.a = torch.tensor([1 / 3])", "x + self.a.to(x.device)")
    after = fixed(code, RULE, Applicability.UNSAFE)
    x = torch.zeros(1, dtype=torch.float64)
    assert built(code).half().float()(x) != built(after).half().float()(x)


@pytest.mark.parametrize(("made", "forward"), SILENT)
def test_silent(made: str, forward: str) -> None:
    assert not findings(module(made, forward), RULE)


@pytest.mark.parametrize(
    "options",
    [
        {"before": "pass"},
        {"before": "self.b = self.a = torch.ones(n)  #"},
        {"top": "    a = None\n\n"},
        {"made": "self.a = torch.ones(  # one each\n            n\n        )"},
        {"made": "self.a: torch.Tensor = torch.ones(n)"},
        {"made": "self.a = torch.ones(n); super().__init__()", "before": "pass"},
    ],
)
def test_reported_only(options: dict[str, str]) -> None:
    code = module(**{"made": "self.a = torch.ones(n)", "forward": "x + self.a.to(x.device)", **options})
    assert all(finding.fix is None for finding in findings(code, RULE))


SNIPPETS = {
    "the first of several moves": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.mean = torch.zeros(n)
            def forward(self, x):
                x = x - self.mean.to(x.device)  # <- tensor-attribute-not-buffer
                return x.mean() + self.mean.to(x.device)
        """,
    "in a base of this file": """
        import torch
        from torch import nn
        class Base(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.grid = torch.arange(n)
        class Net(Base):
            def forward(self, x):
                return x + self.grid.cuda()  # <- tensor-attribute-not-buffer
        """,
    "kept when it was moved": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.grid = torch.arange(n)
            def forward(self, x):
                self.grid = self.grid.to(x.device)
                return x + self.grid
        """,
    "no module": """
        import torch
        class Transform:
            def __init__(self, n):
                self.mean = torch.zeros(n)
            def forward(self, x):
                return x - self.mean.to(x.device)
        """,
    "once": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.mean = torch.zeros(n)
            def prepare(self, device):
                return self.mean.to(device)
        """,
}


@pytest.mark.parametrize("code", SNIPPETS.values(), ids=SNIPPETS)
def test_programs(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "made",
    [
        "torch.polar(torch.ones(3), torch.arange(3.0))",
        "torch.view_as_complex(torch.ones(3, 2)).conj()",
        "torch.ones(3, dtype=torch.complex64)",
    ],
)
def test_complex_tensors_would_be_cast(made: str) -> None:
    check_snippet(module(f"self.a = {made}", "x * self.a.to(x.device)"), RULE)
    check_snippet(module(f"made = {made}; self.a = made", "x * self.a.to(x.device)"), RULE)
