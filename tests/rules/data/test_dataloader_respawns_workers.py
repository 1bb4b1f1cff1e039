"""TL103: loaders whose workers are started again for each epoch; what keeping them changes, on CPU torch."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet
from torch.utils.data import DataLoader, Dataset

RULE = "dataloader-respawns-workers"
MARK = f"  # <- {RULE}?"
HEAD = """\
import argparse
import os
import torch
from torch.utils.data import DataLoader
"""
LOOP = """\
for epoch in range(epochs):
    for batch in loader:
        model(batch).sum().backward()
"""


def program(loader: str, loop: str = LOOP) -> str:
    options = "parser.add_argument('-j', '--data-workers', default=4)\nparser.add_argument('--none', default=0)\n"
    return f"{HEAD}parser = argparse.ArgumentParser()\n{options}args = parser.parse_args()\n{loader}\n{loop}"


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ("num_workers=4", "True"),
        ("batch_size=8, num_workers=1, pin_memory=True", "True"),
        ("8, True, None, None, 2", "True"),
        ("num_workers=os.cpu_count()", "True"),
        ("num_workers=min(8, os.cpu_count())", "True"),
        ("num_workers=args.data_workers", "args.data_workers > 0"),
        ("num_workers=int(args.data_workers)", "int(args.data_workers) > 0"),
        ("num_workers=4 if cuda else 0", "(4 if cuda else 0) > 0"),
        ("**{'num_workers': 2}", "True"),
    ],
)
def test_the_number_of_workers(given: str, condition: str) -> None:
    check_snippet(
        program(f"loader = DataLoader(data, {given}){MARK}"),
        RULE,
        fixed=program(f"loader = DataLoader(data, {given}, persistent_workers={condition})"),
    )


@pytest.mark.parametrize(
    "given",
    [
        "num_workers=0",
        "batch_size=4",
        "num_workers=args.none",
        "num_workers=workers",
        "num_workers=4, persistent_workers=True",
        "num_workers=4, persistent_workers=args.keep",
        "num_workers=4, **options",
        "num_workers=4, worker_init_fn=lambda worker: seed(worker + epoch)",
    ],
)
def test_none_unknown_or_kept(given: str) -> None:
    check_snippet(program(f"loader = DataLoader(data, {given})"), RULE)


@pytest.mark.parametrize(
    "code",
    [
        f"""
        def train(model, loader):
            for i, batch in enumerate(tqdm(loader)):
                model(batch).sum().backward()
        def main(data, epochs):
            loader = DataLoader(data, num_workers=2){MARK}
            for epoch in range(epochs):
                train(model, loader)
        """,
        f"""
        def loaders(data, workers=4):
            return DataLoader(data, num_workers=workers), None{MARK}
        first, second = loaders(data)
        for epoch in range(9):
            for x, y in first:
                model(x).backward()
        """,
        f"""
        class Trainer:
            def __init__(self, data):
                self.loader = DataLoader(data, num_workers=2){MARK}
            def train(self):
                for epoch in range(9):
                    for x, y in self.loader:
                        self.model(x).backward()
        """,
        f"""
        def cycle(loader):
            while True:
                for x in loader:
                    yield x
        batches = cycle(DataLoader(data, num_workers=2)){MARK}
        """,
        f"""
        from lightning.pytorch import LightningModule
        class Net(LightningModule):
            def train_dataloader(self):
                return DataLoader(self.data, num_workers=2){MARK}
            def test_dataloader(self):
                return DataLoader(self.data, num_workers=2)
        """,
        f"""
        loaders = {{name: DataLoader(sets[name], num_workers=2) for name in ("train", "val")}}{MARK}
        for epoch in range(epochs):
            for phase in ("train", "val"):
                for x in loaders[phase]:
                    model(x).backward()
        """,
        f"""
        loader = DataLoader(data, num_workers=2)  # <- {RULE}
        batches = iter(loader)
        for step in range(steps):
            try:
                x = next(batches)
            except StopIteration:
                batches = iter(loader)
                x = next(batches)
            model(x).sum().backward()
        """,
    ],
)
def test_who_begins_again(code: str) -> None:
    check_snippet(HEAD + textwrap.dedent(code), RULE)


@pytest.mark.parametrize(
    "loop",
    [
        "for batch in loader:\n    model(batch).sum().backward()\n",
        "for epoch in range(1):\n    for batch in loader:\n        model(batch).sum().backward()\n",
        LOOP.replace("loader:", "DataLoader(data, num_workers=4):"),
        LOOP.replace("    for batch", "    data.epoch = epoch\n    for batch"),
        LOOP.replace("    for batch", "    data.resample()\n    for batch"),
        LOOP.replace("    for batch", "    loader.dataset.set_epoch(epoch)\n    for batch"),
        LOOP.replace("model(batch)", "model(batch, next(iter(loader)))"),
        "for epoch in range(epochs):\n    if epoch % 10 == 0:\n        for batch in loader:\n            model(batch)\n",
        LOOP.replace("    for batch", "    if epoch > 0:\n        loader = again()\n    for batch"),
        LOOP.replace("    for batch", "    if epoch >= 1:\n        loader = again()\n    for batch"),
        """\
for EPOCH_CNT in range(9):
    if EPOCH_CNT == 0 or EPOCH_CNT % 10 == 9:
        for batch in loader:
            model(batch)
""",
        "for fold in folds:\n    for batch in loaders[fold]:\n        model(batch).sum().backward()\n",
    ],
)
def test_one_pass_or_workers_that_have_to_be_new(loop: str) -> None:
    check_snippet(program("loader = DataLoader(data, num_workers=4)\nloaders = {'a': loader}\n", loop), RULE)


def test_a_sampler_is_told_of_the_epoch_where_it_is() -> None:
    check_snippet(
        program(
            f"loader = DataLoader(data, sampler=sampler, num_workers=4){MARK}",
            LOOP.replace("    for batch", "    sampler.set_epoch(epoch)\n    for batch"),
        ),
        RULE,
    )


class _Counter(Dataset[int]):  # type: ignore[misc]
    epoch = 0

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        return self.epoch


def _epochs(*, kept: bool) -> list[int]:
    data = _Counter()
    loader = DataLoader(data, num_workers=1, persistent_workers=kept)
    seen = []
    for data.epoch in range(2):
        seen += [int(batch) for batch in loader]
    return seen


def test_workers_that_are_kept_do_not_see_what_changes() -> None:
    assert _epochs(kept=False) == [0, 1]
    assert _epochs(kept=True) == [0, 0]


def test_the_constructor_refuses_to_keep_no_workers() -> None:
    with pytest.raises(ValueError, match="persistent_workers"):
        DataLoader(_Counter(), num_workers=0, persistent_workers=True)
    assert isinstance(DataLoader(_Counter(), num_workers=0, persistent_workers=False), DataLoader)


def test_each_loader_is_gone_over_where_it_is_passed() -> None:
    check_snippet(
        HEAD
        + textwrap.dedent(f"""
        def accuracy(model, batches):
            return sum(model(batch) for batch in batches), [model(batch) for batch in batches]
        def score(model, batches):
            hits = 0
            for batch in batches:
                hits += model(batch)
            return hits
        valid = DataLoader(data, num_workers=4){MARK}
        final = DataLoader(data, num_workers=4)
        for epoch in range(epochs):
            for batch in train:
                model(batch).sum().backward()
            print(score(model, valid))
        print(score(model, final))
        """),
        RULE,
    )


@pytest.mark.parametrize(
    "body",
    [
        "print(epoch, batch.shape)\n        break",
        "x = batch.to(device)\n        print(x.shape)",
        "print(time.time() - start)\n        start = time.time()",
        "means.append(batch.numpy().mean())",
    ],
)
def test_a_loop_that_computes_nothing(body: str) -> None:
    loop = f"import time\nfor epoch in range(2):\n    for batch in loader:\n        {body}\n"
    check_snippet(program("loader = DataLoader(data, num_workers=4)", loop), RULE)


@pytest.mark.parametrize("move", ["", ".cuda()"])
def test_a_script_without_a_word_of_an_accelerator(move: str) -> None:
    loader = f"loader = DataLoader(data, num_workers=2){MARK}"
    check_snippet(program(f"class Net(torch.nn.Module):\n    pass\nmodel = Net(){move}\n{loader}"), RULE)


@pytest.mark.parametrize("test", ["epoch == 5", "epoch >= 5", "epoch > 5", "grown", "epoch < 1"])
def test_a_loader_that_is_replaced_after_some_epochs(test: str) -> None:
    loop = LOOP.replace("    for batch", f"    if {test}:\n        loader = again()\n    for batch")
    check_snippet(program(f"loader = DataLoader(data, num_workers=4){MARK}", loop), RULE)


def test_a_loader_that_is_made_where_the_function_ends() -> None:
    check_snippet(
        f"""
        from torch.utils.data import DataLoader
        def score(loader):
            return [model(batch) for batch in loader]
        def main(phase, model, data, batches):
            loader = DataLoader(data, num_workers=4){MARK}
            if phase == "look":
                loader = DataLoader(data, num_workers=2)
                score(loader)
                return
            for epoch in range(9):
                for batch in loader:
                    model(batch).sum().backward()
        """,
        RULE,
    )


@pytest.mark.parametrize("number", ["args.unheard_of", "options['workers']", "self.config.num_workers"])
def test_a_number_that_is_a_setting_is_a_note(number: str) -> None:
    check_snippet(
        program(f"loader = DataLoader(data, num_workers={number}){MARK}"),
        RULE,
        fixed=program(f"loader = DataLoader(data, num_workers={number}, persistent_workers={number} > 0)"),
    )


def test_a_loader_that_a_function_makes_for_each_epoch() -> None:
    code = """
        from torch.utils.data import DataLoader
        def prepared(data):
            return DataLoader(data, num_workers=4){}
        def run(model, loader):
            for batch in loader:
                model(batch).sum().backward()
        def main(model, data):
            {}
            for epoch in range(9):
                {}
                run(model, loader)
    """
    check_snippet(code.format("", "pass", "loader = prepared(data)"), RULE)
    check_snippet(code.format(MARK, "loader = prepared(data)", "pass"), RULE)
