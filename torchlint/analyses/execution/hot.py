"""Whether a node runs at each batch or more often, in code that is there to train or to serve."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.execution.occasions import is_set_up
from torchlint.analyses.execution.rarity import is_named_diagnostic
from torchlint.analyses.execution.training_steps import is_in_training
from torchlint.analyses.execution.untaken_branches import is_untaken
from torchlint.finding import Doubt, Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import CAUSAL_MASK
from torchlint.semantics.knowledge.conventions.functions import ALARM_CALL, ASSERTING_CALL, GENERATING_METHOD
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import descendants_in_scope


def is_hot(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node runs at each batch or more often, in code that is there to train or to serve."""
    if is_named_diagnostic(node, context) or is_exceptional(node, context):
        return False
    if context.frequency(node) < Frequency.BATCH or is_untaken(node, context):
        return False
    return not _is_behind_generation(node, context)


def rate_doubts(node: cst.CSTNode, context: Context) -> tuple[Doubt, ...]:
    """Why the node may not run at each batch, in code that is there to train or to serve; none where it `is_hot`."""
    named = (Doubt.NAMED_RARE,) if is_named_diagnostic(node, context) else ()
    return tuple(dict.fromkeys((*_seen_doubts(node, context), *named)))


def _seen_doubts(node: cst.CSTNode, context: Context) -> tuple[Doubt, ...]:
    """What the code says of it, whatever it is called."""
    if is_exceptional(node, context) or is_untaken(node, context) or _is_exported(node, context):
        return (Doubt.RARE,)
    match context.frequency(node):
        case Frequency.ONCE:
            return (Doubt.RUNS_ONCE,)
        case Frequency.EPOCH:
            return (Doubt.NAMED_RARE if context.frequencies.is_epoch_by_name(node) else Doubt.RARE,)
        case Frequency.UNKNOWN | Frequency.CALL if _goes_over_batches(node, context):
            return (Doubt.RARE,)
        case Frequency.UNKNOWN | Frequency.CALL if is_set_up(node, context):
            return (Doubt.RUNS_ONCE,)
        case Frequency.CALL:
            return (Doubt.RATE_UNKNOWN,)
        case Frequency.UNKNOWN:
            return (Doubt.UNCALLED if _is_called_by_nobody(node, context) else Doubt.RATE_UNKNOWN,)
    return (Doubt.WAITS_ANYWAY,) if _is_behind_generation(node, context) else ()


def _is_exported(node: cst.CSTNode, context: Context) -> bool:
    """Whether it runs for an export alone: `if torch.onnx.is_in_onnx_export():`."""
    asked = [test for test, is_taken in context.conditions(node) if is_taken and isinstance(test, cst.Call)]
    return any(context.qualified_name(test.func) == "torch.onnx.is_in_onnx_export" for test in asked)


def _goes_over_batches(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands outside of the loops of a function that goes over batches, and so is no step itself."""
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or context.loop(node) is not None:
        return False
    return _has_loops_over_batches(function, context)


@query(bottom=False)
def _has_loops_over_batches(function: cst.FunctionDef, context: Context) -> bool:
    if context.frequencies.adds_up_in_loops(function):
        return False
    loops = (loop for loop in descendants_in_scope(function.body) if isinstance(loop, (cst.For, cst.While)))
    return any(context.frequencies.loop_kind(loop) is not LoopKind.OTHER for loop in loops)


def _is_called_by_nobody(node: cst.CSTNode, context: Context) -> bool:
    """Whether the function around the node is not seen to be called, and nothing says that somebody else does.

    Whoever is handed an object may call its methods, in files that know nothing of its class: of these nobody can say.
    """
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or context.frequencies.entry(function) is not Frequency.UNKNOWN:
        return False
    name = function.name.value
    if name.startswith("__") or (context.classes.owner(function) is not None and not name.startswith("_")):
        return False
    if context.calls.callers(function) or context.elsewhere.callers(function) or context.uses.of(name, function):
        return False
    # `partial(self._shortcut, planes=planes)` has somebody call it.
    return name not in _attributes(context.tree.module, context)


@query(bottom=frozenset[str]())
def _attributes(_: cst.Module, context: Context) -> frozenset[str]:
    """The names after a dot in a file."""
    return frozenset(attribute.attr.value for attribute in context.tree.of(cst.Attribute))


def is_exceptional(node: cst.CSTNode, context: Context) -> bool:
    """Whether the branch around the node tells of something gone wrong: it warns, fails or ends the program."""
    child = node
    for above in context.ancestors(node):
        if isinstance(above, (cst.Lambda, cst.ClassDef, cst.FunctionDef)):
            return False
        if isinstance(above, (cst.ExceptHandler, cst.Raise)) or (isinstance(above, cst.Assert) and child is above.msg):
            return True
        child = above
        if isinstance(above, cst.IndentedBlock) and _raises_alarm(above, context):
            return True
    return False


def _raises_alarm(block: cst.IndentedBlock, context: Context) -> bool:
    return isinstance(context.parent(block), (cst.If, cst.Else)) and any(is_alarm(line) for line in block.body)


def is_alarm(line: cst.CSTNode) -> bool:
    """Whether the line raises, ends the program or warns."""
    match line:
        case cst.SimpleStatementLine(body=[*_, cst.Raise()]):
            return True
        case cst.SimpleStatementLine(body=[cst.Assert(test=cst.Name(value="False"))]):
            return True
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=func, args=args))]):
            called = dotted(func) or ""
            if ASSERTING_CALL.suggests(called):
                return bool(args) and isinstance(args[0].value, cst.Name) and args[0].value.value == "False"
            last = called.rpartition(".")[2]
            return ALARM_CALL.suggests(last)
    return False


def _is_behind_generation(node: cst.CSTNode, context: Context) -> bool:
    """Whether the function has generated a text before: hundreds of steps have run, and the CPU has waited for each."""
    function = context.function(node)
    if "generate" not in context.source.text or not isinstance(function, cst.FunctionDef):
        return False
    if is_in_training(node, context):
        return False
    first = _first_generation(function, context)
    return first is not None and context.tree.place(first) < context.tree.place(node)


@query(bottom=None)
def _first_generation(function: cst.FunctionDef, context: Context) -> cst.Call | None:
    calls = (node for node in descendants_in_scope(function.body) if isinstance(node, cst.Call))
    return next((call for call in calls if _generates(call, context)), None)


def _generates(call: cst.Call, context: Context) -> bool:
    """Whether a call generates a text, as far as one can tell: of a function in sight, whether it takes many steps."""
    if not _has_the_name_of_one_that_generates(call) or context.qualified_name(call.func) is not None:
        return False
    target = context.calls.target(call)
    return target is None or any(
        isinstance(node, (cst.For, cst.While))
        or (isinstance(node, cst.Call) and _has_the_name_of_one_that_generates(node))
        for node in descendants_in_scope(target.body)
    )


def _has_the_name_of_one_that_generates(call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value == CAUSAL_MASK:
        return False
    return GENERATING_METHOD.suggests(call.func.attr.value)
