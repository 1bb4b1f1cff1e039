"""Reads of one element at each batch that a later read, or none at all, would do as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.execution.hot import is_hot
from torchlint.analyses.execution.training_steps import is_part_of_a_step
from torchlint.analyses.host.purpose import is_element_read, is_known_already, purpose
from torchlint.analyses.host.reads import is_needed_on_host, scalar_read
from torchlint.analyses.sync.adjacent_waits import is_beside_a_wait
from torchlint.analyses.sync.inherent_branches import is_switched_on
from torchlint.facts import Purpose

if TYPE_CHECKING:
    from torchlint.semantics.context import Context


def avoidable_read(node: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """The tensor that the expression reads one element of at each batch or more often, for nothing that hurries.

    None where it reads none, or where no later read, of many values at once or none at all, would do as well.
    """
    tensor = scalar_read(node, context)
    if tensor is None or is_needed_on_host(node, context):
        return None
    if isinstance(context.parent(node), cst.Expr) or is_beside_a_wait(node, tensor, context):
        return None  # the statement, or one right beside it, is there to wait
    if not is_element_read(tensor, context):
        if is_known_already(node, tensor, context):
            return None
        found = purpose(node, context)
        # In a loop that trains, what is not acted upon is there to be looked at.
        if found is Purpose.NEEDED or (found is Purpose.OTHER and not is_part_of_a_step(node, context)):
            return None
    if is_switched_on(node, context):
        return None
    # Last, since the callers in other files may have to be asked.
    return tensor if is_hot(node, context) else None
