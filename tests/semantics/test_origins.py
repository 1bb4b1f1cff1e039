"""Where values come from, through whatever hands them on."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from looking import look

from torchlint.semantics.flow.origins import EVERYTHING, MOST_STEPS, Origin, Through


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
