"""TL105: loaders with workers that each turn of a loop makes of the same things."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "dataloader-built-in-loop"
MARK = f"  # <- {RULE}"
HEAD = "import torch\nfrom torch.utils.data import DataLoader, RandomSampler\n"


def epochs(*lines: str, loop: str = "for epoch in range(epochs):") -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return f"{HEAD}def train(self, model, data, args, epochs, sets, test):\n    {loop}\n{body}\n"


READ = ("for x, y in loader:", "    model(x, y).sum().backward()")


@pytest.mark.parametrize(
    "lines",
    [
        ("loader = DataLoader(data, num_workers=4)" + MARK, *READ),
        ("loader = DataLoader(data, 8, True, num_workers=4, pin_memory=True)" + MARK, *READ),
        ("loader = DataLoader(data, batch_size=args.size, num_workers=2)" + MARK, *READ),
        ("loader = DataLoader(self.data, sampler=RandomSampler(self.data), num_workers=2)" + MARK, *READ),
        ("loader = DataLoader(data, batch_size=len(data), num_workers=2)" + MARK, *READ),
        ("for x, y in tqdm(DataLoader(data, num_workers=4)):" + MARK, "    model(x, y).sum().backward()"),
    ],
)
def test_the_same_at_each_turn(lines: tuple[str, ...]) -> None:
    check_snippet(epochs(*lines), RULE)


def test_given_to_a_function() -> None:
    check_snippet(
        HEAD
        + textwrap.dedent(f"""
        def fit(model, loader):
            for x, y in loader:
                model(x, y).sum().backward()
        def main(model, data, epochs):
            for epoch in range(epochs):
                fit(model, DataLoader(data, num_workers=4)){MARK}
        """),
        RULE,
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("loader = DataLoader(data)", *READ),
        ("loader = DataLoader(data, num_workers=0)", *READ),
        ("loader = DataLoader(data, num_workers=workers)", *READ),
        ("loader = DataLoader(data, batch_size=epoch, num_workers=4)", *READ),
        ("loader = DataLoader(sets[epoch], num_workers=4)", *READ),
        ("part = choose(data)", "loader = DataLoader(part, num_workers=4)", *READ),
        ("loader = DataLoader(choose(data), num_workers=4)", *READ),
        ("self.data = choose()", "loader = DataLoader(self.data, num_workers=4)", *READ),
        ("data.set_epoch(epoch)", "loader = DataLoader(data, num_workers=4)", *READ),
        ("if epoch == 3:", "    loader = DataLoader(data, num_workers=4)", *READ),
        ("loader = DataLoader(data, num_workers=4)", "save(loader)"),
    ],
)
def test_not_the_same_or_not_worth_it(lines: tuple[str, ...]) -> None:
    check_snippet(epochs(*lines), RULE)


@pytest.mark.parametrize("loop", ["for name in names:", "for seed in range(5):", "for fold in folds:"])
def test_loops_over_other_things(loop: str) -> None:
    run = textwrap.indent("\n".join(READ), "    ")
    check_snippet(
        epochs("loader = DataLoader(data, num_workers=4)", "for epoch in range(epochs):", run, loop=loop), RULE
    )
