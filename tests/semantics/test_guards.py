"""What stands around a node: conditions with their outcome, loops, handlers, `with`, blocks."""

from __future__ import annotations

import libcst as cst
import pytest
from looking import look


def guards(code: str, *, across_functions: bool = False) -> list[str]:
    node, context = look(code)
    return [
        f"{guard.role.name} {context.code(guard.test)}" if guard.test is not None else guard.role.name
        for guard in context.guards(node, across_functions=across_functions)
    ]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("LOOK(x)", []),
        ("if a:\n    LOOK(x)", ["TAKEN a"]),
        ("if a:\n    pass\nelse:\n    LOOK(x)", ["NOT_TAKEN a"]),
        ("if a:\n    pass\nelif b:\n    LOOK(x)", ["TAKEN b", "NOT_TAKEN a"]),
        ("if LOOK(x):\n    pass", []),
        ("if a:\n    pass\nelif LOOK(x):\n    pass", ["NOT_TAKEN a"]),
        ("y = LOOK(x) if a else b", ["TAKEN a"]),
        ("y = b if a else LOOK(x)", ["NOT_TAKEN a"]),
        ("y = b if LOOK(x) else c", []),
        ("a and LOOK(x)", ["TAKEN a"]),
        ("a or LOOK(x)", ["NOT_TAKEN a"]),
        ("LOOK(x) and a", []),
        ("for i in a:\n    LOOK(x)", ["LOOP"]),
        ("for i in LOOK(x):\n    pass", []),
        ("for i in a:\n    pass\nelse:\n    LOOK(x)", ["UNBROKEN"]),
        ("while a:\n    LOOK(x)", ["LOOP"]),
        ("while LOOK(x):\n    pass", []),
        ("[LOOK(x) for i in a]", ["EACH"]),
        ("[i for i in LOOK(x)]", []),
        ("{i: LOOK(x) for i in a}", ["EACH"]),
        ("[i for i in a if LOOK(x)]", ["EACH"]),
        ("[i for i in a for j in LOOK(x)]", ["EACH"]),
        ("a < LOOK(x)", []),
        ("a < b < LOOK(x)", ["TAKEN"]),
        ("assert LOOK(x)", []),
        ("assert a, LOOK(x)", ["NOT_TAKEN a"]),
        ("with a:\n    LOOK(x)", ["WITH"]),
        ("with LOOK(x):\n    pass", []),
        ("try:\n    LOOK(x)\nexcept E:\n    pass", ["TRY"]),
        ("try:\n    pass\nexcept E:\n    LOOK(x)", ["HANDLER"]),
        ("try:\n    pass\nexcept E:\n    pass\nelse:\n    LOOK(x)", ["UNBROKEN"]),
        ("try:\n    pass\nfinally:\n    LOOK(x)", ["FINALLY"]),
        ("match a:\n    case 1 if b:\n        LOOK(x)", ["CASE b"]),
        ("match a:\n    case 1:\n        LOOK(x)", ["CASE"]),
        ("if a:\n    for i in b:\n        if c:\n            LOOK(x)", ["TAKEN c", "LOOP", "TAKEN a"]),
    ],
)
def test_what_guards_a_node(code: str, wanted: list[str]) -> None:
    assert guards(code) == wanted


@pytest.mark.parametrize(
    "code",
    [
        "if a:\n    def g():\n        if b:\n            LOOK(x)",
        "if a:\n    g = lambda: LOOK(x) if b else c",
        "if a:\n    class A:\n        def g(self):\n            if b:\n                LOOK(x)",
    ],
)
def test_a_function_ends_it(code: str) -> None:
    assert guards(code) == ["TAKEN b"]
    assert guards(code, across_functions=True) == ["TAKEN b", "TAKEN a"]


@pytest.mark.parametrize(
    "code",
    [
        "if a:\n    @LOOK(x)\n    def g():\n        pass",
        "if a:\n    def g(p=LOOK(x)):\n        pass",
        "if a:\n    class A:\n        y = LOOK(x)",
    ],
)
def test_what_runs_where_it_stands_is_guarded_by_what_is_around(code: str) -> None:
    assert guards(code) == ["TAKEN a"]


def test_the_managers_of_a_with() -> None:
    node, context = look("with a(), b() as c:\n    LOOK(x)")
    [guard] = context.guards(node)
    assert [context.code(manager) for manager in guard.managers] == ["a()", "b()"]


def test_conditions_are_those_guards_that_ask() -> None:
    node, context = look("if a:\n    for i in b:\n        with c:\n            y = d if e else f or LOOK(x)")
    assert [(context.code(test), is_taken) for test, is_taken in context.conditions(node)] == [
        ("e", False),
        ("a", True),
    ]
    loop = context.loop(node)
    assert [context.code(test) for test, _ in context.conditions(node, within=loop)] == ["e"]


def test_what_encloses_a_node() -> None:
    node, context = look("def f():\n    for i in a:\n        while b:\n            g(LOOK(x))")
    inner = context.enclosing(node, cst.While)
    assert inner is not None
    assert context.enclosing(node, cst.For, cst.While) is inner
    assert context.enclosing(node, cst.For, within=inner) is None
    assert context.enclosing(node, cst.ClassDef) is None
    names = [type(above).__name__ for above in context.around(node, cst.For, cst.While, cst.FunctionDef)]
    assert names == ["While", "For", "FunctionDef"]


def test_the_blocks_around_a_node() -> None:
    node, context = look("if z:\n    def f():\n        if a:\n            b()\n            LOOK(x)\n        c()")
    suites = list(context.suites(node))
    assert [type(suite.line).__name__ for suite in suites] == ["SimpleStatementLine", "If"]
    assert [len(suite.block.body) for suite in suites] == [2, 2]
    assert all(suite.line in suite.block.body for suite in suites)
    node, context = look("if a:\n    LOOK(x)")
    assert [type(suite.block).__name__ for suite in context.suites(node)] == ["IndentedBlock", "Module"]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("a = f()\nif b:\n    LOOK(x)", True),
        ("if b:\n    a = f()\n    if c:\n        LOOK(x)", True),
        ("if b:\n    a = f()\nLOOK(x)", False),
        ("if b:\n    LOOK(x)\na = f()", False),
        ("def g():\n    a = f()\nLOOK(x)", False),
        ("a = f()\ndef g():\n    LOOK(x)", False),
    ],
)
def test_what_stands_above_a_node(code: str, *, wanted: bool) -> None:
    node, context = look(code)
    [assign] = context.tree.of(cst.Assign)
    assert context.is_above(assign, node) is wanted


def test_names_and_what_binds_them() -> None:
    node, context = look("def f(p):\n    for i in p:\n        q = i\n        LOOK(g(p, i, q, p))")
    assert isinstance(node, cst.Call)
    p, i, q, again = (argument.value for argument in node.args)
    assert isinstance(p, cst.Name)
    assert isinstance(i, cst.Name)
    assert isinstance(q, cst.Name)
    assert isinstance(again, cst.Name)
    loop = context.loop(node)
    assert loop is not None
    parameter = context.parameter(p)
    assert parameter is not None
    assert parameter.name.value == "p"
    assert context.parameter(i) is None
    assert context.parameter(node) is None
    assert context.binders(i) == (loop,)
    assert [context.is_bound_in(name, loop) for name in (p, i, q)] == [False, True, True]
    assert [context.is_bound_before(name, loop.body) for name in (p, i, q)] == [True, False, False]
    assert context.holds_the_same(p, again)
    assert not context.holds_the_same(p, q)
