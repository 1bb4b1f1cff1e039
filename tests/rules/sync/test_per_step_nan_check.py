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
THIRD = "  # <- item-in-train-loop"


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
        ("assert torch.isfinite(loss)" + MARK, "loss.backward()", "total += loss.item()" + THIRD),
        ("assert torch.isfinite(loss)" + MARK, "total += criterion(inputs.cuda(), loss).item()" + THIRD),
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
        ("if debug and torch.isnan(loss):  # <- per-step-nan-check?", "    break"),
        ("value = loss.item()", "if math.isnan(value):", "    break"),
        ("value = loss.item()", "if torch.isnan(loss) or value > 9:", "    break"),
        ("if torch.isnan(loss):  # <- per-step-nan-check?", "    continue", "scaler.step(optimizer)"),
        ("if torch.isnan(inputs).any():", "    continue"),
        ("if np.isnan(targets.numpy()).any():", "    continue"),
        # The step is left out: nobody else can tell before the backward pass.
        ("if torch.isnan(loss):  # <- per-step-nan-check?", "    continue"),
        ("if not math.isfinite(loss.item()):  # <- per-step-nan-check?", "    skipped += 1", "    continue"),
        ("if torch.isfinite(loss):  # <- per-step-nan-check?", "    optimizer.step()"),
        ("if torch.isfinite(loss):  # <- per-step-nan-check?", "    losses.append(loss)"),
        ("if math.isnan(loss):  # <- per-step-nan-check?", "    print('left out')", "else:", "    optimizer.step()"),
        ("assert torch.isfinite(loss)", "total += loss.item()"),
        ("if torch.isnan(loss):", "    break", "metrics = {name: value.item() for name, value in parts(loss)}"),
        ("shared.decide(bool(torch.isfinite(loss)))  # <- per-step-nan-check?",),
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
    return finding.help


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("if torch.isnan(loss):", "    raise ValueError"), "check only now and then"),
        (("if torch.isnan(loss):", "    print('bad')", "    break"), "check only now and then"),
        (("if torch.isnan(loss):", "    logger.warning('bad')"), "check only now and then"),
        (("assert not torch.isnan(loss)",), "check it on the GPU with `torch._assert_async`"),
        (("if torch.isnan(loss):", "    loss = loss.clamp(max=1)"), "choose on the GPU with `torch.where` or a mask"),
        (
            ("loss.backward()", "if torch.isnan(loss):", "    continue"),
            "clear the gradients with `torch.nan_to_num_`, which needs no check",
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
    assert advice(code) == "check it on the GPU with `torch._assert_async`"


def test_what_a_function_is_for_or_has_to_be_switched_on() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Layer(nn.Module):
            def unwrap(self, x: torch.Tensor):
                if not torch.isnan(x).any():  # <- per-step-nan-check?
                    return x
                return None
            def forward(self, x: torch.Tensor):
                y = self.unwrap(x)
                return clip(y)
            def is_spike(self, loss: torch.Tensor):
                if torch.isnan(loss):  # <- per-step-nan-check?
                    return True
                return False
            def training_step(self, batch, index):
                loss = self(batch).mean()
                if torch.isnan(loss) or self.is_spike(loss):  # <- per-step-nan-check?
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


def test_drawing_again_until_all_is_well() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.project = nn.Linear(8, 8)
            def forward(self, x: torch.Tensor):
                logits = self.project(x)
                while True:
                    noise = torch.empty_like(logits).exponential_().log()
                    if not torch.isinf(noise).any():  # <- per-step-nan-check?
                        return (logits - noise).softmax(1)
                    again = torch.rand_like(noise)
                    if torch.isfinite(again).all():  # <- per-step-nan-check?
                        break
                return logits + again
        def train(model, loader, optimizer, criterion):
            batches = iter(loader)
            while True:
                loss = criterion(model(next(batches).cuda()))
                if torch.isnan(loss):  # <- per-step-nan-check
                    break
                loss.backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("raised", "caught", "mark"),
    [
        ("RuntimeError('overflow')", " Exception", f"{MARK}?"),
        ("RuntimeError", " (ValueError, RuntimeError)", f"{MARK}?"),
        ("RuntimeError", "", f"{MARK}?"),
        ("RuntimeError('overflow')", " KeyboardInterrupt", MARK),
    ],
)
def test_an_error_that_is_caught_is_not_for_the_device_to_raise(raised: str, caught: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torch import nn
        class Layer(nn.Module):
            def forward(self, x: torch.Tensor):
                try:
                    if torch.isinf(x).any():{mark}
                        raise {raised}
                except{caught}:
                    x = x.float()
                return x
        """,
        RULE,
        "tensor-truthiness-branch",
    )
