"""Which functions calls reach."""

from __future__ import annotations

import libcst as cst
import pytest
from looking import look


@pytest.mark.parametrize(
    ("code", "row"),
    [
        ("def f(): ...\nLOOK(f())", 1),
        ("if a:\n    def f(): ...\nelse:\n    def f(): ...\nLOOK(f())", 4),
        ("class A:\n    def __init__(self): ...\nLOOK(A())", 2),
        ("class A:\n    def __call__(self): ...\na = A()\nLOOK(a())", 2),
        ("class A:\n    def f(self): ...\nLOOK(A().f())", 2),
        ("from torch import nn\nclass A(nn.Module):\n    def forward(self, x): ...\na = A()\nLOOK(a(3))", 3),
        ("def f(): ...\nLOOK(g())", None),
        ("f = lambda: 3\nLOOK(f())", None),
    ],
)
def test_the_function_that_a_call_reaches(code: str, row: int | None) -> None:
    node, context = look(code)
    assert isinstance(node, cst.Call)
    target = context.calls.target(node)
    assert (None if target is None else _row(code, target)) == row


def _row(code: str, function: cst.FunctionDef) -> int:
    """The row of a definition: the only one in the text, or the last one that there is."""
    rows = [number for number, line in enumerate(code.split("\n"), 1) if f"def {function.name.value}(" in line]
    return rows[-1]
