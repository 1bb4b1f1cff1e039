"""Constants and keywords that a call passes, as far as they are in sight."""

from __future__ import annotations

import libcst as cst
import pytest
from looking import look

from torchlint.analyses.provenance.constants import constant, decided, keywords, may_pass


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("LOOK(0)", "0"),
        ("W = 0\nLOOK(W)", "0"),
        ("W = 0\ndef f():\n    LOOK(W)", "0"),
        ("W: int = 0\nLOOK(W)", "0"),
        ("W = 0\nW = 4\nLOOK(W)", "W"),
        ("W = 0\nif x:\n    W = 4\nLOOK(W)", "W"),
        ("W = 0\ndef f():\n    global W\n    W = 4\nLOOK(W)", "W"),
        ("def f(W=0):\n    LOOK(W)", "W"),
        ("W = count()\nLOOK(W)", "W"),
        ("W, V = 0, 1\nLOOK(W)", "W"),
    ],
)
def test_constant(code: str, found: str) -> None:
    node, context = look(code)
    assert context.code(constant(node, context)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("LOOK({'a': 1})", ["a"]),
        ("LOOK(dict(a=1, b=2))", ["a", "b"]),
        ("kw = {'a': 1}\nf(**kw)\nLOOK(kw)", None),
        ("kw = dict(a=1)\nf(**LOOK(kw))", None),
        ("LOOK({'a': 1, **more})", None),
        ("LOOK({key: 1})", None),
        ("LOOK(dict(more, a=1))", None),
        ("LOOK(more)", None),
    ],
)
def test_keywords(code: str, found: list[str] | None) -> None:
    node, context = look(code)
    known = keywords(node, context)
    assert (None if known is None else sorted(known)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("kw = {'a': 1}\nLOOK(f(**kw))", ["a"]),
        ("kw = {'a': 1}\ng(**kw)\nLOOK(f(**kw))", ["a"]),
        ("kw = {'a': 1}\nkw['b'] = 2\nLOOK(f(**kw))", None),
        ("kw = {'a': 1}\nkw.update(b=2)\nLOOK(f(**kw))", None),
        ("kw = {'a': 1}\ng(kw)\nLOOK(f(**kw))", None),
    ],
)
def test_keywords_of_a_dictionary_that_is_only_passed_on(code: str, found: list[str] | None) -> None:
    call, context = look(code)
    assert isinstance(call, cst.Call)
    known = keywords(call.args[0].value, context)
    assert (None if known is None else sorted(known)) == found


CLASS = "class A:\n    def __init__(self, x, **kw):\n        self.y = LOOK(f(x, **kw))\n"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("LOOK(f(bias=True))", True),
        ("LOOK(f(*rest))", True),
        ("LOOK(f(**rest))", True),
        ("LOOK(f(1, 2))", False),
        ("LOOK(f(**{'bias': 1}))", True),
        ("LOOK(f(**{'other': 1}))", False),
        (CLASS, True),
        (CLASS + "A(1, k=2)", False),
        (CLASS + "A(1, bias=2)", True),
        (CLASS + "A(1, k=2)\nA(1, **more)", True),
        (CLASS + "A(1, k=2)\nmake(A)", True),
        (CLASS + "def g(**kw):\n    return A(1, **kw)\ng(k=2)", False),
        (CLASS + "def g(**kw):\n    return A(1, **kw)\ng(bias=2)", True),
        (CLASS.replace("f(x", "f(kw.pop('k')") + "A(1, k=2)", True),
    ],
)
def test_may_pass(code: str, found: bool) -> None:  # noqa: FBT001 - a column of the table
    call, context = look(code)
    assert isinstance(call, cst.Call)
    assert may_pass(call, "bias", context) is found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("LOOK(True)", True),
        ("LOOK(not True)", False),
        ("LOOK(x)", None),
        ("def f(x=False):\n    LOOK(x)", None),
        ("def f(x=False):\n    LOOK(x)\nf()", False),
        ("def f(x=False):\n    LOOK(not x)\nf()", True),
        ("def f(x=False):\n    LOOK(x)\nf(True)\nf(x=True)", True),
        ("def f(x=False):\n    LOOK(x)\nf(True)\nf()", None),
        ("def f(x=False):\n    LOOK(x)\nf(y)", None),
        ("def f(x=False):\n    LOOK(x)\nf(*y)", None),
    ],
)
def test_decided(code: str, found: bool | None) -> None:  # noqa: FBT001 - a column of the table
    node, context = look(code)
    assert decided(node, context) is found
