"""Which of some calls runs next, through branches and loops."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from torchlint.analyses.layers.statement_order import Order
from torchlint.syntax.tree import Tree


def after(code: str, known: dict[str, bool] | None = None) -> tuple[list[str], bool]:
    """The marks `b()`, `c()`, … that may run first behind `a()`, and whether the function may end before."""
    tree = Tree(cst.parse_module(dedent(code)))
    marks = {
        call: call.func.value
        for call in tree.of(cst.Call)
        if isinstance(call.func, cst.Name) and len(call.func.value) == 1
    }
    order = Order(tree, marks, lambda test: (known or {}).get(test.value) if isinstance(test, cst.Name) else None)
    found, ends = order.after(next(call for call, name in marks.items() if name == "a"))
    return sorted(marks[call] for call in found if isinstance(call, cst.Call)), ends


@pytest.mark.parametrize(
    ("code", "found", "ends"),
    [
        ("a()\nb()\nc()", ["b"], False),
        ("a(); b()", ["b"], False),
        ("a()\nx = 1", [], True),
        ("a()\nif x:\n    b()\nc()", ["b", "c"], False),
        ("a()\nif x:\n    b()\nelse:\n    c()\nd()", ["b", "c"], False),
        ("a()\nif x:\n    b()\nelif y:\n    c()\nd()", ["b", "c", "d"], False),
        ("if x:\n    a()\nelse:\n    b()\nc()", ["c"], False),
        ("if x:\n    pass\nelif y:\n    a()\nelse:\n    b()\nc()", ["c"], False),
        ("for i in x:\n    a()\nb()", ["a", "b"], False),
        ("for i in x:\n    b()\n    a()\nc()", ["b", "c"], False),
        ("for i in x:\n    a()\n    if y:\n        continue\n    b()\nc()", ["a", "b", "c"], False),
        ("for i in x:\n    a()\n    if y:\n        break\n    b()\nc()", ["b", "c"], False),
        ("for i in x:\n    if y:\n        b()\n        continue\n    a()\n    c()", ["c"], False),
        ("a()\nfor i in x:\n    b()\nc()", ["b", "c"], False),
        ("for j in y:\n    b()\n    for i in x:\n        a()\nc()", ["a", "b", "c"], False),
        ("a()\nwith x:\n    b()\nc()", ["b"], False),
        ("a()\ntry:\n    b()\nexcept E:\n    c()\nd()", ["b", "c", "d"], False),
        ("a()\ntry:\n    work()\nexcept E:\n    pass\nelse:\n    b()\nfinally:\n    c()\nd()", ["b", "c", "d"], False),
        ("try:\n    a()\nexcept E:\n    b()\nc()", ["c"], False),
        ("a()\nmatch x:\n    case 1:\n        b()\n    case _:\n        c()\nd()", ["b", "c", "d"], False),
        ("match x:\n    case 1:\n        a()\n    case _:\n        b()\nc()", ["c"], False),
        ("def f():\n    a()\n    if x:\n        return 1\n    b()", ["b"], True),
        ("def f():\n    a()\n    if x:\n        raise E\n    b()", ["b"], False),
        ("def f():\n    a()\n    return b()", ["b"], False),
        (
            "def f():\n    for i in x:\n        a()\n        def g():\n            b()\n    return c()",
            ["a", "c"],
            False,
        ),
    ],
)
def test_ways(code: str, found: list[str], ends: bool) -> None:  # noqa: FBT001 - a column of the table
    assert after(code) == (found, ends)


@pytest.mark.parametrize(("value", "found"), [(True, ["b"]), (False, ["c"])])
def test_a_condition_that_is_known_leaves_one_way(value: bool, found: list[str]) -> None:  # noqa: FBT001 - as above
    assert after("a()\nif x:\n    b()\nc()", {"x": value}) == (found, False)
