"""Whether a branch on a tensor's value is there for good: the data has to decide, or it is asked rarely."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.batching.batchable import batchable_reads
from torchlint.analyses.data.sample_code import is_for_samples
from torchlint.analyses.iteration.targets import loops_around
from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.knowledge.conventions.conditions import CHECKING_OPTION, DEBUG_SWITCH
from torchlint.semantics.knowledge.conventions.functions import (
    ASSERTING_CALL,
    DYNAMIC_CLASS,
    DYNAMIC_FUNCTION,
    SAMPLE_CODE,
)
from torchlint.semantics.names.bindings import dotted, last_part, parameters
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants


def is_in_sample_code(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in code that makes samples, by its bases or its callers: what it asks for is there."""
    class_ = context.enclosing(node, cst.ClassDef)
    if class_ is not None and context.classes.is_sampler(class_):
        return not any(_works_on_a_device(function, context) for function in _functions(node, context)[-1:])
    return is_for_samples(node, context)


def named_sample_code(node: cst.CSTNode, context: Context) -> Iterator[Doubt]:
    """That names of the function or of its class say that it makes samples, if it puts nothing on an accelerator."""
    functions = _functions(node, context)
    named = [function for function in functions if SAMPLE_CODE.suggests(function.name.value)]
    class_ = context.enclosing(node, cst.ClassDef)
    if (named or (class_ is not None and any(map(SAMPLE_CODE.suggests, _lineage(class_, context))))) and not any(
        _works_on_a_device(function, context) for function in (named or functions)[-1:]
    ):
        yield Doubt.NAMED_OTHERWISE


def _functions(node: cst.CSTNode, context: Context) -> list[cst.FunctionDef]:
    """The functions around a node within its class, the nearest first."""
    return list(context.around(node, cst.FunctionDef, within=context.enclosing(node, cst.ClassDef)))


def _works_on_a_device(function: cst.FunctionDef, context: Context) -> bool:
    """Whether the function is told on which device to work, or puts something on one itself."""
    if any(given.name.value == "device" for given in parameters(function)):
        return True
    return any(_goes_somewhere(part, context) for part in descendants(function.body))


def _goes_somewhere(node: cst.CSTNode, context: Context) -> bool:
    """Whether a call puts something on an accelerator, or where a network is: `device=self.device`.

    More than a convention has to say where that is: samples are put where other samples are, too.
    """
    if not isinstance(node, cst.Call):
        return False
    is_move = last_part(node.func) == "to"
    given = context.argument(node, "device", 0 if is_move else None)
    if given is None:
        return last_part(node.func) == "cuda"
    value = context.value(given)
    return value.kind in (Kind.DEVICE, Kind.STRING) and value.device is not Device.CPU and value.proven


def _makes_samples(class_: cst.ClassDef, context: Context) -> bool:
    """Whether the names of the class and of its bases say so, or a loader asks it for samples."""
    return any(map(SAMPLE_CODE.suggests, _lineage(class_, context))) or context.classes.is_sampler(class_)


def design_doubts(node: cst.CSTNode, context: Context) -> Iterator[Doubt]:
    """What says that a tensor's value is asked for on purpose: when somebody wants to know, or to go by the data."""
    class_ = context.enclosing(node, cst.ClassDef)
    for guard in context.guards(node, within=class_, across_functions=True):
        is_branch = isinstance(guard.node, (cst.If, cst.IfExp))
        is_both = isinstance(guard.node, cst.BooleanOperation) and guard.role is Role.TAKEN
        if guard.test is None or not (is_branch or is_both):
            continue
        if _asks_for_tracing(guard.test, context):
            yield Doubt.RARE
        elif not _asks_for_none(guard.test) and CHECKING_OPTION.suggests(context.uncommented(guard.test)):
            yield Doubt.NAMED_RARE
        if _is_off_by_default(guard.test, context):
            yield Doubt.RARE
        if is_both and context.frequencies.is_rate_limit(guard.test):
            yield Doubt.RARE
    functions = context.around(node, cst.FunctionDef, within=class_)
    if any(DYNAMIC_FUNCTION.suggests(function.name.value) for function in functions) or (
        class_ is not None and any(map(DYNAMIC_CLASS.suggests, _lineage(class_, context)))
    ):
        yield Doubt.VALUE_DECIDES
    yield from named_sample_code(node, context)


def _asks_for_tracing(test: cst.BaseExpression, context: Context) -> bool:
    """`if torch.jit.is_tracing():`, and the like for scripts and exports."""
    return any(
        isinstance(call, cst.Call)
        and last_part(call.func) in _TRACING
        and (context.qualified_name(call.func) or "").startswith("torch.")
        for call in descendants(test)
    )


_TRACING = frozenset({"is_tracing", "is_scripting", "is_in_onnx_export", "is_exporting", "is_compiling"})


def _asks_for_none(test: cst.BaseExpression) -> bool:
    """`if valid is None:`, which is about a value that callers may leave out, and switches nothing on."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
            return True
        case cst.BooleanOperation(left=left, right=right):
            return _asks_for_none(left) and _asks_for_none(right)
    return False


def is_for_data(node: cst.CSTNode, context: Context) -> bool:
    """Whether the class around the node loads or transforms data, by its name or by the names of its bases."""
    class_ = context.tree.enclosing_class(node)
    return class_ is not None and _makes_samples(class_, context)


def _lineage(class_: cst.ClassDef, context: Context) -> list[str]:
    """The names of a class and of its bases."""
    bases = context.classes.lineage(class_)
    return [base.rpartition(".")[2] if isinstance(base, str) else base.name.value for base in bases]


def switch_doubts(node: cst.CSTNode, context: Context) -> Iterator[Doubt]:
    """That the node runs only if somebody asks for it: `if args.verbose`, `if debug`, or what is off by default."""
    for guard in context.guards(node):
        if isinstance(guard.node, cst.If) and guard.role is Role.TAKEN:
            if _is_off_by_default(guard.node.test, context):
                yield Doubt.RARE
            elif DEBUG_SWITCH.suggests(context.uncommented(guard.node.test)):
                yield Doubt.NAMED_RARE


def _is_off_by_default(test: cst.BaseExpression, context: Context) -> bool:
    """`if error_if_nonfinite`, of a parameter whose default is `False`."""
    return isinstance(test, cst.Name) and any(
        isinstance(binder, cst.Param) and isinstance(binder.default, cst.Name) and binder.default.value == "False"
        for binder in context.binders(test)
    )


def is_told_apart(condition: cst.BaseExpression, context: Context) -> bool:
    """Whether the function asks if something in the condition is a tensor or a number: here it may be either."""
    wanted = {name for node in descendants(condition) if (name := dotted(node))}
    scope = context.function(condition)
    return scope is not None and any(
        isinstance(node, cst.Call)
        and last_part(node.func) in ("isinstance", "is_tensor", "callable")
        and bool(node.args)
        and dotted(node.args[0].value) in wanted
        and not _is_insisted_on(node, context)
        for node in descendants(scope)
    )


def _is_insisted_on(test: cst.Call, context: Context) -> bool:
    """`assert isinstance(x, Tensor)`, `torch._assert(isinstance(x, Tensor), …)`: nothing else gets past it."""
    statement = context.tree.statement(test)
    call = context.enclosing(test, cst.Call, within=statement)
    if call is None:
        return isinstance(statement, cst.Assert)
    return ASSERTING_CALL.suggests(last_part(call.func))


def decides_by_design(node: cst.CSTNode, condition: cst.BaseExpression, context: Context) -> bool:
    """Whether the condition ends a search, or spares a network's run: what the data has to decide."""
    match node:
        case cst.While():
            return not _looks_at_elements(node, condition, context)
        case cst.If(body=body):
            return _leaves_a_loop(node, context) or any(
                isinstance(found, cst.Call) and context.kind(found.func) is Kind.MODULE for found in descendants(body)
            )
    return False


def _leaves_a_loop(node: cst.If, context: Context) -> bool:
    """`if done.all(): break`, or `return` where it stands in a loop."""
    loop = context.loop(node)
    return loop is not None and any(
        isinstance(found, cst.Return) or (isinstance(found, cst.Break) and context.loop(found) is loop)
        for found in descendants(node.body)
    )


def _looks_at_elements(loop: cst.While, condition: cst.BaseExpression, context: Context) -> bool:
    """`while scores[i] > limit`, where the tensor is there before the loop, which stands in another one."""
    if context.loop(loop) is None:
        return False
    roots = {
        (dotted(part.value) or "").partition(".")[0]
        for part in descendants(condition)
        if isinstance(part, cst.Subscript)
    }
    return bool(roots) and bool(roots - {"", *_bound_in(loop, context)})


def _bound_in(loop: cst.While, context: Context) -> set[str]:
    scope = context.names.scope_of(loop)
    return {
        name
        for name, bindings in scope.bindings.items()
        if any(context.tree.within(binding.node, loop.body) for binding in bindings)
    }


def is_read_turn_by_turn(condition: cst.BaseExpression, context: Context) -> bool:
    """Whether a loop over the elements of a tensor reads one here: that is what such a loop is reported for."""
    return any(
        context.tree.within(step.node, condition)
        for loop in loops_around(condition, context)
        for step in batchable_reads(loop, context)
    )
