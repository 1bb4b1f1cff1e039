"""TL620: scripts that train convolutions on images of one size, and images of many sizes, and those who chose."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "cudnn-benchmark-off"
CONVS = "nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3))"
LOADER = "DataLoader(data, batch_size=32)"
CROP = "transforms.Compose([transforms.RandomCrop(64), transforms.ToTensor()])"


def program(
    model: str = CONVS, loader: str = LOADER, steps: str = CROP, extra: str = "", *, flagged: bool, device: str = "cuda"
) -> str:
    mark = f"  # <- {RULE}" if flagged else ""
    return f"""
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision import transforms
from torchvision.datasets import CIFAR10, ImageFolder
{extra}
batch_size = 16
data = ImageFolder(root, {steps})
loader = {loader}
model = {model}.to("{device}")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x.to("{device}")), y.to("{device}")).backward(){mark}
    optimizer.step()
"""


@pytest.mark.parametrize("model", [CONVS, "torchvision.models.resnet50()"])
@pytest.mark.parametrize("steps", [CROP, "transforms.Resize((64, 64))", "transforms.CenterCrop(64)"])
def test_images_of_one_size(model: str, steps: str) -> None:
    check_snippet(program(model, steps=steps, flagged=True), RULE)


@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(data, batch_size)",
        "DataLoader(data, args.batch_size, num_workers=4)",
        "DataLoader(TensorDataset(images, labels), 32)",
        "DataLoader(CIFAR10(root), batch_size=8)",
    ],
)
def test_loaders_that_join_images(loader: str) -> None:
    check_snippet(program(loader=loader, flagged=True), RULE)


def test_a_function_that_gives_convolutions() -> None:
    maker = "def conv(a, b):\n    return nn.Conv2d(a, b, 3, bias=False)\n"
    check_snippet(program("nn.Sequential(conv(3, 8), conv(8, 8), conv(8, 8))", extra=maker, flagged=True), RULE)
    check_snippet(program("nn.Sequential(conv(3, 8), conv(8, 8))", extra=maker, flagged=False), RULE)


def test_images_of_a_dataset_as_they_come() -> None:
    check_snippet(program(loader="DataLoader(CIFAR10(root), 8)", steps="None", flagged=True), RULE)


@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(data)",
        "DataLoader(data, batch_size=1)",
        "DataLoader(data, batch_size=None)",
        "DataLoader(data, batch_size=8, collate_fn=padded)",
        "DataLoader(data, batch_sampler=by_size)",
        "DataLoader(data, **options)",
        "make_loader(data)",
    ],
)
def test_loaders_that_may_give_other_sizes(loader: str) -> None:
    check_snippet(program(loader=loader, flagged=False), RULE)


@pytest.mark.parametrize("steps", ["transforms.Resize(64)", "transforms.ToTensor()", "transform", "Resize((64, 64))"])
def test_a_size_that_is_not_in_sight(steps: str) -> None:
    check_snippet(program(steps=steps, flagged=False), RULE)


@pytest.mark.parametrize(
    "extra",
    [
        "torch.backends.cudnn.benchmark = False",
        "torch.backends.cudnn.deterministic = True",
        "torch.use_deterministic_algorithms(True)",
        "import lightning",
        "multi_scale = True",
        "root = 'data/mnist'",
    ],
)
def test_somebody_has_chosen(extra: str) -> None:
    check_snippet(program(extra=extra, flagged=False), RULE)


def test_little_to_convolve() -> None:
    check_snippet(program("nn.Linear(8, 8)", flagged=False), RULE)
    check_snippet(program("nn.Conv2d(3, 8, 3)", flagged=False), RULE)
    check_snippet(program(device="cpu", flagged=False), RULE)
