"""TL116: what a loader with workers cannot pickle for them is flagged, unless its processes are forked."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "unpicklable-loader-argument"
MARK = "  # <- unpicklable-loader-argument"
HEAD = """\
import functools
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import datasets, transforms

identity = lambda batch: batch


def collate(batch):
    return batch


"""


@pytest.mark.parametrize(
    "lines",
    [
        ("return DataLoader(data, num_workers=4, collate_fn=lambda b: b)" + MARK,),
        ("return DataLoader(data, num_workers=args.workers, worker_init_fn=lambda i: None)" + MARK,),
        ("return DataLoader(data, 8, False, None, None, 4, lambda b: b)" + MARK,),
        ("return DataLoader(data, num_workers=4, collate_fn=identity)" + MARK,),
        ("def local(b):", "    return b", "return DataLoader(data, num_workers=4, collate_fn=local)" + MARK),
        ("return DataLoader(data, num_workers=4, collate_fn=functools.partial(lambda b, n: b, n=3))" + MARK,),
        ("return DataLoader(datasets.FakeData(transform=lambda x: x), num_workers=4)" + MARK,),
        (
            "scale = transforms.Lambda(lambda x: 2 * x)" + MARK,
            "chain = transforms.Compose([transforms.ToTensor(), scale])",
            "photos = datasets.FakeData(transform=chain)",
            "return DataLoader(photos, num_workers=4)",
        ),
        (
            "scale = transforms.Compose([transforms.Lambda(lambda x: 2 * x)])" + MARK,
            "photos = Subset(datasets.FakeData(transform=scale), [1, 2])",
            "return DataLoader(photos, num_workers=4)",
        ),
        (
            "class Local(Dataset):",
            "    def __getitem__(self, index):",
            "        return index",
            "return DataLoader(Local(), num_workers=4)" + MARK,
        ),
        ("return DataLoader(data, num_workers=4, collate_fn=lambda b: b, multiprocessing_context='spawn')" + MARK,),
        (
            "photos = datasets.FakeData(transform=lambda x: x)" + MARK,
            "for fold in args.folds:",
            "    photos = Subset(photos, fold)",
            "return DataLoader(photos, num_workers=4)",
        ),
        ("options = {'num_workers': 4}", "return DataLoader(data, collate_fn=lambda b: b, **options)" + MARK),
    ],
)
def test_cannot_be_pickled(lines: tuple[str, ...]) -> None:
    check_snippet(f"{HEAD}def make(data, args):\n" + "".join(f"    {line}\n" for line in lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("return DataLoader(data, num_workers=4, collate_fn=collate)",),
        ("return DataLoader(data, num_workers=4, collate_fn=functools.partial(collate))",),
        ("return DataLoader(data, collate_fn=lambda b: b)",),
        ("return DataLoader(data, num_workers=0, collate_fn=lambda b: b)",),
        ("n = 0", "if args.many:", "    n = 4", "return DataLoader(data, num_workers=n, collate_fn=lambda b: b)"),
        ("return DataLoader(data, num_workers=4, collate_fn=lambda b: b, multiprocessing_context='fork')",),
        ("multiprocessing.set_start_method('fork')", "return DataLoader(data, num_workers=4, collate_fn=lambda b: b)"),
        ("return DataLoader(data, collate_fn=lambda b: b, **args)",),
        ("return DataLoader(data, num_workers=4, sampler=sorted(data, key=lambda s: len(s)))",),
        ("return DataLoader(args.make(lambda s: s), num_workers=4)",),
        ("return DataLoader(datasets.FakeData(transform=transforms.Lambda(collate)), num_workers=4)",),
    ],
)
def test_is_fine(lines: tuple[str, ...]) -> None:
    check_snippet(f"{HEAD}def make(data, args):\n" + "".join(f"    {line}\n" for line in lines), RULE)


@pytest.mark.parametrize(("default", "mark"), [("0", ""), ("2", MARK)])
def test_workers_that_somebody_has_to_ask_for(default: str, mark: str) -> None:
    option = f"    parser.add_argument('--workers', type=int, default={default})\n    args = parser.parse_args()\n"
    loader = f"    return DataLoader(data, num_workers=args.workers, collate_fn=lambda b: b){mark}\n"
    check_snippet(f"{HEAD}def make(data, parser):\n{option}{loader}", RULE)


@pytest.mark.parametrize(("name", "mark"), [("test_loader", f"{MARK}?"), ("load_tests", MARK)])
def test_a_function_that_tries_things_out(name: str, mark: str) -> None:
    loader = f"    loader = DataLoader(data, num_workers=4, collate_fn=lambda b: b){mark}\n"
    check_snippet(f"{HEAD}def {name}(data):\n{loader}    for batch in loader:\n        print(batch)\n", RULE)
