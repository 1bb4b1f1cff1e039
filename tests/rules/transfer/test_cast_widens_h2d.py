"""TL205: casts to a wider type on the CPU before the copy to the device; that the order of the two changes no value."""

from __future__ import annotations

import textwrap

import pytest
import torch
from laws import check_snippet

RULE = "cast-widens-h2d"
MARK = f"  # <- {RULE}"
HEAD = """\
import cv2
import numpy as np
import torch
from PIL import Image
from torchvision.io import read_image
"""


def each(*lines: str) -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"{HEAD}def predict(model, paths, device, array, loader):\n    for path in paths:\n{body}\n        model(x)\n"
    )


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("x = read_image(path).float().to(device)", "x = read_image(path).to(device).float()"),
        ("x = read_image(path).double().cuda()", "x = read_image(path).cuda().double()"),
        ("x = read_image(path).to(torch.float32).to(device)", "x = read_image(path).to(device).to(torch.float32)"),
        ("x = read_image(path)[:3].float().cuda(0)", "x = read_image(path)[:3].cuda(0).float()"),
        (
            "x = torch.from_numpy(array.astype(np.uint8)).float().to(device, non_blocking=True)",
            "x = torch.from_numpy(array.astype(np.uint8)).to(device, non_blocking=True).float()",
        ),
        (
            "x = torch.from_numpy(array.astype('uint8')).float().to(device)",
            "x = torch.from_numpy(array.astype('uint8')).to(device).float()",
        ),
        (
            "x = torch.ones(len(path), dtype=torch.bool).float().to(device)",
            "x = torch.ones(len(path), dtype=torch.bool).to(device).float()",
        ),
    ],
)
def test_the_copy_grows(line: str, fixed: str) -> None:
    check_snippet(each(line + MARK), RULE, fixed=each(fixed))


@pytest.mark.parametrize(
    "lines",
    [
        ("x = torch.from_numpy(cv2.imread(path)).permute(2, 0, 1).float().div(255).unsqueeze(0).to(device)" + MARK,),
        ("x = (read_image(path).float() / 255).cuda()" + MARK,),
        ("image = np.array(Image.open(path).convert('RGB'))", "x = torch.from_numpy(image).float().cuda()" + MARK),
        ("image = read_image(path)", "x = (image > 3).float().cuda()" + MARK),
        ("image = read_image(path)", "x = torch.gt(image, 3).float().cuda()" + MARK),
        ("image = read_image(path)", "small = image.half()", "x = small.float().cuda()" + MARK),
    ],
)
def test_where_the_type_is_in_sight(lines: tuple[str, ...]) -> None:
    check_snippet(each(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("x = read_image(path).to(device).float()",),
        ("x = read_image(path).float().to('cpu')",),
        ("x = read_image(path).double().float().to(device)",),
        ("x = torch.from_numpy(array).float().to(device)",),
        ("x = torch.from_numpy(array.astype(np.float64)).float().to(device)",),
        ("x = torch.from_numpy(np.vstack([a for a in path]).astype(np.uint8)).float().to(device)",),
        ("x = torch.tensor([1, 0]).float().to(device)",),
        ("x = (read_image(path).float() - array).to(device)",),
    ],
)
def test_narrowed_unknown_or_small(lines: tuple[str, ...]) -> None:
    check_snippet(each(*lines), RULE)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.eq(labels, labels.T)",
        "labels.unsqueeze(0).eq(1)",
        "(labels[:, None] == labels.view(-1))",
        "~mask[0]",
        "(torch.arange(9) % 3 == 1)",
    ],
)
def test_a_mask_is_where_the_labels_are(expression: str) -> None:
    code = f"""
        import torch
        class Loss(torch.nn.Module):
            def forward(self, features: torch.Tensor, labels: torch.Tensor):
                mask = torch.eq(labels, 3)
                same = {expression}.float().to(features.device)
                return (features * same).sum()
        """
    check_snippet(code, RULE)


def test_what_loaders_give_is_out_of_sight() -> None:
    check_snippet(
        HEAD + "for x, y in loader:\n    model(x.float().to(device), y.double().cuda()).sum().backward()\n", RULE
    )


@pytest.mark.parametrize("narrow", [torch.uint8, torch.bool, torch.int8, torch.float16, torch.bfloat16])
def test_a_wider_type_holds_every_value(narrow: torch.dtype) -> None:
    every = torch.arange(256, dtype=torch.uint8).to(narrow)
    assert torch.equal(every.float().to(narrow), every)
