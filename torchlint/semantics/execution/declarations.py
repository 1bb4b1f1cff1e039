"""Functions of which their author declares how often they run: a comment, or `hot` in the configuration."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint import declared
from torchlint.finding import Frequency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.syntax.tree import Tree

_PASS = cst.SimpleStatementSuite([cst.Pass()])


class Declaration(NamedTuple):
    """How often a function runs, and who says so: a comment, or nothing where it is the configuration."""

    frequency: Frequency
    comment: str = ""


class Declarations:
    """The declarations of one module. `hot` are the functions that the configuration names, as `Class.method`."""

    def __init__(self, tree: Tree, text: str, hot: tuple[str, ...]) -> None:
        self.tree = tree
        self._has_comments = declared.COMMENT.search(text) is not None
        self._hot = hot

    def of(self, function: cst.FunctionDef) -> Declaration | None:
        """What is declared of a function; a comment counts before the configuration."""
        return self._found.get(function) if self._has_comments or self._hot else None

    @cached_property
    def _found(self) -> dict[cst.FunctionDef, Declaration]:
        found: dict[cst.FunctionDef, Declaration] = {}
        for function in self.tree.of(cst.FunctionDef):
            comment = next(filter(declared.said, self._comments(function)), "") if self._has_comments else ""
            frequency = declared.said(comment)
            if frequency is not None:
                found[function] = Declaration(frequency, comment)
            elif self._hot and self._name(function) in self._hot:
                found[function] = Declaration(Frequency.BATCH)
        return found

    def _comments(self, function: cst.FunctionDef) -> Iterator[str]:
        """The comments of what begins a function: right above it, between its parameters, behind its colon."""
        match function.body:
            case cst.IndentedBlock(header=header):
                last = header
            case cst.SimpleStatementSuite(trailing_whitespace=last):
                pass
        if last.comment is not None:
            yield last.comment.value
        module = self.tree.module
        if module.body and module.body[0] is function:
            yield from (line.comment.value for line in module.header if line.comment is not None)
        head = module.code_for_node(function.with_changes(body=_PASS))
        yield from (match[0] for match in declared.COMMENT.finditer(head))

    def _name(self, function: cst.FunctionDef) -> str:
        """`Class.method`, or `outer.inner` for a function in another."""
        around = [
            above for above in self.tree.ancestors(function) if isinstance(above, (cst.FunctionDef, cst.ClassDef))
        ]
        return ".".join(node.name.value for node in (*reversed(around), function))
