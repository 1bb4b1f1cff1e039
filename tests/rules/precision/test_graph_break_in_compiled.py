"""TL652: what splits a compiled graph; that it does, counted by Dynamo on CPU torch."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest
import torch
from laws import check_snippet
from torch._dynamo.testing import CompileCounter

RULE = "graph-break-in-compiled"
MARK = "  # <- graph-break-in-compiled"
OTHERS = ("item-in-train-loop", "tensor-truthiness-branch", "per-step-nan-check")
TOP = "import logging\nimport random\nimport time\nimport warnings\nimport torch\nlogger = logging.getLogger()\n\n\n"


def function(*lines: str, decorator: str = "@torch.compile") -> str:
    """A compiled function with these lines between its work."""
    body = textwrap.indent("\n".join(lines), " " * 4)
    return f"{TOP}{decorator}\ndef f(x: torch.Tensor, flag):\n    y = x.sin()\n{body}\n    return y.cos()\n"


@pytest.mark.parametrize(
    "lines",
    [
        ("y = y * y.sum().item()" + MARK,),
        ("y = y * float(y.sum())" + MARK,),
        ("n = int(y.argmax())" + MARK, "y = y + n"),
        ("y = y * y.tolist()[0]" + MARK,),
        ("print('hello')" + MARK,),
        ("logger.info('hello')" + MARK,),
        ("logging.info('hello')" + MARK,),
        ("warnings.warn('hello')" + MARK,),
        ("t = time.time()" + MARK,),
        ("y = y * random.random()" + MARK,),
        ("if y.sum() > 0:" + MARK, "    y = y + 1"),
        ("z = 1 if y.sum() > 0 else 2" + MARK, "y = y * z"),
        ("while y.sum() > 100:" + MARK, "    y = y / 2"),
        ("if torch.isnan(y).any():" + MARK, "    raise ValueError"),
        ("y = y[y > 0]" + MARK,),
        ("y = torch.unique(y)" + MARK,),
        ("y = torch.where(y > 0)[0]" + MARK,),
        ("y = y * torch.equal(y, x)" + MARK,),
        ("torch.manual_seed(0)" + MARK,),
    ],
)
def test_what_splits_a_graph(lines: tuple[str, ...]) -> None:
    check_snippet(function(*lines), RULE, *OTHERS)


@pytest.mark.parametrize(
    "lines",
    [
        ("assert y.sum() < 9",),
        ("y = torch.where(y > 0, y, x)",),
        ("y = y * max(y.sum(), x.sum())",),
        ("y = torch.from_numpy(y.numpy())",),
        ("y[y > 0] = 0",),
        ("if flag:", "    print('hello')"),
        ("if not torch.compiler.is_compiling():", "    print(y.sum().item())"),
        ("if x.shape[0] > 2:", "    y = y + 1"),
        ("if y is None:", "    y = x"),
        ("if y.dim() > 2:", "    raise ValueError(f'{y.sum().item()}')"),
        ("y = y * flag.item()",),
    ],
)
def test_what_does_not(lines: tuple[str, ...]) -> None:
    check_snippet(function(*lines), RULE)


def test_not_compiled_or_in_one_graph_for_certain() -> None:
    for decorator in ("@staticmethod", "@torch.compile(fullgraph=True)", "@torch.compile(disable=True)"):
        check_snippet(function("y = y * y.sum().item()", decorator=decorator), RULE)


def test_scalars_that_are_captured() -> None:
    settings = "torch._dynamo.config.capture_scalar_outputs = True"
    check_snippet(f"import torch\n{settings}\n{function('y = y * y.sum().item()')}", RULE)


def test_what_compiled_code_calls_has_no_edges() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Block(nn.Module):
            def forward(self, x: torch.Tensor):
                return x.abs().max().item()  # <- graph-break-in-compiled
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList(Block() for _ in range(3))
            def forward(self, x):
                return sum(block(x) for block in self.blocks) * x
        model = torch.compile(Net())
        """,
        RULE,
    )


def _item(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.cos() * y.sum().item()


def _branch(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    if y.sum() > 0:
        y = y + 1
    return y.cos()


def _message(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print()
    return y.cos()


def _mask(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y[y > 0].cos()


def _choice(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return torch.where(y.sum() > 0, y + 1, y).cos()


@pytest.mark.parametrize(("function", "graphs"), [(_item, 2), (_branch, 2), (_message, 2), (_mask, 2), (_choice, 1)])
def test_how_many_graphs_dynamo_makes(function: Callable[[torch.Tensor], torch.Tensor], graphs: int) -> None:
    torch.compiler.reset()
    counter = CompileCounter()
    torch.compile(function, backend=counter)(torch.linspace(0.1, 1, 8))
    assert counter.frame_count == graphs


@pytest.mark.parametrize(
    ("call", "mark"),
    [("n = size(y)", MARK), ("if isinstance(flag, int):\n    n = flag\nelse:\n    n = size(y)", "")],
)
def test_a_function_that_is_called_under_a_condition(call: str, mark: str) -> None:
    helper = f"def size(y: torch.Tensor):\n    z = y.cumsum(0)\n    return (z < 1).sum().item() + 1{mark}\n\n\n"
    code = function(*call.split("\n"), "y = y[:n]").removeprefix(TOP)
    check_snippet(f"{TOP}{helper}{code}", RULE)
