"""What holds of every program: it is read to the end, in bounded time, twice alike, and its fixes hold."""

from __future__ import annotations

import ast
import random
import sys
import textwrap
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING

import laws
import libcst as cst
import pytest
from programs import program
from test_order_of_questions import questions

from torchlint import engine, registry
from torchlint.semantics.context import Context
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.parsing import parse
from torchlint.syntax.tree import Tree

if TYPE_CHECKING:
    from torchlint.finding import Result
    from torchlint.rule import Rule

RULES = registry.all_rules()
# The programs are made of what these rules look at, which were there when they were written.
FIRST = {rule.name for rule in RULES if rule.since == "0.1.0"}
SETTINGS = laws.active(*(rule.name for rule in RULES))
SEEDS = range(12)
EACH_SEED = pytest.mark.parametrize("seed", SEEDS)
# Calls of Python functions for each node of a program; in most it is about 100.
MOST_CALLS = 1_000


class TooMuchWork(BaseException):
    """No `Exception`, which the engine takes for a rule's crash."""


def examine(text: str, rules: Iterable[Rule] = RULES) -> Result:
    return engine.examine(SourceFile("program.py", text), tuple(rules), SETTINGS)


def work(text: str, most: int) -> tuple[Result, int]:
    """What is found, and how many functions are called for it."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"
        if calls > most:
            raise TooMuchWork

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return examine(text), calls
    finally:
        sys.setprofile(before)


def size(text: str) -> int:
    return len(Tree(parse(text)).nodes)


# The programs themselves


@EACH_SEED
def test_programs_are_valid(seed: int) -> None:
    text = program(seed)
    compile(text, f"program {seed}", "exec", dont_inherit=True)
    assert cst.parse_module(text).code == text
    assert program(seed) == text


def test_programs_differ_and_are_worth_looking_at() -> None:
    texts = [program(seed) for seed in SEEDS]
    assert len(set(texts)) == len(texts)
    rules = {finding.rule for text in texts for finding in examine(text).findings}
    assert len(rules & FIRST) > len(FIRST) / 2
    assert len(rules) > 10
    types = {type(node) for text in texts for node in ast.walk(ast.parse(text))}
    twisted = {ast.Lambda, ast.Yield, ast.Match, ast.Try, ast.NamedExpr, ast.Nonlocal, ast.Await, ast.Starred, ast.Del}
    assert twisted <= types


# What holds of each


@EACH_SEED
def test_every_program_is_read_to_the_end(seed: int) -> None:
    text = program(seed)
    result, _ = work(text, most=MOST_CALLS * size(text))
    assert result.diagnostics == ()


@EACH_SEED
def test_the_same_is_found_whatever_is_asked_first(seed: int) -> None:
    text = program(seed)
    whole = examine(text)
    assert examine(text) == whole
    order = list(RULES)
    random.Random(seed).shuffle(order)  # noqa: S311 - any order
    assert examine(text, order).findings == examine(text, order[::-1]).findings == whole.findings
    alone = [finding for rule in order for finding in examine(text, [rule]).findings]
    assert {*map(repr, whole.findings)} <= {*map(repr, alone)}, "a rule that others yield to is heard alone too"


@pytest.mark.parametrize("seed", range(5))
def test_fixes_come_to_rest(seed: int) -> None:
    laws.fixes_come_to_rest(program(seed), SETTINGS)


def test_the_laws_hold() -> None:
    seed = min(SEEDS, key=lambda seed: len(program(seed)))
    laws.obey_laws(program(seed), SETTINGS)


def test_fixes_in_a_match() -> None:
    laws.check_snippet(
        """
        import torch

        def train(model, loader, optimizer, kind):
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                match kind:
                    case "loss":
                        print(loss.item())
                        print(loss.item())  # <- repeated-item
        """,
        "repeated-item",
        fixed="""
        import torch

        def train(model, loader, optimizer, kind):
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                match kind:
                    case "loss":
                        loss_value = loss.item()
                        print(loss_value)
                        print(loss_value)
        """,
    )


# Things made of themselves

CIRCLES = {
    "lengths": """
        def train(loader):
            while True:
                n = m
                m = n
                for step in range(n):
                    loss.backward()
                    print(loss.item())
    """,
    "context managers": """
        def evaluate(model, loader, fast):
            model.eval()
            for x in loader:
                mode = torch.no_grad() if fast else mode
                with mode:
                    print(model(x).sum().item())
    """,
    "inputs": """
        def validate(model, x):
            for _ in range(3):
                x = x.repeat(2)
            print(model(x).sum().item())

        def main():
            validate(nn.Linear(3, 3), torch.randn(3))
    """,
    "whole numbers": """
        class Net(nn.Module):
            def forward(self, x):
                global start
                steps = torch.arange(start, 10).to(x.device)
                start = start + 1
                return x + steps
    """,
    "containers": """
        def f(loader, items, x):
            items.append(items)
            items = [items, *items]
            for x in loader:
                x = [x, x]
                items = {"items": items, **x}
                print(items, sum(x), [i.item() for i in items])
    """,
    "classes": """
        class A(B):
            pass

        class B(A, nn.Module):
            def forward(self, x):
                self.inner = B()
                self.value = self.value + self.inner(x)
                return super().forward(self.value.item())
    """,
    "functions": """
        even = lambda x: odd(x - 1)
        odd = lambda x: even(x - 1)

        def wrap(wrap=lambda: wrap()):
            return wrap(wrap)

        @wrap
        def walk(x: torch.Tensor):
            x = walk(x.sum()) + even(x)
            print(x.item())
            return (yield from walk(walk))
    """,
    "names": """
        torch = nn = torch
        Tensor = Module = Tensor

        class Net(Module):
            def forward(self, x: Tensor) -> Tensor:
                return nn.zeros(3).to(x.device)
    """,
}


@pytest.mark.parametrize("name", CIRCLES)
def test_circles(name: str) -> None:
    laws.obey_laws("import torch\nfrom torch import nn\n" + textwrap.dedent(CIRCLES[name]), SETTINGS)


# The growth of the work


def everyone_calls_everyone(count: int) -> str:
    called = " + ".join(f"f{number}(x)" for number in range(count))
    return "".join(
        f"def f{number}(x):\n    for y in loader:\n        print(x.item())\n    return {called}\n"
        for number in range(count)
    )


def methods_in_circles(count: int) -> str:
    rows = (
        f"    def m{n}(self, x):\n        self.a{n} = self.m{(7 * n + 3) % count}(self.a{(5 * n + 1) % count})\n"
        f"        return self.m{(3 * n + 2) % count}(x).item() if self.a{n} > 0 else self.a{(n + 1) % count}\n"
        for n in range(count)
    )
    return "class A(nn.Module):\n" + "".join(rows)


def classes_in_circles(count: int) -> str:
    return "".join(
        f"class C{n}(C{(n + 1) % count}, nn.Module):\n    def forward(self, x):\n"
        f"        self.a = C{(n + 1) % count}()\n        return super().forward(self.a(x).item())\n"
        for n in range(count)
    )


def two_calls_each(count: int) -> str:
    rows = (f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x.sum())\n" for n in range(count))
    return "".join(rows) + f"def f{count}(x):\n    for y in loader:\n        print(x.item())\n    return x\n"


def pairs_of_pairs(count: int) -> str:
    return "def f(x: torch.Tensor):\n" + "    x = [x, x]\n" * count + "    return [i.item() for i in x]\n"


def bound_again_in_a_loop(count: int) -> str:
    turn = "        if x.any():\n            x = y + x.item()\n            y = x * z\n"
    return "def f(loader, x, y):\n    for z in loader:\n" + turn * count


def branches(count: int) -> str:
    rows = "    if x > 1:\n        x = x + y\n    else:\n        y = x.view(1)\n"
    return "def f(x, y):\n" + rows * count + "    for z in loader:\n        print(x.item(), y.item())\n"


@pytest.mark.parametrize(
    "made",
    [
        *(everyone_calls_everyone, methods_in_circles, classes_in_circles, two_calls_each, pairs_of_pairs),
        *(bound_again_in_a_loop, branches),
    ],
)
def test_the_work_grows_with_the_program(made: Callable[[int], str]) -> None:
    """Twice as much of it: for each node at most four times the work, where ways that multiply would need 256 times."""
    once, twice = (f"import torch\nfrom torch import nn\n{made(count)}" for count in (8, 16))
    _, few = work(once, most=MOST_CALLS * size(once))
    result, _ = work(twice, most=4 * few * size(twice) // size(once))
    assert result.diagnostics == ()


# What the model knows of each node

CYCLES = {
    "a branch": "total = 's'\nfor x in y:\n    pass\nelse:\n    total = total + 1\n",
    "a sequence": "match x:\n    case None if y:\n        items = [items]\n",
    "a chain": "import torch\ndef f():\n    x = torch.zeros(3)\n" + "    x = x * 2\n" * 40,
}


@pytest.mark.parametrize("text", CYCLES.values(), ids=CYCLES)
def test_the_order_of_questions(text: str) -> None:
    order_does_not_matter(text)


def test_the_order_of_questions_to_programs() -> None:
    for text in map(program, range(8)):
        order_does_not_matter(text)


def order_does_not_matter(text: str) -> None:
    module = parse(text)

    def answers(order: Callable[[list[int]], None]) -> dict[int, object]:
        asked = questions(Context(Tree(module), SourceFile("program.py", text), Settings(())))
        places = list(range(len(asked)))
        order(places)
        with engine.deep_recursion():  # as in a run
            return {place: asked[place]() for place in places}

    first = answers(lambda _: None)
    assert answers(list.reverse) == first
    assert answers(random.Random(7).shuffle) == first  # noqa: S311 - any order
