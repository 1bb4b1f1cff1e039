"""A function or class that a loader's workers cannot be given where processes are not forked."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Rule
from torchlint.semantics.knowledge.conventions.functions import TEST_FUNCTION

from ._shared import LOADERS

RULE = Rule(
    name="unpicklable-loader-argument",
    code="TL116",
    group="data",
    summary="A lambda, or a local function or class, cannot be pickled for spawned workers.",
    since="0.2.0",
    default=False,
    doubts=((Doubt.NAMED_RARE, ""),),
)
_UNPICKLABLE = Message(
    "unpicklable",
    "{what} cannot be pickled, so the loop over the loader fails where workers are spawned",
    help="define it at the top level of a module",
)


@RULE.on(*LOADERS)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag what a loader with workers would have to pickle for them and cannot."""
    from ._shared.worker_processes import is_forked, number_of_workers, unpicklable

    if number_of_workers(node, context) is None or is_forked(node, context):
        return
    for name, found in unpicklable(node, context):
        what = f"a lambda in `{name}`" if isinstance(found, cst.Lambda) else f"the local `{context.shown(found)}`"
        yield Flag(
            found,
            _UNPICKLABLE.of(what=what),
            doubts=(Doubt.NAMED_RARE,) if _is_test(context.function(node)) else (),
        )


def _is_test(function: cst.CSTNode | None) -> bool:
    """Whether a function tries out what the file has."""
    return isinstance(function, cst.FunctionDef) and TEST_FUNCTION.suggests(function.name.value)
