"""What in the file makes a node run as often as it does."""

from __future__ import annotations

import libcst as cst

from torchlint.finding import Frequency
from torchlint.semantics.context import Context


def cause(node: cst.CSTNode, context: Context) -> cst.CSTNode | None:
    """What makes a node run at each batch or more often: what a loop goes over, a call, or the name of a function.

    None where it runs less often, or where nobody knows.
    """
    if context.frequency(node) < Frequency.BATCH:
        return None
    frequencies = context.frequencies
    loop = frequencies.batch_loop(node)
    if loop is not None:
        return loop.iter if isinstance(loop, cst.For) else loop.test
    function = context.tree.function(node)
    if not isinstance(function, cst.FunctionDef):
        return None
    entry = frequencies.entry(function)
    calls = frequencies.calls.callers(function)
    return next((call for call in calls if frequencies.frequency(call) is entry), function.name)
