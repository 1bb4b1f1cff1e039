"""TL101: loaders without workers whose batches somebody waits for; what workers change, on CPU torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from laws import active, check_snippet, fix, lint
from torch.utils.data import DataLoader, Dataset, IterableDataset

from torchlint.finding import Applicability

RULE = "dataloader-no-workers"
LOOP = """
for batch in loader:
    model(batch).sum().backward()
"""


@pytest.mark.parametrize(
    ("loader", "fixed"),
    [
        ("DataLoader(ImageFolder(r, transform=t), 64)", "DataLoader(ImageFolder(r, transform=t), 64, num_workers=4)"),
        (
            "DataLoader(ds, batch_size=8, shuffle=True, num_workers=0)",
            "DataLoader(ds, batch_size=8, shuffle=True, num_workers=4)",
        ),
        (
            "torch.utils.data.DataLoader(ds, 10, False, None, None, 0)",
            "torch.utils.data.DataLoader(ds, 10, False, None, None, 4)",
        ),
        ("data.DataLoader(CocoDs(), 4)", "data.DataLoader(CocoDs(), 4, num_workers=4)"),
        ("DL(ds, collate_fn=f, pin_memory=True)", "DL(ds, collate_fn=f, pin_memory=True, num_workers=4)"),
        (
            "DataLoader(ds, **{'batch_size': 4, 'num_workers': 0})",
            "DataLoader(ds, **{'batch_size': 4, 'num_workers': 4})",
        ),
        ("DataLoader(ds, **dict(batch_size=4))", "DataLoader(ds, **dict(batch_size=4), num_workers=4)"),
        ("DataLoader(\n    ds,\n    8,  # images\n)", "DataLoader(\n    ds,\n    8, num_workers=4,  # images\n)"),
    ],
)
def test_a_loader_that_is_looped_over(loader: str, fixed: str) -> None:
    imports = (
        "import torch\nfrom torch.utils import data\nfrom torch.utils.data import DataLoader\n"
        "from torch.utils.data import DataLoader as DL\nfrom torchvision.datasets import ImageFolder\n"
    )
    first, _, rest = loader.partition("\n")
    marked = f"loader = {first}  # <- {RULE}" + (f"\n{rest}" if rest else "")
    check_snippet(f"{imports}{marked}{LOOP}", RULE, fixed=f"{imports}loader = {fixed}{LOOP}")


@pytest.mark.parametrize(
    "code",
    [
        """
        from torch.utils.data import DataLoader
        kw = dict(batch_size=4)
        for batch in DataLoader(ds, **kw):  # <- dataloader-no-workers
            model(batch)
        """,
        """
        from torch.utils.data import DataLoader
        from lightning.pytorch import LightningDataModule
        class DM(LightningDataModule):
            def train_dataloader(self):
                return DataLoader(self.tr, 32)  # <- dataloader-no-workers
        """,
        """
        from torch.utils.data import DataLoader
        def train(model, loader, optimizer):
            for i, (x, y) in enumerate(tqdm(loader)):
                model(x).backward()
        def main():
            loader = DataLoader(make_dataset(), 32)  # <- dataloader-no-workers
            train(model, loader, optimizer)
        """,
        """
        from torch.utils.data import DataLoader
        def loaders(ds):
            return DataLoader(ds, 32), DataLoader(ds, 64)  # <- dataloader-no-workers, dataloader-no-workers
        def main():
            train_loader, test_loader = loaders(open_dataset())
            for x in train_loader:
                model(x)
        """,
        """
        from torch.utils.data import DataLoader
        from torchvision import datasets
        image_datasets = {x: datasets.ImageFolder(x) for x in ["train", "val"]}
        loaders = {x: DataLoader(image_datasets[x], 4) for x in ["train", "val"]}  # <- dataloader-no-workers
        for phase in ["train", "val"]:
            for inputs in loaders[phase]:
                model(inputs)
        """,
        """
        from torch.utils.data import DataLoader
        from torchvision import datasets
        def get_training_loader(root):
            return DataLoader(datasets.CIFAR100(root), batch_size=16)  # <- dataloader-no-workers
        """,
        """
        from torch.utils.data import DataLoader, IterableDataset, get_worker_info
        class Stream(IterableDataset):
            def __iter__(self):
                yield from shards(get_worker_info())
        for x in DataLoader(Stream()):  # <- dataloader-no-workers
            model(x)
        """,
        """
        from torch_geometric.loader import DataLoader
        for batch in DataLoader(MyGraphs(root), batch_size=8):  # <- dataloader-no-workers
            model(batch)
        """,
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(ds, num_workers=0)  # a note  # <- dataloader-no-workers
        trainer.fit(model, loader)
        """,
    ],
)
def test_who_waits(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize("name", ["WORKERS", "num_workers", "n_workers"])
def test_a_constant_of_that_name_is_changed_itself(name: str) -> None:
    check_snippet(
        f"""
        from torch.utils.data import DataLoader
        {name} = 0
        for batch in DataLoader(ds, num_workers={name}):  # <- dataloader-no-workers
            model(batch)
        """,
        RULE,
        fixed=f"""
        from torch.utils.data import DataLoader
        {name} = 4
        for batch in DataLoader(ds, num_workers={name}):
            model(batch)
        """,
    )


def test_a_constant_that_may_mean_something_else_is_left_alone() -> None:
    result = check_snippet(
        """
        from torch.utils.data import DataLoader
        W = 0
        for batch in DataLoader(ds, num_workers=W):  # <- dataloader-no-workers
            model(batch)
        """,
        RULE,
    )
    assert result.findings[0].fix is None
    assert "`W` is 0" in result.findings[0].message


def test_the_number_of_workers_is_configured() -> None:
    code = "from torch.utils.data import DataLoader\nfor x in DataLoader(ds): model(x)\n"
    check_snippet(
        code.replace(": model", ": model", 1).rstrip() + f"  # <- {RULE}\n",
        RULE,
        dataloader_workers=12,
        fixed=code.replace("DataLoader(ds)", "DataLoader(ds, num_workers=12)"),
    )
    settings = active(RULE, dataloader_workers=0)
    assert fix(code, settings, Applicability.UNSAFE).text == code
    assert len(lint(code, settings).findings) == 1


@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(ds, num_workers=args.workers)",
        "DataLoader(ds, num_workers=workers)",
        "DataLoader(TensorDataset(x, y), 128)",
        "DataLoader(Subset(TensorDataset(x, y), [0]), 128)",
        "DataLoader(ds, **cfg)",
        "DataLoader(*parts)",
        "tf.data.DataLoader(ds)",
        "Mine(ds)",
        "DataLoader(ds, 10, False, None, None, 4)",
        "DataLoader(ds, prefetch_factor=2)",
        "DataLoader(ds, persistent_workers=True)",
        "DataLoader(range(10))",
        "DataLoader(ds, num_workers=0 if args.debug else 4)",
        "DataLoader(ds, **{'num_workers': 2})",
        "DataLoader(ds, batch_size=len(ds))",
    ],
)
def test_loaders_left_alone(loader: str) -> None:
    imports = (
        "import torch\nfrom torch.utils.data import DataLoader, Subset, TensorDataset\n"
        "from mylib import DataLoader as Mine\n"
    )
    check_snippet(
        f"{imports}def f(ds, cfg, args, workers, tf, parts, model):\n    for b in {loader}:\n        model(b)\n", RULE
    )


def dataset(body: str, base: str = "Dataset") -> str:
    return (
        "import torch\nfrom torch.utils.data import DataLoader, Dataset, IterableDataset\nfrom PIL import Image\n"
        f"class D({base}):\n"
        "    def __init__(self, x, transform=None):\n        self.x = x\n        self.transform = transform\n"
        f"{body}for b in DataLoader(D(x), 8):  # <- {RULE}\n    model(b)\n"
    )


@pytest.mark.parametrize(
    "body",
    [
        "    def __getitem__(self, i):\n        return Image.open(self.x[i])\n",
        "    def __getitem__(self, i):\n        return self.transform(self.x[i])\n",
        "    def __getitem__(self, i):\n        return self.f(i)\n    def f(self, i):\n        return open(i)\n",
        "    def __getitem__(self, i):\n        return torch.load(self.x[i])\n",
    ],
)
def test_datasets_that_load(body: str) -> None:
    check_snippet(dataset(body), RULE)


@pytest.mark.parametrize(
    ("body", "base"),
    [
        ("    def __getitem__(self, i):\n        return self.x[i], torch.tensor(i)\n", "Dataset"),
        ("    def __getitem__(self, i):\n        return self.x[i].float().unsqueeze(0)\n", "Dataset"),
        ("    def __getitem__(self, i):\n        return read(self.x[i]).cuda()\n", "Dataset"),
        ("    def __getitem__(self, i):\n        return read(self.x[i]).to('cuda')\n", "Dataset"),
        ("    def __iter__(self):\n        return iter(open(self.x))\n", "IterableDataset"),
    ],
)
def test_datasets_that_workers_would_not_help(body: str, base: str) -> None:
    check_snippet(dataset(body, base).replace(f"  # <- {RULE}", ""), RULE)


@pytest.mark.parametrize(
    "code",
    [
        "if args.debug:\n    loader = DataLoader(ds, num_workers=0)",
        "if num_workers == 0:\n    loader = DataLoader(ds)",
        "loader = DataLoader(ds, num_workers=0) if sys.platform == 'win32' else DataLoader(ds, num_workers=4)",
        "loader = DataLoader(ds, num_workers=0)  # CUDA handles do not survive a fork",
    ],
)
def test_zero_on_purpose(code: str) -> None:
    check_snippet(
        f"import sys\nfrom torch.utils.data import DataLoader\n{code}\nfor x in loader:\n    model(x)\n", RULE
    )


# What the page says that workers change


class Counting(Dataset[tuple[int, float]]):  # type: ignore[misc]
    """Remembers what it was asked for, and draws a random number for each sample."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[int, float]:
        self.asked.append(index)
        return index, torch.rand(()).item()


class Lines(IterableDataset[int]):  # type: ignore[misc]
    def __iter__(self) -> Iterator[int]:
        return iter(range(4))


def read(workers: int) -> tuple[list[int], list[float], Counting]:
    torch.manual_seed(0)
    counting = Counting()
    loader = DataLoader(counting, batch_size=2, shuffle=True, num_workers=workers)
    batches = list(loader)
    indexes = [index for batch, _ in batches for index in batch.tolist()]
    return indexes, [value for _, batch in batches for value in batch.tolist()], counting


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_order_stays_and_random_numbers_and_the_dataset_of_the_main_process_do_not() -> None:
    order, drawn, counting = read(0)
    new_order, new_drawn, new_counting = read(1)
    assert new_order == order
    assert new_drawn != drawn
    assert counting.asked == order
    assert new_counting.asked == []


def test_a_stream_that_is_not_shared_out_comes_twice() -> None:
    assert sorted(int(line) for line in DataLoader(Lines(), num_workers=2)) == [0, 0, 1, 1, 2, 2, 3, 3]
