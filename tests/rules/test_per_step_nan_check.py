"""TL308: a check for NaN or infinity that reads a device tensor at each batch is flagged, and by this rule only."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

from torchlint import engine
from torchlint.registry import find
from torchlint.settings import Settings
from torchlint.source import SourceFile

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
        ("if torch.isnan(loss).any():" + MARK, "    break"),
        ("if torch.isnan(loss):" + MARK, "    raise ValueError"),
        ("if not torch.isfinite(loss):" + MARK, "    break"),
        ("if torch.isnan(loss) or torch.isinf(loss):" + MARK, "    break"),
        ("if math.isnan(loss.item()):" + MARK, "    break"),
        ("if not math.isfinite(loss):" + MARK, "    break"),
        ("if np.isnan(loss.item()):" + MARK, "    break"),
        ("if torch.isnan(loss).any().item():" + MARK, "    break"),
        ("assert torch.isfinite(loss).all()" + MARK,),
        ("is_bad = torch.isnan(loss).any()", "if is_bad:" + MARK, "    break"),
        ("if any(torch.isnan(p.grad).any() for p in model.parameters()):" + MARK, "    break"),
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
        # The step is left out: nobody else can tell before the backward pass.
        ("if torch.isnan(loss):", "    continue"),
        ("if not math.isfinite(loss.item()):", "    skipped += 1", "    continue"),
        ("if torch.isfinite(loss):", "    optimizer.step()"),
        ("if torch.isfinite(loss):", "    losses.append(loss)"),
        ("shared.decide(bool(torch.isfinite(loss)))",),
        ("loss = torch.where(torch.isfinite(loss), loss, 0.0)",),
        ("torch._assert_async(torch.isfinite(loss))",),
    ],
)
def test_rare_known_or_elsewhere(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


def advice(code: str) -> str:
    (finding,) = engine.examine(
        SourceFile.from_bytes("net.py", code.encode()), (find(RULE),), Settings((RULE,))
    ).findings
    return finding.message.rpartition("; ")[2]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("if torch.isnan(loss):", "    raise ValueError"), "check less often"),
        (("if torch.isnan(loss):", "    print('bad')", "    break"), "check less often"),
        (("if torch.isnan(loss):", "    logger.warning('bad')"), "check less often"),
        (("assert not torch.isnan(loss)",), "`torch._assert_async` checks it on the device"),
        (("if torch.isnan(loss):", "    loss = loss.clamp(max=1)"), "`torch.where` or a mask chooses on the device"),
        (
            ("loss.backward()", "if torch.isnan(loss):", "    continue"),
            "`torch.nan_to_num_` clears the gradients without asking",
        ),
    ],
)
def test_the_message_goes_by_what_the_branch_does(lines: tuple[str, ...], said: str) -> None:
    assert advice(step(*lines)) == said


def test_a_network_that_raises_cannot_check_less_often() -> None:
    code = """
import torch
from torch import nn
class Layer(nn.Module):
    def forward(self, x: torch.Tensor):
        if torch.isnan(x).any():
            raise ValueError("not a number")
        return x
"""
    assert advice(code) == "`torch._assert_async` checks it on the device"


def test_what_a_function_is_for_or_has_to_be_switched_on() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Layer(nn.Module):
            def unwrap(self, x: torch.Tensor):
                if not torch.isnan(x).any():
                    return x
                return None
            def forward(self, x: torch.Tensor):
                y = self.unwrap(x)
                return clip(y)
            def is_spike(self, loss: torch.Tensor):
                if torch.isnan(loss):
                    return True
                return False
            def training_step(self, batch, index):
                loss = self(batch).mean()
                if torch.isnan(loss) or self.is_spike(loss):
                    return None
                return loss
        def clip(x: torch.Tensor, error_if_nonfinite: bool = False):
            if error_if_nonfinite and torch.isnan(x).any():
                raise RuntimeError
            return x
        """,
        RULE,
    )


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
