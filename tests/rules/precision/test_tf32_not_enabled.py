"""TL601: scripts that train large products in float32 without TF32, and what has few of them or has chosen."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "tf32-not-enabled"
ENCODER = "nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8), 6)"
LINEAR = "nn.Sequential(nn.Linear(4096, wide), nn.ReLU(), nn.Linear(wide, 1024))"
SETTING = '\ntorch.set_float32_matmul_precision("high")\n'


def program(model: str, extra: str = "", setting: str = "", *, flagged: bool, device: str = "cuda") -> str:
    mark = f"  # <- {RULE}" if flagged else ""
    return f"""import torch
from torch import nn
{setting}wide = 4096
{extra}
model = {model}.to("{device}")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x.to("{device}")), y.to("{device}")).backward(){mark}
    optimizer.step()
"""


@pytest.mark.parametrize("model", [ENCODER, LINEAR, "nn.Transformer()"])
def test_large_products_in_float32(model: str) -> None:
    fixed = program(model, setting=SETTING, flagged=False)
    check_snippet(program(model, flagged=True), RULE, fixed=fixed)


def test_a_pretrained_model() -> None:
    model = "BertModel.from_pretrained('bert-base-uncased')"
    check_snippet(program(model, "from transformers import BertModel", flagged=True), RULE)


@pytest.mark.parametrize(
    "model",
    [
        "nn.Linear(4096, 4096)",
        "nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 10))",
        "nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size))",
        "nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3))",
        "unknown()",
    ],
)
def test_few_large_products(model: str) -> None:
    check_snippet(program(model, flagged=False), RULE)


@pytest.mark.parametrize(
    "extra",
    [
        "torch.set_float32_matmul_precision('highest')",
        "torch.backends.cuda.matmul.allow_tf32 = False",
        "torch.backends.fp32_precision = 'ieee'",
        "context = torch.autocast('cuda', dtype=torch.bfloat16)",
        "import lightning",
        "torch.set_default_dtype(torch.float64)",
        "import gymnasium",
    ],
)
def test_somebody_has_chosen(extra: str) -> None:
    check_snippet(program(ENCODER, extra, flagged=False), RULE)


def test_the_cpu() -> None:
    check_snippet(program(ENCODER, device="cpu", flagged=False), RULE)


BODY = f"""
model = nn.Transformer().cuda()
for x, y in loader:
    model(x.cuda(), y.cuda()).sum().backward()  # <- {RULE}
"""


@pytest.mark.parametrize(
    ("head", "fixed"),
    [
        ('"""What it does."""\nimport os\nimport torch as th\nfrom torch import nn  # layers\nprint(os)\n',
         ('"""What it does."""\nimport os\nimport torch as th\nfrom torch import nn  # layers\n'
          '\nth.set_float32_matmul_precision("high")\nprint(os)\n')),
        ("import torch\nimport torch.nn as nn\nimport torch.optim\n",
         'import torch\nimport torch.nn as nn\nimport torch.optim\n\ntorch.set_float32_matmul_precision("high")\n'),
        ("from torch import nn\n", None),
        ("from torch import nn\nprint(nn)\nimport torch\n", None),
        ("from torch import nn\nif nn:\n    import torch\n", None),
    ],
)  # fmt: skip
def test_below_the_imports_of_the_head(head: str, fixed: str | None) -> None:
    check_snippet(head + BODY, RULE, fixed=None if fixed is None else fixed + BODY.replace(f"  # <- {RULE}", ""))
