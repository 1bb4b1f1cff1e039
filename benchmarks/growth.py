"""How what a check costs grows with the size of a file: `python -m benchmarks.growth`.

Programs of one shape (stores, calls, operands, loops, comments, files, ...) are made at three sizes, each double the
one before, and checked with all rules in a process of its own. Printed are the CPU seconds of the check without the
start, those of a bare LibCST parse, and the exponent that both grow with from the second size to the third. The exit
status is 1 where a check grows faster than the parse by more than the exponent 0.15, or takes longer than its limit.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

ALLOWED = 0.15  # over the parse's own exponent
LIMIT = 30  # CPU seconds of one run
NOISE = 0.5  # CPU seconds, below which no exponent says anything

HEAD = """import torch
import torch.nn as nn
from torch.utils.data import DataLoader

x = torch.randn(8, device='cuda')
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of program, and the largest size it is tried at; `make` gives its text, or its files by their names."""

    name: str
    size: int
    make: Callable[[int], str | dict[str, str]]
    command: str = "check"

    def files(self, size: int) -> dict[str, str]:
        """The program's files of one size."""
        made = self.make(size)
        return {"program.py": made} if isinstance(made, str) else made


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds at the three sizes; None where the limit was reached, or an error ended the run."""

    seconds: tuple[float | None, ...]

    @property
    def exponent(self) -> float | None:
        """How the cost grows from the second size to the third; None where it is too short to say."""
        before, after = self.seconds[-2:]
        if before is None or after is None:
            return math.inf
        return math.log2(after / before) if after > NOISE and before > 0 else None


# What asks about all that stands above: `{last}` is the last name that the program bound.
TAIL = """
model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader([], batch_size=4):
    batch = batch.cuda()
    loss = (model(batch) + {last}).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), {last}.cpu(), {last}.to(batch.device))
    if {last} > 0:
        z = torch.tensor({last}, device="cuda")
        z = torch.stack([z[k] for k in range(8)])
"""


def _tail(last: str, indent: str = "") -> str:
    return "".join(f"{indent}{line}\n" for line in TAIL.replace("{last}", last).strip().splitlines())


def lines(form: str, last: str = "y{n}") -> Callable[[int], str]:
    """A program of one line over and over; `{i}` is its number and `{j}` the one before, `{n}` the number of lines."""
    return lambda n: HEAD + "".join(form.format(i=i, j=i - 1) + "\n" for i in range(1, n + 1)) + _tail(last.format(n=n))


def in_function(form: str, begin: str = "", last: str = "v{n}") -> Callable[[int], str]:
    """A function with one line over and over."""
    indent = "    "

    def make(n: int) -> str:
        body = [begin] * bool(begin) + [form.format(i=i, j=i - 1) for i in range(1, n + 1)]
        text = "".join(f"{indent}{line}\n" for line in body) + _tail(last.format(n=n), indent)
        return f"{HEAD}\ndef run(self, q, v0, loader):\n{text}"

    return make


def in_loop(form: str, begin: str = "v0 = x") -> Callable[[int], str]:
    """A training loop with one line over and over."""

    def make(n: int) -> str:
        body = "".join(f"    {form.format(i=i, j=i - 1)}\n" for i in range(1, n + 1))
        setting = "model = nn.Linear(8, 8).cuda()\nloader = DataLoader([], batch_size=4)\ntotal = 0.0\nd = {}\n"
        turn = "for batch in loader:\n    loss = model(batch.cuda()).sum()\n"
        return f"{HEAD}{setting}{begin}\n{turn}{body}    loss.backward()\n"

    return make


def joined(between: str, item: str, begin: str = "y = ", end: str = "\n") -> Callable[[int], str]:
    """A program of one expression with many operands."""
    return lambda n: HEAD + begin + between.join(item.format(i=i) for i in range(n)) + end + _tail("y")


def blocks(form: str, last: str = "x") -> Callable[[int], str]:
    """A program of one block over and over; `{i}` is its number and `{j}` the one before."""

    def make(n: int) -> str:
        head = HEAD + "def f0(x):\n    return x\ndef r0(x, a):\n    return x\nclass C0(nn.Module):\n    pass\n"
        text = "".join(form.replace("{i}", str(i)).replace("{j}", str(i - 1)) for i in range(1, n + 1))
        return head + text + _tail(last.format(n=n))

    return make


def files(form: str) -> Callable[[int], dict[str, str]]:
    """A project of many files."""

    def make(n: int) -> dict[str, str]:
        made = {f"m{i}.py": form.replace("{i}", str(i)).replace("{j}", str(i - 1)) for i in range(1, n)}
        return {"m0.py": "import torch\n\ndef f0(x):\n    return x.cuda()\n", "torchlint.toml": "", **made}

    return make


CLASS = """class C{i}(C{j}):
    def forward(self, x):
        return super().forward(x) + {i}
"""
MODULE = """class M{i}(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
    def forward(self, x):
        return self.norm(self.conv(x))
"""
CHAIN = "def f{i}(x):\n    return f{j}(x)\n"
LOOP = "for batch{i} in range({i}):\n    x = x + batch{i}\n"
WHILE = "while x.sum() > {i}:\n    x = x - 1\n"
BRANCH = "if x.sum() > {i}:\n    x = x - 1\nelse:\n    x = x.cpu()\n"
TRY = "try:\n    x = x - 1\nexcept ValueError:\n    x = x.cpu()\n"
LOADER = "loader{i} = DataLoader([], batch_size=4)\nfor batch in loader{i}:\n    batch.cuda()\n"
IMPORTING = """import torch
from m{j} import f{j}

def f{i}(x):
    return f{j}(x.to('cuda'))
"""
USING = """import torch
from m0 import f0

def g{i}(loader):
    for batch in loader:
        f0(batch).sum().item()
"""
RETURNING = """def r{i}(x, a):
    if a:
        return r{j}(x, a)
    if x:
        return r{j}(a, x)
    return r{j}(x, x)
"""


def nested(n: int) -> str:
    """Blocks in each other."""
    heads = ("while x.sum() > 0:", "if x.any():", "for _ in range(3):", "with torch.no_grad():", "try:")
    text, ends = "", []
    for depth in range(n):
        head = heads[depth % len(heads)]
        text += "  " * depth + head + "\n"
        if head == "try:":
            ends.append("  " * depth + "finally:\n" + "  " * (depth + 1) + "x = x + 1\n")
    return HEAD + text + "  " * n + "x = x.cpu() + 1\n" + "".join(reversed(ends)) + _tail("x")


def clique(n: int) -> str:
    """Functions that each call all others."""
    calls = "".join(f"    x = f{i}(x)\n" for i in range(n))
    return HEAD + "".join(f"def f{i}(x):\n{calls}    return x.cuda()\n" for i in range(n)) + _tail("f0(x)")


SHAPES = (
    Shape("assignments to a name", 4000, lines("y = {i}", "y")),
    Shape("assignments to names", 4000, lines("y{i} = {i}")),
    Shape("aliases in a chain", 2000, in_function("v{i} = v{j}")),
    Shape("sums in a chain", 2000, in_function("v{i} = v{j} + v{j}")),
    Shape("sums in a chain of a list", 2000, in_function("v{i} = v{j} + v{j}", "v0 = [1, 2]")),
    Shape("sums in a chain in a loop", 1000, in_loop("v{i} = v{j} + v{j}")),
    Shape("augmented assignments", 2000, in_function("v0 += v0", "v0 = [1, 2]", "v0")),
    Shape("matrix products", 2000, in_function("v{i} = v{j} @ v{j}", "v0 = [1, 2]")),
    Shape("walrus", 2000, in_function("(v{i} := v{j} + v{j})", "v0 = [1, 2]")),
    Shape("tuples in a chain", 2000, in_function("v{i} = (v{j}, v{j})")),
    Shape("context managers", 1000, lines("with x.open(x) as y{i}: pass")),
    Shape("stores to attributes", 2000, in_function("self.a{i} = q.cuda()", last="self.a{n}")),
    Shape("stores to one attribute", 2000, in_function("self.a = q.cuda()", last="self.a")),
    Shape("stores to keys", 2000, in_function("d['k{i}'] = q.cuda()", "d = {}", "d['k{n}']")),
    Shape("stores to keys in a loop", 1000, in_loop("d['k{i}'] = loss.item()")),
    Shape("del and bind", 2000, in_function("del q; q = self.a", last="q")),
    Shape("calls of a method", 2000, in_function("self.zero_grad()", last="q")),
    Shape("reads in a loop", 1000, in_loop("v{i} = loss.item()")),
    Shape("reads into a sum", 1000, in_loop("total += loss.item()")),
    Shape("prints in a loop", 1000, in_loop("print(loss)")),
    Shape("while loops", 1000, blocks(WHILE)),
    Shape("for loops", 1000, blocks(LOOP)),
    Shape("branches", 1000, blocks(BRANCH)),
    Shape("try statements", 1000, blocks(TRY)),
    Shape("blocks in each other", 40, nested),
    Shape("modules", 1000, blocks(MODULE, "M{n}()(x)")),
    Shape("classes in a chain", 1000, blocks(CLASS, "C{n}()(x)")),
    Shape("functions in a chain", 2000, blocks(CHAIN, "f{n}(x)")),
    Shape("functions in a clique", 120, clique),
    Shape("functions that return through calls", 400, blocks(RETURNING, "r{n}(x, x)")),
    Shape("loaders", 1000, blocks(LOADER)),
    Shape("moves", 4000, lines("y{i} = x.to('cpu').cuda()")),
    Shape("factories", 2000, lines("y{i} = torch.zeros({i}).cuda()")),
    Shape("cats", 2000, in_function("v{i} = torch.cat([q, v0])")),
    Shape("cats of the one before", 2000, in_function("q = torch.cat([q, v0])", last="q")),
    Shape("cats in a fix", 1000, in_loop("x = torch.cat([x, loss])"), "fix"),
    Shape("reads in a fix", 1000, in_loop("total += loss.item()"), "fix"),
    Shape("factories in a fix", 1000, lines("y{i} = torch.zeros({i}).cuda()"), "fix"),
    Shape("selections by a mask", 1000, in_function("v{i} = x[m]", "m = x > 0")),
    Shape("masked selects", 1000, in_function("v{i} = x.masked_select(m)", "m = x > 0")),
    Shape("fields of an f-string", 2000, joined("", "{{x[{i}]}}", 'y = f"', '"\n')),
    Shape("operands", 4000, joined(" + ", "x{i}")),
    Shape("operands with moves", 2000, joined(" + ", "x{i}.cuda()")),
    Shape("attributes of attributes", 1000, joined("", ".b", "y = x")),
    Shape("calls of calls", 1000, joined("", "()", "y = x")),
    Shape("methods of methods", 1000, joined("", ".cpu()", "y = x")),
    Shape("elements of a list", 8000, joined(", ", "x[{i}]", "y = [", "]\n")),
    Shape("keys of a dictionary", 8000, joined(", ", "{i}: x", "y = {", "}\n")),
    Shape("keywords", 8000, joined(", ", "k{i}=x", "y = torch.stack(", ")\n")),
    Shape("keywords in a fix", 8000, joined(", ", "k{i}=x", "y = torch.zeros(3, ", ").cuda()\n"), "fix"),
    Shape("comparisons", 4000, joined(" and ", "x{i} > {i}")),
    Shape("comments that ignore", 4000, lines("y{i} = x.cpu()  # torchlint: ignore[TL301]")),
    Shape("comments that ignore in a fix", 4000, lines("y{i} = x.cpu()  # torchlint: ignore[TL301]"), "fix"),
    Shape("codes in a comment", 8000, joined(",", "TL301", "y = x.item()  # torchlint: ignore[", "]\n")),
    Shape("unknown names in a comment", 4000, joined(",", "no-such-rule-{i}", "y = x  # torchlint: ignore[", "]\n")),
    Shape("comments on a line", 4000, joined(" ", "# torchlint: ignore[TL301]", "y = x.item()  ")),
    Shape("imports", 4000, lines("import m{i}", "m{n}.y")),
    Shape("files that import each other", 200, files(IMPORTING)),
    Shape("files that import one", 200, files(USING)),
)


def main() -> int:
    """Print the table; 1 where a shape misses its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", help="only shapes whose name holds one of these words")
    parser.add_argument("--child", nargs=3, metavar=("SHAPE", "SIZE", "COMMAND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, size, command = options.child
        with suppress(RuntimeError):
            print(_measured(next(shape for shape in SHAPES if shape.name == name), int(size), command))
        return 0
    print("| shape | size | parse s | exponent | check s | exponent | over the parse | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    missed = 0
    for shape in SHAPES:
        if options.shapes and not any(word in shape.name for word in options.shapes):
            continue
        parse, check = (_cost(shape, command) for command in ("parse", shape.command))
        met = _met(parse, check)
        missed += not met
        figures = (text for cost in (parse, check) for text in (_seconds(cost), _number(cost.exponent)))
        row = " | ".join((shape.name, f"{shape.size:,}", *figures, _times(parse, check), "" if met else "MISSED"))
        print(f"| {row} |", flush=True)
    return 1 if missed else 0


def _met(parse: Cost, check: Cost) -> bool:
    if check.exponent is None:
        return True
    return check.exponent <= max(parse.exponent or 1.0, 1.0) + ALLOWED


def _seconds(cost: Cost) -> str:
    last = cost.seconds[-1]
    return "none" if last is None else f"{last:.2f}"


def _number(value: float | None) -> str:
    return "" if value is None else "-" if math.isinf(value) else f"{value:.2f}"


def _times(parse: Cost, check: Cost) -> str:
    before, after = parse.seconds[-1], check.seconds[-1]
    return f"{after / before:.1f}" if before and after else "-"


def _cost(shape: Shape, command: str) -> Cost:
    seconds: list[float | None] = []
    for size in (shape.size // 4, shape.size // 2, shape.size):
        if seconds and seconds[-1] is None:
            seconds.append(None)
            continue
        arguments = [sys.executable, "-m", "benchmarks.growth", "--child", shape.name, str(size), command]
        run = subprocess.run(arguments, check=False, capture_output=True, text=True)
        if run.returncode > 0:
            raise RuntimeError(run.stderr)
        seconds.append(float(run.stdout) if run.stdout else None)  # None: it reached the limit, or an error ended it
    return Cost(tuple(seconds))


def _measured(shape: Shape, size: int, command: str) -> float:
    """CPU seconds of one command over the program, once all that it needs is imported."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        made = shape.files(size)
        for name, text in made.items():
            Path(name).write_text(text)
        if command == "parse":
            import libcst  # noqa: F401 - before the clock runs
        operation = _parse if command == "parse" else _torchlint(command)
        begin = _cpu()
        resource.setrlimit(resource.RLIMIT_CPU, (int(begin) + LIMIT, int(begin) + LIMIT + 5))
        operation(list(made))
        return _cpu() - begin


def _cpu() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _parse(names: list[str]) -> None:
    import libcst

    for name in names:
        if name.endswith(".py"):
            with suppress(libcst.ParserSyntaxError):
                libcst.parse_module(Path(name).read_bytes())


def _torchlint(command: str) -> Callable[[list[str]], None]:
    from torchlint.cli import run as torchlint
    from torchlint.syntax.parsing import own_process

    own_process()
    gc.disable()
    Path("warm.py").write_text(HEAD + "y = x.item()\n")
    options = ["--preview", "--select", "ALL", "--no-cache", "-j", "1", "--output-format", "json"]
    if command == "fix":
        options = ["--preview", "--select", "ALL", "--no-cache", "--unsafe-fixes"]

    def operation(names: list[str]) -> None:
        with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
            status = torchlint([command, *options, *names])
        if status not in (0, 1):
            raise RuntimeError

    operation(["warm.py"])
    Path("warm.py").unlink()
    return operation


if __name__ == "__main__":
    sys.exit(main())
