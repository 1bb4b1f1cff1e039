"""Which functions calls reach."""

from __future__ import annotations

import libcst as cst
import pytest
from looking import look

from torchlint.facts import Facts, Returned
from torchlint.semantics.context import Context
from torchlint.semantics.values.evaluator import Kinds
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.tree import Tree


@pytest.mark.parametrize(
    ("code", "row"),
    [
        ("def f(): ...\nLOOK(f())", 1),
        ("if a:\n    def f(): ...\nelse:\n    def f(): ...\nLOOK(f())", 4),
        ("class A:\n    def __init__(self): ...\nLOOK(A())", 2),
        ("class A:\n    def __call__(self): ...\na = A()\nLOOK(a())", 2),
        ("class A:\n    def f(self): ...\nLOOK(A().f())", 2),
        ("from torch import nn\nclass A(nn.Module):\n    def forward(self, x): ...\na = A()\nLOOK(a(3))", 3),
        ("class A:\n    def scores(self): ...\ndef g(a):\n    LOOK(a.scores())", 2),
        ("class A:\n    def scores(self): ...\ndef g(a):\n    a.eval()\n    LOOK(a.scores())", 2),
        # Whose it is, the name alone does not tell.
        ("class A:\n    def append(self): ...\ndef g(a):\n    LOOK(a.append())", None),
        ("class A:\n    def mean(self): ...\ndef g(a):\n    LOOK(a.mean())", None),
        (
            "class A:\n    def scores(self): ...\nclass B:\n    def scores(self): ...\ndef g(a):\n    LOOK(a.scores())",
            None,
        ),
        ("import a\nclass A:\n    def scores(self): ...\nLOOK(a.scores())", None),
        ("from torch import nn\na = nn.Linear(1, 2)\nclass A:\n    def scores(self): ...\nLOOK(a.scores())", None),
        ("class A:\n    def scores(self): ...\na = [1]\nLOOK(a.scores())", None),
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


def test_what_one_of_several_gives_is_settled_where_it_is_given_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    given = Kinds.computed_on

    def counted(kinds: Kinds, node: cst.CSTNode) -> Device:
        nonlocal asked
        asked += 1
        assert asked < 1000, "it is a new question each time"
        return given(kinds, node)

    monkeypatch.setattr(Kinds, "computed_on", counted)
    code = """\
from a import first, second

def f(x):
    y = x
    while x:
        pick = first if x else second
        y = pick(y)
        g(y)

def g(x):
    f(x)
"""
    given_tensor = Returned("TENSOR", devices=Device.UNKNOWN.value, rank=2)
    facts = Facts(returns=(("a.first", given_tensor), ("a.second", given_tensor)))
    context = Context(Tree(cst.parse_module(code)), SourceFile("snippet.py", code), Settings(()), facts)
    (call,) = [call for call in context.tree.of(cst.Call) if context.code(call.func) == "pick"]
    assert context.kind(call) is Kind.TENSOR


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("1, 2", ["1", "2", "3"]),
        ("1, *rest", ["1", None, None]),
        ("*rest", [None, None, None]),
        ("1, **options", ["1", None, None]),
        ("1, c=5, **options", ["1", None, "5"]),
        ("*rest, c=5", [None, None, "5"]),
    ],
)
def test_what_is_passed_beside_stars(arguments: str, given: list[str | None]) -> None:
    node, context = look(f"def f(a, b, c=3): ...\nLOOK(f({arguments}))")
    assert isinstance(node, cst.Call)
    function = context.calls.target(node)
    assert function is not None
    passed = [context.calls.argument_for(node, function, each) for each in function.params.params]
    assert [each if each is None else context.code(each) for each in passed] == given
