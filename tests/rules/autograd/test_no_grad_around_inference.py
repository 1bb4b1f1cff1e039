"""TL417: `torch.no_grad()` around loops that only run a model, where nothing that it gives leaves as a tensor."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet

RULE = "no-grad-around-inference"

LOOP = """
    import torch
    from torch import nn

    class Runner:
        def __init__(self):
            self.model = nn.Linear(4, 4)
            self.model.eval()
            self.last = None

        def run(self, batches):
            def step(batch):
                return self.model(batch)

            found = None
            total = 0.0
            with torch.no_grad():{mark}
                for batch in batches:
                    {inner}
            {after}
"""
SAFE = [
    "total += step(batch).sum().item()",
    "total += self.model(batch).mean().item()",
    "found = self.model(batch).cpu().numpy()",
    "print(self.model(batch).argmax(1).tolist())",
    "step(batch)",
]
UNSAFE = [
    "found = self.model(batch)",
    "found = step(batch)",
    "found = step(batch).argmax(1)",
    "self.last = step(batch)",
    "total += self.model(batch).mean()",
    "total.add_(self.model(batch).mean())",
    "found = self.model.bias.clone() + step(batch)",
    "total += torch.autograd.grad(step(batch).sum(), batch)[0].item()",
]


@pytest.mark.parametrize("inner", SAFE)
def test_numbers_and_arrays_may_leave(inner: str) -> None:
    mark = f"  # <- {RULE}?"
    check_snippet(LOOP.format(mark=mark, inner=inner, after="return found, total"), RULE)


@pytest.mark.parametrize("inner", UNSAFE)
def test_tensors_may_not(inner: str) -> None:
    check_snippet(LOOP.format(mark="", inner=inner, after="return found, total"), RULE)


def test_sharded_parameters_are_left_alone() -> None:
    code = LOOP.format(mark="", inner=SAFE[0], after="return total")
    check_snippet(code + "\n    from torch.distributed.fsdp import fully_shard\n", RULE)


def test_what_the_page_says() -> None:
    weight = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        made = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        (weight * made).sum()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        made.add_(1)
