"""TL416: assignments that were to freeze something and do not; that they do not, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet

RULE = "requires-grad-typo"
MARK = "  # <- requires-grad-typo"
TOP = "import torch\nimport torchvision\nfrom torch import nn\n"


@pytest.mark.parametrize(
    ("before", "line", "fixed"),
    [
        ("w = nn.Parameter(torch.ones(2))", "w.requires_grads = False", "w.requires_grad = False"),
        ("layer = nn.Linear(2, 2)", "layer.weight.require_grad = False", "layer.weight.requires_grad = False"),
        ("layer = nn.Linear(2, 2)", "layer.require_grad = False", "layer.requires_grad_(False)"),
        ("layer = nn.Linear(2, 2)", "layer.requires_grad = False", "layer.requires_grad_(False)"),
    ],
)
def test_freezes_nothing(before: str, line: str, fixed: str) -> None:
    check_snippet(f"{TOP}{before}\n{line}{MARK}\n", RULE, fixed=f"{TOP}{before}\n{fixed}\n")


def test_parameters_one_by_one() -> None:
    check_snippet(
        f"""
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
                self.body.requires_grad = False{MARK}
                for parameter in self.body.parameters():
                    parameter.require_grad = False{MARK}
        """,
        RULE,
        fixed="""
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
                self.body.requires_grad_(False)
                for parameter in self.body.parameters():
                    parameter.requires_grad = False
        """,
    )


@pytest.mark.parametrize(
    "code",
    [
        "p = nn.Parameter(torch.ones(2))\np.requires_grad = False",
        "layer = nn.Linear(2, 2)\nlayer.weight.requires_grad = False",
        "layer = nn.Linear(2, 2)\nlayer.requires_grad_(False)",
        "layer = nn.Linear(2, 2)\nlayer.requires_grad = True",
        "pe = torch.zeros(3, 4).float()\npe.require_grad = False",
        "w = nn.Parameter(torch.ones(2), requires_grad=False)\nw.require_grad = False",
        "x = make()\nx.requires_grad = False",
        "for p in model.parameters():\n    p.requires_grad = False",
        "x = torch.ones(2)\nx.require_grad = False\nif x.require_grad:\n    print(x)",
        "class A:\n    def __init__(self):\n        self.require_grad = False",
        "class A(nn.Module):\n    def freeze(self):\n        self.requires_grad = False",
        "class A(nn.Module):\n    @property\n    def requires_grad(self):\n        return 1\na = A()\na.requires_grad = False",
    ],
)
def test_freezes_or_is_ones_own(code: str) -> None:
    check_snippet(f"{TOP}{code}\n", RULE)


def test_it_does_nothing() -> None:
    layer = torch.nn.Linear(2, 2)
    layer.requires_grad = False
    assert layer(torch.ones(1, 2)).requires_grad
    layer.requires_grad_(requires_grad=False)
    assert not layer(torch.ones(1, 2)).requires_grad
