"""TL220: copies that are meant to be asynchronous, of what lies in pageable memory."""

from __future__ import annotations

import textwrap
from importlib.resources import files

import pytest
from laws import check_snippet

RULE = "copy-through-pageable-memory"
MARK = f"  # <- {RULE}"
HEAD = "import numpy as np\nimport torch\n"


def step(*lines: str) -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"{HEAD}def train(model, loader, optimizer, array, sizes):\n    on_gpu = torch.zeros(4, device='cuda')\n"
        f"    for x, y in loader:\n{body}\n        model(x, on_gpu).sum().backward()\n        optimizer.step()\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "z = torch.from_numpy(array).to('cuda', non_blocking=True)",
        "z = torch.from_numpy(array).cuda(non_blocking=True)",
        "z = torch.from_numpy(array).float().unsqueeze(0).cuda(non_blocking=True)",
        "z = torch.from_numpy(array)[:3].to(device='cuda', non_blocking=True)",
        "z = torch.tensor(np.zeros(3)).to('cuda', non_blocking=True)",
        "z = torch.stack([torch.from_numpy(array), torch.from_numpy(array)]).cuda(non_blocking=True)",
        "on_gpu.copy_(torch.from_numpy(array), non_blocking=True)",
        "on_gpu[:2].copy_(torch.from_numpy(array), non_blocking=True)",
        "z = on_gpu.cpu().pin_memory()",
        "z = on_gpu.detach().cpu().contiguous().pin_memory()",
        "z = on_gpu.to('cpu').pin_memory()",
    ],
)
def test_flagged(line: str) -> None:
    result = check_snippet(step(line + MARK), RULE)
    assert "every batch" in result.findings[0].message


@pytest.mark.parametrize(
    "line",
    [
        "z = torch.tensor([len(t) for t in y]).to('cuda', non_blocking=True)",
        "z = torch.tensor([1.0, 2.0 * len(y)], dtype=torch.float32).cuda(non_blocking=True)",
    ],
)
def test_a_short_list_is_a_note(line: str) -> None:
    check_snippet(step(f"{line}{MARK}?"), RULE)


def test_through_a_name() -> None:
    check_snippet(step("z = torch.from_numpy(array).float()", f"z = z.cuda(non_blocking=True){MARK}"), RULE)


@pytest.mark.parametrize(
    "line",
    [
        "z = torch.from_numpy(array).to('cuda')",
        "z = torch.from_numpy(array).to('cuda', non_blocking=False)",
        "z = torch.from_numpy(array).pin_memory().to('cuda', non_blocking=True)",
        "z = torch.from_numpy(array).to('cpu', non_blocking=True)",
        "z = torch.from_numpy(on_gpu.cpu().numpy()).to('cuda', non_blocking=True)",
        "z = torch.tensor(sizes).to('cuda', non_blocking=True)",
        "z = torch.tensor([on_gpu]).to('cuda', non_blocking=True)",
        "z = torch.tensor([1, 2], pin_memory=True).to('cuda', non_blocking=True)",
        "z = x.to('cuda', non_blocking=True)",
        "on_gpu.copy_(x, non_blocking=True)",
        "z = torch.zeros(3).copy_(torch.from_numpy(array), non_blocking=True)",
        "z = torch.zeros(3).pin_memory()",
        "z = torch.zeros(3).cpu().pin_memory()",
    ],
)
def test_silent(line: str) -> None:
    check_snippet(step(line), RULE)


def test_an_offload_that_nobody_calls_is_a_note() -> None:
    check_snippet(
        f"{HEAD}def offload(model):\n    for p in model.parameters():\n        p.kept = p.data.cpu().pin_memory(){MARK}?\n",
        RULE,
    )


def test_what_an_object_keeps_from_the_start() -> None:
    code = f"""{HEAD}
class Group:
    def __init__(self, model):
        self.model = model
        self.kept = self.keep()

    def keep(self):
        return [p.data.cpu().pin_memory() for p in self.model.parameters()]
"""
    check_snippet(code, RULE)


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("copy_through_pageable_memory/ok.py").read_text("utf-8"), RULE)
