"""TL101: loaders without workers whose batches somebody waits for; what workers change, on CPU torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from laws import active, check_snippet, fix, lint
from torch.utils.data import DataLoader, Dataset, IterableDataset

from torchlint.finding import Applicability

RULE = "dataloader-no-workers"
WARNED = f"  # <- {RULE}"
NOTED = f"  # <- {RULE}?"
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
            return DataLoader(ds, 32), DataLoader(ds, 64)  # <- dataloader-no-workers
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
        "from sentence_transformers import InputExample\n"
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
        (
            """    def __getitem__(self, i):
        row = self.x[i].pop(0)
        self.x[i].append(row)
        return InputExample(row)
""",
            "Dataset",
        ),
        (
            "    def __getitem__(self, i):\n        self.day += 1\n        return read(self.x[self.day])\n",
            "Dataset",
        ),
    ],
)
def test_datasets_that_workers_would_not_help(body: str, base: str) -> None:
    check_snippet(dataset(body, base).replace(f"  # <- {RULE}", ""), RULE)


@pytest.mark.parametrize(
    ("opened", "line", "flagged"),
    [
        ("open(x)", "return parse(self.file.read(9))", False),
        ("h5py.File(x)", "return parse(self.file['x'][i])", False),
        ("h5py.File(x)", "return self.part(i)\n    def part(self, i):\n        return parse(self.file[i])", False),
        ("open(x)", "return parse(self.x[i])", True),
        ("open(x).read()", "return parse(self.file[i])", True),
        ("x", "return parse(open(self.file).read(9))", True),
        ("0", "self.file += 1\n        return parse(self.x[i])", True),
    ],
)
def test_a_file_that_workers_would_share(opened: str, line: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    check_snippet(
        "import h5py\nfrom torch.utils.data import DataLoader, Dataset\nclass D(Dataset):\n"
        f"    def __init__(self, x):\n        self.x = x\n        self.file = {opened}\n"
        f"    def __getitem__(self, i):\n        {line}\nfor b in DataLoader(D(x), 8):{mark}\n    model(b)\n",
        RULE,
    )


def test_which_of_several_that_are_returned() -> None:
    code = (
        "from torch.utils.data import DataLoader\nfrom torchvision import datasets\ndef build():\n"
        "    data = datasets.MNIST('data')\n    return data, DataLoader(data, 8){}\n"
        "def main():\n    {} = build()\n    {}\n"
    )
    mark = f"  # <- {RULE}"
    check_snippet(code.format("", "data, loader", "fit(model, data)"), RULE)
    check_snippet(code.format("", "data, loader", "fit(model, loader.dataset)"), RULE)
    check_snippet(code.format(mark, "data, loader", "fit(model, loader)"), RULE)
    check_snippet(code.format(mark, "*data, loader", "fit(model, loader)"), RULE)
    check_snippet(code.format(mark, "both", "fit(model, both)"), RULE)


@pytest.mark.parametrize(
    "code",
    [
        f"if args.debug:\n    loader = DataLoader(ds, num_workers=0)  # <- {RULE}?",
        f"if num_workers == 0:\n    loader = DataLoader(ds)  # <- {RULE}?",
        f"loader = DataLoader(ds, num_workers=0) if sys.platform == 'win32' else DataLoader(ds, num_workers=4)  # <- {RULE}?",
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


# Who reads it

SETUP = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets
train_loader = DataLoader(datasets.MNIST("data"), 64)  # <- dataloader-no-workers
test_loader = DataLoader(datasets.MNIST("data", train=False), 64){}
"""
TRAINING = """
for epoch in range(3):
    for x, y in train_loader:
        model(x).sum().backward()
"""


def found(code: str) -> list[int]:
    """The rows with a finding: what wrapping such code in a function changes is what these tests are about."""
    text = code.replace(f"  # <- {RULE}", "")
    source = [finding.span.start for finding in lint(text, active(RULE)).findings]
    return [text.count("\n", 0, start) + 1 for start in source]


def test_nobody_reads_a_loader_of_a_script() -> None:
    check_snippet(SETUP.format("") + TRAINING, RULE)
    check_snippet(SETUP.format("") + TRAINING + "print(len(test_loader), test_loader.dataset)\n", RULE)
    check_snippet(SETUP.format("") + "trainer.fit(model, train_loader)\n", RULE)
    check_snippet(SETUP.format(f"  # <- {RULE}") + TRAINING + "evaluate(model, test_loader)\n", RULE)
    check_snippet(
        SETUP.format(f"  # <- {RULE}") + TRAINING + "loaders = {'test': test_loader}\n" + "fit(loaders)\n", RULE
    )


def test_others_may_read_a_loader_of_a_module() -> None:
    unread = "from torch.utils.data import DataLoader\nfrom torchvision import datasets\n{}\n"
    loader = "loader = DataLoader(datasets.MNIST('data'), 64)"
    assert found(unread.format(loader)) == [3]
    assert found(unread.format(f"class Data:\n    {loader}")) == [4]
    assert found(unread.format(f"def build():\n    {loader}\n    return loader")) == [4]
    assert found(unread.format(f"def build(self):\n    self.{loader}")) == [4]
    assert found(unread.format(f"def build():\n    global loader\n    {loader}")) == [5]
    assert found(
        unread.format(f"{loader}\nif __name__ == '__main__':\n    for x, y in other_loader:\n        f(x)")
    ) == [3]
    assert found(unread.format(f"def build():\n    {loader}\n    return 3")) == []
    assert found(unread.format(f"if __name__ == '__main__':\n    {loader}")) == []


def test_a_name_that_is_bound_again() -> None:
    """Each binding has readers of its own: here only the first is trained with."""
    check_snippet(
        SETUP.format("")
        + TRAINING
        + """
train_loader = DataLoader(datasets.MNIST("data"), 15)
for x, y in train_loader:
    print(x.shape)
    break
test_loader = DataLoader(datasets.MNIST("data"), 15)
for x, y in test_loader:
    break
show(x)
""",
        RULE,
    )


@pytest.mark.parametrize(
    ("loop", "flagged"),
    [
        ("for x in loader:\n    show(x)\n    break", False),
        ("for i, x in enumerate(loader):\n    show(x)\n    break", False),
        ("for x in loader: break", False),
        ("for x in loader:\n    show(x)", True),
        ("for x in loader:\n    if show(x) > 3:\n        break", True),
        ("for x in loader:\n    if show(x) > 3:\n        continue\n    break", True),
        ("for _ in range(1000):\n    for x in loader:\n        step(x)\n        break", True),
        ("for x in loader:\n    for y in x:\n        show(y)\n        break", True),
        ("show(loader.__iter__().__next__())", False),
        ("show(iter(loader).next())", False),
        ("for _ in range(1000):\n    step(loader.__iter__().__next__())", True),
        ("batches = loader.__iter__()\nfor _ in range(1000):\n    step(next(batches))", True),
    ],
)
def test_a_loop_that_ends_with_its_first_turn(loop: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    head = f"from torch.utils.data import DataLoader\nloader = DataLoader(PhotoDataset('a'), 64){mark}\n"
    check_snippet(f"{head}{loop}\n", RULE)


STREAMED = """
from torch.utils.data import DataLoader
from lightning.pytorch import LightningModule
from experience import ExperienceSourceDataset
class Agent(LightningModule):
    def train_batch(self):
        while True:
            {} self.play()
    def train_dataloader(self):
        dataset = ExperienceSourceDataset({})
        return DataLoader(dataset, batch_size=32){}
"""


def test_a_dataset_of_what_a_function_yields() -> None:
    check_snippet(STREAMED.format("yield", "self.train_batch", ""), RULE)
    check_snippet(STREAMED.format("return", "self.train_batch", f"  # <- {RULE}"), RULE)
    check_snippet(STREAMED.format("yield", "self.memory", f"  # <- {RULE}"), RULE)
    check_snippet(
        """
        from torch.utils.data import DataLoader
        from experience import ExperienceSourceDataset
        def turns():
            while True:
                yield play()
        for x in DataLoader(ExperienceSourceDataset(turns), 32):
            model(x)
        """,
        RULE,
    )


SHORT = "import torch, cv2, numpy as np\nfrom torch.utils.data import DataLoader\n"


@pytest.mark.parametrize(
    ("body", "mark"),
    [
        ("means.append(np.mean(x.numpy(), axis=(0, 2, 3)))", "  # <- dataloader-no-workers?"),
        ("file.write(x.numpy().tobytes())", "  # <- dataloader-no-workers?"),
        ("print(x.shape)", "  # <- dataloader-no-workers?"),
        ("cv2.imwrite('a.jpg', x.numpy())", "  # <- dataloader-no-workers?"),
        ("if np.isnan(x.numpy()).any(): raise ValueError(x)", "  # <- dataloader-no-workers?"),
        ("pass", "  # <- dataloader-no-workers"),
        ("total += x @ weight", "  # <- dataloader-no-workers"),
        ("scores.append(model(x).cpu())", "  # <- dataloader-no-workers"),
    ],
)
def test_a_loop_that_computes_nothing(body: str, mark: str) -> None:
    check_snippet(f"{SHORT}loader = DataLoader(PhotoDataset('a'), 64){mark}\nfor x in loader:\n    {body}\n", RULE)


@pytest.mark.parametrize(
    ("given", "mark"),
    [
        ("open_rows(), batch_size=None", ""),
        ("open_rows(), 8, collate_fn=list", ""),
        ("open_rows(), 8, collate_fn=lambda rows: rows", ""),
        ("open_rows(), 8, collate_fn=lambda rows: join(rows)", WARNED),
        ("split.train_idx, 8", NOTED),
        ("train_nid, 8, collate_fn=sample_blocks", WARNED),
        ("rows.to(device), 8", ""),
        ("(rows - low) / high, 8", ""),
        ("rows + others, 8", WARNED),
        ("find_dataset(names['data'], path), 8", WARNED),
        ("open_rows(), 8, collate_fn=batcher(torch.device('cuda'))", ""),
        ("open_rows(), 8, collate_fn=batcher(3)", WARNED),
        ("MockRows(3), 8", NOTED),
        ("hydrated.FakeData(), 8", NOTED),
        ("Builder(MockRows, 3).build()[0], 8", NOTED),
        ("DeepFakeRows(), 8", WARNED),
        ("self.data_buffer, 8, collate_fn=join", NOTED),
        ("buffered, 8", WARNED),
        ("open_rows(), batch_size=1, num_workers=0", ""),
        ("open_rows(), batch_size=8, num_workers=0", WARNED),
        ("open_rows(), batch_size=1", WARNED),
    ],
)
def test_what_workers_would_not_load(given: str, mark: str) -> None:
    check_snippet(f"{SHORT}for x in DataLoader({given}):{mark}\n    model(x).backward()\n", RULE)


@pytest.mark.parametrize(("line", "flagged"), [("model = Net()", False), ("model = Net().cuda()", True)])
def test_a_script_without_a_word_of_an_accelerator(line: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else f"  # <- {RULE}?"
    model = f"class Net(torch.nn.Module):\n    pass\n{line}\n"
    for rows in ("open_rows()", "torchvision.datasets.MNIST('data')"):
        loop = f"for x in DataLoader({rows}, 8):{mark}\n    model(x).backward()\n"
        check_snippet(f"import torchvision\n{SHORT}{model}{loop}", RULE)


@pytest.mark.parametrize(("kind", "flagged"), [("torch.utils.data.TensorDataset", False), ("PhotoDataset", True)])
def test_what_is_put_into_a_dictionary(kind: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    put = f"for split in data:\n    data[split] = {kind}(data[split])\n"
    check_snippet(f"{SHORT}{put}for x in DataLoader(data['train'], 8):{mark}\n    model(x).backward()\n", RULE)


def test_whatever_callers_elsewhere_pass() -> None:
    body = "    for x in DataLoader(rows, 8):{}\n        model(x){}\n"
    mark = f"  # <- {RULE}"
    check_snippet(f"{SHORT}def score(rows):\n{body.format(f'{mark}?', '')}", RULE)
    check_snippet(f"{SHORT}def score(rows):\n{body.format(mark, '')}score(open_rows())\n", RULE)
    check_snippet(f"{SHORT}def train(rows):\n{body.format(mark, '.backward()')}", RULE)


def test_what_a_function_returns_beside_others() -> None:
    check_snippet(
        f"""
        {SHORT.splitlines()[1]}
        def load():
            return [1, 2, 3], PhotoDataset("a"), 7
        rows, photos, _ = load()
        for x in DataLoader(rows, 8):
            model(x).backward()
        for x in DataLoader(photos, 8):  # <- {RULE}
            model(x).backward()
        """,
        RULE,
    )


def test_one_batch_of_a_loader_that_each_turn_makes() -> None:
    code = "for part in parts:\n    loader = DataLoader(PhotoDataset(part), 1)\n    model(next(iter(loader)))\n"
    check_snippet(f"{SHORT}{code}", RULE)


@pytest.mark.parametrize(
    ("given", "mark"),
    [
        ("trivial_collate", NOTED),
        ("mylib.identity_collate", NOTED),
        ("kept", ""),
        ("mylib.pad_collate", WARNED),
        ("padded", WARNED),
    ],
)
def test_what_nobody_collates(given: str, mark: str) -> None:
    functions = (
        'def kept(rows):\n    """As they are."""\n    return rows\ndef padded(rows):\n    return torch.stack(rows)\n'
    )
    loop = f"for x in DataLoader(open_rows(), 8, collate_fn={given}):{mark}\n    model(x).backward()\n"
    check_snippet(f"{SHORT}import mylib\nfrom mylib import trivial_collate\n{functions}{loop}", RULE)


@pytest.mark.parametrize(
    ("rows", "body", "flagged"),
    [
        ("open_rows()", "print(model.generate(x))", False),
        ("ImageFolder('a')", "print(model.generate(x))", True),
        ("open_rows()", "model(x).backward()\n    model.generate(x)", True),
        ("open_rows()", "model(x)\n    if step % 100 == 0:\n        model.generate(x)", True),
    ],
)
def test_a_loop_that_writes_text(rows: str, body: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    loader = "from torchvision.datasets import ImageFolder\n"
    check_snippet(f"{SHORT}{loader}for step, x in enumerate(DataLoader({rows}, 8)):{mark}\n    {body}\n", RULE)


@pytest.mark.parametrize(("device", "flagged"), [("'cuda'", False), ("torch.device('cuda')", False), ("'cpu'", True)])
def test_numbers_drawn_on_the_device(device: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    generator = f"g = torch.Generator(device={device})\n"
    loop = f"for x in DataLoader(open_rows(), 8, generator=g):{mark}\n    model(x).backward()\n"
    check_snippet(f"{SHORT}{generator}{loop}", RULE)


@pytest.mark.parametrize(("target", "flagged"), [("part", False), ("other", True)])
def test_one_of_several_processes(target: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    function = f"def part():\n    for x in DataLoader(PhotoDataset('a'), 8, num_workers=0):{mark}\n        model(x)\n"
    start = f"from multiprocessing import Process\nProcess(target={target}).start()\n"
    check_snippet(f"{SHORT}{function}{start}", RULE)


@pytest.mark.parametrize(
    ("line", "flagged"),
    [
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')", False),
        ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", False),
        ("torch.set_default_device('cuda')", False),
        ("torch.set_default_device('cpu')", True),
        ("torch.set_default_dtype(torch.float32)", True),
    ],
)
def test_all_tensors_are_made_on_the_device(line: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    loop = f"for x in DataLoader(PhotoDataset('a'), 8):{mark}\n    model(x.cuda()).backward()\n"
    check_snippet(f"{SHORT}{line}\n{loop}", RULE)


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("model(x)\n    if i == args.n_test_samples - 1:\n        break", False),
        ("model(x)\n    if i >= 8:\n        print(i)\n        break", False),
        ("model(x)\n    if i >= 5000:\n        break", True),
        ("model(x)\n    if i >= args.most:\n        break", True),
        ("model(x)\n    if i == 8:\n        continue", True),
        ("model(x).backward()\n    if i == 8:\n        break", True),
    ],
)
def test_a_loop_that_takes_a_few_batches(body: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    loop = f"for i, x in enumerate(DataLoader(PhotoDataset('a'), 1)):{mark}\n    {body}\n"
    check_snippet(f"{SHORT}{loop}", RULE)
    again = loop.replace("\n    ", "\n        ").replace("for i", "    for i")
    check_snippet(
        f"{SHORT}for epoch in range(9):\n{again.replace(mark, '').replace('1)):', f'1)):  # <- {RULE}')}", RULE
    )


@pytest.mark.parametrize(
    ("above", "between", "flagged"),
    [
        ("# The rows are in memory, no need of workers\n", "", False),
        ("# Loaders (they would not gain from num_workers)\n", "", False),
        ("# The rows are in memory,\n# no need of workers\n", "", False),
        ("# The rows are in memory, no need of workers\n", "\n", True),
        ("# The rows are in memory, no need of workers\n", "model = build()\n", True),
        ("# The rows are in memory, no need of workers\n", "a = DataLoader(open_rows(), 8, num_workers=2)\n", True),
        ("# Workers are given below\n", "", True),
        ("# Loaders\n", "", True),
    ],
)
def test_a_comment_right_above(above: str, between: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    check_snippet(f"{SHORT}{above}{between}b = DataLoader(open_rows(), 8, num_workers=0){mark}\nfit(model, b)\n", RULE)
    check_snippet(f"{SHORT}{above}b = DataLoader(open_rows(), 8)  # <- {RULE}\nfit(model, b)\n", RULE)


@pytest.mark.parametrize(
    ("dataset", "size", "other", "flagged"),
    [
        ("photos", 1, "photos, 8, num_workers=2", False),
        ("photos", 1, "photos, 8, num_workers=args.workers", False),
        ("photos", 4, "photos, 8, num_workers=2", True),
        ("photos", "1, sampler=part", "photos, 8, sampler=rest, num_workers=2", True),
        ("others", 1, "photos, 8, num_workers=2", True),
    ],
)
def test_single_samples_beside_a_loader_with_workers(dataset: str, size: object, other: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    made = "photos = PhotoDataset('a')\nothers = PhotoDataset('b')\n"
    loop = f"for epoch in range(9):\n    for x in DataLoader({other}):\n        model(x).backward()\n    show(looked)\n"
    check_snippet(f"{SHORT}{made}looked = DataLoader({dataset}, batch_size={size}){mark}\n{loop}", RULE)


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("play = model.generate_trajectory_batched(x)\n    improve(play)", False),
        ("play = agent.collect_rollouts(x)\n    improve(play)", False),
        ("play = model.trajectory(x)\n    improve(play)", True),
    ],
)
def test_a_loop_that_has_the_model_play(body: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    loader = (
        f"loader = DataLoader(open_rows(), 8){mark}\nif state:\n    loader.load_state_dict(state)\n    list(loader)\n"
    )
    kept = "save({'loader': loader.state_dict()})\n"
    check_snippet(f"{SHORT}{loader}for x in loader:\n    {body}\n{kept}", RULE)


@pytest.mark.parametrize(("taker", "flagged"), [("LLMEnv.from_dataloader", False), ("Env.from_dataloader", True)])
def test_what_answers_prompts(taker: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    imports = "from torchrl.envs import LLMEnv\nfrom mylib import Env\n"
    check_snippet(f"{imports}{SHORT}run({taker}(dataloader=DataLoader(open_rows(), 8))){mark}\n", RULE)


@pytest.mark.parametrize(
    ("kind", "flagged"), [("TensorDataset", False), ("PhotoDataset", True), ("torchvision.datasets.MNIST", True)]
)
def test_what_is_made_unless_it_is_stored(kind: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    function = (
        "import os, torchvision\nfrom torch.utils.data import TensorDataset\ndef load(path):\n"
        f"    if os.path.exists(path):\n        data = torch.load(path)\n    else:\n        data = {kind}(parse(path))\n"
        "    return {}\n"
    )
    loop = f"for x in DataLoader(rows, 8):{mark}\n    model(x).backward()\n"
    check_snippet(f"{SHORT}{function.format('data')}rows = load('a')\n{loop}", RULE)
    check_snippet(f"{SHORT}{function.format('3, data')}count, rows = load('a')\n{loop}", RULE)


@pytest.mark.parametrize(("kind", "flagged"), [("TensorDataset", False), ("PhotoDataset", True)])
def test_one_of_several_that_a_function_makes(kind: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    check_snippet(
        f"""
        {SHORT.splitlines()[1]}
        from torch.utils.data import TensorDataset
        def load(tasks):
            found = {{}}
            for task in tasks:
                found[task] = (task, {kind}(parse(task)))
            return found
        made = load(["a", "b"])
        rows_of = [pair[1] for name, pair in made.items()]
        for rows, name in zip(rows_of, made):
            for x in DataLoader(rows, 8):{mark}
                model(x).backward()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("uses", "flagged"),
    [("next(self.train_batches)", False), ("next(self.train_batches), next(self.spare)", True), ("self.other", True)],
)
def test_a_generator_that_nobody_starts(uses: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    check_snippet(
        f"""
        {SHORT.splitlines()[1]}
        from torchvision.datasets import ImageFolder
        def endless(loader):
            while True:
                yield from loader
        class Trainer:
            def __init__(self, folder):
                self.train_batches = endless(DataLoader(ImageFolder(folder), 8))  # <- {RULE}
                self.spare = endless(DataLoader(ImageFolder(folder), 8)){mark}
            def step(self):
                return {uses}
        """,
        RULE,
    )


def test_a_dataset_whose_class_a_text_finds() -> None:
    loop = f"for x in DataLoader(find_class(names['data'])(path), 8):  # <- {RULE}?\n    model(x).backward()\n"
    check_snippet(f"{SHORT}{loop}", RULE)


OPTION = """
import argparse
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default={})
args = parser.parse_args()
for x in DataLoader(PhotoDataset("a"), 8, num_workers=args.workers):{}
    model(x).backward()
"""


@pytest.mark.parametrize(("default", "mark"), [("0", f"  # <- {RULE}?"), ("4", ""), ("None", "")])
def test_an_option_that_is_zero_by_default(default: str, mark: str) -> None:
    fixed = OPTION.format("4", "")
    check_snippet(OPTION.format(default, mark), RULE, fixed=fixed if mark else None)


COLLATED = """
from torch.utils.data import DataLoader

def loaders(rows):
    def collate(samples):
        {}
    return DataLoader(rows, 8, collate_fn=collate){}, 3
"""


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("return tokenize(samples)", f"  # <- {RULE}"),
        ("return torch.stack(samples)", ""),
    ],
)
def test_what_collates_may_be_what_costs(line: str, mark: str) -> None:
    check_snippet("import torch\n" + COLLATED.format(line, "{}").replace("{}, 3", f", 3{mark}"), RULE)


@pytest.mark.parametrize(("given", "mark"), [("", WARNED), (", num_workers=4", ""), (", num_workers=0", WARNED)])
def test_a_loader_of_graphs(given: str, mark: str) -> None:
    code = f"""
        import dgl
        from dgl.dataloading import GraphDataLoader
        def collate(samples):
            graphs, labels = zip(*samples)
            return dgl.batch(graphs), labels
        def train(model, graphs):
            loader = GraphDataLoader(graphs, collate_fn=collate, batch_size=32{given}){mark}
            for graph, labels in loader:
                model(graph.to("cuda"), labels).backward()
    """
    check_snippet(code, RULE)
