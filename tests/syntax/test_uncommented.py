"""Of a text that people wrote, what is left is what the machine is told."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchlint.syntax.uncommented import comments, uncommented

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("x = 1  # sdpa\n", "x = 1  \n"),
        ("# sdpa\r\nx = 1\r\n", "\r\nx = 1\r\n"),
        ('"""sdpa"""\n', '""\n'),
        ("def f():\n    'sdpa'\n    return 1\n", "def f():\n    ''\n    return 1\n"),
        ("def f():\n    r'sdpa'  # a note\n", "def f():\n    r''  \n"),
        ('print("no sdpa here")\n', 'print("")\n'),
        ('x.to("cuda:0")\n', 'x.to("cuda:0")\n'),
        ('x = "# no comment"  # one\n', 'x = ""  \n'),
        ("x = '#ffffff'  # it's one\n", "x = '#ffffff'  \n"),
        (r'x = "a \" # b"  # c', 'x = ""  '),
        ('f"step {step} of {total}"\nx = 1', 'f"{step} {total}"\nx = 1'),
        ('x = f"state {rank}.pt"', 'x = f"{rank}"'),
        ('x = "no {rank} here"', 'x = ""'),
        ('x = """\n# sdpa\n"""\ny = "it\'s"  # z', 'x = ""\ny = "it\'s"  '),
    ],
)
def test_only_code_is_left(text: str, left: str) -> None:
    assert uncommented(text) == left


def test_code_without_any_is_left_as_it_is() -> None:
    assert uncommented("x = y.to(device)\n") == "x = y.to(device)\n"


def test_comments() -> None:
    assert list(comments('x = f("#1")  # one\n# two\n')) == ["# one", "# two"]


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").glob("*/slow.py")), ids=lambda path: path.parent.name)
def test_the_code_is_still_that_of_the_program(path: Path) -> None:
    """But for what strings hold, the tree is the same."""
    text = path.read_text()
    assert _without_strings(uncommented(text)) == _without_strings(text)


def _without_strings(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = [value for value in node.values if not isinstance(value, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)
