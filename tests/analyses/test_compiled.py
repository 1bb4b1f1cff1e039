"""What `torch.compile` compiles: functions, modules, and what they call and hold."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from torchlint.analyses.execution.compiled import Compiled
from torchlint.semantics.context import Context
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.tree import Tree

NET = """
import torch
from functools import partial
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return block(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for one in self.blocks:
            x = one(x)
        return self.head(x)

    def head(self, x):
        return head(x)

    @torch.compiler.disable
    def other(self, x):
        return other(x)

def function(x):
    return helper(x)

def helper(x):
    return inner(x)

"""


def compiled(code: str) -> set[str]:
    """The functions called in compiled code, of those that are called nowhere else."""
    text = textwrap.dedent(code)
    context = Context(Tree(cst.parse_module(text)), SourceFile("snippet.py", text), Settings(()))
    return {
        call.func.value
        for call in context.tree.of(cst.Call)
        if isinstance(call.func, cst.Name)
        and call.func.value in ("block", "head", "other", "inner", "here")
        and context[Compiled].holds(call)
    }


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("f = torch.compile(function)", {"inner"}),
        ("function = torch.compile(function, mode='reduce-overhead')", {"inner"}),
        ("f = torch.compile(mode='default')(function)", {"inner"}),
        ("f = torch.compile(lambda x: here(function(x)))", {"here", "inner"}),
        ("@torch.compile\ndef f(x):\n    return here(x)", {"here"}),
        ("@torch.compile(dynamic=True)\ndef f(x):\n    return here(helper(x))", {"here", "inner"}),
        ("@partial(torch.compile, dynamic=True)\ndef f(x):\n    return here(x)", {"here"}),
        ("@torch.compile\ndef f(x):\n    def g():\n        return here(x)\n    return g()", {"here"}),
        ("model = Net()\nmodel = torch.compile(model)", {"head", "block"}),
        ("model = torch.compile(Net().cuda())", {"head", "block"}),
        ("model = Net()\nmodel.compile()", {"head", "block"}),
        ("model = Net()\nmodel.forward = torch.compile(model.forward)", {"head", "block"}),
        ("model = torch.compile(nn.Sequential(nn.Linear(2, 2), Block()))", {"block"}),
        ("model = nn.Sequential(nn.Linear(2, 2), Block())\nmodel = torch.compile(model)", {"block"}),
        ("def build(model):\n    return torch.compile(model)\nbuild(Net())", {"head", "block"}),
        (
            (
                "class T:\n    def __init__(self):\n        self.net = Net()\n    def setup(self):\n"
                "        self.net = torch.compile(self.net)"
            ),
            {"head", "block"},
        ),
        (
            (
                "class T:\n    def __init__(self):\n        self.step = torch.compile(self.step_)\n"
                "    def step_(self, x):\n        return here(x)"
            ),
            {"here"},
        ),
        ("f = torch.compile(function, disable=True)", set()),
        ("f = torch.compile", set()),
        ("import re\nf = re.compile('x')", set()),
        ("f = function", set()),
        ("@torch.compile\ndef f(x):\n    if not torch.compiler.is_compiling():\n        here(x)\n    return x", set()),
        (
            "@torch.compile\ndef f(x):\n    return g(x)\n@torch.compiler.disable\ndef g(x):\n    return here(x)",
            set(),
        ),
        ("@torch.compile\ndef f(x):\n    return x\ndef g(x):\n    return here(f(x))", set()),
    ],
)
def test_what_is_compiled(code: str, wanted: set[str]) -> None:
    assert compiled(NET + code + "\n") == wanted
