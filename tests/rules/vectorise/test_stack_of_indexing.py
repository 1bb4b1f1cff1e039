"""TL904: rows taken one by one and stacked are flagged; the tests run what the fix makes and show where it differs."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed, program, run, training

from torchlint.finding import Applicability

RULE = "stack-of-indexing"

FIXES = {
    "torch.stack([x[i] for i in [0, 2]])": "x[[0, 2]]",
    "torch.stack([x[i] for i in (0, 2)])": "x[[*(0, 2)]]",
    "torch.stack([x[i] for i in order])": "x[[*order]]",
    "torch.stack([x[i] for i in index])": "x[index]",
    "torch.stack([x[i] for i in index], 0)": "x[index]",
    "torch.stack([x[i] for i in index], dim=0)": "x[index]",
    "torch.stack(tensors=[x[i] for i in index])": "x[index]",
    "torch.stack(tuple(x[i] for i in index))": "x[index]",
    "torch.stack(list(x[i] for i in sorted(order)))": "x[sorted(order)]",
    "torch.stack([x[i] for i in index.tolist()])": "x[index.tolist()]",
    "torch.stack([(x * 2)[i] for i in index])": "(x * 2)[index]",
    "torch.cat([x[i : i + 1] for i in index.tolist()])": "x[index.tolist()]",
    "torch.cat([x[i].unsqueeze(0) for i in index], dim=0)": "x[index]",
    "torch.concat([x[i][None] for i in index])": "x[index]",
    "0 if(not order)else(torch.stack([x[i] for i in index]))": "0 if(not order)else(x[index])",
}
REPORTED_ONLY = (
    "torch.stack([x[i] for i in range(3)])",
    "torch.stack([x[i] for i in range(0, 4, 2)])",
    "torch.stack([\n        x[i]  # a row\n        for i in order\n    ])",
)


def function(expression: str) -> str:
    return program(f"def taken(x: torch.Tensor, order: list[int], index: torch.Tensor):\n    return {expression}\n")


def taken(code: str, x: torch.Tensor, order: list[int]) -> torch.Tensor:
    names: dict[str, Any] = {}
    exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
    result = names["taken"](x, order, torch.tensor(order))
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_one_index_takes_the_place_of_the_stack(before: str, after: str) -> None:
    code = function(before)
    assert [finding.fix.applicability for finding in findings(code, RULE) if finding.fix] == [Applicability.UNSAFE]
    made = fixed(code, RULE, Applicability.UNSAFE)
    assert made == function(after)
    for shape in ((5,), (5, 3), (5, 2, 2)):
        for order in ([0, 2], [4, 4, 1], [3]):
            gradients = []
            for text in (code, made):
                x = torch.arange(torch.Size(shape).numel(), dtype=torch.float64).view(shape).requires_grad_()
                result = taken(text, x, order)
                result.sum().backward()
                gradients.append((result.tolist(), result.dtype, x.grad.tolist() if x.grad is not None else None))
            assert gradients[0] == gradients[1]
    check_snippet(f"{code.rstrip()}  # <- {RULE}\n", RULE)


def test_an_index_may_have_several_axes() -> None:
    code = function("torch.stack([x[i] for i in index])")
    x, order = torch.randn(5, 3), [[0, 1], [4, 2]]
    made = fixed(code, RULE, Applicability.UNSAFE)
    assert torch.equal(taken(code, x, order), taken(made, x, order))  # type: ignore[arg-type]


@pytest.mark.parametrize(("device", "after"), [("", "index.cpu()"), (", device=losses.device", "index")])
def test_an_index_on_the_device_comes_to_rows_on_the_cpu(device: str, after: str) -> None:
    code = program(
        "class Orders(torch.nn.Module):\n"
        "    def forward(self, losses, n: int):\n"
        f"        orders = torch.tensor([[n, 0], [0, n]]{device})\n"
        "        least, index = torch.min(losses, dim=1)\n"
        "        return ROWS\n"
    )
    made = fixed(code.replace("ROWS", "torch.stack([orders[i] for i in index])"), RULE, Applicability.UNSAFE)
    assert made == code.replace("ROWS", f"orders[{after}]")


@pytest.mark.parametrize("expression", REPORTED_ONLY)
def test_reported_only(expression: str) -> None:
    assert [finding.fix for finding in findings(function(expression), RULE)] == [None]


def test_what_the_page_says_may_differ() -> None:
    code = function("torch.stack([x[i] for i in order])")
    made = fixed(code, RULE, Applicability.UNSAFE)
    with pytest.raises(RuntimeError, match="non-empty"):
        taken(code, torch.ones(3, 2), [])
    assert taken(made, torch.ones(3, 2), []).shape == (0, 2)
    with pytest.raises(IndexError):
        taken(code, torch.ones(3), [3])
    with pytest.raises(IndexError):
        taken(made, torch.ones(3), [3])
    # Truth values say which rows to take.
    assert taken(code, torch.tensor([5, 6]), [True, True]).shape == (2, 1, 2)
    assert taken(made, torch.tensor([5, 6]), [True, True]).shape == (2,)
    # From the end, `x[-1:0]` is empty.
    code = function("torch.cat([x[i : i + 1] for i in order])")
    made = fixed(code, RULE, Applicability.UNSAFE)
    assert taken(code, torch.ones(3), [0, -1]).shape == (1,)
    assert taken(made, torch.ones(3), [0, -1]).shape == (2,)


@pytest.mark.parametrize("batches", [4, 0])
def test_a_fixed_program_trains_alike(batches: int) -> None:
    code = training(
        "log.append(torch.stack([kept[i] for i in [0, 3]]).tolist())\n"
        "log.append(torch.cat([kept[i : i + 1] for i in targets.tolist()]).sum().item())",
        loss="kept = model(inputs).relu()\nkept = torch.stack([kept[i] for i in targets.argsort()])\n"
        "loss = criterion(kept, targets)",
    )
    made = fixed(code, RULE, Applicability.UNSAFE)
    assert "stack(" not in made
    assert run(made, batches) == run(code, batches)


def test_each_place_is_reported_once() -> None:
    check_snippet(
        """
        import torch
        def picked(x: torch.Tensor, order: torch.Tensor):
            rows = torch.stack([x[i] for i in order])  # <- stack-of-indexing
            found = []
            for b in range(x.size(0)):
                found.append(torch.stack([x[b][i] for i in order]))  # <- stack-of-indexing
            scaled = torch.stack([x[i] * 2 for i in order])  # <- python-loop-over-tensor?
            return rows, torch.stack(found), scaled
        """,
        RULE,
        "python-loop-over-tensor",
    )


POSITIVE = {
    "numbers collected in a loop": """
        import torch
        from torch import nn
        class Cached(nn.Module):
            def forward(self, ids: torch.LongTensor, keys):
                missing = []
                for place, key in enumerate(keys):
                    if key not in self.cache:
                        missing.append(place)
                return self.backbone(torch.stack([ids[i] for i in missing]))  # <- stack-of-indexing
        """,
    "numbers drawn": """
        import random
        import torch
        def sample(memory: torch.Tensor, count):
            chosen = random.sample(range(len(memory)), count)
            return torch.stack([memory[i] for i in chosen])  # <- stack-of-indexing
        """,
    "numbers of NumPy": """
        import numpy as np
        import torch
        def sample(memory: torch.Tensor, count):
            return torch.stack([memory[i] for i in np.random.permutation(count)])  # <- stack-of-indexing
        """,
    "on the CPU, for each batch": """
        import torch
        def train(loader, model, optimizer):
            table = torch.zeros(9, 3)
            for x, y in loader:
                model(torch.stack([table[i] for i in x.tolist()])).backward()  # <- stack-of-indexing
                optimizer.step()
        """,
}


@pytest.mark.parametrize("code", POSITIVE.values(), ids=POSITIVE.keys())
def test_flagged(code: str) -> None:
    check_snippet(code, RULE)


def test_look_alikes_obey_the_laws() -> None:
    text = files("torchlint.fixtures").joinpath("stack_of_indexing/ok.py").read_text(encoding="utf-8")
    check_snippet(text, RULE, "python-loop-over-tensor")
