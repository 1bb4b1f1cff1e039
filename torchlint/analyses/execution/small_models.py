"""Whether a model has only a layer or two."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import last_part
from torchlint.syntax.tree import descendants

# Layers with a parameter or two, and how many of them make no work worth fusing.
_LAYERS = frozenset(
    f"torch.nn.{name}" for name in ("Linear", "Embedding", "Conv1d", "Conv2d", "Dropout", "BatchNorm1d")
)


_FEW = 2


def _is_parallel(call: cst.Call, context: Context) -> bool:
    return bool(call.args) and (context.qualified_name(call.func) or "").endswith("DataParallel")


@query(bottom=False)
def is_small(owner: cst.BaseExpression, context: Context) -> bool:
    """Whether a model has one or two layers, as its class in this file shows, wrapped or not."""
    if isinstance(owner, cst.Name):
        made = [origin.node for origin in context.bound_to(owner, Through.PARTS).found]
        wrapped = [value for value in made if isinstance(value, cst.Call) and _is_parallel(value, context)]
        if made and len(wrapped) == len(made):  # `net = DataParallel(net)`, which may stand in a loop
            return all(is_small(value.args[0].value, context) for value in wrapped)
    value = context.value(owner)
    if isinstance(value.definition, cst.ClassDef):
        names = [
            context.qualified_name(node.func) or "?"
            for node in descendants(value.definition.body)
            if isinstance(node, cst.Call) and last_part(node.func)[:1].isupper()
        ]
        return len(names) <= _FEW and all(name in _LAYERS for name in names)
    return value.qualified in _LAYERS
