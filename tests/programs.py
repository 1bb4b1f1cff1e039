"""Makes programs of the shape of PyTorch training code, by a seed: valid Python, and as twisted as Python allows.

They are for what must hold of every program. Names come from a small pool, so that functions call each other in
circles, names are bound again by anything that binds, and a thing may be made of itself. Nothing in them runs.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEAD = """\
import contextlib
import functools
import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
"""
_VALUES = (
    *("x", "y", "z", "out", "loss", "total", "mask", "inputs", "targets", "batch", "state", "items", "result", "n"),
    *("model", "loader", "optimizer", "criterion", "device", "writer", "net", "losses", "value", "scores"),
)
_FUNCTIONS = ("build", "step", "train", "evaluate", "measure", "helper", "visit", "collate_fn", "main")
_CLASSES = ("Net", "Block", "Loss", "Meter", "Data", "Trainer")
_METHODS = ("forward", "training_step", "validation_step", "update", "reset", "value", "parts", "__getitem__", "fit")
_ATTRIBUTES = ("weight", "hidden", "net", "head", "state", "last", "items", "loss", "device", "total", "shape", "grad")
_BASES = ("nn.Module", "nn.Module", "Dataset", "torch.optim.Optimizer", "nn.DataParallel", "object", "nn.Sequential")
_TENSOR_METHODS = (
    *("sum()", "mean()", "item()", "tolist()", "cpu()", "cuda()", "detach()", "max()", "any()", "all()", "argmax(1)"),
    *("numpy()", "float()", "size(0)", "t()", "to(device)", "backward()", "step()", "softmax(-1)", "unsqueeze(0)"),
    *("cpu().numpy()", "view(-1)", "long()", "append(x)", "items()", "parameters()", "eval()", "zero_grad()", "keys()"),
)
_MADE = (
    *(
        "torch.zeros(4, 4)",
        "torch.randn(n, 3)",
        "torch.arange(n, total).to(device)",
        "torch.tensor([1.0, 2.0])",
        "torch.eye(3).cuda()",
    ),
    *("torch.zeros(n, 3).to(device)", "torch.ones(n, device='cuda')", "torch.zeros_like(x)", "x.new_zeros(3)"),
    *("torch.from_numpy(np.zeros(3))", "torch.empty(3, device=device)", "torch.FloatTensor(3).to(x.device)"),
    *("nn.Linear(3, 3)", "nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())", "nn.Parameter(x)"),
    *("optim.SGD(model.parameters(), lr=0.1)", "DataLoader(items, batch_size=4, shuffle=True)", "nn.DataParallel(net)"),
    *("torch.device('cuda')", "nn.CrossEntropyLoss()", "nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])"),
    *("torch.cat([x, y])", "torch.stack([x[i] for i in range(n)])", "F.relu(x)", "torch.optim.Adam(net.parameters())"),
    *("[]", "{}", "0", "0.0", "None", "True", "'text'", "set()", "np.zeros(3)", "math.inf", "[None] * n", "(x, y)"),
)
_LOADERS = (
    *("loader", "enumerate(loader)", "tqdm(loader)", "enumerate(tqdm(loader), 1)", "zip(loader, items)"),
    *("itertools.islice(loader, 3)", "range(len(loader))", "iter(loader)", "self.loader", "DataLoader(items)"),
)
_RANGES = ("range(n)", "range(len(x))", "range(x.size(0))", "range(10)", "x", "items", "losses", "zip(x, y)", "x.T")
_LENGTHS = ("range(n)", "range(total)", "range(n // batch)", "range(len(items) - 1)", "torch.arange(n, total)")
_CONTEXTS = (
    *("torch.no_grad()", "torch.enable_grad()", "torch.inference_mode()", "contextlib.nullcontext()", "open('name')"),
    *("torch.autocast('cuda')", "torch.set_grad_enabled(False)", "torch.device('cuda')", "helper(x)", "x", "state"),
)
_TESTS = (
    *("x > 0", "step % 100 == 0", "not x", "torch.isnan(loss)", "x.any()", "mask.sum() > n", "loss.item() > total"),
    *("isinstance(x, torch.Tensor)", "x is None", "y is not None and y.max() > 1", "model.training", "i == 0", "out"),
    *("torch.cuda.is_available()", "torch.isfinite(loss).all()", "any(x)", "len(items) > n", "(k := n + 1) > 2"),
)
# What code for training does at each step; all rules find something among these.
_STEPS = (
    *("total += loss.item()", "losses.append(loss.item())", "total += float(loss)", "writer.add_scalar('a', loss, n)"),
    *(
        "print(loss)",
        "print(f'loss {loss:.3f}')",
        "print(loss.item(), loss.item())",
        "losses.append(out.cpu().numpy())",
    ),
    *("total = sum(out)", "total = max(out)", "result = [v.item() for v in out.view(-1)]", "items += out.tolist()"),
    *("mask = torch.zeros(len(x), 3).to(x.device)", "state = torch.arange(3).unsqueeze(0).to(out.device)"),
    *("y = out[: mask.max()]", "state = torch.arange(mask.max(), device=x.device)", "y = int(mask.sum())"),
    *("result = torch.stack([out[i] for i in targets])", "result = torch.cat([out[i : i + 1] for i in mask])"),
    *("assert torch.isfinite(out).all()", "correct = (out.argmax(1) == targets).sum().item()"),
    "if torch.isnan(loss):\n    raise ValueError(loss)",
    "if mask.any():\n    out = out * 2",
    "for i in range(out.size(0)):\n    out[i] = out[i] * 2",
    "for row, target in zip(out, targets):\n    total += (row - target).abs().sum().item()",
    "print(loss.item())  # torchlint: ignore[item-in-train-loop]",
    "y = x.sum()  # torchlint: ignore[repeated-item]",
)


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a sample is no secret
        self.rows: list[str] = []
        self.depth = 0
        self.loops = 0
        self.in_function = False
        self.is_async = False
        self.in_class = False
        self.fixed: frozenset[str] = frozenset()  # names declared global or nonlocal here
        self.outer: tuple[str, ...] = ()  # the parameters of the function around

    # Words

    def one(self, words: Sequence[str]) -> str:
        return self.random.choice(words)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self) -> str:
        return self.one(_VALUES)

    def row(self, text: str) -> None:
        self.rows += textwrap.indent(text, "    " * self.depth).split("\n")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.row(head)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def loop(self, head: str) -> Iterator[None]:
        self.loops += 1
        with self.block(head):
            yield
        self.loops -= 1

    # Expressions

    def expression(self, deep: int = 3) -> str:
        if deep == 0 or self.chance(0.25):
            return self.one([self.name(), self.name(), self.one(_MADE)])
        return self.random.choice(self._EXPRESSIONS)(self, deep - 1)

    def call(self, deep: int) -> str:
        called = self.one([*_FUNCTIONS, *_CLASSES, self.name(), f"self.{self.one(_METHODS)}", f"{self.name()}.forward"])
        return f"{called}({self.arguments(deep)})"

    def arguments(self, deep: int) -> str:
        given = [self.expression(deep) for _ in range(self.random.randrange(3))]
        given += [f"*{self.name()}"] * self.chance(0.1) + [f"{self.name()}={self.expression(deep)}"] * self.chance(0.2)
        return ", ".join(given + [f"**{self.name()}"] * self.chance(0.1))

    def method(self, deep: int) -> str:
        return (
            f"{self.one([self.name(), f'({self.expression(deep)})', self.attribute(deep)])}.{self.one(_TENSOR_METHODS)}"
        )

    def attribute(self, _: int) -> str:
        return f"{self.one(['self', 'self', self.name(), self.one(_CLASSES)])}.{self.one(_ATTRIBUTES)}"

    def subscript(self, deep: int) -> str:
        index = self.one(["0", "-1", "i", "'key'", ":, 0", "..., None", ":n", self.expression(deep)])
        return f"{self.one([self.name(), self.attribute(deep)])}[{index}]"

    def operation(self, deep: int) -> str:
        operator = self.one(["+", "-", "*", "@", "/", "%", "//", "<", "==", "and", "or", "in", "&"])
        return f"({self.name()} {operator} {self.expression(deep)})"

    def branch(self, deep: int) -> str:
        return f"({self.expression(deep)} if {self.test()} else {self.expression(deep)})"

    def function(self, deep: int) -> str:
        names = ", ".join(self.random.sample(_VALUES, self.random.randrange(3)))
        return f"(lambda {names}: {self.expression(deep)})"

    def comprehension(self, deep: int) -> str:
        target = self.one(["i", "x", "y", "row, (a, *b)", "value"])
        turns = f"for {target} in {self.iterated()}"
        turns += f" for j in {self.name()}" * self.chance(0.2)
        walrus = "(seen := x.sum())" if self.in_function else "x"
        turns += self.one(["", "", f" if {walrus}", f" if {self.name()}.any()"])
        value = self.expression(deep)
        return self.one(
            [f"[{value} {turns}]", f"{{{value} {turns}}}", f"list({value} {turns})", f"{{i: {value} {turns}}}"]
        )

    def collection(self, deep: int) -> str:
        parts = [self.one([self.expression(deep), f"*{self.name()}"]) for _ in range(self.random.randrange(1, 4))]
        inner = ", ".join(parts)
        return self.one([f"[{inner}]", f"({inner},)", f"{{'key': {self.expression(deep)}, **{self.name()}}}"])

    def text(self, _: int) -> str:
        return self.one(["f'{loss:.3f} {x}'", "'%s %.2f' % (n, loss)", "'{}'.format(x.item())", "f'{x!r:>{n}}'"])

    def walrus(self, deep: int) -> str:
        return f"({self.free_name()} := {self.expression(deep)})"

    def call_of_many(self, deep: int) -> str:
        function = self.one(["sum", "max", "min", "any", "list", "len", "map", "zip", "print", "float", "int", "bool"])
        first = f"{self.one(['float', 'helper'])}, " if function == "map" else ""
        return f"{function}({first}{self.expression(deep)})"

    _EXPRESSIONS: tuple[Callable[[Writer, int], str], ...] = (
        *(call, call, method, method, attribute, subscript, operation, operation, branch, function, comprehension),
        *(collection, text, call_of_many),
    )

    def iterated(self) -> str:
        return self.one(
            [self.one(_LOADERS), self.one(_RANGES), self.one(_LENGTHS), self.name(), self.one(_FUNCTIONS) + "(x)"]
        )

    def test(self) -> str:
        tests = _TESTS if self.in_function else _TESTS[:-1]  # no walrus where a comprehension in a class may hold it
        return self.one([self.one(tests), f"{self.name()} == {self.name()}"])

    def free_name(self) -> str:
        """A name that no declaration of this function mentions: those can't be annotated or walrused everywhere."""
        return self.one([name for name in _VALUES if name not in self.fixed])

    def target(self) -> str:
        return self.one(
            [
                *(self.name() for _ in range(6)),
                f"{self.name()}, {self.name()}",
                f"{self.name()}, *{self.name()}",
                f"[{self.name()}, ({self.name()}, {self.name()})]",
                f"self.{self.one(_ATTRIBUTES)}",
                f"{self.name()}[{self.name()}]",
                f"{self.name()}.{self.one(_ATTRIBUTES)}",
            ]
        )

    # Statements

    def statements(self, count: int, deep: int) -> None:
        for _ in range(self.random.randint(1, count)):
            self.statement(deep)

    def statement(self, deep: int) -> None:
        if deep == 0 or self.chance(0.55):
            self.small()
        else:
            self.random.choice(self._COMPOUND)(self, deep - 1)

    def small(self) -> None:
        choices: list[Callable[[], str]] = [
            *[lambda: f"{self.target()} = {self.expression()}"] * 6,
            *[lambda: self.one(_STEPS)] * 4,
            self.expression,
            lambda: f"{self.name()} = {self.name()} = {self.expression()}",
            lambda: f"{self.name()} += {self.expression()}",
            lambda: f"{self.name()}.append({self.one(_VALUES)})",
            lambda: f"{self.free_name()}: {self.one(['torch.Tensor', 'list[torch.Tensor]', 'Net', 'int'])} = x",
            self._cycle,
            self._cycle,
            lambda: f"del {self.free_name()}",
            lambda: f"assert {self.test()}, {self.name()}",
            lambda: f"print({self.walrus(2)})" if not self.in_class else "pass",
            lambda: "loss.backward()\noptimizer.step()",
            lambda: "model.eval()",
            lambda: "from torch import nn as net" if self.chance(0.2) else "pass",
        ]
        if self.in_function:
            choices += [lambda: f"return {self.expression()}", lambda: "raise ValueError(x)"]
            if self.is_async:
                choices += [lambda: f"{self.name()} = await {self.call(2)}"] * 3
            else:
                choices += [
                    lambda: f"yield {self.expression(1)}",
                    lambda: f"{self.name()} = yield",
                    lambda: "yield from x",
                ]
        if self.loops:
            choices += [lambda: "break", lambda: "continue"]
        self.row(self.random.choice(choices)())

    def _cycle(self) -> str:
        """Names and containers that are made of each other."""
        first, second = self.random.sample(_VALUES, 2)
        attribute = self.one(_ATTRIBUTES)
        return self.one(
            [
                f"{first} = {second}\n{second} = {first}",
                f"{first}.append({first})",
                f"{first} = [{first}, {second}]",
                f"{first}, {second} = {second}, {first}",
                f"{first} = {first}.{attribute}",
                f"self.{attribute} = self.{attribute}",
                f"{first} = {second}({first})",
                f"{first} = lambda: {first}()",
                f"{first} = {first}[{first}]",
                f"{first} = {first}.view(-1)",
                f"{first} = {first} + 1",
                f"{first} = {second} if {self.test()} else {first}",
                f"{first} = torch.no_grad() if {self.test()} else {first}",
            ]
        )

    def if_(self, deep: int) -> None:
        with self.block(f"if {self.test()}:"):
            self.statements(3, deep)
        if self.chance(0.3):
            with self.block(f"elif {self.test()}:"):
                self.statements(2, deep)
        if self.chance(0.4):
            with self.block("else:"):
                self.statements(2, deep)

    def for_(self, deep: int) -> None:
        target = self.one(
            ["i", "x", "inputs, targets", "step, (inputs, targets)", "_", "epoch", "*items, y", self.name()]
        )
        head = f"{'async ' * (self.is_async and self.chance(0.3))}for {target} in {self.iterated()}:"
        with self.loop(head):
            self.statements(4, deep)
        self._else()

    def while_(self, deep: int) -> None:
        with self.loop(f"while {self.test()}:"):
            self.statements(3, deep)
        self._else()

    def _else(self) -> None:
        if self.chance(0.15):
            with self.block("else:"):
                self.row("total = total + 1")

    def training(self, deep: int) -> None:
        """A loop over batches as it is usually written, and what is done at each step."""
        with self.loop(
            f"for {self.one(['inputs, targets in loader', 'step, (inputs, targets) in enumerate(loader)'])}:"
        ):
            self.row("out = model(inputs)")
            self.row(
                f"loss = {self.one(['criterion(out, targets)', 'F.cross_entropy(out, targets)', 'helper(out, targets)'])}"
            )
            if self.chance(0.6):
                self.row("optimizer.zero_grad()\nloss.backward()\noptimizer.step()")
            for _ in range(self.random.randint(1, 3)):
                self.row(self.one(_STEPS))
            self.statement(deep)

    def with_(self, deep: int) -> None:
        items = f"{self.one(_CONTEXTS)}{f' as {self.name()}' * self.chance(0.3)}"
        items += f", {self.one(_CONTEXTS)}" * self.chance(0.2)
        with self.block(f"with {items}:"):
            self.statements(3, deep)

    def try_(self, deep: int) -> None:
        with self.block("try:"):
            self.statements(2, deep)
        handled = self.chance(0.7)
        if handled:
            with self.block(f"except {self.one(['ValueError', '(KeyError, IndexError)', 'Exception as error'])}:"):
                self.statements(2, deep)
            if self.chance(0.2):
                with self.block("else:"):
                    self.small()
        if not handled or self.chance(0.3):
            with self.block("finally:"):  # a jump out of it is a warning from Python 3.14 on
                self.row(f"{self.name()} = {self.expression(2)}")

    def match_(self, deep: int) -> None:
        with self.block(f"match {self.expression(1)}:"):
            for pattern in self.random.sample(_PATTERNS, self.random.randint(1, 3)):
                guard = self.one(["", f" if {self.name()} is None"])
                with self.block(f"case {pattern}{guard}:"):
                    self.statements(2, deep)
            if self.chance(0.4):
                with self.block("case _:"):
                    self.small()

    def def_(self, deep: int, name: str | None = None, first: str = "") -> None:
        is_async = self.chance(0.04)
        names = self.random.sample(_VALUES, self.random.randrange(5))
        for decorator in self._decorators(is_method=bool(first)):
            self.row(f"@{decorator}")
        result = self.one(["", "", "", " -> torch.Tensor", " -> 'Net'", " -> list[torch.Tensor]"])
        parameters = self.parameters(names, first)
        with (
            self._inside(is_async=is_async),
            self.block(f"{'async ' * is_async}def {name or self.one(_FUNCTIONS)}({parameters}){result}:"),
        ):
            self._declare(names)
            self.outer = tuple(names)
            self.statements(6, deep)
            if self.chance(0.6) and not is_async:
                self.row(f"return {self.expression()}")

    @contextmanager
    def _inside(self, *, is_async: bool) -> Iterator[None]:
        kept = self.in_function, self.is_async, self.loops, self.fixed, self.outer, self.in_class
        self.in_function, self.is_async, self.loops, self.fixed, self.in_class = True, is_async, 0, frozenset(), False
        yield
        self.in_function, self.is_async, self.loops, self.fixed, self.outer, self.in_class = kept

    def _declare(self, names: list[str]) -> None:
        """`nonlocal` of what the function around is given, or `global`."""
        outer = [name for name in self.outer if name not in names]
        if outer and self.chance(0.5):
            self.fixed = frozenset({self.one(outer)})
            self.row(f"nonlocal {', '.join(self.fixed)}")
        elif self.chance(0.1):
            self.fixed = frozenset({self.one([name for name in _VALUES if name not in names])})
            self.row(f"global {', '.join(self.fixed)}")

    def parameters(self, names: list[str], first: str) -> str:
        notes = ["", "", "", ": torch.Tensor", ": nn.Module", ": DataLoader", ": int"]
        given = [name + self.one(notes) for name in names]
        plain = given[: len(given) // 2]
        defaults = [f"{name} = {self.one(['None', '0', 'x', 'torch.zeros(3)'])}" for name in given[len(given) // 2 :]]
        parts = [first] * bool(first) + plain
        if parts and self.chance(0.1):
            parts.append("/")
        if defaults and self.chance(0.3):
            parts += [self.one(["*", "*rest"]), *defaults]
        else:
            parts += defaults + ["*rest"] * self.chance(0.1)
        return ", ".join(parts + ["**options"] * self.chance(0.1))

    def _decorators(self, *, is_method: bool) -> Iterator[str]:
        words = ["torch.no_grad()", "torch.inference_mode()", "functools.wraps(helper)", "helper", "build(x)", "x.y"]
        words += ["contextlib.contextmanager", "functools.lru_cache(maxsize=None)", "lambda f: f"]
        words += ["property", "torch.jit.export"] if is_method else []
        while self.chance(0.12):
            yield self.one(words)

    def class_(self, deep: int) -> None:
        bases = self.random.sample([*_BASES, *_CLASSES], self.random.randrange(3))
        bases = list(dict.fromkeys(bases)) + ["metaclass=type"] * self.chance(0.05)
        kept = self.in_function, self.is_async, self.loops, self.fixed, self.outer, self.in_class
        self.in_function, self.is_async, self.loops, self.fixed, self.in_class = False, False, 0, frozenset(), True
        with self.block(f"class {self.one(_CLASSES)}({', '.join(bases)}):"):
            if self.chance(0.3):
                self.row(f"{self.one(_ATTRIBUTES)} = {self.one(_MADE)}")
            if self.chance(0.7):
                self.outer = ()
                with self._inside(is_async=False), self.block(f"def __init__(self, {self.name()}, *rest):"):
                    self.row("super().__init__()")
                    for _ in range(self.random.randint(1, 3)):
                        self.row(f"self.{self.one(_ATTRIBUTES)} = {self.expression()}")
            for name in self.random.sample(_METHODS, self.random.randint(1, 3)):
                self.outer = ()
                self.def_(deep, name, first="self")
            if deep and self.chance(0.15):
                self.class_(deep - 1)
        self.in_function, self.is_async, self.loops, self.fixed, self.outer, self.in_class = kept

    _COMPOUND: tuple[Callable[[Writer, int], None], ...] = (
        *(if_, if_, for_, for_, training, training, while_, with_, try_, match_, def_, class_),
    )

    def program(self, deep: int) -> str:
        self.rows = _HEAD.split("\n")
        for _ in range(self.random.randint(2, 5)):
            self.random.choice((self.def_, self.def_, self.class_, self.statement))(deep)
            self.row("")
        if self.chance(0.3):
            with self.block('if __name__ == "__main__":'):
                self.row("main()")
        return "\n".join(row.rstrip() for row in self.rows) + "\n"


_PATTERNS = (
    "[a, *rest]",
    "{'key': value, **rest}",
    "torch.Tensor(shape=[n, *_])",
    "0 | 1",
    "None",
    "Net() as net",
    "(x, y) | [x, _, y]",
    "'text'",
    "[Net(head=head), _]",
)


def program(seed: int, deep: int = 2) -> str:
    """The program of a seed, in which blocks nest so deep and a little more."""
    return Writer(seed).program(deep)
