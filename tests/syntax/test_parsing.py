"""Trees that are parsed for torchlint are LibCST's, and LibCST is as it was for all else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest

from torchlint.syntax import parsing

FIXTURES = Path(__file__).parents[2] / "fixtures"
TEXT = "def f(a, *b, c: int = 1, **d):\n    return [a, b[0:1, ...], {'k': c}, *d]  # note\n"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("[d-i]*/slow.py")), ids=lambda path: path.parent.name)
def test_the_tree_is_what_libcst_gives_where_nothing_is_changed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = parsing.parse(text)
    assert tree.code == text
    assert tree.deep_equals(cst.parse_module(text))


def test_it_is_what_an_interpreter_gives_that_has_not_loaded_torchlint() -> None:
    """As far as `repr` tells, which names every type and field."""
    code = f"import libcst; print(libcst.parse_module({TEXT!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{parsing.parse(TEXT)!r}\n" == done.stdout


def test_white_space_is_shared_in_it_alone() -> None:
    body = parsing.parse("x = 1\ny = 2\n").body
    assert body[0].trailing_whitespace is body[1].trailing_whitespace  # type: ignore[union-attr]
    body = cst.parse_module("x = 1\ny = 2\n").body
    assert body[0].trailing_whitespace is not body[1].trailing_whitespace  # type: ignore[union-attr]


@pytest.mark.parametrize("text", [TEXT, "def f(:\n"])
def test_libcst_is_as_it_was(text: str) -> None:
    kinds = {name: getattr(cst, name) for name in dir(cst)}
    try:
        parsing.parse(text)
    except cst.ParserSyntaxError:
        assert text != TEXT
    assert {name: getattr(cst, name) for name in dir(cst)} == kinds
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")
    with pytest.raises(cst.CSTValidationError):
        cst.Subscript(cst.Name("x"), [])


def test_nodes_that_are_made_by_hand_have_their_defaults() -> None:
    first, second = (
        cst.FunctionDef(
            cst.Name("f"), cst.Parameters([cst.Param(cst.Name("a"))]), cst.SimpleStatementSuite([cst.Pass()])
        )
        for _ in range(2)
    )
    assert cst.Module([first]).code == "def f(a): pass\n"
    assert first.whitespace_after_def is not second.whitespace_after_def
    assert first.with_changes(name=cst.Name("g")).name.value == "g"
    with pytest.raises(TypeError, match="unexpected keyword"):
        cst.Name("x", value2="y")  # type: ignore[call-arg]
