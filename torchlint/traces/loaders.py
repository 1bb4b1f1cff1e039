"""Which loops go over what a statement makes, by the names that both use."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from torchlint.finding import Finding
from torchlint.source import SourceFile

# Rules that speak of where a loader is made, while its time passes in the loop over it; one more speaks of its copies.
OF_LOADING = frozenset(
    {
        "dataloader-no-workers",
        "dataloader-respawns-workers",
        "dataloader-built-in-loop",
        "tensor-dataset-collated-itemwise",
    }
)
OF_LOADERS = OF_LOADING | {"dataloader-not-pinned"}


class Loaders:
    """The files that loaders are made and gone over in."""

    def __init__(self, sources: Mapping[str, SourceFile]) -> None:
        self._sources = sources
        self._trees: dict[str, ast.Module | None] = {}

    def loops(
        self, source: SourceFile, finding: Finding, places: Iterable[tuple[str, int]], *, is_only: bool
    ) -> set[tuple[str, int]]:
        """Of the places of loops, those over what is made at a finding; all, where no other loader is spoken of."""
        if is_only:
            return set(places)
        row = source.position(finding.span.start)[0]
        made = {
            name
            for node in self._nodes(source.path)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.lineno <= row <= (node.end_lineno or node.lineno)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for name in _names(target)
        }
        return {place for place in places if made & self._iterated(*place)}

    def _iterated(self, path: str, row: int) -> set[str]:
        return {
            name
            for node in self._nodes(path)
            if isinstance(node, (ast.For, ast.AsyncFor)) and node.lineno <= row < node.body[0].lineno
            for name in _names(node.iter)
        }

    def _nodes(self, path: str) -> Iterable[ast.AST]:
        if path not in self._trees:
            source = self._sources.get(path)
            try:
                self._trees[path] = ast.parse(source.text) if source is not None else None
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._trees[path] = None
        tree = self._trees[path]
        return ast.walk(tree) if tree is not None else ()


def _names(node: ast.AST) -> set[str]:
    """The names and attributes that an expression uses."""
    return {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, (ast.Name, ast.Attribute))
    } - {"self"}
