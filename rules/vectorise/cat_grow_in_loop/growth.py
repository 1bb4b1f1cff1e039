"""Tensors that grow in a loop: in each iteration all that there is so far is joined with a part more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import libcst as cst

from torchlint.analyses.batching.extent import FEW_IN_ALL, is_few, is_named_few
from torchlint.analyses.execution.hot import is_exceptional
from torchlint.analyses.execution.rarity import runs_rarely
from torchlint.analyses.iteration.targets import Visit, names_in, visit
from torchlint.analyses.tensors.aliasing import is_changed_in_place, reflects
from torchlint.edits.expressions import loses_comment
from torchlint.rule import Insert, InsertBelow, NodeEdit, Replace
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.flow.query import query
from torchlint.semantics.flow.uses import Variable
from torchlint.semantics.knowledge.conventions.counts import FEW_PARTS, MANY_PARTS
from torchlint.semantics.knowledge.conventions.functions import PICTURE_WRITER
from torchlint.semantics.names.bindings import last_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.literals import integer
from torchlint.syntax.tree import descendants, descendants_in_scope


@dataclass(frozen=True, slots=True)
class Growth:
    """`statement` joins `name` with `parts`, behind or before them, in each iteration of `loop`; nobody reads it there.

    `first` is what the name is given at the first iteration, where an expression says so: `x if t is None else cat(…)`.
    `is_guarded`: a branch gives the name its first part. `is_surely_long`: no name alone tells how long it is.
    """

    call: cst.Call
    statement: cst.Assign
    name: cst.Name
    parts: tuple[cst.BaseExpression, ...]
    is_in_front: bool
    loop: cst.For | cst.While
    first: cst.BaseExpression | None
    is_guarded: bool
    is_surely_long: bool


def growth(call: cst.Call, context: Context) -> Growth | None:
    """What the call makes grow; None where it is read on the way, where turns are few, or where nothing is certain."""
    statement, first = _assigned(call, context)
    if statement is None or not call.args or context.has_unpacking(call):
        return None
    target = statement.targets[0].target
    given = call.args[0].value
    if not isinstance(target, cst.Name) or not isinstance(given, (cst.List, cst.Tuple)) or len(given.elements) < 2:
        return None
    parts = [element.value for element in given.elements if isinstance(element, cst.Element)]
    own = [part for part in parts if isinstance(part, cst.Name) and part.value == target.value]
    if len(own) != 1 or len(parts) != len(given.elements) or own[0] not in (parts[0], parts[-1]):
        return None
    others = tuple(part for part in parts if part is not own[0])
    if any(target.value in names_in(part) for part in others):
        return None
    if any(argument.keyword is not None and argument.keyword.value == "out" for argument in call.args):
        return None
    found = _loop(statement, target, context)
    if found is None or runs_rarely(call, context) or is_exceptional(call, context):
        return None
    loop, is_guarded, turns = found
    return Growth(
        call, statement, own[0], others, own[0] is not parts[0], loop, first, is_guarded, turns is _Turns.MANY
    )


def is_for_a_picture(call: cst.Call, context: Context) -> bool:
    """Whether the function around saves a picture: the samples that it shows are few."""
    function = context.function(call)
    return function is not None and any(
        PICTURE_WRITER.suggests((context.qualified_name(part.func) or last_part(part.func)).rpartition(".")[2])
        for part in descendants(function.body)
        if isinstance(part, cst.Call)
    )


def _assigned(call: cst.Call, context: Context) -> tuple[cst.Assign | None, cst.BaseExpression | None]:
    """The statement that binds one name to the call, or to it in all iterations but the first."""
    first = None
    above = context.parent(call)
    if isinstance(above, cst.IfExp) and above.test is not call:
        first = above.body if above.orelse is call else above.orelse
        is_missing = _missing(above.test)
        if is_missing is None or is_missing != (first is above.body):
            return None, None
        above = context.parent(above)
    return (above, first) if isinstance(above, cst.Assign) and len(above.targets) == 1 else (None, None)


def _missing(test: cst.BaseExpression) -> bool | None:
    """Whether the condition is that the name is None, or that it is not; None for any other."""
    match test:
        case cst.Comparison(
            left=cst.Name(), comparisons=[cst.ComparisonTarget(operator=operator, comparator=cst.Name(value="None"))]
        ):
            return isinstance(operator, cst.Is) if isinstance(operator, (cst.Is, cst.IsNot)) else None
    return None


# The loop


def _is_begun(
    statement: cst.Assign, mentions: list[Variable], loop: cst.For | cst.While, context: Context
) -> bool | None:
    """Whether something in the loop begins what grows there; None if anything else happens to it."""
    is_begun = False
    for name in mentions:
        if context.tree.within(name, loop) and not context.tree.within(name, statement):
            if not _begins(name, statement, loop, context):
                return None
            is_begun = True
    return is_begun


def _loop(statement: cst.Assign, target: cst.Name, context: Context) -> tuple[cst.For | cst.While, bool, _Turns] | None:
    """The outermost loop in which the name does nothing but grow, if it may be a long one, and if a branch begins."""
    loop = context.loop(statement)
    mentions = context.uses.mentions(target) if loop is not None else None
    scope = context.names.scope_of(target)
    if mentions is None or scope.is_class or target.value in scope.globals | scope.nonlocals:
        return None
    found: tuple[cst.For | cst.While, bool] | None = None
    turns = _Turns.FEW
    while loop is not None and (is_begun := _is_begun(statement, mentions, loop, context)) is not None:
        found = loop, is_begun
        turns = max(turns, _turns(loop, context))
        loop = context.loop(loop)
    if found is None or any(context.names.scope_of(name) is not scope for name in mentions):
        return None
    if _is_reflected(scope.node, context):
        return None
    return None if turns is _Turns.FEW else (*found, turns)


@query(bottom=False)
def _is_reflected(scope: cst.CSTNode, _: Context) -> bool:
    return isinstance(scope, cst.FunctionDef) and any(reflects(node) for node in descendants_in_scope(scope.body))


def _begins(name: cst.CSTNode, statement: cst.Assign, loop: cst.CSTNode, context: Context) -> bool:
    """Whether the name is in a branch of the first iteration: `if t is None: t = x`, where it grows in the `else`."""
    for above in context.around(name, cst.If, within=loop):
        if context.tree.within(statement, above):
            if context.tree.within(name, above.test):
                return _is_first(above.test, name, loop, context)
            is_other_branch = context.tree.within(name, above.body) != context.tree.within(statement, above.body)
            is_target = isinstance(context.parent(name), cst.AssignTarget)
            return is_other_branch and is_target and _is_first(above.test, name, loop, context)
    return False


def _is_first(test: cst.BaseExpression, name: cst.CSTNode, loop: cst.CSTNode, context: Context) -> bool:
    """`t is None`, `len(t) == 0`, `t.numel() > 0`, `i == 0`, and a flag that is set once: `is_first`."""
    match test:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            counters = names_in(loop.target) if isinstance(loop, cst.For) else frozenset()
            is_end = isinstance(right, cst.Integer) or (isinstance(right, cst.Name) and right.value == "None")
            is_own = isinstance(name, cst.Name) and name.value in names_in(left)
            return is_end and (is_own or (isinstance(left, cst.Name) and left.value in counters))
        case cst.Name():
            return _is_flag(test, context)
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Name() as inner):
            return (isinstance(name, cst.Name) and inner.value == name.value) or _is_flag(inner, context)
    return False


def _is_flag(name: cst.Name, context: Context) -> bool:
    """Whether it is one thing and then the other: True and False, or 0 and 1."""
    values = {getattr(value, "value", None) for value in context.bound_to(name).nodes}
    return values in ({"True", "False"}, {"0", "1"})


class _Turns(IntEnum):
    """How many a loop has."""

    FEW = 0
    PERHAPS_MANY = 1
    """It is not in sight, or a name says that they are few."""
    MANY = 2


def _turns(loop: cst.For | cst.While, context: Context) -> _Turns:
    found = visit(loop, context)
    numbers = [integer(number) for number in context.origins(found.count).nodes] if found.count is not None else []
    if is_few(loop, found, context) or any(number is not None and number <= FEW_IN_ALL for number in numbers):
        return _Turns.FEW
    is_sure = True
    if isinstance(loop, cst.For):
        walked = found.count if found.count is not None else loop.iter
        words = (part.value for part in descendants(walked) if isinstance(part, cst.Name))
        is_sure = not (is_named_few(found) or any(map(FEW_PARTS.suggests, (*words, *found.counters))))
        if found.count is not None and _is_length_of_a_list(found.count, context):
            is_sure = False
    kind = context.frequencies.loop_kind(loop)
    if kind is LoopKind.EPOCH or (kind is LoopKind.OTHER and found.count is None and _has_no_elements(loop, found)):
        return _Turns.FEW
    match found.count:
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=attribute)):
            is_sure = is_sure and MANY_PARTS.suggests(attribute)
    return _Turns.MANY if is_sure else _Turns.PERHAPS_MANY


def _has_no_elements(loop: cst.For | cst.While, found: Visit) -> bool:
    return isinstance(loop, cst.For) and not found.elements


def _is_length_of_a_list(count: cst.BaseExpression, context: Context) -> bool:
    """`len(inputs) - 1`, of a parameter that is not known to be a tensor or to hold data."""
    while isinstance(count, cst.BinaryOperation) and isinstance(count.right, cst.Integer):
        count = count.left
    match count:
        case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=cst.Name() as given)]):
            if context.kind(given) not in (Kind.SEQUENCE, Kind.UNKNOWN):
                return False
            return not context.kinds.is_tensor(given) and not MANY_PARTS.suggests(given.value)
    return False


# The fix


def listed(found: Growth, context: Context) -> tuple[NodeEdit, ...]:
    """The edits that collect the parts in a list and join them once below the loop; empty where that is not certain."""
    new = f"{found.name.value}_parts"
    if found.is_guarded or not _may_wait(found, context):
        return ()
    if context.names.spelt(new):
        return ()
    way = _way(found, context)
    start = _start(found, context)
    if way is None or start is None:
        return ()
    joined = f"{context.code(found.call.func)}({new}{'[::-1]' if found.is_in_front else ''}{way})"
    codes = [context.code(part) for part in (reversed(found.parts) if found.is_in_front else found.parts)]
    grow = f"{new}.append({codes[0]})" if len(codes) == 1 else f"{new} += [{', '.join(codes)}]"
    ending = f" if {new} else None" if found.first is not None else ""
    indent = context.tree.indentation(found.loop)
    return (
        Insert(found.loop, f"{new} = [{start}]\n{indent}", before=True),
        Replace(found.statement, grow),
        InsertBelow(found.loop, f"{found.name.value} = {joined}{ending}"),
    )


def _way(found: Growth, context: Context) -> str | None:
    """The arguments behind the tensors: an axis that is literal; None where there is anything else."""
    rest = found.call.args[1:]
    if not rest:
        return "" if found.call.args[0].keyword is None else None
    if len(rest) > 1 or found.call.args[0].keyword is not None or integer(rest[0].value) is None:
        return None
    keyword = rest[0].keyword
    return (
        f", {keyword.value}={context.code(rest[0].value)}"
        if keyword is not None
        else f", {context.code(rest[0].value)}"
    )


def _start(found: Growth, context: Context) -> str | None:
    """What the list begins with: the name as it comes into the loop, or nothing where that is None."""
    before = [binder for binder in context.binders(found.name) if not context.tree.within(binder, found.loop)]
    if found.first is not None:
        is_alike = len(found.parts) == 1 and context.code(found.first) == context.code(found.parts[0])
        return "" if is_alike and len(before) == 1 and _gives_none(before[0]) else None
    is_bound = any(isinstance(binder, cst.Param) or context.is_above(binder, found.loop) for binder in before)
    return found.name.value if is_bound else None


def _gives_none(binder: cst.CSTNode) -> bool:
    match binder:
        case cst.Assign(value=value) | cst.AnnAssign(value=value) | cst.Param(default=value):
            return isinstance(value, cst.Name) and value.value == "None"
    return False


def _may_wait(found: Growth, context: Context) -> bool:
    """Whether the parts are the same after the loop, and nobody looks at the name before."""
    if loses_comment(found.call, *found.parts, context=context) or "#" in context.code(found.statement).replace(
        context.code(found.call), ""
    ):
        return False
    mentions = context.uses.mentions(found.name) or []
    if found.loop.orelse is not None and any(context.tree.within(name, found.loop.orelse) for name in mentions):
        return False
    for above in context.around(found.loop, cst.Try, cst.TryStar, cst.With, within=context.function(found.loop)):
        if not isinstance(above, cst.With) or not _is_of_torch(above, context):
            return False  # what leaves the loop by an exception may be caught, and the name be looked at
    return not any(is_changed_in_place(owner, context) for part in found.parts for owner in _owners(part)) and all(
        _is_own(part) for part in found.parts
    )


def _is_of_torch(block: cst.With, context: Context) -> bool:
    """`with torch.no_grad():`, which catches nothing."""
    return all(
        isinstance(item.item, cst.Call) and (context.qualified_name(item.item.func) or "").startswith("torch.")
        for item in block.items
    )


def _owners(part: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    return (node for node in descendants(part) if isinstance(node, (cst.Name, cst.Attribute)))


def _is_own(part: cst.BaseExpression) -> bool:
    """Whether the part is no attribute, or a view of one, which others may change."""
    while isinstance(part, cst.Subscript):
        part = part.value
    return not isinstance(part, cst.Attribute)
