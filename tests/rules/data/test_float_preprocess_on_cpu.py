"""TL114: a chain of transforms that ends in floating point on the CPU is flagged, for images that are not small."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "float-preprocess-on-cpu"
MARK = "  # <- float-preprocess-on-cpu"
HEAD = """\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms as T
from torchvision.transforms import v2

SIDE = 224


"""


def program(*steps: str, use: str = "datasets.ImageFolder(path, transform=chain)", move: str = ".cuda()") -> str:
    """A loader of images that go through these steps."""
    listed = "".join(f"        {step}\n" for step in steps)
    return (
        f"{HEAD}def load(path, model, side, Wrapped):\n    chain = T.Compose([\n{listed}    ])\n"
        f"    for images in DataLoader({use}, batch_size=64):\n        model(images{move})\n"
    )


@pytest.mark.parametrize(
    "steps",
    [
        ("T.CenterCrop(224),", "T.ToTensor(),", "T.Normalize(0.5, 0.5)," + MARK),
        ("T.Resize((256, 256)),", "T.ToTensor(),", "T.Normalize(0.5, 0.5)," + MARK),
        ("T.RandomResizedCrop(SIDE),", "T.ToTensor(),", "T.Normalize(0.5, 0.5)," + MARK),
        ("T.Resize([SIDE, SIDE]),", "T.ColorJitter(),", "T.ToTensor(),", "T.Normalize(0.5, 0.5)" + MARK),
        ("v2.RandomCrop(200),", "v2.ToDtype(torch.float32, scale=True),", "v2.Normalize([0.5], [0.5])," + MARK),
        ("T.RandomCrop(200),", "T.ConvertImageDtype(torch.float32),", "T.Normalize([0.5], [0.5])," + MARK),
    ],
)
def test_float_on_the_cpu(steps: tuple[str, ...]) -> None:
    check_snippet(program(*steps), RULE)


@pytest.mark.parametrize(
    "steps",
    [
        ("T.CenterCrop(224),", "T.ToTensor(),"),
        ("T.ToTensor(),", "T.Normalize(0.5, 0.5),"),
        ("T.RandomCrop(32),", "T.ToTensor(),", "T.Normalize(0.5, 0.5),"),
        ("T.Resize(256),", "T.RandomCrop(64),", "T.ToTensor(),", "T.Normalize(0.5, 0.5),"),
        ("T.Resize(side),", "T.ToTensor(),", "T.Normalize(0.5, 0.5),"),
        ("T.CenterCrop(224),", "T.ToTensor(),", "T.Normalize(0.5, 0.5),", "T.RandomErasing(),"),
        ("T.CenterCrop(224),", "T.ToTensor(),", "model.own,", "T.Normalize(0.5, 0.5),"),
        ("T.CenterCrop(224),", "T.PILToTensor(),"),
    ],
)
def test_small_or_not_at_the_end(steps: tuple[str, ...]) -> None:
    check_snippet(program(*steps), RULE)


@pytest.mark.parametrize(
    ("use", "move", "mark"),
    [
        ("Wrapped(path, transform=chain)", ".cuda()", MARK),
        ("datasets.ImageFolder(path, chain)", ".cuda()", MARK),
        ("datasets.ImageFolder(path, transform=chain)", "", ""),
        ("Wrapped(path, other=chain)", ".cuda()", ""),
    ],
)
def test_where_it_goes(use: str, move: str, mark: str) -> None:
    steps = ("T.CenterCrop(224),", "T.ToTensor(),", "T.Normalize(0.5, 0.5)," + mark)
    check_snippet(program(*steps, use=use, move=move), RULE)


def test_out_of_a_dictionary() -> None:
    check_snippet(
        f"""{HEAD}chains = {{
    "train": T.Compose([T.RandomCrop(224), T.ToTensor(), T.Normalize(0.5, 0.5)]),{MARK}
    "test": T.Compose([T.CenterCrop(32), T.ToTensor(), T.Normalize(0.5, 0.5)]),
}}
sets = {{name: datasets.ImageFolder(name, chains[name]) for name in chains}}
for images in DataLoader(sets["train"], batch_size=4):
    print(images.cuda())
""",
        RULE,
    )


MAPPER = """
import numpy as np
import torch
from torch.utils.data import Dataset

class {class_}:
    def {method}(self, sample):
        image = read(sample)
        return {made}{mark}
"""
CAST = 'torch.as_tensor(image.transpose(2, 0, 1).astype("float32"))'


@pytest.mark.parametrize(
    ("class_", "method", "made", "mark"),
    [
        ("Mapper", "__call__", CAST, MARK + "?"),
        ("Photos(Dataset)", "__getitem__", CAST, MARK + "?"),
        ("Photos(Dataset)", "__getitem__", f"{CAST}.contiguous()", MARK + "?"),
        (
            "Photos(Dataset)",
            "__getitem__",
            "torch.from_numpy(np.ascontiguousarray(image.astype(np.float32).transpose((2, 0, 1)) / 255.0))",
            MARK + "?",
        ),
        (
            "Photos(Dataset)",
            "__getitem__",
            "torch.from_numpy(np.transpose(image, (2, 0, 1)).astype(np.float32))",
            MARK + "?",
        ),
        # look-alikes
        ("Photos(Dataset)", "__getitem__", "torch.from_numpy(image.transpose(2, 0, 1).copy())", ""),
        ("Photos(Dataset)", "__getitem__", 'torch.from_numpy(image.astype("float32"))', ""),
        ("Photos(Dataset)", "__getitem__", "torch.from_numpy(image.transpose(1, 0).astype(np.float32))", ""),
        ("Photos(Dataset)", "__getitem__", "torch.from_numpy(image.transpose(2, 0, 1).astype(np.int64))", ""),
        ("Net(torch.nn.Module)", "__call__", CAST, ""),
        ("Tool", "run", CAST, ""),
    ],
)
def test_an_image_that_is_cast_as_a_sample(class_: str, method: str, made: str, mark: str) -> None:
    check_snippet(MAPPER.format(class_=class_, method=method, made=made, mark=mark), RULE)
