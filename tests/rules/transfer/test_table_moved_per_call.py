"""TL210: arrays and tensors that stay the same, and are copied to the device at every call."""

from __future__ import annotations

from importlib.resources import files

import pytest
from laws import check_snippet

RULE = "table-moved-per-call"
MARK = f"  # <- {RULE}"


def program(init: str, step: str, more: str = "") -> str:
    return f"""
import numpy as np
import torch
MEAN = np.array([1.0, 2.0])
class Schedule:
    def __init__(self, betas, device):
        self.device = torch.device("cuda")
        {init}
    {more}
    def step(self, x):
        {step}
        return x * table
def extract(array, x):
    return torch.from_numpy(array).cuda().float()
def train(model, loader, optimizer, betas):
    schedule = Schedule(betas, "cuda")
    for x in loader:
        model(schedule.step(x)).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("init", "step"),
    [
        ("self.betas = np.array(betas)", "table = torch.from_numpy(self.betas).to(self.device)"),
        ("self.betas = np.array(betas)", "table = torch.from_numpy(self.betas).float().cuda()"),
        ("self.betas = np.sqrt(1 - np.array(betas))", "table = torch.as_tensor(self.betas, device=self.device)"),
        ("self.betas = np.array(betas)", "table = torch.tensor(self.betas, device='cuda', dtype=torch.float32)"),
        ("self.betas = torch.linspace(0, 1, 100)", "table = self.betas.to('cuda')"),
        ("pass", "table = torch.from_numpy(MEAN).cuda()"),
    ],
)
def test_flagged(init: str, step: str) -> None:
    result = check_snippet(program(init, step + MARK), RULE)
    assert "every batch" in result.findings[0].message


def test_a_helper_that_is_passed_the_table() -> None:
    text = program("self.betas = np.array(betas)", "table = extract(self.betas, x)")
    check_snippet(text.replace(".cuda().float()", f".cuda().float(){MARK}"), RULE)


@pytest.mark.parametrize(
    ("init", "step"),
    [
        ("self.betas = np.array(betas)", "table = torch.from_numpy(self.betas).to('cpu')"),
        ("self.betas = np.array(betas)", "table = torch.from_numpy(self.betas).to(torch.float32)"),
        ("self.betas = np.array(betas)", "table = torch.from_numpy(np.sqrt(self.betas)).cuda()"),
        ("self.betas = np.array(betas)", "self.there = table = torch.from_numpy(self.betas).cuda()"),
        ("self.betas = betas", "table = torch.as_tensor(self.betas, device=self.device)"),
        ("self.betas = torch.linspace(0, 1, 100, device='cuda')", "table = self.betas.to('cuda')"),
        ("self.betas = np.array(betas)", "self.betas[0] = 2; table = torch.from_numpy(self.betas).cuda()"),
        ("self.betas = torch.linspace(0, 1, 100)", "self.betas = table = self.betas.to('cuda')"),
    ],
)
def test_silent(init: str, step: str) -> None:
    check_snippet(program(init, step), RULE)


def test_a_table_that_is_set_again() -> None:
    more = "def begin(self, betas):\n        self.betas = np.array(betas)"
    check_snippet(program("self.betas = np.array(betas)", "table = torch.from_numpy(self.betas).cuda()", more), RULE)


def test_where_nobody_knows_the_device_it_is_a_note() -> None:
    check_snippet(
        f"""
import numpy as np
import torch
MEAN = np.array([1.0, 2.0])
def normalise(x):
    return x - torch.from_numpy(MEAN).to(x.device){MARK}?
""",
        RULE,
    )


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("table_moved_per_call/ok.py").read_text("utf-8"), RULE)
