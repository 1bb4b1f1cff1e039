"""TL515: log-probabilities of which one per row is used; what the message says computes the same."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from torch.nn import functional

RULE = "log-softmax-for-one-entry"
HEAD = "import torch\nimport torch.nn.functional as F\ndef train(loader, net):\n    for x, y in loader:\n        logits = net(x.cuda())\n"
MARK = f"  # <- {RULE}?"


@pytest.mark.parametrize(
    "lines",
    [
        f"logits.log_softmax(-1).gather(-1, y.unsqueeze(-1)).sum().backward(){MARK}",
        f"F.log_softmax(logits, dim=1).gather(1, y.view(-1, 1)).sum().backward(){MARK}",
        f"p = F.log_softmax(logits, dim=-1){MARK}\n        torch.gather(p, -1, y[:, None]).sum().backward()",
        f"p = F.log_softmax(logits, -1){MARK}\n        i = y.unsqueeze(-1).long()\n        torch.gather(p, dim=-1, index=i).sum().backward()",
    ],
)
def test_one_of_all(lines: str) -> None:
    check_snippet(f"{HEAD}        {lines}\n", RULE)


@pytest.mark.parametrize(
    "lines",
    [
        "logits.log_softmax(-1).gather(-1, y).sum().backward()",
        "logits.log_softmax(0).gather(-1, y.unsqueeze(-1)).sum().backward()",
        "p = logits.log_softmax(-1)\n        (p.gather(-1, y.unsqueeze(-1)) - p.exp()).sum().backward()",
        "logits.softmax(-1).gather(-1, y.unsqueeze(-1)).sum().backward()",
    ],
)
def test_more_than_one(lines: str) -> None:
    check_snippet(f"{HEAD}        {lines}\n", RULE)


def test_the_advice_computes_the_same() -> None:
    logits, targets = torch.randn(5, 7), torch.randint(7, (5,))
    wanted = functional.log_softmax(logits, -1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1), wanted)
    torch.testing.assert_close(-functional.cross_entropy(logits, targets, reduction="none"), wanted)
