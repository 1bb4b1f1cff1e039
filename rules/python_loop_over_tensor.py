"""A Python loop over the elements of a tensor: each turn launches kernels, or waits for the device, for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Flag, Node, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context
    from torchlint.model.elements import ElementLoop, Step
    from torchlint.model.visits import LoopNode

RULE = Rule(
    name="python-loop-over-tensor",
    code="TL901",
    group="vectorise",
    summary="A Python loop over the elements of a tensor launches kernels, or waits for the device, for each of them.",
    since="0.1.0",
)
# A longer expression says less than "a tensor".
_LONGEST = 40


@RULE.on(Node("For", (b"for",)), Node("CompFor", (b"for",)), Node("While", (b"while",)))
def check(node: cst.For | cst.CompFor | cst.While, context: Context) -> Iterator[Flag]:
    """Flag the outermost loop that works element by element though its turns don't need each other."""
    from torchlint.model.visits import loops_around

    step = _avoidable(node, context)
    if step is None or any(_avoidable(outer, context) for outer in loops_around(node, context)):
        return
    yield Flag(node, _message(step, context))


def _avoidable(node: LoopNode, context: Context) -> Step | None:
    """The step of a turn that one operation on the whole tensor would do for all turns."""
    from torchlint.model.carried import Carried
    from torchlint.model.elements import element_loop
    from torchlint.model.extent import is_few, is_plain, runs_rarely, saves_memory
    from torchlint.model.stacks import is_all_there_is
    from torchlint.model.visits import visit

    if isinstance(node, cst.While) and context.loop(node) is not None:
        return None  # a search in step with the loop around it
    visited = visit(node, context)
    if is_few(node, visited, context):
        return None
    found = element_loop(node, visited, context)
    if found is None or found.runs or not is_plain(node, context):
        return None
    if runs_rarely(node, context) or saves_memory(node, context):
        return None
    steps = [step for step in found.steps if not is_all_there_is(step.node, context)]  # has a rule of its own
    if found.carried < Carried.RESULTS and visited.is_over_tensors:
        read = next((step for step in steps if _is_one_of_many_reads(step, context)), None)
        if read is not None:
            return read
    if found.carried is Carried.NOTHING and not found.mixed:
        return min((step for step in steps if _is_batchable(step, found, context)), key=_rank, default=None)
    return None


def _rank(step: Step) -> int:
    """How much a step says about its loop: storing a result says least."""
    from torchlint.model.elements import Work

    if step.work is Work.KERNEL:
        return 3 if isinstance(step.node, cst.Assign) else 1
    return 0 if step.work is Work.MASK else 2


def _is_one_of_many_reads(step: Step, context: Context) -> bool:
    """Whether the host waits for one element here, where it could have had them all at once."""
    from torchlint.model.elements import Work
    from torchlint.model.reads import is_host_only

    return (
        step.work is Work.READ
        and step.direct
        and step.device.may_be_accelerator
        and not is_host_only(context, step.device)
        and not context.frequencies.is_rate_limited(step.node)
    )


def _is_batchable(step: Step, loop: ElementLoop, context: Context) -> bool:
    """Whether the device could do this for all elements at once. On the CPU it matters only where it is hot."""
    from torchlint.finding import Frequency
    from torchlint.model.elements import Work
    from torchlint.model.extent import is_over_classes

    if step.work is Work.READ or isinstance(loop.node, cst.While):
        return False
    if not is_over_classes(loop.visit) and (loop.opaque or (loop.ragged and step.work is not Work.MASK)):
        return False
    return step.device.may_be_accelerator or context.frequency(loop.node) >= Frequency.BATCH


def _message(step: Step, context: Context) -> str:
    from torchlint.model.elements import Work

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
