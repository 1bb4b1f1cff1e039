"""What the model knows of a line, in words: for those who doubt a finding."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.facts import Telling
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.values.lattice import Device, Kind, Rank, Value
from torchlint.syntax.positions import Spans
from torchlint.syntax.tree import Loop

_LONGEST = 48
_DEVICES = {
    Device.CPU: "on the CPU",
    Device.ACCELERATOR: "on an accelerator",
    Device.MAYBE: "on an accelerator where there is one",
    Device.UNKNOWN: "device unknown",
}
_TURNS = {
    LoopKind.BATCH: "each iteration is a batch",
    LoopKind.EPOCH: "each iteration is an epoch",
    LoopKind.OTHER: "neither batches nor epochs",
}
_GRAD = {GradMode.ON: "on", GradMode.OFF: "off", GradMode.UNKNOWN: "unknown: it depends on a value or a caller"}


def telling(context: Context, row: int) -> Telling | None:
    """What is known of the line: how often it runs and why, the grad mode, what its names hold. None without code."""
    kinds = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement)
    nodes: list[cst.CSTNode] = [node for node in context.tree.nodes if isinstance(node, kinds)]
    spans = context.spans(set(nodes))
    here = [node for node in nodes if _row(node, spans, context) == row]
    if not here:
        return None
    first = min(here, key=context.tree.place)
    frequency = context.frequency(first)
    return Telling(
        str(frequency),
        tuple(_why(first, spans, context)),
        _GRAD[context.grad(first)],
        tuple(_held(here, spans, context)),
        context.elsewhere.questions,
    )


def _row(node: cst.CSTNode, spans: Spans, context: Context) -> int:
    return context.source.position(spans.inner(node).start)[0]


def _line(node: cst.CSTNode, spans: Spans, context: Context) -> str:
    """The line that a node begins on, for people."""
    try:
        span = spans.inner(node)
    except KeyError:
        span = context.spans({node}).inner(node)
    return context.source.place(span.start).words


# How often


def _why(node: cst.CSTNode, spans: Spans, context: Context) -> Iterator[str]:
    """The loops and functions around the node, the nearest first."""
    child = node
    for above in context.ancestors(node):
        if isinstance(above, Loop) and child is above.body:
            if isinstance(above, cst.For):
                head = f"for {context.shown(above.target)} in {context.shown(above.iter)}"
            else:
                head = f"while {context.shown(above.test)}"
            turns = _TURNS[context.frequencies.loop_kind(above)]
            yield f"in the loop on {_line(above, spans, context)}, `{head}`: {turns}"
        if isinstance(above, cst.If) and child is above.body and context.frequencies.limits(above):
            yield f"only now and then: `if {context.shown(above.test)}`"
        if isinstance(above, cst.FunctionDef) and child is above.body:
            yield from _entered(above, context)
            return
        child = above


def _entered(function: cst.FunctionDef, context: Context) -> Iterator[str]:
    """How often a function is entered, and who says so."""
    name = f"`{function.name.value}`"
    entry = context.frequencies.entry(function)
    declared = context.frequencies.declared(function)
    if declared is not None:
        yield f"{name} is declared to run {entry}, by {f'`{declared.comment}`' if declared.comment else '`hot`'}"
        return
    if entry is Frequency.CALL:
        yield f"{name} is called by code that is not in sight"
    else:
        yield f"how often {name} is called is unknown" if entry is Frequency.UNKNOWN else f"{name} is entered {entry}"
    for call in context.frequencies.entries(function):
        how = "called" if isinstance(call, cst.Call) else "read"
        yield f"it is {how} on {_line(call, context.spans({call}), context)}{_often(context.frequency(call))}"
    for call in context.calls.launches(function):
        yield (
            f"a process is started with it on {_line(call, context.spans({call}), context)}"
            f"{_often(context.frequency(call))}"
        )
    for called in context.frequencies.from_elsewhere(function):
        yield f"it is called from {called.where}{_often(called.frequency)}"
    if context.frequencies.is_entered_by_name(function):
        for called in context.elsewhere.sole_calls(function):
            yield f"a method of that name is called from {called.where}{_often(called.frequency)}"


def _often(frequency: Frequency) -> str:
    return "" if frequency is Frequency.UNKNOWN else f", {frequency}"


# What names hold


def _held(here: list[cst.CSTNode], spans: Spans, context: Context) -> Iterator[tuple[str, str]]:
    seen = set()
    for node in sorted(here, key=context.tree.place):
        if isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) and _stands_alone(node, context):
            code = context.shown(node)
            if code not in seen and len(code) <= _LONGEST:
                seen.add(code)
                yield code, _described(node, spans, context)


def _stands_alone(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it holds a value of its own: not the name of a function that is called, nor of an attribute."""
    parent = context.parent(node)
    match parent:
        case cst.Call(func=func) if func is node:
            return False
        case cst.Attribute(value=owner):
            return owner is node and not isinstance(node, cst.Name)
        case cst.Arg(keyword=keyword) if keyword is node:
            return False
        case cst.Param() | cst.FunctionDef() | cst.ClassDef() | cst.ImportAlias() | cst.AsName() | cst.Annotation():
            return False
    return context.qualified_name(node) is None or context.kind(node) is not Kind.UNKNOWN


def _described(node: cst.BaseExpression, spans: Spans, context: Context) -> str:
    words = _words(context.value(node))
    if isinstance(node, cst.Name):
        places = [
            f"{'parameter' if isinstance(binder, cst.Param) else 'bound'} on {_line(binder, spans, context)}"
            for binder in context.binders(node)
        ]
        words += f" ({', '.join(dict.fromkeys(places))})" if places else ""
    return words


def _words(value: Value) -> str:
    if not value:
        return "unknown"
    by_use = " by its use" if value.rank is Rank.USED else ""
    words = [f"{value.kind.value}{by_use}" if value.proven else f"probably {value.kind.value}"]
    if value.scalar:
        words.append("a single value")
    if value.batch:
        words.append("of a loader")
    if value.kind in (Kind.TENSOR, Kind.MODULE):
        words.append(_DEVICES[value.device])
    if value.item is not None and value.item:
        words.append(f"of {value.item.kind.value}")
    return ", ".join(words)
