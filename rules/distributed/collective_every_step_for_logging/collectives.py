"""Values that are summed over all processes for nobody but a log: what becomes of what a collective gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.iteration.targets import names_in
from torchlint.semantics.knowledge.conventions.conditions import RANK_CONDITION
from torchlint.semantics.knowledge.conventions.functions import DECIDING_CALL, REDUCING_FUNCTION
from torchlint.semantics.knowledge.conventions.values import METRIC
from torchlint.semantics.names.bindings import last_part, method_name
from torchlint.syntax.tree import descendants, descendants_in_scope

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

REDUCERS = frozenset({"torch.distributed.all_reduce", "torch.distributed.reduce"})
_TURNS = frozenset("item detach cpu float double clone tolist mean sum data values items numpy".split())
_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic"})


def is_reduction(call: cst.Call, context: Context) -> bool:
    """Whether the call gives a sum over all processes, as a helper of this file or one that is called so."""
    target = context.calls.target(call)
    if target is not None:
        found = [node for node in descendants_in_scope(target.body) if isinstance(node, cst.Call)]
        return len(found) < _SHORT and any(context.qualified_name(node.func) in REDUCERS for node in found)
    name = context.qualified_name(call.func)
    return REDUCING_FUNCTION.suggests(name.rpartition(".")[2] if name is not None else last_part(call.func))


_SHORT = 12


def speaks_of_a_metric(node: cst.CSTNode) -> bool:
    """Whether the expression names a loss, an accuracy or the like."""
    return any(isinstance(part, cst.Name) and METRIC.suggests(part.value) for part in descendants(node))


def is_only_told(node: cst.CSTNode, context: Context, depth: int = 0) -> bool:
    """Whether the value of an expression ends in calls that print, log or average it, and decides nothing."""
    child = node
    for above in context.ancestors(node):
        match above:
            case cst.Attribute(attr=cst.Name(value=method)):
                if method not in _TURNS:
                    return False
            case cst.Call(func=func):
                if func is not child:
                    return not DECIDING_CALL.suggests_any((last_part(func), method_name(func)))
            case cst.Arg() | cst.BinaryOperation() | cst.IfExp() | cst.Subscript() | cst.ParenthesizedWhitespace():
                pass
            case cst.Tuple() | cst.List() | cst.Element() | cst.Dict() | cst.DictElement():
                pass
            case cst.FormattedStringExpression() | cst.AugAssign():
                return True
            case cst.Assign(targets=targets):
                names = [name for target in targets for name in names_in(target.target)]
                uses = [use for name in names for use in context.uses.of(name, above)]
                return depth < _DEEPEST and bool(uses) and all(is_only_told(use, context, depth + 1) for use in uses)
            case cst.Expr():
                return True
            case _:
                return False
        child = above
    return False


_DEEPEST = 3


def uses_behind(call: cst.Call, tensor: cst.Name, context: Context) -> Iterator[cst.Name]:
    """The reads of a tensor that come behind the call that changed it, in the same function."""
    place = context.tree.place(call)
    for binding in context.reaching(tensor):
        for use in context.names.uses(binding):
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
    return isinstance(before, cst.If) and RANK_CONDITION.suggests(context.code(before.test).lower())


def _beside(node: cst.CSTNode, context: Context) -> tuple[cst.CSTNode | None, cst.CSTNode | None]:
    """The lines before and behind the one of a node, in its block."""
    line = context.tree.line(node)
    block = context.parent(line) if line is not None else None
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None, None
    lines = [None, *block.body, None]
    place = next(place for place, other in enumerate(lines) if other is line)
    return lines[place - 1], lines[place + 1]
