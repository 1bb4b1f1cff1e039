"""Code of an expression in another place, and how a function of torch is spelt there."""

from __future__ import annotations

import libcst as cst
import pytest
from looking import look

from torchlint.edits.expressions import (
    as_argument,
    as_owner,
    deleted,
    fits_in_string,
    in_place_of,
    is_spelt_out,
    loses_comment,
    may_swap,
    shown_owner,
    with_argument,
)
from torchlint.edits.imports import spelling
from torchlint.edits.messages import how_often


@pytest.mark.parametrize(
    ("code", "owner", "shown"),
    [
        ("LOOK(x)", "x", "x"),
        ("LOOK(x.y)", "x.y", "x.y"),
        ("LOOK(f(x))", "f(x)", "f(x)"),
        ("LOOK(x[0])", "x[0]", "x[0]"),
        ("LOOK(x + y)", "(x + y)", "(x + y)"),
        ("LOOK((x + y))", "(x + y)", "(x + y)"),
        ("LOOK(f(\n    x\n))", "f(\n    x\n)", "f(x)"),
        ("LOOK(x\n    .y)", "(x\n    .y)", "x.y"),
        ("LOOK(3)", "(3)", "(3)"),
    ],
)
def test_what_a_method_is_called_of_is_in_brackets_where_it_must(code: str, owner: str, shown: str) -> None:
    node, context = look(code)
    assert as_owner(node, context) == owner
    assert "".join(shown_owner(node, context).split()) == "".join(shown.split())


@pytest.mark.parametrize(
    ("code", "new"),
    [
        ("x = LOOK(y)", "z"),
        ("LOOK((y))", "(z)"),
    ],
)
def test_code_in_the_place_of_another_keeps_its_brackets(code: str, new: str) -> None:
    node, context = look(code)
    assert in_place_of(node, "z", context) == new


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("return[x]", "(y)"),
        ("return [x]", "y"),
        ("z = [x]if a else b", "(y)"),
        ("z = [x] if a else b", "y"),
    ],
)
def test_code_does_not_touch_the_word_beside_it(line: str, new: str) -> None:
    _, context = look(f"def f(x, a, b):\n    {line}\nLOOK(1)")
    (node,) = context.tree.of(cst.List)
    assert in_place_of(node, "y", context) == new
    assert in_place_of(node, "+y+", context) == "+y+"


@pytest.mark.parametrize(
    ("call", "added"),
    [
        ("f(x)", ", new=1"),
        ("f(x, y)", ", new=1"),
        ("f(\n    x,\n    y\n)", ",\n    new=1"),
        ("f(\n    x,\n    y,\n)", ",\n    new=1"),
        ("f(\n    x,\n)", ",\n    new=1"),
        ("f(\n    x\n)", ", new=1"),
        ("f(x,\n  y, z)", ", new=1"),
        ("f(\n    x,\n    y,  # of the last\n)", ", new=1"),
        ("f(\n    x,  # of the first\n    y,\n)", ",\n    new=1"),
    ],
)
def test_an_argument_stands_behind_the_last_as_the_others_do(call: str, added: str) -> None:
    node, context = look(f"LOOK({call})")
    assert isinstance(node, cst.Call)
    insert = with_argument(node, "new=1", context)
    assert insert.node is node.args[-1]
    assert insert.code == added


def test_an_argument_needs_another_to_stand_behind() -> None:
    node, context = look("LOOK(f())")
    assert isinstance(node, cst.Call)
    with pytest.raises(ValueError, match="no arguments"):
        with_argument(node, "new=1", context)


def test_an_argument_is_taken_without_its_comma() -> None:
    node, context = look("LOOK(f(x=1 , y=2,\n))")
    assert isinstance(node, cst.Call)
    assert [as_argument(argument, context).strip() for argument in node.args] == ["x=1", "y=2"]


def test_a_comment_is_lost_where_it_stands_in_no_part_that_is_kept() -> None:
    node, context = look("LOOK(f(  # of f\n    g(  # of g\n        x)))")
    assert isinstance(node, cst.Call)
    inner = node.args[0].value
    assert loses_comment(node, inner, context=context)
    assert not loses_comment(inner, inner, context=context)
    assert not loses_comment(node, node, context=context)


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("a()\ngone()\nb()\n", "a()\nb()\n"),
        ("a()\n# why\ngone()\nb()\n", "a()\n# why\nb()\n"),
        ("a()\n\ngone()\nb()\n", "a()\n\nb()\n"),
        ("a()\n\ngone()\n\nb()\n", "a()\n\nb()\n"),
        ("a()\n\ngone()\n# why\nb()\n", "a()\n\n# why\nb()\n"),
        ("a()\n\ngone()\n", "a()\n"),
        ("if c:\n    a()\n\n    gone()\n    b()\n", "if c:\n    a()\n\n    b()\n"),
    ],
)
def test_a_deleted_statement_leaves_what_stands_above_it(code: str, left: str) -> None:
    _, context = look(f"{code}LOOK(1)\n" if code.endswith("b()\n") else f"LOOK(1)\n{code}")
    (call,) = (call for call in context.tree.of(cst.Call) if context.code(call) == "gone()")
    statement = context.tree.line(call)
    assert isinstance(statement, cst.SimpleStatementLine)
    edit = deleted(statement, context)
    span = context.spans({statement}).outer(statement)
    text = context.source.text
    made = text[: span.start] + edit.code + text[span.end :]
    assert made.replace("LOOK(1)\n", "") == left


@pytest.mark.parametrize(
    ("code", "is_printed", "fits"),
    [
        ("f'{LOOK(x)}'", False, True),
        ("f'{LOOK(x)=}'", True, True),
        ('f"{LOOK(x)}"', False, False),
        ("f'''{LOOK(x)}'''", False, True),
        ("LOOK(x)", False, True),
    ],
)
def test_what_is_printed_of_code_in_strings(code: str, is_printed: bool, fits: bool) -> None:  # noqa: FBT001
    node, context = look(code)
    assert is_spelt_out(node, context) is is_printed
    assert fits_in_string('y["a"]', node, context) is fits


@pytest.mark.parametrize(
    ("string", "code", "fits"),
    [
        ("f'{LOOK(x)}'", "y\n", False),
        ("f'''{LOOK(x)}'''", "y\n", True),
        ("f'''{LOOK(x)}'''", "y  # why\n", False),
        ("f'{LOOK(x)}'", "'\\n'", False),
        ("f'''{LOOK(x)}'''", "y['a']", False),
    ],
)
def test_what_no_string_of_older_pythons_holds(string: str, code: str, fits: bool) -> None:  # noqa: FBT001
    node, context = look(string)
    assert fits_in_string(code, node, context) is fits


@pytest.mark.parametrize(
    ("pair", "may"),
    [
        ("f(), x", True),
        ("x, f()", True),
        ("(x, -1), f()", True),
        ("x.y, f()", False),
        ("x.y, torch.relu(x)", True),
        ("x.y, nn.Linear(3, 4)(x)", True),
        ("f(), torch.relu(x)", False),
        ("(y := 1), x", False),
        ("x, (y := 1)", False),
    ],
)
def test_what_may_be_evaluated_before_another(pair: str, may: bool) -> None:  # noqa: FBT001
    node, context = look(f"import torch\nfrom torch import nn\nLOOK(({pair}))")
    assert isinstance(node, cst.Tuple)
    first, then = (element.value for element in node.elements)
    assert may_swap([first], then, context) is may


@pytest.mark.parametrize(
    ("code", "spelt"),
    [
        ("import torch\nLOOK(1)", "torch.nn.functional.relu"),
        ("import torch as th\nLOOK(1)", "th.nn.functional.relu"),
        ("import torch\nimport torch.nn.functional as F\nLOOK(1)", "F.relu"),
        ("from torch import nn\nLOOK(1)", "nn.functional.relu"),
        ("from torch.nn.functional import relu\nLOOK(1)", "relu"),
        ("from torch.nn.functional import relu as r\nLOOK(1)", "r"),
        ("import torch\nimport torch as t\nLOOK(1)", "t.nn.functional.relu"),
        ("import numpy\nLOOK(1)", ""),
        ("import torchvision\nLOOK(1)", ""),
        # An import has to have run.
        ("LOOK(1)\nimport torch", ""),
        ("if a:\n    import torch\nLOOK(1)", ""),
        ("if a:\n    import torch\n    LOOK(1)", "torch.nn.functional.relu"),
        ("def f():\n    LOOK(1)\nimport torch", ""),
        ("import torch\ndef f():\n    LOOK(1)", "torch.nn.functional.relu"),
        ("def f():\n    import torch\n    LOOK(1)", "torch.nn.functional.relu"),
        ("def f():\n    import torch\ndef g():\n    LOOK(1)", ""),
        # The name has to mean it there.
        ("import torch\ntorch = 3\nLOOK(1)", ""),
        ("import torch\ndel torch\nLOOK(1)", ""),
        ("import torch\ndef f(torch):\n    LOOK(1)", ""),
        ("import torch\nimport numpy as torch\nLOOK(1)", ""),
        ("class A:\n    import torch\n    LOOK(1)", "torch.nn.functional.relu"),
        ("class A:\n    import torch\n    def f(self):\n        LOOK(1)", ""),
        ("import torch\nclass A:\n    torch = 3\n    def f(self):\n        LOOK(1)", "torch.nn.functional.relu"),
    ],
)
def test_the_shortest_way_to_spell_a_function(code: str, spelt: str) -> None:
    node, context = look(code)
    assert spelling("torch.nn.functional.relu", node, context) == spelt


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("LOOK(1)", ""),
        ("for x in loader:\n    LOOK(1)", " every batch"),
        ("for epoch in range(9):\n    LOOK(1)\n    for x in loader: ...", " every epoch"),
        ("for x in loader:\n    for y in x:\n        LOOK(1)", " several times a batch"),
    ],
)
def test_words_for_how_often(code: str, words: str) -> None:
    node, context = look(code)
    assert how_often(node, context) == words
