"""A program that ends soon is compared to its end: what only its last lines compute and print counts too."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from torchlint.verify.ablation import NULL
from torchlint.verify.arms import Arm, Subject
from torchlint.verify.checks import Declared, check, reference
from torchlint.verify.machine import Clerk
from torchlint.verify.session import session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FILE = "train.py"
PROGRAM = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    x = torch.randn(8, 4)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 4:
        optimizer.param_groups[0]["lr"] = 0.1  # late
print(f"the mean is {model(torch.ones(1, 4)).mean().item():.4f} after {step + 1} steps")
"""
OTHER_PRINT = PROGRAM.replace("step + 1", "step + 2")
OTHER_WEIGHTS = PROGRAM.replace("0.1  # late", "0.2  # late").replace("print(", "(")
QUIET = PROGRAM.replace("print(", "(")


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        (PROGRAM, PROGRAM + "# the same\n", "same", "bit-equal"),
        (PROGRAM, OTHER_PRINT, "wrong", "other lines are printed"),
        (QUIET, OTHER_WEIGHTS, "wrong", "last"),
    ],
    ids=["same", "printed", "weights"],
)
def test_what_comes_late_counts(tmp_path: Path, before: str, after: str, verdict: str, reason: str) -> None:
    tree, scratch = tmp_path / "tree", tmp_path / "clerk"
    for folder in (tree, scratch):
        folder.mkdir()
    (tree / FILE).write_text(before)
    entry = {"kind": "script", "file": FILE, "arguments": [], "clock": "auto"}
    subject = Subject(tree, entry, "cpu", 1, sys.executable)
    clerk = Clerk(scratch, sys.executable)
    try:
        with session(subject) as running:
            declared = Declared("close")
            base = reference(running, Arm(NULL), declared, to_end=True)
            said = check(running, clerk, base, Arm("fixed", {FILE: after.encode()}), declared)
    finally:
        clerk.close()
    assert said["verdict"] == verdict, said
    assert reason in said["reason"]


def test_without_it_the_first_steps_are_all_that_counts(tmp_path: Path) -> None:
    tree, scratch = tmp_path / "tree", tmp_path / "clerk"
    for folder in (tree, scratch):
        folder.mkdir()
    (tree / FILE).write_text(PROGRAM)
    subject = Subject(
        tree, {"kind": "script", "file": FILE, "arguments": [], "clock": "auto"}, "cpu", 1, sys.executable
    )
    clerk = Clerk(scratch, sys.executable)
    try:
        with session(subject) as running:
            base = reference(running, Arm(NULL), Declared("close"))
            said = check(running, clerk, base, Arm("fixed", {FILE: OTHER_PRINT.encode()}), Declared("close"))
    finally:
        clerk.close()
    assert said["verdict"] == "same"
