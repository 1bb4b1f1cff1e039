"""How a function of torch can be called at a place, by what the module imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names.bindings import Binder
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.context import Context
    from torchlint.semantics.names.bindings import Binding, Scope


def spelling(qualified: str, place: cst.CSTNode, context: Context) -> str:
    """`F.relu` for `torch.nn.functional.relu` where `F` is imported; the shortest way, empty if there is none.

    An import counts that stands above the place, in a block around it, so that it has run wherever the place runs.
    """
    first = scope = context.names.scope_of(place)
    hidden: set[str] = set()
    found: list[str] = []
    while scope is not None:
        if not scope.is_class or scope is first:
            found += _imported(qualified, scope, hidden, place, context)
            hidden |= scope.bindings.keys()
        if scope.parent is None:
            break
        scope = scope.parent
    return min(found, key=lambda text: (text.count("."), len(text), text), default="")


def _imported(qualified: str, scope: Scope, hidden: set[str], place: cst.CSTNode, context: Context) -> list[str]:
    found = []
    deleted = _deleted(context)
    for name, bindings in scope.bindings.items():
        targets = {binding.target for binding in bindings}
        if name in hidden | deleted or len(targets) != 1:
            continue
        if any(binding.binder is not Binder.IMPORT for binding in bindings):
            continue
        if not any(_has_run(binding, place, context) for binding in bindings):
            continue
        target = targets.pop()
        if target == qualified:
            found.append(name)
        elif qualified.startswith(f"{target}."):
            found.append(name + qualified[len(target) :])
    return found


def _has_run(binding: Binding, place: cst.CSTNode, context: Context) -> bool:
    """Whether the import stands above the place, and in a block that the place stands in too."""
    if binding.effect >= context.tree.place(place):
        return False
    line = context.tree.line(binding.node)
    block = context.parent(line) if line is not None else None
    return block is not None and context.tree.within(place, block)


def _deleted(context: Context) -> set[str]:
    return {part.value for node in context.tree.of(cst.Del) for part in descendants(node) if isinstance(part, cst.Name)}
