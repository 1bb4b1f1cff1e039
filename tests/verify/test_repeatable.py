"""Through real processes: what differs from itself, or is off by itself, is compared, and a mistake in it found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
CANCELLING = """
import torch
from torch.nn.functional import linear

def setup(device, size):
    a = torch.randn(64, 64)
    return {"a": a, "b": a + 0.01 * torch.randn(64, 64), "x": torch.randn(64, 64)}

def run(state):
    x, a, b = state["x"], state["a"], state["b"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = linear(x, a) - linear(x, b)
    state["x"] = torch.randn(x.shape)
    return y.to(a.dtype)
"""


@pytest.mark.parametrize(("error", "verdict"), [("0", "same-within-class"), ("1e-3", "wrong")])
def test_a_program_with_noise_of_its_own(error: str, verdict: str, tmp_path: Path) -> None:
    said = checked(PROGRAM, PROGRAM.replace("ERROR = 0", f"ERROR = {error}"), "exact", tmp_path)
    assert said["verdict"] == verdict, said["reason"]
    assert said["aa_bit_equal"] is False


@pytest.mark.parametrize(
    ("way", "verdict"),
    [
        ("linear(x * 3, a) / 3 - linear(x * 3, b) / 3", "same-within-class"),
        ("linear(x * 3, a) / 3 - linear(x * 3, b * 1.0001) / 3", "wrong"),
        ("(linear(x, a) * 0.1).half().float() * 10 - linear(x * 3, b) / 3", "wrong"),
    ],
)
def test_what_cancels_in_bfloat16_is_as_far_off_in_both(way: str, verdict: str, tmp_path: Path) -> None:
    slow = "linear(x, a) - linear(x, b)"
    said = checked(CANCELLING, CANCELLING.replace(slow, way), "lower-precision", tmp_path)
    assert said["verdict"] == verdict, said["reason"]
    if verdict == "same-within-class":
        assert "agree in float64" in said["reason"]


def checked(slow: str, fast: str, numerics: str, folder: Path) -> dict[str, Any]:
    """What is said of the fast program beside the slow one."""
    root, scratch = folder / "tree", folder / "clerk"
    root.mkdir()
    scratch.mkdir()
    (root / FILE).write_text(slow, encoding="utf-8")
    subject = Subject(root, {"kind": "workload", "file": FILE, "size": "gpu"}, "cpu", 1, sys.executable)
    clerk = Clerk(scratch, sys.executable)
    try:
        with session(subject) as running:
            declared = checks.Declared(numerics)
            base = checks.reference(running, Arm(NULL), declared)
            return checks.check(running, clerk, base, Arm("fixed", {FILE: fast.encode()}), declared)
    finally:
        clerk.close()
