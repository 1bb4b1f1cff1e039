"""What ends a graph of `torch.compile` before its function ends: each kind was seen to, with Dynamo of PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.execution.compiled import Compiled
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.knowledge.conventions.values import LOGGER
from torchlint.semantics.knowledge.marks import CAPTURED
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants_in_scope

_LOGGING = frozenset("debug info warning error critical exception log warn".split())
_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.sleep"})
_EFFECTS = {
    "torch.save": "writes a file",
    "torch.manual_seed": "seeds the generators",
    "warnings.warn": "gives a warning",
    "sys.stdout.write": "prints",
    "sys.stderr.write": "prints",
}
# Of tensors: those give Python numbers, these results of a size that only the data knows.
_READS = frozenset({"item", "tolist"})
_NUMBERS = frozenset({"float", "int", "bool"})
_SIZED = frozenset({"nonzero", "unique", "masked_select", "argwhere", "unique_consecutive"})
_JUDGEMENTS = frozenset({"equal", "allclose"})


def breaks(context: Context) -> Iterator[tuple[cst.BaseExpression, str]]:
    """The expressions that break a graph, and what they do, in source order."""
    compiled = context[Compiled]
    captures = CAPTURED.is_in(context.program.code)
    functions = compiled.functions - compiled.in_one_graph if compiled.is_used else frozenset()
    for function in sorted(functions, key=context.tree.place):
        if not isinstance(function, cst.FunctionDef) or _is_called_conditionally(function, context):
            continue
        for node in descendants_in_scope(function.body):
            found = _broken(node, context, captures=captures)
            if found is not None and compiled.holds(node) and _is_between(node, function, context):
                yield found


def _broken(node: cst.CSTNode, context: Context, *, captures: bool) -> tuple[cst.BaseExpression, str] | None:
    match node:
        case cst.Call():
            reason = _effect(node, context) or ("" if captures else _read(node, context))
            return (node, reason) if reason and not _is_in_error(node, context) else None
        case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) if _is_of_tensor(test, context):
            return test, "branches on a tensor"
        case cst.Subscript() if not captures and _is_selection(node, context):
            return node, "has a data-dependent size"
    return None


# Side effects


def _effect(call: cst.Call, context: Context) -> str:
    """What a call does that no graph can, where it does so each time."""
    func = call.func
    match func:
        case cst.Name() if context.qualified_name(func) == "print":
            reason = "prints"
        case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=method)) if (
            method in _LOGGING and LOGGER.suggests(owner)
        ):
            reason = "logs"
        case cst.Attribute() | cst.Name():
            name = context.qualified_name(func) or ""
            if name.startswith("logging.") and name.rpartition(".")[2] in _LOGGING:
                reason = "logs"
            elif name in _CLOCKS:
                reason = "asks the clock"
            elif name.startswith(("random.", "numpy.random.")):
                reason = "draws a random number in Python"
            else:
                reason = _EFFECTS.get(name, "")
        case _:
            return ""
    return "" if reason and _is_conditional(call, context) else reason


def _is_called_conditionally(function: cst.FunctionDef, context: Context) -> bool:
    """Whether compiled code calls the function under conditions only, which Dynamo may know not to hold."""
    if context[Compiled].is_root(function):
        return False
    calls = [call for call in context.calls.callers(function) if context[Compiled].holds(call)]
    return bool(calls) and all(_is_conditional(call, context) for call in calls)


# Branches of which nobody here asks whether they are taken for certain.
_OTHERS = frozenset({Role.UNBROKEN, Role.HANDLER, Role.CASE})


def _is_conditional(node: cst.CSTNode, context: Context) -> bool:
    """Whether a condition of the same function decides on it: Dynamo knows flags, and leaves out what they rule out."""
    from torchlint.analyses.provenance.constants import decided

    for guard in context.guards(node):
        if guard.role in _OTHERS or (guard.role is Role.NOT_TAKEN and isinstance(guard.node, (cst.If, cst.IfExp))):
            return True
        is_branch = guard.role is Role.TAKEN and isinstance(guard.node, (cst.If, cst.IfExp))
        if is_branch and guard.test is not None and decided(guard.test, context) is not True:
            return True
    return False


# Reads


def _read(call: cst.Call, context: Context) -> str:
    """How a call brings a tensor's value, or the size of a result, to Python."""
    match call:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)), args=args):
            if method in _READS and not args and context.kinds.is_tensor(owner):
                return "reads a value"
            name = context.qualified_name(call.func) or ""
            is_of_torch = name == f"torch.{method}"
            tensor = args[0].value if is_of_torch and args else owner
            if method in _JUDGEMENTS and (is_of_torch or context.kinds.is_tensor(owner)):
                return "compares all values for Python"
            if method in _SIZED and (is_of_torch or context.kinds.is_tensor(tensor)):
                return "has a data-dependent size"
            if name == "torch.where" and len(args) == 1:
                return "has a data-dependent size"
        case cst.Call(func=cst.Name(value=name) as func, args=[cst.Arg(value=value)]):
            if name in _NUMBERS and context.qualified_name(func) == name and context.kinds.is_tensor(value):
                return "reads a value"
    return ""


def _is_of_tensor(test: cst.BaseExpression, context: Context) -> bool:
    """Whether the truth of a condition is that of a tensor: a comparison, or a judgement such as `mask.any()`."""
    match test:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            if isinstance(operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)):
                return False
            return context.kinds.is_tensor(left) or context.kinds.is_tensor(right)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="any" | "all" | "is_nonzero"))):
            return context.kinds.is_tensor(test)
    return False


def _is_selection(node: cst.Subscript, context: Context) -> bool:
    """`y[y > 0]`, with nothing assigned to it."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Comparison(left=left) as index))]:
            is_mask = context.kinds.is_tensor(left) and context.kind(index) is Kind.TENSOR
            return is_mask and context.kinds.is_tensor(node.value) and not context.uses.is_target(node)
    return False


# What it costs


def _is_in_error(node: cst.CSTNode, context: Context) -> bool:
    """Whether it is only run to raise an error or to check for one, which ends the graph anyway."""
    return context.enclosing(node, cst.Raise, cst.Assert) is not None


def _is_between(node: cst.CSTNode, function: cst.FunctionDef, context: Context) -> bool:
    """Whether the break has work on both sides: at the edge of what is compiled there is nothing to split."""
    if not context[Compiled].is_root(function) or context.loop(node) is not None:
        return True
    tree = context.tree
    start, end = tree.place(node), tree.end(node)
    before = behind = False
    for inner in descendants_in_scope(function.body):
        if inner is not node and _works(inner, context):
            is_behind = tree.place(inner) > end or tree.within(node, inner)
            behind = behind or is_behind
            before = before or (not is_behind and tree.place(inner) != start)
    return before and behind


def _works(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node computes a tensor."""
    return isinstance(node, (cst.Call, cst.BinaryOperation)) and context.kind(node) is Kind.TENSOR
