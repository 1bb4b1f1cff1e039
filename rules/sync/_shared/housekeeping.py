"""Statements that tidy up or wait by hand at each batch, and how code reads without them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.execution.hot import rate_doubts
from torchlint.analyses.execution.meant import is_meant
from torchlint.edits.expressions import deleted
from torchlint.finding import Frequency
from torchlint.rule import Doubt, NodeEdit, Replace
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.knowledge.conventions.comments import CHORE_REASON, DIRECTIVE
from torchlint.semantics.knowledge.conventions.conditions import CHORE_CONDITION, SHORT_OF_MEMORY, USUAL_CONDITION
from torchlint.semantics.knowledge.conventions.functions import CHORE_OWNER
from torchlint.semantics.knowledge.conventions.texts import CHORE_RANGE, CLOCK
from torchlint.semantics.names.bindings import last_part
from torchlint.syntax.tree import descendants
from torchlint.syntax.uncommented import comments

_Block = (cst.IndentedBlock, cst.Module)
_OF_MEMORY = ("torch.cuda.mem", "torch.cuda.max_mem", "psutil.virtual_memory")
_CLOCKS = ("time.", "timeit.", "datetime.")


def is_chore(call: cst.Call, context: Context) -> bool:
    """Whether the call is a statement of its own that runs again and again: in a loop, or as often as a batch comes."""
    is_statement = isinstance(context.parent(call), cst.Expr)
    return is_statement and (context.loop(call) is not None or context.frequency(call) > Frequency.CALL)


def chore_doubts(call: cst.Call, context: Context) -> Iterator[Doubt]:
    """What speaks against leaving the call out, in the order of what it costs to know."""
    yield from _asked_for(call, context)
    if is_meant(call, context, behind=CHORE_REASON, above=CHORE_REASON):
        yield Doubt.MEANT
    yield from rate_doubts(call, context)


def _asked_for(call: cst.Call, context: Context) -> Iterator[Doubt]:
    """Whether somebody has to ask for it, by a condition within the loop or by calling a function that is for that.

    So it is where something has failed before.
    """
    loop = context.loop(call)
    for guard in context.guards(call, within=loop):
        if guard.role in (Role.HANDLER, Role.FINALLY):
            yield Doubt.RARE
        if any(CHORE_RANGE.suggests(_given_text(manager)) for manager in guard.managers):
            yield Doubt.MEANT
        if isinstance(guard.node, cst.If):
            words = context.uncommented(guard.node.test).lower()
            is_unusual = guard.role is Role.TAKEN and not USUAL_CONDITION.suggests(words)
            is_rare = is_unusual and _is_rare(guard.node.test, context)
            if is_rare or _asks_for_memory(guard.node.test, context):
                yield Doubt.RARE
            elif is_unusual and _is_noted_in_the_loop(guard.node.test, loop, context):
                yield Doubt.RATE_UNKNOWN
            elif CHORE_CONDITION.suggests(words):
                yield Doubt.NAMED_RARE
            elif is_unusual:
                yield Doubt.OPTION_DECIDES
    if loop is not None and any(
        SHORT_OF_MEMORY.suggests(context.uncommented(condition.test).lower()) for condition in context.conditions(loop)
    ):
        yield Doubt.NAMED_RARE
    owners = (context.function(call), context.tree.enclosing_class(call))
    if any(
        isinstance(owner, (cst.FunctionDef, cst.ClassDef)) and CHORE_OWNER.suggests(owner.name.value.lower())
        for owner in owners
    ):
        yield Doubt.MEANT


def _asks_for_memory(test: cst.BaseExpression, context: Context) -> bool:
    """`if torch.cuda.memory_reserved() > limit:`."""
    return any(
        isinstance(node, cst.Call) and (context.qualified_name(node.func) or "").startswith(_OF_MEMORY)
        for node in descendants(test)
    )


def _is_rare(test: cst.BaseExpression, context: Context) -> bool:
    """Whether the condition is no option, which is a name, alone or turned round: it compares or computes something."""
    while isinstance(test, cst.UnaryOperation):
        test = test.expression
    if isinstance(test, cst.BooleanOperation):
        return _is_rare(test.left, context) or _is_rare(test.right, context)
    return not isinstance(test, (cst.Name, cst.Attribute)) or context.frequencies.is_rate_limit(test)


def _is_noted_in_the_loop(test: cst.BaseExpression, loop: cst.CSTNode | None, context: Context) -> bool:
    """`if replaced:`, where each iteration begins with `replaced = False`: what it has done decides, and no option."""
    return (
        isinstance(test, cst.Name)
        and isinstance(loop, (cst.For, cst.While))
        and bool(binders := context.binders(test))
        and all(context.tree.within(binder, loop.body) for binder in binders)
        and all(
            isinstance(value, cst.Name) and value.value in ("True", "False") for value in context.bound_to(test).nodes
        )
    )


def _given_text(node: cst.BaseExpression) -> str:
    """The strings that a call is given: `nvtx.range("collect-garbage")`."""
    given = node.args if isinstance(node, cst.Call) else ()
    return " ".join(part.value.value for part in given if isinstance(part.value, cst.SimpleString)).lower()


def is_timed(call: cst.Call, context: Context) -> bool:
    """Whether the loop around a call looks at the clock, or one in this file that runs its function by its name."""
    function = context.function(call)
    loop = context.frequencies.batch_loop(call)
    if _looks_at_the_clock(loop or function or context.tree.module, context):
        return True
    if loop is not None or not isinstance(function, cst.FunctionDef):
        return False
    runs = (other for other in context.tree.of(cst.Call) if last_part(other.func) == function.name.value)
    loops = {around for run in runs if (around := context.loop(run)) is not None}
    return any(_looks_at_the_clock(around, context) for around in loops)


def _looks_at_the_clock(code: cst.CSTNode, context: Context) -> bool:
    """Whether anything in the code measures how long something takes."""
    if CLOCK.suggests(context.uncommented(code)):
        return True
    calls = (node for node in descendants(code) if isinstance(node, cst.Call))
    return any((context.qualified_name(found.func) or "").startswith(_CLOCKS) for found in calls)


def without(call: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    """The edits that delete the statement, with a condition around it that has nothing else to decide.

    None where a comment would go with it: what it says may be why the statement is there. One that speaks to a linter
    has nothing left to speak of.
    """
    expression = context.parent(call)
    line = context.parent(expression) if expression is not None else None
    if not isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) or len(line.body) > 1:
        return ()
    block = context.parent(line)
    statement: cst.SimpleStatementLine | cst.If | None
    if isinstance(line, cst.SimpleStatementLine) and isinstance(block, _Block) and len(block.body) > 1:
        statement = line
    else:
        statement = _condition(line, context)
    gone = context.code(call if statement is None else statement.with_changes(leading_lines=()))
    if not all(map(DIRECTIVE.suggests, comments(gone))):
        return ()
    return (Replace(call, "pass"),) if statement is None else (deleted(statement, context),)


def _condition(line: cst.CSTNode, context: Context) -> cst.If | None:
    """The `if torch.cuda.is_available():` around a line, where nothing else hangs on it and it has no effect."""
    block = context.parent(line) if isinstance(line, cst.SimpleStatementLine) else line
    statement = context.parent(block) if block is not None else None
    if not isinstance(statement, cst.If) or statement.orelse is not None or not _is_idle(statement.test, context):
        return None
    around = context.parent(statement)
    is_alone = not isinstance(around, _Block) or len(around.body) < 2
    head = getattr(statement.body, "header", None)
    above = line.leading_lines if isinstance(line, cst.SimpleStatementLine) else ()
    has_comment = (head is not None and head.comment is not None) or any(each.comment is not None for each in above)
    return None if is_alone or has_comment else statement


def _is_idle(test: cst.BaseExpression, context: Context) -> bool:
    """Whether nothing happens when the condition is asked."""
    calls = [node for node in descendants(test) if isinstance(node, cst.Call)]
    strange = (cst.NamedExpr, cst.Await, cst.Yield, cst.Subscript)
    return not any(isinstance(node, strange) for node in descendants(test)) and all(
        (context.qualified_name(call.func) or "").endswith("is_available") for call in calls
    )
