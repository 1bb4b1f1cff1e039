"""A Python loop over the elements of a tensor: each iteration launches kernels, or synchronizes, for one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Node, Rule, Said

if TYPE_CHECKING:
    from torchlint.analyses.batching.batchable import Batchable
    from torchlint.analyses.iteration.element_work import Step

RULE = Rule(
    name="python-loop-over-tensor",
    code="TL901",
    group="vectorise",
    summary="A Python loop over the elements of a tensor launches kernels, or synchronizes, for each of them.",
    since="0.1.0",
    yields_to=(
        "item-in-train-loop",
        "item-in-eval-loop",
        "builtin-reduction-on-tensor",
        "item-comprehension",
        "stack-of-indexing",
    ),
    eager=True,
    doubts=(
        (Doubt.SMALL, ""),
        (Doubt.MEMORY, ""),
        (Doubt.HOST_BOUND, ""),
        (Doubt.PER_ROW, ""),
        (Doubt.MEANT, "Who saves memory by a loop knows what it costs."),
        (Doubt.HOST_NEEDS_IT, "Of what makes up a message there is little."),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "What runs once on the CPU may be slow."),
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.NAMED_OTHERWISE, ""),
        (Doubt.DATA_UNKNOWN, ""),
        (Doubt.RARE, "Pictures, reports and checks at start-up are not what anybody waits for."),
    ),
)
_READS = Message(
    "reads",
    "this loop reads one element of {tensor} per iteration, {each}",
    help="read all of them once before the loop, or compute on the whole tensor",
)
_COMPARES = Message(
    "compares",
    "every iteration compares all of {tensor} with one number",
    help="compare with all numbers at once, in one batched operation",
)
_GATHERS = Message(
    "gathers", "this loop indexes by one element of {tensor} per iteration", help="index with the whole tensor"
)
_FILLS = Message(
    "fills",
    "this loop fills a part of one row of {tensor} per iteration",
    help="compare `torch.arange` with all bounds at once, and fill where it is less",
)
_CALLS = Message(
    "calls",
    "this loop runs {call} on one row of {tensor} per iteration",
    help="run it once on the whole batch, padded and masked where the rows differ",
)
_LAUNCHES = Message(
    "launches", "this loop launches kernels for one element of {tensor} per iteration", help="use one batched operation"
)
# A longer expression says less than "a tensor".
_LONGEST = 40


@RULE.on(Node("For", (b"for",)), Node("CompFor", (b"for",)), Node("While", (b"while",)))
def check(node: cst.For | cst.CompFor | cst.While, context: Context) -> Iterator[Flag]:
    """Flag the outermost loop that works element by element though its turns don't need each other."""
    from torchlint.analyses.batching.batchable import batchable
    from torchlint.analyses.iteration.targets import loops_around
    from torchlint.syntax.tree import descendants

    found = batchable(node, context)
    if found is None:
        return
    # What an iteration reads is said here, and not again where it is needed as a number.
    about = () if Doubt.PER_ROW in found.doubts else (found.step.node,)
    flag = Flag(node, _said(found.step, context), about=about, doubts=found.doubts)
    if RULE.worthless(flag) is not None:
        return
    around = (batchable(outer, context) for outer in loops_around(node, context))
    if any(_stands_for(outer, found) for outer in around):
        return
    inner = descendants(node.body) if isinstance(node, (cst.For, cst.While)) else ()
    loops = (each for each in inner if isinstance(each, (cst.For, cst.CompFor, cst.While)))
    yield replace(flag, places=tuple(each for each in loops if _stands_for(found, batchable(each, context))))


def _stands_for(outer: Batchable | None, inner: Batchable | None) -> bool:
    """Whether what is said of a loop is said of one within it, too."""
    return outer is not None and inner is not None and {*outer.doubts} <= {*inner.doubts}


def _said(step: Step, context: Context) -> Said:
    from torchlint.analyses.iteration.element_work import Work
    from torchlint.semantics.values.lattice import Device

    code = context.code(step.tensor).strip()
    tensor = f"`{code}`" if "\n" not in code and len(code) <= _LONGEST else "a tensor"
    each = "and each read synchronizes" if step.device is Device.ACCELERATOR else "each a wait on a GPU"
    said = {
        Work.READ: _READS,
        Work.MASK: _COMPARES,
        Work.GATHER: _GATHERS,
        Work.FILL: _FILLS,
        Work.NETWORK: _CALLS,
    }.get(step.work, _LAUNCHES)
    call = f"`{context.shown(step.node.func)}`" if isinstance(step.node, cst.Call) else "a network"
    return said.of(tensor=tensor, call=call, each=each)
