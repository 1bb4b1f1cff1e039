"""How tests of the model point at an expression: `LOOK(…)` in a snippet."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.tree import Tree

Look: TypeAlias = Callable[[str], tuple[cst.BaseExpression, Context]]


def look(code: str, hot: tuple[str, ...] = ()) -> tuple[cst.BaseExpression, Context]:
    """Find the expression inside `LOOK(…)`, as an expression of the module and with its context; `hot` is what is declared."""
    source = SourceFile("snippet.py", dedent(code))
    context = Context(Tree(cst.parse_module(source.text)), source, Settings((), hot=hot))
    for call in context.tree.of(cst.Call):
        if isinstance(call.func, cst.Name) and call.func.value == "LOOK":
            return call.args[0].value, context
    raise AssertionError("no LOOK(…) in the snippet")
