"""Values that are summed over all processes for nobody but a log: what becomes of what a collective gives."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.conventions.conditions import RANK_CONDITION
from torchlint.semantics.knowledge.conventions.functions import REDUCING_FUNCTION
from torchlint.semantics.names.bindings import last_part, method_name, parameters
from torchlint.syntax.tree import descendants, descendants_in_scope

REDUCERS = frozenset({"torch.distributed.all_reduce", "torch.distributed.reduce"})
_TURNS = frozenset("item detach cpu float double clone tolist mean sum data values items numpy".split())
_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic"})


def is_reduction(call: cst.Call, context: Context) -> bool:
    """Whether the call gives a sum over all processes, as a helper of this file or one that is called so."""
    name = context.qualified_name(call.func)
    is_named_so = REDUCING_FUNCTION.suggests(name.rpartition(".")[2] if name is not None else last_part(call.func))
    helpers = context[_Helpers].found
    if not is_named_so and not helpers:
        return False  # what is called takes longer to find out
    target = context.calls.target(call)
    return is_named_so if target is None else target in helpers


class _Helpers:
    """The short functions of a module that sum over all processes what they are given, or give.

    What a network gives is no metric.
    """

    def __init__(self, context: Context) -> None:
        reducing = [call for call in context.tree.of(cst.Call) if context.qualified_name(call.func) in REDUCERS]
        functions = {context.function(call) for call in reducing if _is_shown(call, context)}
        self.found = frozenset(
            function
            for function in functions
            if isinstance(function, cst.FunctionDef) and function.name.value != "forward" and _is_short(function)
        )


def _is_shown(call: cst.Call, context: Context) -> bool:
    """Whether the caller gets to see the sum: of a parameter, or returned."""
    summed = context.argument(call, "tensor", 0)
    function = context.function(call)
    if not isinstance(summed, cst.Name) or not isinstance(function, cst.FunctionDef):
        return True
    given = [parameter.name for parameter in parameters(function)]
    shown = (part for part in descendants_in_scope(function.body) if isinstance(part, cst.Return))
    names = [*given, *(name for part in shown for name in descendants(part) if isinstance(name, cst.Name))]
    return any(name.value == summed.value for name in names)


def _is_short(function: cst.FunctionDef) -> bool:
    return sum(isinstance(node, cst.Call) for node in descendants_in_scope(function.body)) < _SHORT


_SHORT = 12


def is_only_told(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the value of an expression ends in calls that print, log or average it, and decides nothing."""

    def turned(held: cst.BaseExpression, taker: cst.CSTNode) -> cst.BaseExpression | None:
        match taker:
            case cst.Attribute(attr=cst.Name(value=method)) if method in _TURNS:
                call = context.parent(taker)
                return call if isinstance(call, cst.Call) and call.func is taker else taker
            case cst.BinaryOperation() | cst.IfExp():
                return taker
            case cst.Subscript(value=value) if value is held:
                return taker
            case cst.Arg():
                call = context.parent(taker)
                return call if isinstance(call, cst.Call) and _computes(call, context) else None
        return None

    destinations = context.destinations(node, Through.PARTS, handed_on=turned)
    return (
        not destinations.lost
        and bool(destinations.found)
        and all(_is_told(found.node, context) for found in destinations.found)
    )


def keeps_its_sum(call: cst.Call, context: Context) -> bool:
    """Whether it stands alone, and the function sets attributes or elements."""
    if not isinstance(context.parent(call), cst.Expr):
        return False
    function = context.calls.target(call)
    return function is None or any(
        isinstance(part, cst.AssignTarget) and isinstance(part.target, (cst.Attribute, cst.Subscript))
        for part in descendants(function.body)
    )


def _computes(call: cst.Call, context: Context) -> bool:
    """`max(total, 1)`, `torch.sqrt(total)`: what is used in its place."""
    name = context.qualified_name(call.func) or ""
    is_of_torch = name.startswith("torch.") and not name.startswith("torch.distributed.")
    return (is_of_torch and last_part(call.func) not in _DECIDING) or name in _BUILTINS


_BUILTINS = frozenset("abs float int max min round sum".split())
# What computes or decides with what it is given, so that a sum over the processes is needed.
_DECIDING = frozenset("allclose append backward extend isfinite isinf isnan step".split())
_SHOWN = frozenset({"print", "zip"})
_SHOWING = frozenset("dict format repr str".split())


def _is_told(node: cst.BaseExpression, context: Context) -> bool:
    loop = context.enclosing(node, cst.For)
    if loop is not None and context.tree.within(node, loop.iter):
        return False  # the loop goes over what is made of it: `for p, g in zip(grads, unflatten(flat, grads)):`
    taker = context.parent(node)
    if isinstance(taker, cst.AugAssign) and taker.target is node and isinstance(node, cst.Name):
        return all(is_only_told(use, context) for use in context.uses.of(node.value, taker))
    if isinstance(taker, cst.AugAssign) and not isinstance(taker.operator, cst.AddAssign):
        return False  # `weights /= total`, which is no running total
    match taker, context.parent(taker) if taker is not None else None:
        case cst.Arg(), cst.Call(func=func) as call:
            names = {last_part(func), method_name(func)}
            if not _DECIDING.isdisjoint(names):
                return False
            # What another function makes of it may be needed for anything.
            return (
                isinstance(context.parent(call), (cst.Expr, cst.Element))
                or not _SHOWN.isdisjoint(names)
                or (not _SHOWING.isdisjoint(names) and is_only_told(call, context))
            )
        case ((cst.FormattedStringExpression() | cst.AugAssign() | cst.Expr()), _):
            return True
    return False


def uses_behind(call: cst.Call, tensor: cst.Name, context: Context) -> Iterator[cst.Name]:
    """The reads of a tensor that come behind the call that changed it, in the same function."""
    place = context.tree.place(call)
    for use in context.readers(tensor):
        if context.tree.place(use) > context.tree.end(call) and place < context.tree.place(use):
            yield use


def is_timed(node: cst.CSTNode, context: Context) -> bool:
    """Whether the clock is read in the statement before or behind the node's: it waits for the others to be timed."""
    return any(
        context.qualified_name(call.func) in _CLOCKS
        for line in _beside(node, context)
        if line is not None
        for call in descendants(line)
        if isinstance(call, cst.Call)
    )


def is_awaited_for_a_file(node: cst.CSTNode, context: Context) -> bool:
    """Whether the statement before the node's is what one process does alone: `if rank == 0: torch.save(…)`."""
    before, _ = _beside(node, context)
    return isinstance(before, cst.If) and RANK_CONDITION.suggests(context.uncommented(before.test).lower())


def _beside(node: cst.CSTNode, context: Context) -> tuple[cst.CSTNode | None, cst.CSTNode | None]:
    """The lines before and behind the one of a node, in its block."""
    line = context.tree.line(node)
    block = context.parent(line) if line is not None else None
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None, None
    lines = [None, *block.body, None]
    place = next(place for place, other in enumerate(lines) if other is line)
    return lines[place - 1], lines[place + 1]
