"""What a loop binds, what a turn needs of those before, and what is surely a tensor."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest
from looking import look

from torchlint.analyses.iteration.bindings import Turn
from torchlint.analyses.iteration.carried import Carried, carried_by
from torchlint.analyses.iteration.element_work import Work, element_loop
from torchlint.analyses.iteration.targets import visit
from torchlint.semantics.context import Context
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.tree import Tree


def loop_of(code: str) -> tuple[cst.For, Context]:
    """The first `for` statement of a function with the tensors `x` and `y` and the unknown `z`."""
    body = dedent(code).strip().replace("\n", "\n    ")
    text = f"import torch\ndef f(x: torch.Tensor, y: torch.Tensor, z, h, n):\n    {body}\n"
    source = SourceFile("snippet.py", text)
    context = Context(Tree(cst.parse_module(text)), source, Settings(()))
    return context.tree.of(cst.For)[0], context


@pytest.mark.parametrize(
    ("head", "counters", "elements", "others"),
    [
        ("for i in range(n)", {"i"}, set(), set()),
        ("for i in range(1, n)", {"i"}, set(), set()),
        ("for i in range(n - 1, -1, -1)", {"i"}, set(), set()),
        ("for i in reversed(range(n))", {"i"}, set(), set()),
        ("for i in range(0, n, 8)", set(), set(), set()),
        ("for row in x", set(), {"row"}, set()),
        ("for i, row in enumerate(x)", {"i"}, {"row"}, set()),
        ("for i, (a, b) in enumerate(zip(x, z))", {"i"}, {"a"}, {"b"}),
        ("for a, b in zip(x, y)", set(), {"a", "b"}, set()),
        ("for part in x.unbind(1)", set(), {"part"}, set()),
        ("for part in torch.unbind(x)", set(), {"part"}, set()),
        ("for left, top, right, bottom in x", set(), {"left", "top", "right", "bottom"}, set()),
        ("for item in z", set(), set(), {"item"}),
        ("for item in list(x)", set(), {"item"}, set()),
    ],
)
def test_visit(head: str, counters: set[str], elements: set[str], others: set[str]) -> None:
    loop, context = loop_of(f"{head}:\n    pass")
    found = visit(loop, context)
    assert found.counters == counters
    assert {name for name, _ in found.elements} == elements
    assert {name for name, _ in found.others} == others


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("y[i] = x[i] * 2", Carried.NOTHING),
        ("y[i] = y[i] * x[i]", Carried.NOTHING),
        ("y[i, 0] = y[i, 1] * x[i]", Carried.NOTHING),
        ("h += x[i]", Carried.NOTHING),
        ("h = h + x[i] * y[i]", Carried.NOTHING),
        ("h = torch.maximum(h, x[i])", Carried.NOTHING),
        ("h = torch.cat([h, x[i]])", Carried.NOTHING),
        ("z.append(x[i])", Carried.NOTHING),
        ("a = x[i]\na = a * 2\ny[i] = a", Carried.NOTHING),
        ("y.add_(x[i])", Carried.NOTHING),
        ("h = torch.tanh(h + x[i])", Carried.RESULTS),
        ("h = h * 0.9 + x[i]", Carried.RESULTS),
        ("h = z(x[i], h)", Carried.RESULTS),
        ("h += x[i]\ny[i] = h", Carried.RESULTS),
        ("h = h + x[i]\nz.append(h)", Carried.RESULTS),
        ("y[i] = y[i - 1] + x[i]", Carried.RESULTS),
        ("y[x[i]] = y[z[i]]", Carried.RESULTS),
        ("y[0] = y[0] + x[i]", Carried.NOTHING),
        ("y[0] = torch.tanh(y[0] + x[i])", Carried.RESULTS),
        ("y[i] = x[i]\nz(y)", Carried.RESULTS),
        ("z.append(z[-1] + x[i])", Carried.RESULTS),
        ("z.h = z.h + x[i]\nz(z.h)", Carried.RESULTS),
        ("if i == 0:\n    a = x[i]\nelse:\n    a = torch.tanh(a + x[i])", Carried.RESULTS),
        ("if n == x[i]:\n    z(i)\nn = x[i]", Carried.HOST),
        ("j = 0\nwhile x[i, j] > 0:\n    j += 1", Carried.NOTHING),
        ("y[i][y[i] < x[i]] = 0", Carried.NOTHING),
        ("y[i, 0] = y[i].sum()", Carried.NOTHING),
        ("y[x[i]][y[x[i]] < 2] = 0", Carried.RESULTS),
        ("y[i + 1][y[i] < x[i]] = 0", Carried.RESULTS),
    ],
)
def test_carried(body: str, carried: Carried) -> None:
    inner = body.replace("\n", "\n    ")
    loop, context = loop_of(f"for i in range(n):\n    {inner}")
    turn = Turn(loop, visit(loop, context), context)
    turn.bind_all()
    assert carried_by(turn.nodes, loop, turn.own_names, context) is carried


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        ("y[i] = x[i] + 1", {(Work.KERNEL, True)}),
        ("z.append(x[i].item())", {(Work.READ, True)}),
        ("z.append((x[i] * y[i]).item())", {(Work.KERNEL, True), (Work.READ, False)}),
        ("if x[i] > 0:\n    z.append(i)", {(Work.READ, True)}),
        ("a = x[i, :]\nz.append(a[0].item())", {(Work.READ, True)}),
        ("a = x[i].tolist()\nz.append(int(a[0]))", set()),
        ("z.append(y[x[i]])", {(Work.GATHER, False)}),
        ("y[x[i]] = 1", {(Work.GATHER, False)}),
        ("y[i, : x[i]] = 1", {(Work.READ, True), (Work.FILL, True)}),
        ("y[i, : z[i]] = 1", {(Work.FILL, True)}),
        ("z.append(torch.arange(x[i]))", {(Work.READ, True)}),
        ("z.append((x == i).sum())", {(Work.MASK, False), (Work.KERNEL, False)}),
        ("z.append(x[i])", set()),
        ("z.append(x[i].view(-1).detach())", set()),
        ("y[i] = 0", set()),
        ("y[i] = z[i]", set()),
        ("z.append(x.shape[i])", set()),
        ("z.append(z[i] * 2)", set()),
    ],
)
def test_steps(body: str, steps: set[tuple[Work, bool]]) -> None:
    inner = body.replace("\n", "\n    ")
    loop, context = loop_of(f"for i in range(n):\n    {inner}")
    found = element_loop(loop, visit(loop, context), context)
    assert {(step.work, step.direct) for step in (found.steps if found else ())} == steps


@pytest.mark.parametrize(
    ("code", "tensor"),
    [
        ("def f(x):\n    x[:, 0]\n    LOOK(x)", True),
        ("import numpy as np\ndef f(x):\n    x[:, 0]\n    LOOK(x)", False),
        ("def f(x):\n    x[0]\n    LOOK(x)", False),
        ("def f(x):\n    torch.exp(x)\n    LOOK(x)", True),
        ("def f(x):\n    torch.stack(x)\n    LOOK(x)", False),
        ("def f(x):\n    x.view(2, -1)\n    LOOK(x)", True),
        ("def f(x):\n    x.view('float32')\n    LOOK(x)", False),
        ("def f(x: torch.Tensor):\n    if isinstance(x, list):\n        LOOK(x)", False),
        ("def f(x):\n    y = torch.exp(x)\n    if isinstance(x, (list, tuple)):\n        return\n    LOOK(x)", False),
        ("def f(x):\n    if isinstance(x, torch.Tensor):\n        LOOK(x)", True),
        ("def f(*x: torch.Tensor):\n    LOOK(x)", False),
        ("def f(*x: torch.Tensor):\n    LOOK(x[0])", True),
        ("def f(net, x):\n    y = net(x)\n    LOOK(y)", False),
        ("def f(net, x):\n    y = net(x)\n    y.size(1)\n    LOOK(y)", True),
        ("def f(loader):\n    for x, y in loader:\n        LOOK(x)", False),
        ("def f(loader):\n    for x, y in loader:\n        x.size(0)\n        LOOK(x)", True),
        ("from torch.nn import functional as F\ndef f(x, w):\n    LOOK(F.conv2d(x, w))", True),
        ("def f(x):\n    LOOK(list(torch.exp(x)))", False),
        ("def f(x):\n    LOOK(list(torch.exp(x))[0])", True),
    ],
)
def test_is_tensor(code: str, *, tensor: bool) -> None:
    node, context = look(f"import torch\n{code}")
    assert context.kinds.is_tensor(node) is tensor
