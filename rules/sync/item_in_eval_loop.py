"""One value read back for each batch of an evaluation: the CPU waits instead of preparing the next."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, Method, Node, Rule

from ._shared.doubts import READ_DOUBTS

RULE = Rule(
    name="item-in-eval-loop",
    code="TL302",
    group="sync",
    summary="Reading a value for every batch of an evaluation synchronizes with the GPU.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    unsafe="sums of floats are rounded in the precision of the tensor, not in double precision",
    yields_to=(
        "repeated-item",
        "per-step-nan-check",
        "item-comprehension",
        "scattered-scalar-reads",
        "grad-norm-by-hand",
        "graph-break-in-compiled",
        "collective-every-step-for-logging",
    ),
    doubts=READ_DOUBTS,
)
_READ = Message("read", "`{read}` synchronizes with the GPU{often}", help="{advice}")


@RULE.on(Method("item"), Call("float"), Call("int"), Node("Subscript", (b".data[0]",)))
def check(node: cst.Call | cst.Subscript, context: Context) -> Iterator[Flag]:
    """Flag a scalar read that runs for each batch without autograd; a count or a sum can stay on the device."""
    from torchlint.analyses.batching.comprehension_reads import is_listed
    from torchlint.analyses.execution.training_steps import is_evaluating
    from torchlint.analyses.host.purpose import is_element_read
    from torchlint.analyses.round_trips.trips import Trips
    from torchlint.analyses.sync.avoidable import doubtful_read
    from torchlint.analyses.sync.invariant_reads import is_the_same_each_time
    from torchlint.edits.messages import how_often

    from ._shared.deferred import deferred

    read = doubtful_read(node, context)
    if read is None or not is_evaluating(node, context) or is_listed(node, context):
        return
    if isinstance(node, cst.Call) and context[Trips].of(node) is not None:
        return
    tensor = read.tensor
    edits = deferred(node, context) if isinstance(node, cst.Call) and not read.doubts else ()
    if edits:
        advice = "accumulate on the GPU and read it once after the loop"
    elif is_the_same_each_time(tensor, context):
        advice = "no iteration changes it: read it once before the loop"
    elif is_element_read(tensor, context):
        advice = "copy all elements at once with `.tolist()`"
    else:
        advice = "collect the tensors and read them once after the loop"
    yield Flag(
        node,
        _READ.of(read=context.shown(node), advice=advice, often=how_often(node, context)),
        title=f"Keep `{context.shown(tensor)}` on the GPU until the loop ends",
        edits=edits,
        doubts=read.doubts,
    )


@RULE.on(Node("Call"))
def check_helper(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call of a function that does nothing but read the value which it is given."""
    from torchlint.analyses.host.reading_helpers import Readers

    if node in context[Readers].items:
        yield from check(node, context)
