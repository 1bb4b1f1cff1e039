"""The loops over batches of a file, and the functions that they enter: for who adds up what a step costs."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.execution.training_steps import trains
from torchlint.facts import LoopFact
from torchlint.finding import Span
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.flow.query import query
from torchlint.syntax.positions import Spans


def loop_facts(context: Context) -> tuple[LoopFact, ...]:
    """Each statement that loops over batches, in source order."""
    loops: list[cst.For | cst.While] = [*context.tree.of(cst.For), *context.tree.of(cst.While)]
    found = [loop for loop in loops if context.frequencies.loop_kind(loop) is LoopKind.BATCH]
    if not found:
        return ()
    functions = context.tree.of(cst.FunctionDef)
    entered = {function: _entering(function, context) for function in functions}
    spans = context.spans({*found, *functions, *(_head(loop) for loop in found)})
    return tuple(
        _fact(loop, [function for function in functions if loop in entered[function]], spans, context) for loop in found
    )


def _fact(loop: cst.For | cst.While, entered: list[cst.FunctionDef], spans: Spans, context: Context) -> LoopFact:
    span = spans.inner(loop)
    function = context.tree.function(loop)
    name = function.name.value if isinstance(function, cst.FunctionDef) else ""
    head = Span(span.start, spans.inner(_head(loop)).end)
    return LoopFact(span, head, name, trains(loop, context), tuple(spans.inner(each) for each in entered))


def _head(loop: cst.For | cst.While) -> cst.BaseExpression:
    """What ends the head of a loop: what it goes over, or its test."""
    return loop.iter if isinstance(loop, cst.For) else loop.test


@query(bottom=frozenset[cst.CSTNode]())
def _entering(function: cst.FunctionDef, context: Context) -> frozenset[cst.CSTNode]:
    """The loops over batches that enter a function, directly or through the functions that call it."""
    loops: set[cst.CSTNode] = set()
    for entry in context.frequencies.entries(function):
        loop = context.frequencies.batch_loop(entry)
        caller = context.tree.function(entry)
        if loop is not None:
            loops.add(loop)
        elif isinstance(caller, cst.FunctionDef):
            loops |= _entering(caller, context)
    return frozenset(loops)
