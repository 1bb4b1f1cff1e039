"""TL110: a loader whose workers would each yield all of an iterable dataset is flagged."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "iterable-dataset-not-sharded"
MARK = "  # <- iterable-dataset-not-sharded"


def program(*lines: str, loader: str, base: str = "IterableDataset") -> str:
    """A dataset that iterates like this, and its loader."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import csv\nimport random\n\nimport torch\n"
        "from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info\n\n\n"
        f"class Stream({base}):\n    def __init__(self, path, items, dataset):\n"
        "        self.path = path\n        self.items = items\n        self.dataset = dataset\n\n"
        f"    def __iter__(self):\n{body}\n\n\n"
        f"def make(path, items, dataset, args, setup):\n    stream = Stream(path, items, dataset)\n    {loader}\n"
    )


LINES = ("with open(self.path) as file:", "    for line in file:", "        yield line")


@pytest.mark.parametrize(
    "lines",
    [
        LINES,
        ("for item in self.items:", "    yield torch.tensor(item)"),
        ("for index, item in enumerate(self.items):", "    yield index, item"),
        ("yield from self.items",),
        ("return iter(self.items)",),
        ("for index in range(100):", "    yield index"),
        ("for path in self.items:", "    for row in csv.reader(open(path)):", "        yield row"),
    ],
)
def test_all_in_each_worker(lines: tuple[str, ...]) -> None:
    check_snippet(program(*lines, loader="return DataLoader(stream, num_workers=4)" + MARK), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("info = get_worker_info()", "yield from self.items[info.id :: info.num_workers]"),
        ("while True:", "    yield from self.items"),
        ("random.shuffle(self.items)", "yield from self.items"),
        ("for _ in range(100):", "    yield torch.randn(8)"),
        ("for item in self.read():", "    yield item"),
        ("return self.dataset.batches()",),
    ],
)
def test_shares_or_differs(lines: tuple[str, ...]) -> None:
    check_snippet(program(*lines, loader="return DataLoader(stream, num_workers=4)"), RULE)


@pytest.mark.parametrize("source", ["self.dataset", "self.shard_of_items", "self.random_items"])
def test_names_of_what_shares_or_differs_are_noted(source: str) -> None:
    lines = (f"for item in {source}:", "    yield item")
    check_snippet(program(*lines, loader=f"return DataLoader(stream, num_workers=4){MARK}?"), RULE)


@pytest.mark.parametrize(
    ("loader", "mark"),
    [
        ("return DataLoader(stream, batch_size=None, num_workers=args.workers)", MARK),
        ("return DataLoader(Stream(path, items, dataset), 8, False, None, None, 2)", MARK),
        ("return DataLoader(stream)", ""),
        ("return DataLoader(stream, num_workers=0)", ""),
        ("return DataLoader(stream, num_workers=1)", ""),
        ("return DataLoader(stream, num_workers=4, worker_init_fn=setup)", ""),
        ("return DataLoader(dataset, num_workers=4)", ""),
        ("return DataLoader(stream, num_workers=4, **args)", ""),
    ],
)
def test_loaders(loader: str, mark: str) -> None:
    check_snippet(program(*LINES, loader=loader + mark), RULE)


def test_datasets_with_indices() -> None:
    check_snippet(program(*LINES, loader="return DataLoader(stream, num_workers=4)", base="Dataset"), RULE)
