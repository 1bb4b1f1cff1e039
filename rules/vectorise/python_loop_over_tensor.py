"""A Python loop over the elements of a tensor: each turn launches kernels, or waits for the device, for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Flag, Node, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.analyses.iteration.element_work import Step
    from torchlint.semantics.context import Context

RULE = Rule(
    name="python-loop-over-tensor",
    code="TL901",
    group="vectorise",
    summary="A Python loop over the elements of a tensor launches kernels, or waits for the device, for each of them.",
    since="0.1.0",
    yields_to=(
        "item-in-train-loop",
        "item-in-eval-loop",
        "builtin-reduction-on-tensor",
        "item-comprehension",
        "stack-of-indexing",
    ),
    eager=True,
)
# A longer expression says less than "a tensor".
_LONGEST = 40


@RULE.on(Node("For", (b"for",)), Node("CompFor", (b"for",)), Node("While", (b"while",)))
def check(node: cst.For | cst.CompFor | cst.While, context: Context) -> Iterator[Flag]:
    """Flag the outermost loop that works element by element though its turns don't need each other."""
    from torchlint.analyses.batching.batchable import batchable_step  # the model's parts load LibCST
    from torchlint.analyses.iteration.targets import loops_around

    step = batchable_step(node, context)
    if step is None or any(batchable_step(outer, context) for outer in loops_around(node, context)):
        return
    yield Flag(node, _message(step, context))


def _message(step: Step, context: Context) -> str:
    from torchlint.analyses.iteration.element_work import Work

    code = context.code(step.tensor).strip()
    tensor = f"`{code}`" if "\n" not in code and len(code) <= _LONGEST else "a tensor"
    match step.work:
        case Work.READ:
            return (
                f"the host waits for one element of {tensor} at each turn; read all of them once before the loop, "
                "or compute on the whole tensor"
            )
        case Work.MASK:
            return f"each turn goes over all of {tensor} to compare it with one number; one batched operation goes once"
        case Work.GATHER:
            return f"each turn takes a part by one element of {tensor}; index with the whole tensor at once"
    return f"each turn launches kernels for one element of {tensor}; one batched operation would do for all"
