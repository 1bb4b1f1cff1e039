"""TL106: loaders that are started again for each batch that is taken from them."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "next-iter-loader-in-loop"
MARK = f"  # <- {RULE}"
HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"


def step(*lines: str, above: str = "") -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"{HEAD}def train(model, train_loader, style_loader, steps):\n"
        f"{above}    for step, (x, y) in enumerate(train_loader):\n{body}\n        model(x, y).sum().backward()\n"
    )


def test_the_iterator_is_kept() -> None:
    kept = (
        "try:",
        "    a, b = next(style_loader_batches)",
        "except StopIteration:",
        "    style_loader_batches = iter(style_loader)",
        "    a, b = next(style_loader_batches)",
    )
    above = "    style_loader_batches = iter(style_loader)\n"
    check_snippet(step("a, b = next(iter(style_loader))" + MARK), RULE, fixed=step(*kept, above=above))


@pytest.mark.parametrize(
    "lines",
    [
        ("style = next(iter(style_loader))" + MARK,),
        ("style = iter(style_loader).next()" + MARK,),
        ("style = iter(style_loader).__next__()" + MARK,),
        ("style = next(iter(style_loader))[0].cuda()" + MARK,),
        ("model(next(iter(style_loader)))" + MARK,),
        ("if step > 10:", "    style = next(iter(style_loader))" + MARK),
        ("style = first = next(iter(style_loader))" + MARK,),
        ("size = len(next(iter(style_loader))[0])" + MARK,),
    ],
)
def test_at_each_batch(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("if step % 100 == 0:", "    print(next(iter(style_loader)))"),
        ("style = next(style_batches)",),
        ("try:", "    style = next(it)", "except StopIteration:", "    style = next(iter(style_loader))"),
        ("first = next(iter(model.parameters()))",),
        ("for one_loader in loaders:", "    a = next(iter(one_loader))"),
        ("own_loader = DataLoader(x)", "a = next(iter(own_loader))"),
        ("first = next(iter(x))",),
        ("first = next(iter(style_loader), None) if False else next(iter({}), None)",),
    ],
)
def test_rare_kept_or_no_loader(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


@pytest.mark.parametrize(
    "code",
    [
        f"""
        def batch(loader):
            return next(iter(loader)){MARK}
        for x in train_loader:
            model(batch(style_loader), x).sum().backward()
        """,
        f"""
        loader = DataLoader(data, num_workers=4)
        for step in range(steps):
            x, y = next(iter(loader)){MARK}
            loss = model(x, y)
            loss.backward()
            optimizer.step()
        """,
        f"""
        for epoch in range(epochs):
            size = len(next(iter(train_loader))[0]){MARK}
            for x in train_loader:
                model(x, size).backward()
        """,
        """
        images, labels = next(iter(train_loader))
        for epoch in range(epochs):
            sample = next(iter(test_loader))
            for x in train_loader:
                model(x).backward()
        """,
    ],
)
def test_how_often(code: str) -> None:
    check_snippet(HEAD + textwrap.dedent(code), RULE)
