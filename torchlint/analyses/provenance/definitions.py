"""The expressions that a name stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.context import Context


_DEEPEST = 4


def definitions(tensor: cst.BaseExpression, context: Context, depth: int = 0) -> Iterator[cst.BaseExpression]:
    """The expressions that the tensor is the value of, through names."""
    if isinstance(tensor, cst.Name) and depth < _DEEPEST:
        bindings = context.reaching(tensor)
        if bindings and all(binding.value is not None and not binding.path for binding in bindings):
            for binding in bindings:
                assert binding.value is not None
                yield from definitions(binding.value, context, depth + 1)
            return
    yield tensor
