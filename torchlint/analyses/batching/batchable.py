"""What one operation on a whole tensor would do for all iterations of a loop over its elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.batching.extent import (
    is_a_handful,
    is_few,
    is_many,
    is_named_few,
    is_over_classes,
    is_plain,
    may_save_memory,
    saves_memory,
)
from torchlint.analyses.batching.restacked import is_all_there_is
from torchlint.analyses.data.sample_code import is_for_samples, is_in_a_dataset
from torchlint.analyses.execution.hot import is_exceptional, rate_doubts
from torchlint.analyses.execution.rarity import named_rare, runs_rarely
from torchlint.analyses.host.logging import is_written
from torchlint.analyses.host.reads import is_host_only
from torchlint.analyses.iteration.carried import Carried
from torchlint.analyses.iteration.element_work import ElementLoop, Step, Work, element_loop
from torchlint.analyses.iteration.targets import LoopNode, Visit, visit
from torchlint.finding import Doubt, Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.names.loop_headers import asked_for_a_list, iterables, length_of
from torchlint.semantics.values.lattice import Device, Kind


@dataclass(frozen=True, slots=True)
class Batchable:
    """The step of an iteration that says most about what could be done for all at once, and why it may not pay."""

    step: Step
    doubts: tuple[Doubt, ...] = ()


# What costs launches, and no wait: nobody sees how many rows there are.
_ONLY_LAUNCHED = (Work.KERNEL, Work.FILL, Work.GATHER, Work.HAND)


def batchable(loop: LoopNode, context: Context) -> Batchable | None:
    """What could be done for all iterations of the loop at once; None if nothing could."""
    found = _over_elements(loop, context, is_for_few=True)
    if found is None:
        return None
    step = None if found.runs else next(iter(_reads(found, context)), None)
    if found.runs:
        is_free = found.carried is Carried.NOTHING and not found.mixed and not is_for_samples(loop, context)
        step = next((step for step in found.steps if step.work is Work.NETWORK), None) if is_free else None
    elif step is None:
        if found.carried is not Carried.NOTHING or found.mixed:
            return None
        step = min((step for step in found.steps if _is_batchable(step, found, context)), key=_rank, default=None)
        if step is None:
            return _batchable_perhaps(found, context)
    return None if step is None else Batchable(step, tuple(dict.fromkeys(_doubts(found, step, context))))


def _batchable_perhaps(loop: ElementLoop, context: Context) -> Batchable | None:
    """What could be done at once if what the iterations call takes a batch, or rows of any length are padded."""
    rate = context.frequency(loop.node)
    steps = (
        step
        for step in loop.steps
        if (rate >= Frequency.CALL or step.device is Device.ACCELERATOR)
        and not (loop.ragged and (rate < Frequency.BATCH or step.device is Device.UNKNOWN))
        and _is_batchable(step, loop, context, is_sure=False)
    )
    step = min(steps, key=_rank, default=None)
    if step is None:
        return None
    return Batchable(step, tuple(dict.fromkeys((Doubt.PER_ROW, *_doubts(loop, step, context)))))


def _doubts(loop: ElementLoop, step: Step, context: Context) -> Iterator[Doubt]:
    """Why it may not pay to do it at once, in the order of what it costs to know."""
    if is_a_handful(loop.visit, context) or is_named_few(loop.visit):
        yield Doubt.SMALL
    if may_save_memory(loop.node, context):
        yield Doubt.NAMED_OTHERWISE
    is_walked = isinstance(loop.node, (cst.For, cst.CompFor)) and loop.node.iter is step.tensor
    if is_walked and step.work is not Work.READ and not context.value(step.tensor).proven:
        yield Doubt.DATA_UNKNOWN  # or a list
    if step.work is Work.NETWORK:
        yield Doubt.MEMORY
    if step.work in _ONLY_LAUNCHED and not loop.selects and not is_many(loop.visit, step.tensor, context):
        yield Doubt.HOST_BOUND
    if is_written(loop.node, context):
        yield Doubt.HOST_NEEDS_IT
    if saves_memory(loop.node, context):
        yield Doubt.MEANT
    if runs_rarely(loop.node, context) or is_exceptional(loop.node, context):
        yield Doubt.RARE
    yield from named_rare(loop.node, context)
    if context.frequency(loop.node) < Frequency.BATCH and step.device is not Device.ACCELERATOR:
        is_on_the_cpu = step.work is not Work.READ and not step.device.may_be_accelerator
        seldom = rate_doubts(loop.node, context)
        if is_on_the_cpu:
            yield from seldom
        elif Doubt.RATE_UNKNOWN in seldom or Doubt.UNCALLED in seldom:
            yield from (*seldom, Doubt.DEVICE_UNKNOWN)
        elif seldom and step.device is Device.UNKNOWN and not context.value(step.tensor).proven:
            yield Doubt.DEVICE_UNKNOWN


def batchable_reads(loop: LoopNode, context: Context) -> list[Step]:
    """The steps at which the host waits for one element, where it could have had them all at once."""
    found = _worth_batching(loop, context)
    return [] if found is None else _reads(found, context)


def _worth_batching(loop: LoopNode, context: Context) -> ElementLoop | None:
    found = _over_elements(loop, context)
    if found is None or runs_rarely(loop, context) or is_exceptional(loop, context) or is_written(loop, context):
        return None
    if named_rare(loop, context):
        return None  # what is certain of the read is not to be lost for what is doubtful of the loop
    return None if saves_memory(loop, context) else found


def _over_elements(loop: LoopNode, context: Context, *, is_for_few: bool = False) -> ElementLoop | None:
    """What the loop does with elements of tensors, where it has many iterations; or a handful, at each batch."""
    if isinstance(loop, cst.While) and context.loop(loop) is not None:
        return None  # a search in step with the loop around it
    visited = visit(loop, context)
    if is_few(loop, visited, context) and not (
        is_for_few and is_a_handful(visited, context) and context.frequency(loop) >= Frequency.BATCH
    ):
        return None
    _ask_for_tensors(visited, context)
    found = element_loop(loop, visited, context)
    if found is None or not is_plain(loop, context) or _only_complains(loop):
        return None
    if found.runs and not (is_for_few and any(step.work is Work.NETWORK for step in found.steps)):
        return None
    return None if not isinstance(loop, cst.While) and _is_known_as_list(loop, context) else found


def _ask_for_tensors(visited: Visit, context: Context) -> None:
    """Have other files say what they pass, where the loop goes over a parameter whose items are used as tensors."""
    for name, given in visited.others:
        if context.kind(given) is Kind.UNKNOWN and (parameter := context.parameter(given)) is not None:
            function = context.tree.function_of_parameter(parameter)
            uses = context.names.spelt(name) if isinstance(function, cst.FunctionDef) else ()
            if any(context.kind(use) is Kind.TENSOR for use in uses):
                assert isinstance(function, cst.FunctionDef)
                context.elsewhere.callers(function)


def _only_complains(loop: LoopNode) -> bool:
    """Whether the iterations do nothing but to look at what was given, and fail where it is wrong: it is little."""
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
        return False
    return all(
        isinstance(statement, cst.If) and statement.orelse is None and _fails(statement.body)
        for statement in loop.body.body
        if not _is_pass(statement)
    )


def _fails(suite: cst.BaseSuite) -> bool:
    """Whether the block raises, and does nothing else."""
    if isinstance(suite, cst.SimpleStatementSuite):
        return isinstance(suite.body[-1], cst.Raise)
    return all(
        isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[-1], cst.Raise)
        for line in suite.body
        if not _is_pass(line)
    )


def _is_pass(line: cst.CSTNode) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and all(isinstance(part, cst.Pass) for part in line.body)


def _reads(loop: ElementLoop, context: Context) -> list[Step]:
    if loop.carried >= Carried.RESULTS or not loop.visit.is_over_tensors:
        return []
    found = [
        step
        for step in loop.steps
        if step.work is Work.READ
        and step.direct
        and step.device.may_be_accelerator
        and not is_host_only(context, step.device)
        and not is_in_a_dataset(step.node, context)
        and not context.frequencies.is_rate_limited(step.node)
        and not is_all_there_is(step.node, context)  # what has a rule of its own
    ]
    return [] if found and is_for_samples(loop.node, context) else found


def _is_batchable(step: Step, loop: ElementLoop, context: Context, *, is_sure: bool = True) -> bool:
    """Whether the device could do this for all elements at once; or might, if what it calls allows it."""
    if (
        step.work in (Work.READ, Work.NETWORK)
        or isinstance(loop.node, cst.While)
        or is_all_there_is(step.node, context)
    ):
        return False
    if is_sure and step.work is Work.HAND:
        return False
    if step.work is Work.FILL and not step.device.may_be_accelerator:
        return False  # there it costs no more than a few writes
    if (
        is_sure
        and not is_over_classes(loop.visit)
        and (loop.opaque or (loop.ragged and step.work not in (Work.MASK, Work.FILL)))
    ):
        return False
    # The workers of a loader do it meanwhile.
    return context.frequency(loop.node) >= Frequency.BATCH or not is_for_samples(step.node, context)


def _rank(step: Step) -> int:
    """How much a step says about its loop: storing a result says least."""
    if step.work is Work.KERNEL:
        return 3 if isinstance(step.node, cst.Assign) else 1
    return _RANKS.get(step.work, 2)


_RANKS = {Work.MASK: 0, Work.FILL: 4, Work.HAND: 5}


def _is_known_as_list(loop: cst.For | cst.CompFor, context: Context) -> bool:
    """Whether the branch around the loop has asked whether this is a list: `isinstance(y[0], (list, tuple))`."""
    walked = [length_of(each) for each in iterables(loop.iter)]
    for test, is_taken in context.conditions(loop):
        asked = asked_for_a_list(test) if is_taken else None
        if asked is not None and any(context.bare_code(asked) == context.bare_code(each) for each in walked):
            return True
    return False
