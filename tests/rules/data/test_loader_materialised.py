"""TL120: lists of all the batches of a loader that are only counted or gone over."""

from __future__ import annotations

import textwrap

import pytest
from laws import active, check_snippet, lint

RULE = "loader-materialised"
MARK = f"  # <- {RULE}"


def function(*lines: str) -> str:
    body = textwrap.indent("\n".join(lines), "    ")
    return (
        "import random\nfrom torch.utils.data import DataLoader\n"
        "def evaluate(self, model, data, test_loader, train_dl, loaders, names):\n"
        f"    own = DataLoader(data)\n{body}\n"
    )


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("n = len(list(own))", "n = len(own)"),
        ("n = len(list(test_loader))", "n = len(test_loader)"),
        ("n = losses / len(tuple(train_dl))", "n = losses / len(train_dl)"),
        ("n = len(list(self.test_loader))", "n = len(self.test_loader)"),
        ("x = list(test_loader)[0]", "x = next(iter(test_loader))"),
        ("x = list(DataLoader(data))[0]", "x = next(iter(DataLoader(data)))"),
    ],
)
def test_counted_or_asked_for_the_first(line: str, fixed: str) -> None:
    check_snippet(function(line + MARK), RULE, fixed=function(fixed))


@pytest.mark.parametrize(
    ("loop", "fixed"),
    [
        ("for x in list(own):", "for x in own:"),
        ("for i, x in enumerate(list(test_loader)):", "for i, x in enumerate(test_loader):"),
    ],
)
def test_gone_over(loop: str, fixed: str) -> None:
    check_snippet(function(loop + MARK, "    model(x)"), RULE, fixed=function(fixed, "    model(x)"))


@pytest.mark.parametrize(
    "lines",
    [
        ("batches = list(own)", "n = len(batches)"),
        ("batches = iter(own)", "n = len(list(batches))"),
        ("n = len(list(loaders))",),
        ("for name in list(loaders):", "    print(name)"),
        ("n = len(list(names))",),
        ("x = random.choice(list(own))",),
        ("x = list(own)[3]",),
        ("all_loaders = {'a': own}", "n = len(list(all_loaders))"),
        ("list = print", "n = len(list(own))"),
        ("n = len(list(enumerate(own)))",),
    ],
)
def test_kept_or_something_else(lines: tuple[str, ...]) -> None:
    check_snippet(function(*lines), RULE)


@pytest.mark.parametrize(
    ("loader", "advice"),
    [
        ("own", "use `len(own)`"),
        ("train_dl", "count them in the loop, or use `len(train_dl)` where its dataset has a length"),
    ],
)
def test_a_loader_out_of_sight_may_have_no_length(loader: str, advice: str) -> None:
    (found,) = lint(function(f"return 1 / len(list({loader}))"), active(RULE)).findings
    assert found.help == advice
