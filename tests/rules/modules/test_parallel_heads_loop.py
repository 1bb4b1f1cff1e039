"""TL514: modules that are made alike and called on one input are flagged; those that may differ are not."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "parallel-heads-loop"
MARK = "  # <- parallel-heads-loop"
HEADS = "self.heads = nn.ModuleList([nn.Linear(width, 4) for _ in range(n)])"
CALL = "return torch.cat([head(x) for head in self.heads], dim=-1)"


def net(made: str, call: str, rest: str = "") -> str:
    return (
        "import copy\nimport torch\nfrom torch import nn\n\n\nclass Head(nn.Module):\n    def forward(self, x):\n"
        "        return x\n\n\nclass Net(nn.Module):\n    def __init__(self, width, n, sizes):\n        super().__init__()\n"
        f"{textwrap.indent(made, ' ' * 8)}\n\n    def forward(self, x, y):\n        {call}\n{rest}"
    )


@pytest.mark.parametrize(
    ("made", "call"),
    [
        (HEADS, CALL),
        (HEADS, "return torch.stack([head(x) for head in self.heads])"),
        (HEADS, "return torch.stack(tuple(head(x) for head in self.heads), dim=1)"),
        ("self.heads = nn.ModuleList(Head() for _ in range(n))", CALL),
        ("self.heads = [Head() for i in range(n)]", CALL),
        (
            "heads = []\nfor i in range(n):\n    heads.append(nn.Conv2d(width, 4, 3))\nself.heads = nn.ModuleList(heads)",
            CALL,
        ),
        ("self.heads = nn.ModuleList([nn.Sequential(nn.Linear(width, n), nn.ReLU()) for _ in range(n)])", CALL),
    ],
)
def test_modules_made_alike(made: str, call: str) -> None:
    check_snippet(net(made, call + MARK), RULE)


@pytest.mark.parametrize(
    ("made", "call"),
    [
        ("self.heads = nn.ModuleList([nn.Linear(width, size) for size in sizes])", CALL),
        ("self.heads = nn.ModuleList([nn.Sequential(nn.LayerNorm(4), nn.Linear(4, n)) for _ in range(n)])", CALL),
        ("self.heads = nn.ModuleList([nn.Sequential(nn.Linear(4, n), nn.Dropout()) for _ in range(n)])", CALL),
        ("self.heads = nn.ModuleList([nn.Sequential(OrderedDict(a=Attention(4))) for _ in range(n)])", CALL),
        ("self.heads = nn.ModuleList([nn.Linear(width, 4), nn.Linear(width, 8)])", CALL),
        ("self.heads = nn.ModuleList([nn.MaxPool2d(2) for _ in range(n)])", CALL),
        ("self.heads = sizes", CALL),
        ("self.heads = nn.ModuleList()\nfor i in range(n):\n    self.heads.append(nn.Linear(width, i))", CALL),
        (
            "self.heads = nn.ModuleList()\nfor i in range(n):\n    out = 2 * i\n    self.heads.append(nn.Linear(width, out))",
            CALL,
        ),
        (HEADS, "return [head(x) for head in self.heads]"),
        (HEADS, "return torch.cat([head(x) for head in self.heads if head], dim=-1)"),
        (HEADS, "return torch.cat([head(z) for head, z in zip(self.heads, x)], dim=-1)"),
        (HEADS, "return torch.cat([head.weight for head in self.heads], dim=-1)"),
        (HEADS, "return torch.cat([y(head) for head in self.heads], dim=-1)"),
        (HEADS, "return torch.cat([x] + [head(x) for head in self.heads], dim=-1)"),
    ],
)
def test_modules_that_may_differ(made: str, call: str) -> None:
    check_snippet(net(made, call), RULE)


def test_a_setter_puts_modules_of_the_same_shape_into_their_place() -> None:
    setter = "\n    def set_heads(self, heads):\n        self.heads = heads\n"
    check_snippet(net(HEADS, CALL + MARK, setter), RULE)
