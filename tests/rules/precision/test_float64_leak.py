"""TL608: float64 arrays that are moved as they are, and those that are cast, small, rare, or of another type."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "float64-leak"


def program(made: str, *, flagged: bool, move: str = ".cuda()", extra: str = "", use: str = "x + t") -> str:
    mark = f"  # <- {RULE}" if flagged else ""
    return f"""
import numpy as np
import torch
from torch.utils.data import DataLoader
{extra}
for x in DataLoader(data, batch_size=8):
    x = x.to("cuda")
    t = {made}{move}{mark}
    print({use})
"""


@pytest.mark.parametrize(
    "made",
    [
        "torch.from_numpy(np.random.rand(3, 4))",
        "torch.from_numpy(np.random.randn(*x.shape))",
        "torch.as_tensor(np.random.normal(0, 1, x.shape))",
        "torch.tensor(np.random.uniform(size=(3, 4)))",
        "torch.tensor(np.zeros((3, 4)))",
        "torch.from_numpy(np.linspace(0, 1, 10))",
    ],
)
@pytest.mark.parametrize("move", [".cuda()", ".to('cuda')", ".to('cuda', non_blocking=True)"])
def test_float64_for_certain(made: str, move: str) -> None:
    fixed = program(f"{made}.float()", flagged=False, move=move)
    check_snippet(program(made, flagged=True, move=move), RULE, fixed=fixed)


@pytest.mark.parametrize(
    "made",
    [
        "torch.from_numpy(np.random.rand(3, 4)).float()",
        "torch.from_numpy(np.random.rand(3, 4).astype('f4'))",
        "torch.tensor(np.random.rand(3, 4), dtype=torch.float32)",
        "torch.from_numpy(np.zeros((3, 4), 'f4'))",
        "torch.from_numpy(np.zeros((3, 4), dtype='f4'))",
        "torch.from_numpy(np.arange(4))",
        "torch.from_numpy(np.random.randint(0, 9, 4))",
        "torch.tensor(np.random.uniform(0, 1))",
        "torch.tensor(np.random.rand())",
        "torch.from_numpy(array)",
        "torch.from_numpy(unknown.random.rand(3))",
    ],
)
def test_another_type_or_one_number(made: str) -> None:
    check_snippet(program(made, flagged=False), RULE)


@pytest.mark.parametrize(
    "move", [".to('cuda', torch.float32)", ".to(x)", ".cuda().float()", ".to('cpu')", ".cuda().to(x.dtype)"]
)
def test_another_move(move: str) -> None:
    check_snippet(program("torch.from_numpy(np.random.rand(3, 4))", flagged=False, move=move), RULE)


@pytest.mark.parametrize(
    "extra", ["import scipy", "torch.set_default_dtype(kind)", "x64 = np.float64", "import gpytorch"]
)
def test_the_digits_count(extra: str) -> None:
    check_snippet(program("torch.from_numpy(np.random.rand(3, 4))", flagged=False, extra=extra), RULE)


def test_a_cast_behind() -> None:
    check_snippet(program("torch.from_numpy(np.random.rand(3, 4))", flagged=False, use="x + t.float()"), RULE)


def test_once() -> None:
    check_snippet("import numpy as np\nimport torch\nt = torch.from_numpy(np.random.rand(3)).cuda()\n", RULE)
