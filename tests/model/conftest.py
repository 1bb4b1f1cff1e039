"""What tests of the model share: a module's context, and the node that a marker points at."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.model.context import Context
from torchlint.model.tree import Tree
from torchlint.settings import Settings
from torchlint.source import SourceFile

Look = Callable[[str], tuple[cst.BaseExpression, Context]]


@pytest.fixture
def look() -> Look:
    """Find the expression inside `LOOK(…)` in a snippet, as an expression of the module and with its context."""

    def find(code: str) -> tuple[cst.BaseExpression, Context]:
        source = SourceFile("snippet.py", dedent(code))
        context = Context(Tree(cst.parse_module(source.text)), source, Settings(()))
        for call in context.tree.of(cst.Call):
            if isinstance(call.func, cst.Name) and call.func.value == "LOOK":
                return call.args[0].value, context
        raise AssertionError("no LOOK(…) in the snippet")

    return find
