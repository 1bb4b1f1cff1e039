"""TL914: constants that are converted where they are made; the tests run what the fix makes of them."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet

RULE = "factory-then-cast"

FIXES = {
    "torch.ones(n, n).bool()": "torch.ones(n, n, dtype=torch.bool)",
    "torch.zeros((n, n)).long()": "torch.zeros((n, n), dtype=torch.int64)",
    "torch.eye(n).to(torch.bool)": "torch.eye(n, dtype=torch.bool)",
    "torch.tril(torch.ones(n, n)).to(torch.bool)": "torch.tril(torch.ones(n, n, dtype=torch.bool))",
    "torch.ones(n, n).triu(1).to(dtype=torch.int)": "torch.ones(n, n, dtype=torch.int).triu(1)",
    "torch.triu(torch.ones(n, n), diagonal=1).half()": "torch.triu(torch.ones(n, n, dtype=torch.float16), diagonal=1)",
    "~torch.ones(n, n).bool()": "~torch.ones(n, n, dtype=torch.bool)",
}


def program(expression: str) -> str:
    return f"import torch\ndef train(loader, net, n: int):\n    for x in loader:\n        mask = {expression}\n        net(x.cuda(), mask).backward()\n    return mask\n"


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_it_is_made_in_its_type(before: str, after: str) -> None:
    marked = program(before).replace(before, f"{before}  # <- {RULE}")
    check_snippet(marked, RULE, fixed=program(after))
    assert torch.equal(eval(before, {"torch": torch, "n": 5}), eval(after, {"torch": torch, "n": 5}))  # noqa: S307 - our own
    assert eval(before, {"torch": torch, "n": 5}).dtype == eval(after, {"torch": torch, "n": 5}).dtype  # noqa: S307 - our own


@pytest.mark.parametrize(
    "expression",
    [
        "torch.ones(n, n, dtype=torch.uint8).bool()",
        "torch.ones(n).bool()",
        "torch.ones(2, 2).bool()",
        "torch.ones(1, n).bool()",
        "torch.ones(n, n).float()",
        "torch.full((n, n), 0.5).bool()",
        "torch.ones(n, n).to(x)",
        "torch.ones(n, n).to(x.device, torch.bool)",
        "torch.ones(n, n).mul(2).bool()",
        "np.ones((n, n)).bool()",
    ],
)
def test_what_is_not(expression: str) -> None:
    check_snippet(program(expression), RULE)
