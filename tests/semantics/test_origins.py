"""Where values come from, through whatever hands them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst
import pytest
from looking import look

from torchlint.semantics.flow.origins import ELEMENT, EVERYTHING, MOST_STEPS, Origin, Through


@dataclass(frozen=True)
class Shown:
    found: list[str]
    lost: list[str]


def shown(code: str, through: Through) -> Shown:
    node, context = look(code)
    result = context.sources.of(node, through)

    def words(part: tuple[Origin, ...]) -> list[str]:
        return [context.code(each.node) + "".join(f"[{place}]" for place in each.path) for each in part]

    return Shown(words(result.found), words(result.lost))


@pytest.mark.parametrize(
    ("code", "through", "found", "lost"),
    [
        ("x = f()\nLOOK(x)", Through.NAMES, ["f()"], []),
        ("x = y = f()\nz = y\nLOOK(z)", Through.NAMES, ["f()"], []),
        ("if c:\n    x = f()\nelse:\n    x = g()\nLOOK(x)", Through.NAMES, ["f()", "g()"], []),
        ("LOOK(f(x := 1))", Through.NAMES, ["f(x := 1)"], []),
        ("LOOK((x := f()))", Through.NAMES, ["f()"], []),
        ("LOOK(unknown)", Through.NAMES, [], ["unknown"]),
        ("LOOK(None)", Through.NAMES, ["None"], []),
        ("def g(p):\n    LOOK(p)", Through.NAMES, [], ["p"]),
        ("for x in xs:\n    LOOK(x)", EVERYTHING, [], ["x"]),
        ("import x\nLOOK(x)", EVERYTHING, [], ["x"]),
        ("x = f()\nx += 1\nLOOK(x)", EVERYTHING, [], ["x"]),
        ("x = f()\nif c:\n    x += 1\nLOOK(x)", EVERYTHING, ["f()"], ["x"]),
        # Parts
        ("a, b = f(), g()\nLOOK(b)", Through.PARTS, ["g()"], []),
        ("a, b = f(), g()\nLOOK(b)", Through.NAMES, [], ["b"]),
        ("a, (b, c) = f(), [g(), h()]\nLOOK(c)", Through.PARTS, ["h()"], []),
        ("a, b = f()\nLOOK(b)", Through.PARTS, ["f()[1]"], []),
        ("a, *b = f(), g()\nLOOK(b)", Through.PARTS, ["f(), g()[-1]"], []),
        ("*a, b = f(), g(), h()\nLOOK(b)", Through.PARTS, [f"f(), g(), h()[{ELEMENT}]"], []),
        ("a, b = (*f(), g())\nLOOK(b)", Through.PARTS, ["(*f(), g())[1]"], []),
        ("LOOK((f(), g())[1])", Through.PARTS, ["g()"], []),
        ("t = f(), g()\nLOOK(t[1])", Through.PARTS, ["g()"], []),
        ("t = [f(), g()]\nt[1] = 3\nLOOK(t[1])", Through.PARTS, ["t[1]"], []),
        ("LOOK(t[i])", Through.PARTS, ["t[i]"], []),
        # Branches of expressions
        ("LOOK(f() if c else g())", Through.BRANCHES, ["f()", "g()"], []),
        ("LOOK(f() if c else g())", Through.NAMES, ["f() if c else g()"], []),
        ("LOOK(f() or g())", Through.BRANCHES, ["f()", "g()"], []),
        ("LOOK(f() and g())", Through.BRANCHES, ["f() and g()"], []),
        # Attributes
        ("class A:\n    def __init__(self):\n        self.x = f()\n    def m(self):\n        LOOK(self.x)", EVERYTHING, ["f()"], []),
        ("class A:\n    def m(self):\n        LOOK(self.x)", EVERYTHING, [], ["self.x"]),
        ("LOOK(other.x)", EVERYTHING, [], ["other.x"]),
        # Parameters
        ("def g(p):\n    LOOK(p)\ng(f())\ng(h())", EVERYTHING, ["f()", "h()"], []),
        ("def g(p=f()):\n    LOOK(p)\ng(h())", EVERYTHING, ["h()", "f()"], []),
        ("def g(p):\n    LOOK(p)", EVERYTHING, [], ["p"]),
        ("def g(*p):\n    LOOK(p)\ng(f())", EVERYTHING, [], ["p"]),
        # Calls
        ("def g():\n    return f()\nLOOK(g())", EVERYTHING, ["f()"], []),
        ("def g():\n    return f(), h()\na, b = g()\nLOOK(b)", EVERYTHING, ["h()"], []),
        ("def g():\n    return f()\nLOOK(g())", Through.NAMES, ["g()"], []),
        ("def g():\n    yield f()\nLOOK(g())", EVERYTHING, ["g()"], []),
        ("async def g():\n    return f()\nLOOK(g())", EVERYTHING, ["g()"], []),
        ("def g():\n    pass\nLOOK(g())", EVERYTHING, ["g()"], []),
        # Elements, context managers, what was there before
        ("for x in f():\n    LOOK(x)", Through.ELEMENTS, [f"f()[{ELEMENT}]"], []),
        ("for i, (x, y) in f():\n    LOOK(y)", Through.ELEMENTS, [f"f()[{ELEMENT}][1][1]"], []),
        ("for x in f():\n    y = x\n    LOOK(y)", Through.ELEMENTS, [f"f()[{ELEMENT}]"], []),
        ("xs = f()\n[LOOK(x) for x in xs]", Through.ELEMENTS, [f"f()[{ELEMENT}]"], []),
        ("with f() as x:\n    LOOK(x)", Through.CONTEXTS, ["f()"], []),
        ("with f() as x:\n    LOOK(x)", Through.NAMES, [], ["x"]),
        ("x = f()\nx += 1\nLOOK(x)", Through.UPDATES, ["f()"], []),
        ("x = f()\nif c:\n    x += 1\nLOOK(x)", Through.UPDATES, ["f()"], []),
        ("x = f()\nwhile c:\n    x += 1\nLOOK(x)", Through.UPDATES, ["f()"], []),
        ("def g(x):\n    x += 1\n    LOOK(x)", Through.UPDATES, [], ["x"]),
        # What leads back to itself is looked at once.
        ("def g(n):\n    return g(n - 1) if n else f()\nLOOK(g(3))", EVERYTHING, ["f()"], []),
        ("x = f()\nwhile c:\n    y = x\n    x = y\nLOOK(x)", Through.NAMES, ["f()"], []),
    ],
)  # fmt: skip
def test_where_it_comes_from(code: str, through: Through, found: list[str], lost: list[str]) -> None:
    assert shown(code, through) == Shown(found, lost)


def test_an_end_is_not_followed() -> None:
    node, context = look("def g():\n    return f()\nx = g()\nLOOK(x)")
    result = context.sources.of(node, EVERYTHING, is_end=lambda each: context.code(each) == "g()")
    assert [context.code(each) for each in result.nodes] == ["g()"]


def test_what_a_call_gives_back_is_followed() -> None:
    node, context = look("x = tqdm(f())\nLOOK(x)")
    result = context.sources.of(node, passed_on=lambda call: call.args[0].value if call.args else None)
    assert [context.code(each) for each in result.nodes] == ["f()"]


def test_the_cost_is_bounded() -> None:
    """Forty functions that each return one of two calls of the next would be a million million ways."""
    lines = [f"def f{n}():\n    return f{n + 1}() if c else f{n + 1}()\n" for n in range(40)]
    node, context = look("".join(lines) + "LOOK(f0())")
    assert [context.code(each) for each in context.sources.of(node, EVERYTHING).nodes] == ["f40()"] * 2
    many = "".join(f"def f{n}():\n    return f{n + 1}()\n" for n in range(MOST_STEPS + 10))
    node, context = look(many + "LOOK(f0())")
    assert not context.sources.of(node, EVERYTHING).is_complete


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("x = f()\nLOOK(x)", "f()"),
        ("LOOK(f())", "f()"),
        ("x = f()\nif c:\n    x = g()\nLOOK(x)", None),
        ("x, y = f()\nLOOK(x)", None),
        ("def g(p):\n    LOOK(p)", None),
        ("for x in xs:\n    LOOK(x)", None),
    ],
)
def test_what_a_name_stands_for(code: str, wanted: str | None) -> None:
    node, context = look(code)
    found = context.stands_for(node)
    assert (found if found is None else context.code(found)) == wanted


@pytest.mark.parametrize(
    ("code", "every", "some"),
    [
        ("x = f()\nLOOK(x)", True, True),
        ("if c:\n    x = f()\nelse:\n    x = g()\nLOOK(x)", False, True),
        ("x = g()\nLOOK(x)", False, False),
        # Something else may come from out of sight.
        ("def h(x):\n    if c:\n        x = f()\n    LOOK(x)", False, True),
        ("LOOK(unknown)", False, False),
        # A part of it is no call of `f`.
        ("x, y = f()\nLOOK(x)", False, False),
    ],
)
def test_every_and_some_of_the_origins(code: str, *, every: bool, some: bool) -> None:
    node, context = look(code)
    origins = context.origins(node, Through.PARTS)
    assert origins.every(lambda each: context.code(each) == "f()") is every
    assert origins.some(lambda each: context.code(each) == "f()") is some


def test_what_a_name_is_bound_to_is_one_step() -> None:
    node, context = look("x = f()\ny = x\nif c:\n    y = g()\nLOOK(y)")
    assert isinstance(node, cst.Name)
    assert [context.code(each) for each in context.bound_to(node).nodes] == ["x", "g()"]
    assert [context.code(each) for each in context.origins(node).nodes] == ["f()", "g()"]


def test_what_a_part_of_a_tuple_is_bound_to() -> None:
    node, context = look("a, (b, c) = x, (f(), y[0])\nLOOK(c)")
    assert isinstance(node, cst.Name)
    assert [context.code(each) for each in context.bound_to(node, Through.PARTS).nodes] == ["y[0]"]
    assert not context.bound_to(node).is_complete


def ingredients(code: str, **options: Callable[[cst.CSTNode], bool]) -> list[str]:
    """The names, calls and numbers that go into what is looked at."""
    node, context = look(code)
    found = context.sources.ingredients(node, **options)
    return [context.code(part) for part in found if isinstance(part, (cst.Name, cst.Call, cst.Integer))]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("LOOK(1 + 2)", ["1", "2"]),
        ("x = f(1)\nLOOK(x)", ["x", "f(1)", "f", "1"]),
        ("x = 1\ny = x\nLOOK(y + x)", ["y", "x", "1", "x"]),
        ("LOOK(a.b)", ["a"]),
        ("LOOK(f(key=1))", ["f(key=1)", "f", "1"]),
        ("x = 1\nx += 2\nLOOK(x)", ["x", "2", "x", "1"]),
        ("for x in 1:\n    LOOK(x)", ["x", "1"]),
        # What is made of itself ends where it began.
        ("x = 1\nwhile c:\n    x = x + 2\nLOOK(x)", ["x", "1", "x", "2"]),
    ],
)
def test_what_goes_into_a_value(code: str, wanted: list[str]) -> None:
    assert ingredients(code) == wanted


def test_ingredients_end_where_they_are_told_to() -> None:
    code = "x = f(1)\nfor i in z:\n    y = x + 2\n    LOOK(y)"
    assert ingredients(code) == ["y", "x", "f(1)", "f", "1", "2"]
    assert ingredients(code, is_end=lambda node: isinstance(node, cst.Call)) == ["y", "x", "f(1)", "2"]
    _, context = look(code)
    first = context.tree.of(cst.Assign)[0]
    assert ingredients(code, bound_by=lambda binder: not binder.deep_equals(first)) == ["y", "x", "2"]


def test_ingredients_of_long_chains_are_each_met_once() -> None:
    """Forty lines that double would be a million million ways."""
    lines = "".join(f"x{n + 1} = x{n} + x{n}\n" for n in range(40))
    assert len(ingredients(f"x0 = 1\n{lines}LOOK(x40)")) == 82
