"""What float64 says of pairs whose results differ by rounding that grows: right fixes and wrong ones, as CUDA runs them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from torchlint.registry import find
from torchlint.verify.checks import SEED, STEPS
from torchlint.verify.inside.capture import Capture
from torchlint.verify.inside.compare import compare
from torchlint.verify.inside.randomness import DrawSingle, seed_everything
from torchlint.verify.workload import workload

SIZE = {"steps": 50, "batch": 64, "width": 128}
"""Of the pair of gradscaler-step-syncs: few enough numbers for a test, and steps enough for rounding to grow."""
ALIKE = "this CPU rounds a fused step as it does one that is not: no rounding grows"


@pytest.fixture(autouse=True)
def _default_type() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)


def captured(source: str, *, double: bool = False) -> Capture:
    """What the first units of a workload compute on the CPU."""
    names: dict[str, Any] = {"__name__": "workload"}
    exec(compile(source, "workload.py", "exec"), names)  # noqa: S102 - as a process loads it
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    capture = Capture()
    with DrawSingle() if double else contextlib.nullcontext():
        seed_everything(SEED)
        state = names["setup"]("cpu", "gpu")
        seed_everything(SEED + 1)
        for _ in range(STEPS):
            capture.add(names["run"](state), inputs=state)
    return capture


Compared = Callable[[str], tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def compared() -> Compared:
    """Compares the pair, with something else in the place of `fused=True`: without float64, and with it."""
    pair = workload(find("gradscaler-step-syncs"))
    slow, fast = (re.sub(r'"gpu": \{[^}]*\}', f'"gpu": {SIZE}', side.decode()) for side in (pair.slow, pair.fast))
    assert fast.count("fused=torch.cuda.is_available()") == 1
    before, exact = captured(slow), captured(slow, double=True)

    def of(options: str) -> tuple[dict[str, Any], dict[str, Any]]:
        fixed = fast.replace("fused=torch.cuda.is_available()", options)
        after = captured(fixed)
        return compare(before, after, "close"), compare(
            before, after, "close", fp64=(exact, captured(fixed, double=True))
        )

    return of


@pytest.mark.slow
def test_a_fused_optimizer_is_right_though_its_rounding_grows(compared: Compared) -> None:
    without, said = compared("fused=True")
    if without["verdict"] == "same-within-class":
        pytest.skip(ALIKE)
    assert without["verdict"] == "wrong"
    assert without["worst_over_tolerance"] > 100
    assert said["verdict"] == "same-within-class"
    assert "values agree in float64" in said["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["eps=1e-7", "betas=(0.9, 0.9991)", "weight_decay=0.01001"])
def test_one_with_another_setting_is_wrong_in_float64_too(compared: Compared, option: str) -> None:
    if option.startswith("weight_decay") and compared("fused=True")[0]["verdict"] == "same-within-class":
        pytest.skip(ALIKE)  # without that it is too small a difference to ask float64 for
    said = compared(f"fused=True, {option}")[1]
    assert said["verdict"] == "wrong"
    assert "in float64, too, they differ" in said["reason"]
