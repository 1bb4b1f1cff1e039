"""The workload of `torchlint verify --self-check`: steps of three lengths, the same in every arm."""

from __future__ import annotations

import math
from typing import Any

import torch

WORKLOAD = {
    "sizes": {"short": {"width": 64, "layers": 1}, "middle": {"width": 512, "layers": 12}, "long": {"width": 0}}
}

_LONG_ON_CPU = {"width": 1024, "layers": 12}
_LONG = {"width": 8192, "layers": 3}


def setup(device: str, size: str) -> dict[str, Any]:
    """Weights that keep the size of what they are applied to, and a batch of 64 rows, or as many as columns if long."""
    shape = WORKLOAD["sizes"][size] if size != "long" else _LONG_ON_CPU if device == "cpu" else _LONG
    width = shape["width"]
    weights = [torch.randn(width, width, device=device) / math.sqrt(width) for _ in range(shape["layers"])]
    rows = width if size == "long" and device != "cpu" else 64
    return {"weights": weights, "x": torch.randn(rows, width, device=device)}


def run(state: dict[str, Any]) -> torch.Tensor:
    """A chain of matrix products with a sine between."""
    x = state["x"]
    for weight in state["weights"]:
        x = torch.sin(x @ weight) * 1.2
    state["x"] = x
    return x.mean()
