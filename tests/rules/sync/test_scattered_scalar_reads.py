"""TL304: three or more values that a statement reads back at each batch are one finding, in the place of the others."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "scattered-scalar-reads"
OTHERS = ("item-in-train-loop", "item-in-eval-loop", "implicit-sync-in-logging", "repeated-item")
MARK = "  # <- scattered-scalar-reads"
EACH = "  # <- item-in-train-loop"


def step(*lines: str) -> str:
    """A training loop that does this behind each step."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import torch\nfrom torch import nn\n\n\n"
        "def train(model, loader, optimizer, device, log):\n"
        "    for step, (inputs, targets) in enumerate(loader):\n"
        "        outputs = model(inputs.to(device))\n"
        "        fit = nn.functional.mse_loss(outputs, targets.to(device))\n"
        "        size = outputs.abs().mean()\n"
        "        loss = fit + size\n"
        "        loss.backward()\n        optimizer.step()\n"
        f"{body}\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("log(loss.item(), fit.item(), size.item())" + MARK,),
        ("print('%f %f %f' % (loss.item(), fit.item(), size.item()))" + MARK,),
        ("print(f'{loss.item()} {fit.item()} {size.item()}')" + MARK,),
        ("log(dict(a=loss.item()," + MARK, "         b=fit.item(),", "         c=size.item()))"),
        ("values = {", "    'a': loss.item()," + MARK, "    'b': fit.item(),", "    'c': size.item(),", "}", "log(values)"),
        ("log(step, loss.detach().item(), fit.item(), size.item(), outputs.max().item())" + MARK,),
    ],
)  # fmt: skip
def test_many_at_each_step(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, *OTHERS)


@pytest.mark.parametrize(
    "lines",
    [
        ("log(loss.item(), fit.item())" + EACH,),
        ("log(loss.item())" + EACH, "log(fit.item())" + EACH, "log(size.item())" + EACH),
        ("log(loss.item(), fit.item(), step)" + EACH,),
        ("if step % 100 == 0:", "    log(loss.item(), fit.item(), size.item())"),
        ("log(torch.stack([loss, fit, size]).tolist())",),
        ("log(inputs.min().item(), inputs.max().item(), inputs.sum().item())",),
    ],
)
def test_few_or_rare(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, *OTHERS)


def test_a_total_moves_behind_the_loop() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        def train(model, loader, optimizer):
            total = 0.0
            for inputs, targets in loader:
                outputs = model(inputs.cuda())
                fit = nn.functional.mse_loss(outputs, targets.cuda())
                size = outputs.abs().mean()
                loss = fit + size
                loss.backward()
                optimizer.step()
                total += loss.item() + fit.item() + size.item()  # <- item-in-train-loop
            return total
        """,
        RULE,
        "item-in-train-loop",
    )


def test_the_same_value_counts_once() -> None:
    check_snippet(step("log(loss.item(), loss.item(), fit.item())  # <- repeated-item"), RULE, *OTHERS)


def test_a_step_that_returns_numbers() -> None:
    check_snippet(
        """
        import torch
        class Agent:
            def update(self, batch):
                a, b = self.critic(batch)
                policy_loss = self.actor(batch).mean()
                a_loss, b_loss = a.pow(2).mean(), b.pow(2).mean()
                self.optimizer.zero_grad()
                (a_loss + b_loss + policy_loss).backward()
                self.optimizer.step()
                return a_loss.item(), b_loss.item(), policy_loss.item()  # <- scattered-scalar-reads
        """,
        RULE,
        "item-in-train-loop",
    )
