"""Through real processes: a program that differs from itself a little is compared, and a mistake in it found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchlint.verify import checks
from torchlint.verify.ablation import NULL
from torchlint.verify.arms import Arm, Subject
from torchlint.verify.machine import Clerk
from torchlint.verify.session import session

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workers")]

FILE = "workload.py"
PROGRAM = """
import os, torch

ERROR = 0

def setup(device, size):
    noise = torch.Generator().manual_seed(os.getpid())
    return {"layer": torch.nn.Linear(64, 64).requires_grad_(False), "x": torch.randn(64, 64), "noise": noise}

def run(state):
    y = torch.tanh(state["layer"](state["x"])) + ERROR
    # As sums of atomic additions are.
    y = y + 1e-6 * torch.randn(y.shape, generator=state["noise"])
    state["x"] = 0.5 * y + torch.randn(y.shape)
    return y
"""


@pytest.mark.parametrize(("error", "verdict"), [("0", "same-within-class"), ("1e-3", "wrong")])
def test_a_program_with_noise_of_its_own(error: str, verdict: str, tmp_path: Path) -> None:
    root, scratch = tmp_path / "tree", tmp_path / "clerk"
    root.mkdir()
    scratch.mkdir()
    (root / FILE).write_text(PROGRAM, encoding="utf-8")
    subject = Subject(root, {"kind": "workload", "file": FILE, "size": "gpu"}, "cpu", 1, sys.executable)
    clerk = Clerk(scratch, sys.executable)
    try:
        with session(subject) as running:
            declared = checks.Declared("exact")
            base = checks.reference(running, Arm(NULL), declared)
            arm = Arm("fixed", {FILE: PROGRAM.replace("ERROR = 0", f"ERROR = {error}").encode()})
            said = checks.check(running, clerk, base, arm, declared)
    finally:
        clerk.close()
    assert said["verdict"] == verdict, said["reason"]
    assert said["aa_bit_equal"] is False
