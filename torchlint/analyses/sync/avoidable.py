"""Reads of one element at each batch that a later read, or none at all, would do as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.analyses.data.sample_code import is_for_samples
from torchlint.analyses.execution.hot import rate_doubts
from torchlint.analyses.execution.rarity import is_named_diagnostic
from torchlint.analyses.execution.training_steps import is_in_training, is_part_of_a_step
from torchlint.analyses.host.purpose import is_element_read, is_known_already, purpose
from torchlint.analyses.host.reading_helpers import Readers, is_read_for_callers, read_through
from torchlint.analyses.host.reads import is_needed_on_host, is_of_torch_alone, scalar_read
from torchlint.analyses.sync.adjacent_waits import is_beside_a_wait
from torchlint.analyses.sync.inherent_branches import switch_doubts
from torchlint.analyses.sync.invariant_reads import is_the_same_each_time
from torchlint.facts import Purpose
from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.packages import ARRAY_PACKAGE
from torchlint.semantics.names.bindings import final_part
from torchlint.semantics.values.lattice import Device
from torchlint.syntax.tree import Comprehension, Loop, descendants, descendants_in_scope


class Read(NamedTuple):
    """A tensor of which one element is read, and why no later read, or none at all, may do as well."""

    tensor: cst.BaseExpression
    doubts: tuple[Doubt, ...] = ()


def avoidable_read(node: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """The tensor that the expression reads one element of at each batch or more often, for nothing that hurries.

    None where it reads none, or where no later read, of many values at once or none at all, would do as well.
    """
    tensor = scalar_read(node, context)
    return tensor if tensor is not None and next(_doubts(node, tensor, context), None) is None else None


def doubtful_read(node: cst.CSTNode, context: Context) -> Read | None:
    """The tensor that the expression reads one element of, and all that speaks against sparing the read."""
    tensor = scalar_read(node, context)
    if tensor is None and node in context[Readers].items:
        tensor = read_through(node, context)
    if tensor is None or is_read_for_callers(node, context):
        return None
    if context.device(tensor) is Device.UNKNOWN and is_for_samples(node, context):
        return None  # what a loader calls is given tensors on the CPU
    doubts = with_its_device(node, tensor, _doubts(node, tensor, context), context)
    # Of what may be anything, where nobody sees how often, there is nothing to say; in a loop, of what may be an array.
    if not UNSEEN.isdisjoint(doubts) and is_of_torch_alone(tensor, context):
        is_repeated = context.enclosing(node, *Loop, *Comprehension) is not None
        if not is_repeated or ARRAY_PACKAGE.suggests_any(context.names.imported):
            return None
    return Read(tensor, doubts)


def wait_doubts(node: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> tuple[Doubt, ...]:
    """What speaks against a wait for the tensor at each batch: how often the node runs, and where the tensor is."""
    return with_its_device(node, tensor, read_rate(node, context), context)


def read_rate(node: cst.CSTNode, context: Context) -> Iterator[Doubt]:
    """Why a wait may not recur at each batch: as for any node, and where people or parameters set the pace."""
    if any(_waits_for_people(loop.body, context) for loop in context.around(node, cst.For, cst.While)):
        yield Doubt.RARE
        return
    doubts = rate_doubts(node, context)
    loop = context.loop(node)
    if not UNSEEN.isdisjoint(doubts) and isinstance(loop, cst.For) and _goes_over_a_model(loop, context):
        outside = rate_doubts(loop, context)
        if Doubt.RARE in outside or Doubt.RUNS_ONCE in outside:
            yield Doubt.RARE
            return
    yield from doubts
    if context.frequencies.is_every_nth_step(node):
        yield Doubt.OPTION_DECIDES


UNSEEN = frozenset({Doubt.RATE_UNKNOWN, Doubt.UNCALLED})
"""The doubts of a function of which nobody sees how often it runs."""


def seen_to_recur(node: cst.CSTNode, doubts: Iterable[Doubt], context: Context) -> tuple[Doubt, ...]:
    """The doubts, without that of how often a function runs where a loop in it waits for each position of a tensor.

    That of a value which is needed says enough: there are as many waits as positions, however often it is called. And
    where an epoch is one training step, by what it does, the name of its loop does not speak against it.
    """
    found = tuple(doubts)
    if _NEEDED.isdisjoint(found):
        return found
    if Doubt.NAMED_RARE in found:
        is_step = context.frequencies.is_epoch_by_name(node) and not is_named_diagnostic(node, context)
        return tuple(doubt for doubt in found if doubt is not Doubt.NAMED_RARE) if is_step else found
    if Doubt.RATE_UNKNOWN not in found:
        return found
    function = context.function(node)
    loops = [*context.around(node, cst.For, within=function)]
    if not loops and isinstance(function, cst.Lambda) and isinstance(loop := context.loop(function), cst.For):
        loops = [loop]  # `map(lambda t: t.item(), (low, high))`
    if not any(map(context.frequencies.goes_along_an_axis, loops)):
        return found
    return tuple(doubt for doubt in found if doubt is not Doubt.RATE_UNKNOWN)


_NEEDED = frozenset({Doubt.VALUE_DECIDES, Doubt.HOST_NEEDS_IT})


@query(bottom=False)
def _waits_for_people(body: cst.BaseSuite, context: Context) -> bool:
    """Whether each iteration of a loop asks somebody for a line: `text = input("> ")`."""
    return any(
        isinstance(call, cst.Call) and context.qualified_name(call.func) in ("input", "builtins.input")
        for call in descendants_in_scope(body)
    )


@query(bottom=False)
def _goes_over_a_model(loop: cst.For, _: Context) -> bool:
    """`for name, parameter in model.named_parameters():`, which goes over as many as the model has."""
    calls = [node for node in descendants(loop.iter) if isinstance(node, cst.Call)]
    return any(final_part(call.func) in _OF_A_MODEL for call in calls)


_OF_A_MODEL = frozenset("parameters named_parameters modules named_modules children named_children buffers".split())


def with_its_device(
    node: cst.CSTNode, tensor: cst.BaseExpression, doubts: Iterable[Doubt], context: Context
) -> tuple[Doubt, ...]:
    """The doubts, each once; where there are any, with that of a tensor of which nothing says where it is."""
    found = dict.fromkeys(seen_to_recur(node, doubts, context))
    is_unclear = bool(found) or is_of_torch_alone(tensor, context)
    # In a training step that runs for each batch, what is computed is on the device that the model is on.
    if is_unclear and context.device(tensor) is Device.UNKNOWN and not is_in_training(node, context):
        found[Doubt.DEVICE_UNKNOWN] = None
    return tuple(found)


def _doubts(node: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against sparing the read, in the order of what it costs to know."""
    if is_needed_on_host(node, context):
        yield Doubt.HOST_NEEDS_IT
    if isinstance(context.parent(node), cst.Expr):
        yield Doubt.WAITS_ANYWAY  # the statement is there to wait
    elif is_beside_a_wait(node, tensor, context):
        yield Doubt.WAITS_TOO
    if not is_element_read(tensor, context) and not is_the_same_each_time(tensor, context):
        if is_known_already(node, tensor, context):
            yield Doubt.WAITS_ANYWAY
        found = purpose(node, context)
        if found is Purpose.NEEDED:
            yield Doubt.VALUE_DECIDES
        # In a loop that trains, what is not acted upon is there to be looked at.
        elif found is Purpose.OTHER and not is_part_of_a_step(node, context):
            yield Doubt.USE_UNKNOWN
    yield from switch_doubts(node, context)
    # Last, since the callers in other files may have to be asked.
    yield from read_rate(node, context)
