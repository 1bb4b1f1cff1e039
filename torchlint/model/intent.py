"""Signs that somebody meant it so: tests, comments beside a value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.model.context import Context

_TEST_FOLDER = re.compile(r"(^|/)(tests/|conftest\.py$)")
# An evaluation script may be called `test_net.py`: of such files only those that hold tests are some.
_TEST_FILE = re.compile(r"(^|/)test_[^/]*\.py$|_test\.py$")
_HOLDS_TESTS = re.compile(r"^\s*(def test_|import (pytest|unittest)|from unittest )", re.MULTILINE)

_DIRECTIVE = re.compile(r"\btorchlint:|\bnoqa\b|<-", re.IGNORECASE)


def is_test(context: Context) -> bool:
    """Whether the file holds tests, by where it is, or by its name and what is in it."""
    path = context.source.path
    return bool(_TEST_FOLDER.search(path) or (_TEST_FILE.search(path) and _HOLDS_TESTS.search(context.source.text)))


def comment_behind(node: cst.CSTNode, context: Context) -> str:
    """What a comment behind the node on its line says; nothing where it speaks to a linter."""
    row, column = context.source.position(context.spans({node}).outer(node).end)
    comment = context.source.line(row)[column - 1 :].partition("#")[2]
    return "" if _DIRECTIVE.search(comment) else comment
