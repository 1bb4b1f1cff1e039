"""TL624: convolutions under autocast whose layout nobody has chosen."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from torch import nn

RULE = "channels-last-missing"
CONVS = "nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3))"


def program(model: str, cast: str = "torch.autocast('cuda')", extra: str = "", *, flagged: bool) -> str:
    mark = f"  # <- {RULE}" if flagged else ""
    return f"""
import contextlib
import torch
import torchvision
from torch import nn
from torch.cuda.amp import autocast
model = {model}.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    with {cast}:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward(){mark}
    optimizer.step()
{extra}
"""


@pytest.mark.parametrize("model", [CONVS, "torchvision.models.resnet50(weights=None)"])
@pytest.mark.parametrize("cast", ["torch.autocast('cuda')", "autocast()"])
def test_convolutions_under_autocast(model: str, cast: str) -> None:
    check_snippet(program(model, cast, flagged=True), RULE)


@pytest.mark.parametrize(
    ("model", "cast", "extra"),
    [
        (CONVS, "contextlib.nullcontext()", ""),
        ("nn.Linear(8, 8)", "autocast()", ""),
        ("nn.Transformer()", "autocast()", ""),
        ("unknown()", "autocast()", ""),
        (f"{CONVS}.to(memory_format=torch.channels_last)", "autocast()", ""),
        (CONVS, "autocast()", "model.to(memory_format=layout)"),
        (CONVS, "autocast()", "model = torch.compile(model)"),
        (CONVS, "autocast()", "data = torchvision.datasets.MNIST(root)"),
        (CONVS, "autocast()", "import gymnasium"),
        (CONVS.replace("nn.Conv2d(8, 8, 3))", "nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8))"), "autocast()", ""),
    ],
)
def test_nothing_to_say(model: str, cast: str, extra: str) -> None:
    check_snippet(program(model, cast, extra, flagged=False), RULE)


def test_instance_norm_gives_the_channels_first() -> None:
    images = torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)
    assert not nn.InstanceNorm2d(8)(images).is_contiguous(memory_format=torch.channels_last)
    assert nn.BatchNorm2d(8)(images).is_contiguous(memory_format=torch.channels_last)
