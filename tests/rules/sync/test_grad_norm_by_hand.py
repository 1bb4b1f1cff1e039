"""TL314: norms of gradients that are added up on the CPU at each batch are flagged, and by this rule only."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "grad-norm-by-hand"
OTHERS = ("item-in-train-loop", "item-in-eval-loop", "item-comprehension")
MARK = "  # <- grad-norm-by-hand"


def step(*lines: str) -> str:
    """A training loop that does this between the backward pass and the step."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import torch\n\n\n"
        "def train(model, loader, optimizer, log):\n"
        "    for step, inputs in enumerate(loader):\n"
        "        model(inputs.cuda()).mean().backward()\n"
        f"{body}\n"
        "        optimizer.step()\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("total = 0.0", "for p in model.parameters():", "    total += p.grad.norm().item() ** 2" + MARK, "log(total)"),
        ("total = 0.0", "for p in model.parameters():", "    total += p.grad.data.norm(2).item()" + MARK, "log(total)"),
        (
            "total = 0.0",
            "for p in model.parameters():",
            "    if p.grad is not None:",
            "        norm = torch.norm(p.grad)",
            "        total += float(norm) ** 2" + MARK,
            "log(total)",
        ),
        ("log(sum(p.grad.norm().item() ** 2 for p in model.parameters()))" + MARK,),
        ("log(sum([torch.linalg.vector_norm(p.grad).item() for p in model.parameters()]))" + MARK,),
    ],
)
def test_each_step(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, *OTHERS)


@pytest.mark.parametrize(
    "lines",
    [
        ("total = 0.0", "for p in model.parameters():", "    total += p.grad.norm() ** 2", "log(total)"),
        ("for n, p in model.named_parameters():", "    log(n, p.grad.norm().item())"),
        ("if step % 50 == 0:", "    log(sum(p.grad.norm().item() for p in model.parameters()))"),
        ("log(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))",),
        ("total = 0.0", "for p in model.parameters():", "    total += p.norm().item() ** 2", "log(total)"),
    ],
)
def test_on_the_device_or_rare(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


def test_a_helper_that_is_called_at_each_step() -> None:
    code = """
        import torch
        def grad_norm(parameters):
            total = 0
            for p in parameters:
                norm = p.grad.data.norm(2)
                total += norm.item() ** 2  # <- grad-norm-by-hand
            return total ** 0.5
        def train(model, loader, optimizer, log):
            for inputs in loader:
                model(inputs.cuda()).mean().backward()
                log(grad_norm(model.parameters()))
                optimizer.step()
        """
    assert "clip_grad_norm_" in check_snippet(code, RULE).findings[0].help
    assert "get_total_norm" in check_snippet(code, RULE, target_torch=(2, 6)).findings[0].help
