"""TL308: a check for NaN or infinity that reads a device tensor at each batch is flagged, and by this rule only."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "per-step-nan-check"
OTHERS = ("tensor-truthiness-branch", "item-in-train-loop", "item-in-eval-loop", "repeated-item")
MARK = "  # <- per-step-nan-check"
SECOND = "  # <- repeated-item"


def step(*lines: str) -> str:
    """A training loop that does this between the loss and the backward pass."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import math\nimport numpy as np\nimport torch\n\n\n"
        "def train(model, loader, optimizer, criterion, scaler, debug):\n"
        "    for step, (inputs, targets) in enumerate(loader):\n"
        f"        loss = criterion(model(inputs.cuda()), targets.cuda())\n{body}\n"
        "        loss.backward()\n        optimizer.step()\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("if torch.isnan(loss).any():" + MARK, "    continue"),
        ("if torch.isnan(loss):" + MARK, "    raise ValueError"),
        ("if not torch.isfinite(loss):" + MARK, "    break"),
        ("if torch.isnan(loss) or torch.isinf(loss):" + MARK, "    continue"),
        ("if math.isnan(loss.item()):" + MARK, "    continue"),
        ("if not math.isfinite(loss):" + MARK, "    continue"),
        ("if np.isnan(loss.item()):" + MARK, "    continue"),
        ("if torch.isnan(loss).any().item():" + MARK, "    continue"),
        ("assert torch.isfinite(loss).all()" + MARK,),
        ("is_bad = torch.isnan(loss).any()", "if is_bad:" + MARK, "    continue"),
        ("if any(torch.isnan(p.grad).any() for p in model.parameters()):" + MARK, "    continue"),
        ("is_bad = bool(torch.isnan(loss).any())" + MARK,),
        ("if not math.isfinite(loss.item()):" + MARK, "    break", "meter.update(loss.item())" + SECOND),
    ],
)
def test_each_step(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, *OTHERS)


@pytest.mark.parametrize(
    "lines",
    [
        ("if step % 100 == 0 and torch.isnan(loss):", "    break"),
        ("if step % 100 == 0:", "    assert torch.isfinite(loss)"),
        ("if debug and torch.isnan(loss):", "    break"),
        ("value = loss.item()", "if math.isnan(value):", "    break"),
        ("value = loss.item()", "if torch.isnan(loss) or value > 9:", "    break"),
        ("if torch.isnan(loss):", "    continue", "scaler.step(optimizer)"),
        ("if torch.isnan(inputs).any():", "    continue"),
        ("if np.isnan(targets.numpy()).any():", "    continue"),
        ("loss = torch.where(torch.isfinite(loss), loss, 0.0)",),
        ("torch._assert_async(torch.isfinite(loss))",),
    ],
)
def test_rare_known_or_elsewhere(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


def test_a_network_under_half_precision() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Layer(nn.Module):
            def forward(self, hidden_states: torch.Tensor):
                if hidden_states.dtype == torch.float16 and (
                    torch.isinf(hidden_states).any()  # <- per-step-nan-check
                    or torch.isnan(hidden_states).any()
                ):
                    hidden_states = torch.clamp(hidden_states, -1000, 1000)
                return hidden_states
        """,
        RULE,
        "tensor-truthiness-branch",
    )
