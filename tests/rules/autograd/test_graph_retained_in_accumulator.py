"""TL403: losses that are kept with a graph that was gone back through; that they keep it, on CPU torch."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from laws import check_snippet

RULE = "graph-retained-in-accumulator"
MARK = "  # <- graph-retained-in-accumulator"


def loop(before: str, *lines: str, back: str = "loss.backward()") -> str:
    """A training loop with something before it, and lines behind the backward pass."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "import torch\nfrom collections import deque\n\n\n"
        "def train(model, loader, optimizer, criterion, scaler, accelerator, k):\n"
        f"    {before}\n    for inputs, targets in loader:\n        aux = model.penalty()\n"
        f"        loss = criterion(model(inputs), targets) + aux\n        {back}\n        optimizer.step()\n{body}"
    )


@pytest.mark.parametrize(
    ("before", "line", "fixed"),
    [
        ("total = 0.0", "total += loss", "total += loss.detach()"),
        ("total = torch.zeros(1)", "total += loss * len(inputs)", "total += loss.detach() * len(inputs)"),
        ("total = 0", "total = total + loss", "total = total + loss.detach()"),
        ("total = 0", "total = 0.9 * total + 0.1 * loss", "total = 0.9 * total + 0.1 * loss.detach()"),
        ("losses = []", "losses.append(loss)", "losses.append(loss.detach())"),
        ("losses = []", "losses.append(loss.cpu())", "losses.append(loss.detach().cpu())"),
        ("losses = []", "losses += [loss]", "losses += [loss.detach()]"),
        ("losses = []", "losses.append(aux)", "losses.append(aux.detach())"),
        ("losses = []", "losses.append(loss + aux)", "losses.append((loss + aux).detach())"),
        ("log = {'loss': 0.0}", "log['loss'] += loss", "log['loss'] += loss.detach()"),
    ],
)
def test_kept_with_its_graph(before: str, line: str, fixed: str) -> None:
    check_snippet(loop(before, line + MARK), RULE, fixed=loop(before, fixed))


@pytest.mark.parametrize(
    "back",
    [
        "scaler.scale(loss).backward()",
        "accelerator.backward(loss)",
        "(loss / k).backward()",
        "loss.mean().backward()",
    ],
)
def test_ways_to_go_back(back: str) -> None:
    check_snippet(loop("total = 0.0", "total += loss" + MARK, back=back), RULE)


def test_a_sum_of_what_was_gone_back_through() -> None:
    check_snippet(
        """
        import torch
        def train(netD, loader, criterion, optimizer):
            errors = []
            for real, fake in loader:
                error_real = criterion(netD(real))
                error_real.backward()
                error_fake = criterion(netD(fake))
                error_fake.backward()
                error = error_real + error_fake
                optimizer.step()
                errors.append(error)  # <- graph-retained-in-accumulator
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("before", "lines"),
    [
        ("total = 0.0", ("total += loss.item()",)),
        ("total = 0.0", ("total += loss.detach() * 2",)),
        ("total = 0.0", ("loss = loss.detach()", "total += loss")),
        ("total = 0.0", ("loss.detach_()", "total += loss")),
        ("total = 0.0", ("with torch.no_grad():", "    total += loss")),
        ("total = 0.0", ("total += loss", "total = float(total)")),
        ("total = 0.0", ("total += inputs",)),
        ("total = 0.0", ("total += loss", "if done:", "    total = 0.0")),
        (
            "total = 0.0",
            ("count = (targets > 0).sum()", "loss = criterion(outputs, targets) * count", "total += count"),
        ),
        ("total = 0.0", ("total = loss",)),
        ("pass", ("total = 0.0", "total += loss")),
        ("losses = deque(maxlen=9)", ("losses.append(loss)",)),
        ("losses = make()", ("losses.append(loss)",)),
        ("losses = []", ("losses.append(loss.detach())",)),
        ("losses = []", ("losses.append(targets)",)),
    ],
)
def test_kept_without_a_graph_or_not_for_long(before: str, lines: tuple[str, ...]) -> None:
    check_snippet(loop(before, *lines), RULE)


@pytest.mark.parametrize("back", ["loss.backward(retain_graph=True)", "loss.mean()", "total.backward()"])
def test_a_graph_that_may_be_wanted(back: str) -> None:
    check_snippet(loop("total = 0.0", "total += loss", back=back), RULE)


@pytest.mark.parametrize(
    ("made", "back", "mark"),
    [
        ("bonus, _ = measure(inputs)", "(-loss * (bonus - 0.5)).mean().backward()", ""),
        ("bonus = measure(inputs)", "(loss / bonus).backward()", ""),
        ("bonus = criterion(model(targets))", "(loss * bonus).backward()", "  # <- graph-retained-in-accumulator"),
        ("bonus = measure(inputs)", "(loss + 0.1 * bonus).backward()", "  # <- graph-retained-in-accumulator"),
    ],
)
def test_a_factor_may_be_a_number(made: str, back: str, mark: str) -> None:
    check_snippet(loop("kept = []", f"kept.append((bonus, targets)){mark}", back=f"{made}; {back}"), RULE)


class _Keeping(torch.autograd.Function):  # type: ignore[misc]
    """Keeps something on its context."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.kept = torch.ones(1)
        _Keeping.last = weakref.ref(ctx.kept)
        return x * 2

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2 * ctx.kept


@pytest.mark.parametrize("detaches", [False, True])
def test_what_stays(*, detaches: bool) -> None:
    total: torch.Tensor | float = 0.0
    loss = _Keeping.apply(torch.ones(3, requires_grad=True)).sum()
    loss.backward()
    total += loss.detach() if detaches else loss
    del loss
    gc.collect()
    assert (_Keeping.last() is None) == detaches
    assert torch.is_tensor(total)


def test_what_a_loss_is_multiplied_with_has_no_graph_of_its_own() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, criterion, optimizer):
            count = total = 0
            for inputs, targets in loader:
                optimizer.zero_grad()
                tokens = (targets != 0).sum()
                loss = criterion(model(inputs), targets) * tokens
                loss.backward()
                optimizer.step()
                count += tokens
                total += loss  # <- graph-retained-in-accumulator
        """,
        RULE,
    )
