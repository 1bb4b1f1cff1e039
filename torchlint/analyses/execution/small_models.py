"""Whether a model has only a layer or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names.bindings import Binder, last_part
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.context import Context


# Layers with a parameter or two, and how many of them make no work worth fusing.
_LAYERS = frozenset(
    f"torch.nn.{name}" for name in ("Linear", "Embedding", "Conv1d", "Conv2d", "Dropout", "BatchNorm1d")
)


_FEW = 2


def _is_parallel(call: cst.Call, context: Context) -> bool:
    return bool(call.args) and (context.qualified_name(call.func) or "").endswith("DataParallel")


def is_small(owner: cst.BaseExpression, context: Context, wrapped: int = 0) -> bool:
    """Whether a model has one or two layers, as its class in this file shows; `wrapped` so many times around it."""
    if isinstance(owner, cst.Name) and wrapped <= _FEW:  # `net = DataParallel(net)` may stand in a loop
        made = [binding.value for binding in context.reaching(owner) if binding.binder is Binder.ASSIGN]
        if made and all(isinstance(value, cst.Call) and _is_parallel(value, context) for value in made):
            return all(
                isinstance(value, cst.Call) and is_small(value.args[0].value, context, wrapped + 1) for value in made
            )
    value = context.value(owner)
    if isinstance(value.definition, cst.ClassDef):
        names = [
            context.qualified_name(node.func) or "?"
            for node in descendants(value.definition.body)
            if isinstance(node, cst.Call) and last_part(node.func)[:1].isupper()
        ]
        return len(names) <= _FEW and all(name in _LAYERS for name in names)
    return value.qualified in _LAYERS
