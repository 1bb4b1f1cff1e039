"""TL218: lists of tensors of the device that are read one by one; the tests show why there is no fix."""

from __future__ import annotations

import textwrap

import pytest
import torch
from laws import check_snippet
from twins import findings

RULE = "array-from-list-of-tensors"


def loop(*lines: str) -> str:
    """The lines where `x` is a network's output on the device and `parts` a list of such, at each batch."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import numpy as np\nimport torch\n\ndef run(model, loader, device, names, mask):\n"
        "    for inputs, labels in loader:\n        x = model(inputs.to(device)).exp()\n"
        f"        parts = [torch.tanh(x * k) for k in range(4)]\n{body}\n"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "np.array([p.cpu().numpy() for p in parts])",
        "np.stack([p.detach().cpu().numpy() for p in parts], axis=1)",
        "np.concatenate([p.cpu() for p in parts])",
        "np.mean([p.mean().item() for p in parts])",
        "np.array([p.cpu().tolist() for p in parts])",
        "torch.tensor([p.mean().item() for p in parts])",
        "torch.tensor([x.sum(), x.mean()])",
        "torch.tensor([x.sum(), x.mean()], device=device)",
        "torch.tensor((x.min().detach(), x.max()))",
        "torch.FloatTensor([x.min(), x.max(), x.std()])",
        "torch.tensor([x.sum(), x.sum() if mask is None else 3])",
    ],
)
def test_flagged(expression: str) -> None:
    check_snippet(loop(f"y = {expression}  # <- {RULE}"), RULE)


def test_names_of_reductions() -> None:
    check_snippet(loop("low = x.min()", "high = x.max()", f"y = torch.tensor([low, high])  # <- {RULE}"), RULE)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.stack(parts).cpu().numpy()",
        "torch.stack([x.sum(), x.mean()])",
        "np.array([v.item() for v in x])",
        "torch.tensor([x.sum()])",
        "torch.tensor([x.sum().item(), 1.0])",
        "torch.tensor([x.sum(), 1.0])",
        "torch.tensor([1.0, 2.0])",
        "torch.tensor([inputs.sum(), inputs.mean()])",
        "np.array([len(name) for name in names])",
        "np.array([name.numpy() for name in names])",
        "np.stack([(p * 2) for p in names])",
        "np.array([p.cpu().numpy() for p in parts if p.any()])",
        "torch.tensor([names.a, names.b])",
        "np.stack([inputs * k for k in range(3)])",
    ],
)
def test_silent(expression: str) -> None:
    assert not findings(loop(f"y = {expression}"), RULE)


def test_once() -> None:
    check_snippet(
        """
        import numpy as np
        import torch
        weights = [torch.randn(3).cuda() for _ in range(3)]
        print(np.array([weight.cpu().numpy() for weight in weights]))
        """,
        RULE,
    )


def test_what_the_page_says_of_a_fix() -> None:
    x = torch.ones(3, requires_grad=True)
    assert not torch.tensor([x.detach().sum(), x.detach().mean()]).requires_grad
    assert torch.stack([x.sum(), x.mean()]).requires_grad
    whole = torch.arange(3)
    assert torch.tensor([whole.sum(), whole.float().mean()]).tolist() == [3.0, 1.0]
    with pytest.raises(RuntimeError):
        torch.stack([whole, torch.ones(2)])


COLLECTED = {
    "a dictionary of lists": """
        import torch
        from collections import defaultdict
        def advantages(rewards: torch.Tensor, index):
            scores = rewards.sum(dim=-1)
            of = defaultdict(list)
            for i in range(scores.shape[0]):
                of[index[i]].append(scores[i])
            return {key: torch.tensor(of[key]).mean() for key in of}  # <- array-from-list-of-tensors?
        """,
    "a list": """
        import torch
        def norms(parts):
            found = []
            for x in parts:
                found.append(x.cuda().norm())
            return torch.tensor(found)  # <- array-from-list-of-tensors?
        """,
    "two that may be on a device": """
        import torch
        def both(x: torch.Tensor):
            return torch.tensor([x.min(), x.max()])  # <- array-from-list-of-tensors?
        """,
    "numbers": """
        import torch
        from collections import defaultdict
        def advantages(rewards: torch.Tensor, index):
            of, found, other = defaultdict(list), [], []
            for i in range(rewards.shape[0]):
                of[index[i]].append(float(rewards[i]))
                found.append(len(index))
                other.append(rewards[i].item())
            return [torch.tensor(of[key]) for key in of], torch.tensor(found), torch.tensor(other)
        """,
    "what else may be in it": """
        import torch
        from collections import defaultdict
        def advantages(rewards: torch.Tensor, index, more):
            of, found, given = defaultdict(list), [], defaultdict(list)
            given[0] = more
            for i in range(rewards.shape[0]):
                of[index[i]].append(rewards[i])
                of[0].extend(more)
                found.append(rewards[i])
                found += more
                given[index[i]].append(rewards[i])
            return [torch.tensor(of[key]) for key in of], torch.tensor(found), torch.tensor(given[1])
        """,
    "an empty one": """
        import torch
        def advantages(rewards: torch.Tensor):
            found = []
            for i in range(rewards.shape[0]):
                found.append(rewards[i])
            return torch.stack(found) if len(found) > 0 else torch.tensor(found, device=rewards.device)
        """,
    "read before": """
        import torch
        def shown(plot, loc, conf):
            plot(torch.Tensor([loc, conf, loc + conf]))
        def train(model, loader, criterion, optimizer, plot):
            for x, y in loader:
                loss_l, loss_c = criterion(model(x.cuda()), y.cuda())
                (loss_l + loss_c).backward()
                optimizer.step()
                shown(plot, loss_l.data[0], loss_c.data[0])
        """,
    "of samples": """
        import torch
        class Bounds(torch.utils.data.Dataset):
            def __getitem__(self, index: torch.Tensor):
                return torch.tensor([index.min(), index.max()])
        """,
    "of the CPU": """
        import torch
        def advantages(n):
            rewards, found = torch.zeros(n), []
            for i in range(n):
                found.append(rewards[i])
            return torch.tensor(found), torch.tensor([rewards.min(), rewards.max()])
        """,
}


@pytest.mark.parametrize("code", COLLECTED.values(), ids=COLLECTED)
def test_what_is_collected(code: str) -> None:
    check_snippet(code, RULE)
