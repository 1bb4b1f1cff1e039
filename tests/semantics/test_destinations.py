"""What becomes of values: which places take them in the end, and where the trail is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
import pytest
from looking import look

from torchlint.semantics.flow.origins import ELEMENT, MOST_STEPS, Through
from torchlint.semantics.flow.query import query

if TYPE_CHECKING:
    from torchlint.semantics.context import Context
    from torchlint.semantics.flow.destinations import Destination

ALL = Through.PARTS | Through.BRANCHES


def shown(code: str, through: Through) -> tuple[list[str], list[str]]:
    """Each place as what takes the value, with the part of it that it is."""
    node, context = look(code.replace("MADE", "LOOK(made)"))
    call = context.parent(context.parent(node) or node)
    assert isinstance(call, cst.Call)
    result = context.destinations(call, through)

    def words(places: tuple[Destination, ...]) -> list[str]:
        return [
            context.code(context.parent(place.node) or place.node).strip().replace("LOOK(made)", "MADE")
            + "".join(f"[{step}]" for step in place.path)
            + ("" if place.is_alone else " or another")
            for place in places
        ]

    return words(result.found), words(result.lost)


@pytest.mark.parametrize(
    ("code", "through", "found", "lost"),
    [
        ("f(MADE)", Through.NAMES, ["MADE"], []),
        ("x = MADE\nf(x)\nx + 1\nx.y", Through.NAMES, ["x", "x + 1", "x.y"], []),
        ("x = MADE\ny = x\nx - 1\ny + 1", Through.NAMES, ["y + 1", "x - 1"], []),
        ("x = y = MADE\nx + 1\ny + 2", Through.NAMES, ["x + 1", "y + 2"], []),
        ("x: int = MADE\nx + 1", Through.NAMES, ["x + 1"], []),
        ("f((x := MADE) - 1)\nx + 1", Through.NAMES, ["(x := MADE) - 1", "x + 1"], []),
        ("x = MADE\ndel x", Through.NAMES, [], []),
        ("x = MADE\nx = g()\nx + 1", Through.NAMES, [], []),
        ("x = g()\nif c:\n    x = MADE\nx + 1", Through.NAMES, ["x + 1 or another"], []),
        ("x = g()\nif c:\n    x = MADE\ny = x\ny + 1", Through.NAMES, ["y + 1 or another"], []),
        ("x = MADE\nx += 1", Through.NAMES, ["x += 1"], []),
        ("x += MADE", Through.NAMES, ["x += MADE"], []),
        ("for x in MADE:\n    x + 1", Through.NAMES, ["for x in MADE:\n    x + 1"], []),
        ("def g():\n    return MADE", Through.NAMES, ["return MADE"], []),
        # Out of sight
        ("self.x = MADE", ALL, [], ["self.x = MADE"]),
        ("x = self.x = MADE\nx + 1", ALL, ["x + 1"], ["x = self.x = MADE"]),
        ("x[0] = MADE", ALL, [], ["x[0] = MADE"]),
        ("a, b = MADE", ALL, [], ["a, b = MADE"]),
        ("a, (b, _) = MADE\na + 1\nb + 2", Through.ELEMENTS, ["a + 1", "b + 2"], []),
        ("a, self.b = MADE\na + 1", Through.ELEMENTS, ["a + 1"], ["a, self.b = MADE"]),
        ("a, *b = MADE\na + 1", Through.ELEMENTS, ["a + 1"], ["a, *b = MADE"]),
        # Branches
        ("x = MADE if c else g()\nx + 1", Through.BRANCHES, ["x + 1"], []),
        ("x = MADE if c else g()\nx + 1", Through.NAMES, ["MADE if c else g()"], []),
        ("x = g() if MADE else h()\nx + 1", Through.BRANCHES, ["g() if MADE else h()"], []),
        ("x = MADE or g()\nx + 1", Through.BRANCHES, ["x + 1"], []),
        # Containers
        ("x = [g(), MADE]\nx + 1", Through.PARTS, ["x + 1[1]"], []),
        ("x = [g(), MADE]\nx + 1", Through.NAMES, ["MADE"], []),
        ("x = [*g(), MADE]\nx + 1", Through.PARTS, [f"x + 1[{ELEMENT}]"], []),
        ("x = {1: MADE}\nx + 1", Through.PARTS, [f"x + 1[{ELEMENT}]"], []),
        ("x = {MADE: 1}\nx + 1", Through.PARTS, ["MADE: 1"], []),
        ("x = {MADE}\nx + 1", Through.PARTS, [f"x + 1[{ELEMENT}]"], []),
        ("x = [(MADE, 1)]\nx + 1", Through.PARTS, ["x + 1[0][0]"], []),
        ("a, b = g(), MADE\na + 1\nb + 2", Through.PARTS, ["b + 2"], []),
        ("a, (b, c) = g(), (1, MADE)\nc + 2", Through.PARTS, ["c + 2"], []),
        ("a, *b = g(), MADE", Through.PARTS, [], ["a, *b = g(), MADE[1]"]),
        ("t = g(), MADE\na, b = t\nb + 2", Through.PARTS, ["b + 2"], []),
        # What leads back to itself is looked at once.
        ("x = MADE\nwhile c:\n    y = x\n    x = y\nx + 1", Through.NAMES, ["x + 1 or another"], []),
    ],
)  # fmt: skip
def test_where_it_goes(code: str, through: Through, found: list[str], lost: list[str]) -> None:
    assert shown(code, through) == (found, lost)


def test_what_hands_it_on_is_followed() -> None:
    node, context = look("x = LOOK(made).float()\ny = x.float()\ny + 1")
    call = context.parent(context.parent(node) or node)
    assert isinstance(call, cst.Call)

    def cast(_: cst.BaseExpression, taker: cst.CSTNode) -> cst.BaseExpression | None:
        above = context.parent(taker) if isinstance(taker, cst.Attribute) else None
        return above if isinstance(above, cst.Call) else None

    destinations = context.destinations(call, handed_on=cast)
    [found] = destinations.found
    assert context.code(context.parent(found.node) or found.node) == "y + 1"
    assert [context.code(held.node) for held in destinations.held] == [
        "LOOK(made)",
        "LOOK(made).float()",
        "x",
        "x.float()",
        "y",
    ]


def test_the_cost_is_bounded() -> None:
    """A list that is put into itself in a loop has no end, nor has a chain of names any length."""
    assert shown("x = MADE\nwhile c:\n    x = [x]\nx + 1", Through.PARTS)[1]
    chain = "".join(f"x{n + 1} = x{n}\n" for n in range(MOST_STEPS + 10))
    found, lost = shown(f"x0 = MADE\n{chain}x{MOST_STEPS + 10} + 1", Through.NAMES)
    assert not found
    assert len(lost) == 1
    short = "".join(f"x{n + 1} = x{n}\n" for n in range(MOST_STEPS - 10))
    assert shown(f"x0 = MADE\n{short}x{MOST_STEPS - 10} + 1", Through.NAMES) == ([f"x{MOST_STEPS - 10} + 1"], [])


def test_the_readers_of_a_name() -> None:
    node, context = look("x = f()\nx + 1\nif c:\n    x = g()\n    x + 2\nLOOK(x)\nx += 1\nx + 3")
    assert isinstance(node, cst.Name)
    lines = [context.code(context.parent(name) or name).strip() for name in context.readers(node)]
    assert lines == ["x + 1", "x + 2", "x", "x += 1"]


# Questions that ask themselves


@query(bottom=False)
def is_made(node: cst.BaseExpression, context: Context) -> bool:
    """Whether all that an expression may be is what `f()` gives, perhaps with a minus."""
    match node:
        case cst.Name():
            return context.origins(node).every(lambda each: is_made(each, context))
        case cst.UnaryOperation(expression=inner):
            return is_made(inner, context)
        case cst.Call(func=cst.Name(value=name)):
            return name == "f"
    return False


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("x = f()\nLOOK(x)", True),
        ("x = -f()\ny = -x\nLOOK(y)", True),
        ("x = g()\nLOOK(-x)", False),
        # A value that is made of itself is not known to be anything.
        ("x = f()\nwhile c:\n    x = -x\nLOOK(x)", False),
        ("x = f()\ny = f()\nwhile c:\n    x, y = -y, -x\n    x = -y\n    y = -x\nLOOK(x)", False),
        ("LOOK(None)", False),
        ("LOOK(unknown)", False),
    ],
)
def test_a_question_that_asks_itself(code: str, *, wanted: bool) -> None:
    node, context = look(code)
    assert is_made(node, context) is wanted
    assert is_made(node, context) is wanted  # as it was answered before


def test_a_question_is_answered_once() -> None:
    asked: list[str] = []

    @query(bottom=0)
    def size(node: cst.BaseExpression, context: Context) -> int:
        asked.append(type(node).__name__)
        match node:
            case cst.BinaryOperation(left=left, right=right):
                return size(left, context) + size(right, context)
        return 1

    node, context = look("LOOK(a + b)")
    assert size(node, context) == 2
    assert size(node, context) == 2
    assert asked == ["BinaryOperation", "Name", "Name"]


def test_questions_of_the_same_node_do_not_mix() -> None:
    @query(bottom=0)
    def times(node: cst.BaseExpression, _: object, factor: int) -> int:
        return factor * len(type(node).__name__)

    @query(bottom=0)
    def other(node: cst.BaseExpression, _: object, factor: int) -> int:
        return -factor * len(type(node).__name__)

    node, context = look("LOOK(a)")
    assert (times(node, context, 1), times(node, context, 2), other(node, context, 1)) == (4, 8, -4)


def test_a_question_ends_however_long_the_way() -> None:
    chain = "".join(f"x{n + 1} = -x{n}\n" for n in range(50))
    node, context = look(f"x0 = f()\n{chain}LOOK(x50)")
    assert is_made(node, context)
    ring = "".join(f"    x{n + 1} = -x{n}\n" for n in range(50))
    node, context = look(f"x0 = f()\nwhile c:\n{ring}    x0 = x50\nLOOK(x0)")
    assert not is_made(node, context)
