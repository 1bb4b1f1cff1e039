"""Checks for NaN and infinity whose answer Python waits for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile

import libcst as cst

from torchlint.analyses.execution import hot
from torchlint.analyses.execution.hot import is_hot
from torchlint.analyses.execution.training_steps import is_in_training, trains
from torchlint.analyses.host.reads import scalar_read
from torchlint.analyses.sync.alternatives import (
    CHECK,
    CHOOSE,
    DECIDES,
    Instead,
    fails,
    instead_of_answer,
    is_caught,
    is_under_a_test,
    only_picks,
)
from torchlint.analyses.sync.avoidable import avoidable_read
from torchlint.analyses.sync.implicit_reads import conditions, waits
from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import LOGGING_CALL
from torchlint.semantics.knowledge.conventions.values import SCALER
from torchlint.semantics.names.bindings import Binder, dotted, last_part
from torchlint.semantics.names.scopes import Scope
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

SELDOM = "check only now and then"
CLEAR = "clear the gradients with `torch.nan_to_num_`, which needs no check"
_QUESTIONS = frozenset({"isnan", "isinf", "isfinite"})


def is_check_for_nan(condition: cst.CSTNode, context: Context, *, through_names: bool = True) -> bool:
    """Whether the condition asks for NaN or infinity: `torch.isnan(x).any()`, or a name for such."""
    for node in descendants(condition):
        match node:
            case cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name) if name in _QUESTIONS:
                return True
            case cst.Name(value=name) if through_names:
                scope, _ = context.names.lookup(node)
                if scope is not None and _is_named_check(scope, context, name):
                    return True
    return False


@query(bottom=False)
def _is_named_check(scope: Scope, context: Context, name: str) -> bool:
    """Whether any assignment to a name is of such a check."""
    return any(
        binding.binder is Binder.ASSIGN and is_check_for_nan(binding.value, context, through_names=False)
        for binding in scope.bindings.get(name, ())
        if binding.value is not None
    )


def checks_for_nan(node: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """The conditions that the node asks for which are such checks and read a device tensor, however often."""
    if isinstance(node, cst.Call):
        if is_check_for_nan(node, context, through_names=False):
            yield from waits(node, context, anytime=True)
        return
    asked = [condition for condition in conditions(node, context) if is_check_for_nan(condition, context)]
    if not asked:
        return
    waited = set(waits(node, context, anytime=True))
    yield from (condition for condition in asked if condition in waited or _reads(condition, context))


def _reads(condition: cst.BaseExpression, context: Context) -> bool:
    """`math.isnan(loss.item())`, where no rule for plain reads is certain of it."""
    return any(
        scalar_read(node, context) is not None and avoidable_read(node, context) is None
        for node in descendants(condition)
    )


def is_exceptional(node: cst.CSTNode, context: Context) -> bool:
    """Whether the branch around the node tells of something gone wrong, NaN among it."""
    for guard in context.guards(node):
        if isinstance(guard.node, cst.If) and guard.role is Role.TAKEN and is_check_for_nan(guard.node.test, context):
            return True
    return hot.is_exceptional(node, context)


def is_read_anyway(condition: cst.BaseExpression, context: Context) -> bool:
    """Whether the code around has read the same tensor for something else, or a gradient scaler looks for infinity.

    What is read further down waits for other work: it does not make the check any cheaper. What the next statement
    reads waits for the same.
    """
    if _is_read_next(condition, context):
        return True
    wanted = {name for node in descendants(condition) if (name := dotted(node)) and context.kind(node) is Kind.TENSOR}
    around = context.frequencies.batch_loop(condition) or context.function(condition) or context.tree.module
    for node in descendants_in_scope(around):
        if not isinstance(node, cst.Call) or context.tree.within(node, condition):
            continue
        tensor = scalar_read(node, context) if context.tree.place(node) < context.tree.place(condition) else None
        if tensor is not None and dotted(tensor) in wanted and is_hot(node, context) and not _is_asked(node, context):
            return True
        if isinstance(node.func, cst.Attribute) and context.kind(node.func.value) is Kind.SCALER:
            return True
    return False


def is_named_scaled(condition: cst.BaseExpression, context: Context) -> bool:
    """Whether something around that is called a scaler may look for infinity as well."""
    around = context.frequencies.batch_loop(condition) or context.function(condition) or context.tree.module
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and SCALER.suggests((dotted(node.func.value) or "").lower())
        for node in descendants_in_scope(around)
    )


def _is_read_next(condition: cst.BaseExpression, context: Context) -> bool:
    """`assert torch.isfinite(loss)`, right before `total += loss.item()`: without the check the CPU waits there."""
    if any(dotted(scalar_read(node, context)) is not None for node in descendants(condition)):
        return False  # the check reads the number itself, and once would do
    following = _next(condition, context)
    if not isinstance(following, cst.SimpleStatementLine):
        return False
    calls = [node for node in descendants(following) if isinstance(node, cst.Call)]
    if any(context.kind(call.func) is Kind.MODULE or last_part(call.func) in ("backward", "step") for call in calls):
        return False
    return any(scalar_read(call, context) is not None and is_hot(call, context) for call in calls)


def _next(node: cst.CSTNode, context: Context) -> cst.CSTNode | None:
    """The statement behind the one that the node is a part of."""
    suite = next(context.suites(node), None)
    if suite is None:
        return None
    behind = [*dropwhile(lambda line: line is not suite.line, suite.block.body)]
    return behind[1] if len(behind) > 1 else None


def _is_asked(read: cst.Call, context: Context) -> bool:
    """`math.isnan(loss.item())`, or `math.isnan(loss)` itself: another such check is no use of the value."""
    outer = context.parent(read)
    call = context.parent(outer) if isinstance(outer, cst.Arg) else read
    return any(isinstance(found, cst.Call) and last_part(found.func) in _QUESTIONS for found in (call, read))


def instead(node: cst.CSTNode, condition: cst.BaseExpression, context: Context) -> Instead:
    """What would do instead of the check; with a doubt where the step or the result depends on the answer."""
    match node:
        case cst.Assert():
            return Instead(CHECK, (Doubt.RARE,) if is_under_a_test(node, context) else ())
        case cst.If(body=body):
            if fails(body):
                if is_caught(node, context):
                    return DECIDES
                return Instead(SELDOM if is_in_training(node, context) else CHECK)
            if only_picks(node, context):
                return Instead(CHOOSE)
            if _leaves_out(body):
                return Instead(CLEAR) if _goes_backward_before(node, context) else DECIDES
            return DECIDES if _acts(node, context) or _tries_again(node, context) else Instead(SELDOM)
        case cst.IfExp() | cst.While() | cst.CompIf():
            return DECIDES
    return instead_of_answer(node, condition, context, instead)


def _leaves_out(body: cst.BaseSuite) -> bool:
    """Whether the branch ends the iteration, or the function without a result."""
    match body.body[-1]:
        case cst.SimpleStatementLine(body=[*_, cst.Continue() | cst.Return()]):
            return True
    return False


def _goes_backward_before(node: cst.CSTNode, context: Context) -> bool:
    """Whether the gradients are there when the question is asked."""
    scope = context.frequencies.batch_loop(node)
    return scope is not None and any(
        isinstance(call, cst.Call)
        and last_part(call.func) == "backward"
        and context.tree.place(call) < context.tree.place(node)
        for call in descendants_in_scope(scope.body)
    )


def _tries_again(node: cst.If, context: Context) -> bool:
    """`while True: … if torch.isfinite(x).all(): break`, of a loop that takes no step: it draws until all is well."""
    loop = context.loop(node)
    return isinstance(loop, cst.While) and not trains(loop, context)


def _acts(node: cst.If | cst.Else, context: Context) -> bool:
    """Whether a branch does more than to tell of it or to stop: a step is taken, a result kept, a parameter made."""
    if isinstance(node, cst.If) and node.orelse is not None and _acts(node.orelse, context):
        return True
    body = node.body
    for line in body.body:
        match line:
            case cst.SimpleStatementLine(body=[cst.Break() | cst.Pass()]):
                continue
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=func))]):
                told = (
                    context.qualified_name(func) == "print"
                    or LOGGING_CALL.suggests(dotted(func) or "")
                    or hot.is_alarm(line)
                )
            case cst.SimpleStatementLine(body=[cst.Assign() | cst.AugAssign()]):
                told = isinstance(body.body[-1], cst.SimpleStatementLine) and isinstance(
                    body.body[-1].body[-1], cst.Break
                )
            case _:
                told = hot.is_alarm(line)
        if not told:
            return True
    return False
