"""How a function of torch can be called at a place, by what the module imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.model.names import Binder

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.model.context import Context
    from torchlint.model.names import Scope


def spelling(qualified: str, place: cst.CSTNode, context: Context) -> str:
    """`F.relu` for `torch.nn.functional.relu` where `F` is imported; the shortest way, empty if there is none."""
    first = scope = context.names.scope_of(place)
    hidden: set[str] = set()
    found: list[str] = []
    while scope is not None:
        if not scope.is_class or scope is first:
            found += _imported(qualified, scope, hidden)
            hidden |= scope.bindings.keys()
        if scope.parent is None:
            break
        scope = scope.parent
    return min(found, key=lambda text: (text.count("."), len(text), text), default="")


def _imported(qualified: str, scope: Scope, hidden: set[str]) -> list[str]:
    found = []
    for name, bindings in scope.bindings.items():
        targets = {binding.target for binding in bindings}
        if name in hidden or len(targets) != 1 or any(binding.binder is not Binder.IMPORT for binding in bindings):
            continue
        target = targets.pop()
        if target == qualified:
            found.append(name)
        elif qualified.startswith(f"{target}."):
            found.append(name + qualified[len(target) :])
    return found
