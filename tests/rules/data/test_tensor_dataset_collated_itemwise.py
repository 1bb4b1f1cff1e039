"""TL111: loaders that pick the samples of a batch from tensors one by one."""

from __future__ import annotations

import textwrap

import pytest
from laws import active, check_snippet, fix

from torchlint.finding import Applicability

RULE = "tensor-dataset-collated-itemwise"
MARK = f"  # <- {RULE}"
_HEAD = (
    "import torch\nfrom torch.utils.data import (\n    BatchSampler, ConcatDataset, DataLoader, Dataset, RandomSampler,\n"
    "    SequentialSampler, Subset, TensorDataset, random_split,\n)\n"
)


def function(*lines: str, dataset: str = "TensorDataset(x, y)", head: str = _HEAD) -> str:
    body = textwrap.indent("\n".join(lines), "    ")
    return f"{head}def train(x, y, n, step, config, wanted):\n    data = {dataset}\n{body}\n    for batch in loader:\n        step(batch)\n"


@pytest.mark.parametrize(
    ("given", "fixed"),
    [
        (
            "data, batch_size=64, shuffle=True",
            "data, batch_size=None, sampler=BatchSampler(RandomSampler(data), 64, drop_last=False)",
        ),
        (
            "data, batch_size=n",
            "data, batch_size=None, sampler=BatchSampler(SequentialSampler(data), n, drop_last=False)",
        ),
        (
            "data, n, shuffle=True, num_workers=2, drop_last=True",
            "data, batch_size=None, sampler=BatchSampler(RandomSampler(data), n, drop_last=True), num_workers=2",
        ),
        (
            "shuffle=False, dataset=data, batch_size=2 * n, pin_memory=True",
            (
                "dataset=data, batch_size=None, sampler=BatchSampler(SequentialSampler(data), 2 * n, drop_last=False), "
                "pin_memory=True"
            ),
        ),
        (
            "data, sampler=RandomSampler(data), batch_size=n",
            "data, batch_size=None, sampler=BatchSampler(RandomSampler(data), n, drop_last=False)",
        ),
        ("data, n, True", "data, batch_size=None, sampler=BatchSampler(RandomSampler(data), n, drop_last=False)"),
    ],
)
def test_the_sampler_gives_batches(given: str, fixed: str) -> None:
    check_snippet(
        function(f"loader = DataLoader({given}){MARK}"), RULE, fixed=function(f"loader = DataLoader({fixed})")
    )


def test_over_several_lines() -> None:
    batches = "BatchSampler(RandomSampler(data), n, drop_last=False)"
    rest = ("    data,", "    batch_size=n,", "    shuffle=True,", "    drop_last=False,", ")")
    # A mark would be a comment inside of the call, which a fix would lose.
    text = function("loader = DataLoader(", *rest)
    settings = active(RULE)
    assert fix(text, settings, Applicability.UNSAFE).text == function(
        "loader = DataLoader(", "    data,", "    batch_size=None,", f"    sampler={batches},", ")"
    )
    marked = function(f"loader = DataLoader({MARK}", *rest)
    check_snippet(marked, RULE)


@pytest.mark.parametrize(
    "dataset",
    [
        "torch.utils.data.TensorDataset(x)",
        "rows(x)",
        "Rows(x)",
        "Named(x)",
        "TensorDataset(x) if n else TensorDataset(y)",
    ],
)
def test_what_picks_from_tensors(dataset: str) -> None:
    check_snippet(
        function(f"loader = DataLoader(data, batch_size=64){MARK}", dataset=dataset, head=_HEAD + _MORE), RULE
    )


_MORE = """def rows(x):
    x = x.float()
    return TensorDataset(x)
def mixed(x):
    if x is None:
        return None
    return TensorDataset(x)
class Rows(Dataset):
    def __init__(self, x):
        self.x = torch.as_tensor(x)
        self.y = torch.zeros(len(x))
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.x[i], self.y[i]
class Named(Rows):
    def __getitem__(self, i):
        \"\"\"One.\"\"\"
        return {"x": self.x[i], "y": self.y[i]}
class Noisy(Rows):
    def __getitem__(self, i):
        return self.x[i] + torch.randn(())
class Shifted(Rows):
    def __getitem__(self, i):
        return self.x[i - 1]
class Own(Rows):
    def __getitems__(self, rows):
        return self.x[rows]
class Texts(Dataset):
    def __init__(self, x):
        self.x = list(x)
    def __getitem__(self, i):
        return self.x[i]
class Unknown(Dataset):
    def __init__(self, x):
        self.x = x
    def __getitem__(self, i):
        return self.x[i]
"""


@pytest.mark.parametrize(
    "dataset",
    [
        "Noisy(x)",
        "Shifted(x)",
        "Own(x)",
        "Texts(x)",
        "Unknown(x)",
        "mixed(x)",
        "config.data",
        "ConcatDataset([TensorDataset(x), TensorDataset(y)])",
        "TensorDataset(x) if n else config.data",
        "list(x)",
        "Subset(TensorDataset(x, y), wanted)",
    ],
)
def test_what_does_more_or_is_out_of_sight(dataset: str) -> None:
    check_snippet(function("loader = DataLoader(data, batch_size=64)", dataset=dataset, head=_HEAD + _MORE), RULE)


@pytest.mark.parametrize(
    "given",
    [
        "data",
        "data, batch_size=8",
        "data, batch_size=None",
        "data, batch_size=64, collate_fn=step",
        "data, batch_sampler=BatchSampler(RandomSampler(data), 64, False)",
        "data, batch_size=64, **config",
        "data, batch_size=64, sampler=wanted",
        "data, 64, True, None, None, 2, step",
        "data, batch_size=64, sampler=torch.utils.data.SubsetRandomSampler(wanted)",
    ],
)
def test_batches_that_are_small_or_made_otherwise(given: str) -> None:
    check_snippet(function(f"loader = DataLoader({given})"), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        (f"loader = DataLoader(data, batch_size=64, shuffle=n > 3){MARK}",),
        (f"loader = DataLoader(data, batch_size=64, sampler=RandomSampler(data), shuffle=n){MARK}",),
        (f"loader = DataLoader(data, batch_size=64, generator=config.generator, shuffle=True){MARK}",),
        (f"loader = DataLoader(TensorDataset(x), batch_size=64){MARK}",),
        (f"loader = DataLoader(data, batch_size=64){MARK}", "print(loader.batch_size)"),
    ],
)
def test_no_fix_where_the_sampler_is_not_plain(lines: tuple[str, ...]) -> None:
    code = function(*lines)
    check_snippet(code, RULE, fixed=code.replace(MARK, ""))


def test_no_fix_without_a_way_to_spell_the_sampler() -> None:
    head = "from torch.utils.data import DataLoader, TensorDataset\n"
    code = function(f"loader = DataLoader(data, batch_size=64){MARK}", head=head)
    check_snippet(code, RULE, fixed=code.replace(MARK, ""))


@pytest.mark.parametrize("framework", ["lightning", "accelerate", "pytorch_lightning"])
def test_frameworks_make_loaders_of_their_own(framework: str) -> None:
    check_snippet(f"import {framework}\n" + function("loader = DataLoader(data, batch_size=64)"), RULE)


def test_a_part_of_them() -> None:
    lines = ("part, rest = random_split(data, [0.8, 0.2])", f"loader = DataLoader(part, n){MARK}")
    fixed = (
        "loader = DataLoader(part, batch_size=None, sampler=BatchSampler(SequentialSampler(part), n, drop_last=False))"
    )
    check_snippet(function(*lines), RULE, fixed=function(lines[0], fixed))


def test_one_batch() -> None:
    check_snippet(
        f"{_HEAD}def first(x):\n    loader = DataLoader(TensorDataset(x), batch_size=64)\n    return next(iter(loader))\n",
        RULE,
    )


def test_any_dataset_that_is_passed() -> None:
    check_snippet(
        f"{_HEAD}def train(data, step):\n    for rows in DataLoader(data, batch_size=64):\n        step(rows)\n"
        "def main(x, step):\n    train(TensorDataset(x), step)\n",
        RULE,
    )


@pytest.mark.parametrize(("size", "mark"), [("config.micro_batch_size", ""), ("config.batch_size", MARK)])
def test_a_micro_batch_has_a_few_samples(size: str, mark: str) -> None:
    check_snippet(function(f"loader = DataLoader(data, batch_size={size}){mark}"), RULE)


@pytest.mark.parametrize(("move", "mark"), [("", ""), (".cuda()", MARK)])
def test_a_script_without_a_word_of_an_accelerator(move: str, mark: str) -> None:
    check_snippet(
        f"{_HEAD}class Net(torch.nn.Module):\n    pass\nmodel = Net(){move}\n"
        f"for rows in DataLoader(TensorDataset(torch.rand(100, 1)), batch_size=25):{mark}\n"
        "    model(*rows).sum().backward()\n",
        RULE,
    )
