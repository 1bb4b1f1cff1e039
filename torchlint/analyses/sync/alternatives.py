"""What would do instead of a branch on a tensor's value: it depends on what the branch is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.analyses.execution.hot import is_alarm
from torchlint.analyses.host.purpose import purpose
from torchlint.analyses.host.reads import tests_a_tensor
from torchlint.analyses.sync.implicit_reads import conditions, is_buffer, joined
from torchlint.analyses.sync.inherent_branches import decides_by_design
from torchlint.facts import Purpose
from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import dotted, final_part
from torchlint.semantics.names.scopes import Scope
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

CHOOSE = "choose on the GPU with `torch.where` or a mask"
CHECK = "check it on the GPU with `torch._assert_async`"
KNOW = "keep it as a plain Python attribute"
HAND_OVER = "let the caller pass a Python number"
AT_ONCE = "copy all elements at once with `.tolist()`"
SELDOM = "check only now and then"
TELL = "pass it as a Python value where the CPU can know it"
COMBINE = "combine on the GPU with `&`, `|` and `~`"

# Operations whose result has a size that the data decides, that add rows, or that draw random numbers: not to be run
# for nothing.
_UNFIT = frozenset(
    "nonzero argwhere masked_select unique unique_consecutive item tolist numpy cpu multinomial bernoulli rand randn "
    "randint randperm rand_like randn_like normal pad Parameter cat concat "
    "concatenate hstack vstack".split()
)

# What tells somebody what it has seen.
_TELLS = frozenset({"print", "info", "debug", "log"})


class Instead(NamedTuple):
    """What would do instead of a question, and what speaks against it."""

    advice: str
    doubts: tuple[Doubt, ...] = ()


DECIDES = Instead(TELL, (Doubt.VALUE_DECIDES,))
_IS_RARE = Instead(TELL, (Doubt.RARE,))
# Python needs the same number further down, so that it waits whoever asks.
_IS_READ_ANYWAY = Instead(TELL, (Doubt.WAITS_TOO,))


def instead(node: cst.CSTNode, condition: cst.BaseExpression, context: Context) -> Instead:
    """What would do instead; with a doubt where nothing on the device would, so that the host has to ask."""
    match node:
        case cst.Assert():
            if is_under_a_test(node, context):
                return _IS_RARE
            return _IS_READ_ANYWAY if _is_needed_as_number(condition, context) else Instead(CHECK)
        case cst.While():
            return DECIDES if decides_by_design(node, condition, context) else Instead(AT_ONCE)
        case cst.If() | cst.IfExp():
            return _instead_of_branch(node, condition, context)
        case cst.Call(func=cst.Name(value="max" | "min" | "sorted" as name)):
            on_device = "torch.sort" if name == "sorted" else f"torch.{name}imum"
            is_number = purpose(node, context) is Purpose.NEEDED
            return DECIDES if is_number else Instead(f"compare on the GPU with `{on_device}`")
    return instead_of_answer(node, condition, context, instead)


def _instead_of_branch(node: cst.If | cst.IfExp, condition: cst.BaseExpression, context: Context) -> Instead:
    if isinstance(node, cst.If) and fails(node.body):
        if is_under_a_test(node, context):
            return _IS_RARE
        return DECIDES if is_caught(node, context) else Instead(CHECK)
    if any(_asks_a_buffer(part, context) for part in _parts(condition, context)):
        return Instead(KNOW)
    if any(_is_element(side, context) for part in _parts(condition, context) for side in _sides(part)):
        return Instead(AT_ONCE)
    if _is_needed_as_number(condition, context):
        return _IS_READ_ANYWAY
    if _compares_all(condition):
        return DECIDES
    if isinstance(node, cst.IfExp):
        return Instead(CHOOSE) if all(_is_fit(side, context) for side in (node.body, node.orelse)) else DECIDES
    if only_picks(node, context):
        return DECIDES if _spares_a_loop(node, context) else Instead(CHOOSE)
    if any(_asks_for_an_argument(part, context) for part in _parts(condition, context)):
        return Instead(HAND_OVER)
    return Instead(SELDOM) if all(is_alarm(line) or _is_printed(line) for line in node.body.body) else DECIDES


def _spares_a_loop(node: cst.If, context: Context) -> bool:
    """Whether the branch returns before a loop of Python's, which would run for nothing."""
    last = node.body.body[-1]
    if not isinstance(last, cst.SimpleStatementLine) or not isinstance(last.body[-1], cst.Return):
        return False
    function, place = context.function(node), context.tree.place(node)
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(loop, (cst.For, cst.While)) and context.tree.place(loop) > place
        for loop in descendants_in_scope(function.body)
    )


def _is_printed(line: cst.CSTNode) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=func))]):
            return final_part(func) in _TELLS
        case cst.SimpleStatementLine(body=[cst.Pass()]):
            return True
    return False


def instead_of_answer(
    node: cst.CSTNode, condition: cst.BaseExpression, context: Context, judge: Callable[..., Instead]
) -> Instead:
    """`a.any() and b.any()`, `not x.any()`, `bool(x.any())`: the branch that the answer decides, as `judge` sees it."""
    child = node
    for above in context.ancestors(node):
        match above:
            case cst.If(test=test) | cst.IfExp(test=test) | cst.While(test=test) | cst.Assert(test=test):
                return judge(above, condition, context) if child is test else _IS_USED
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                asked = [judge(*pair, context) for pair in _asking(name, above, context)]
                return min(asked, key=lambda found: len(found.doubts), default=Instead(COMBINE))
            case cst.BaseSmallStatement() | cst.BaseCompoundStatement() | cst.Lambda() | cst.Call():
                return _IS_USED
        child = above
    return _IS_USED


_IS_USED = Instead(COMBINE, (Doubt.USE_UNKNOWN,))


def _asking(name: str, bound: cst.CSTNode, context: Context) -> list[tuple[cst.CSTNode, cst.BaseExpression]]:
    """The branches that ask for the truth of the name."""
    scope = context.function(bound) or context.tree.module
    return [
        (node, condition)
        for node in descendants_in_scope(scope)
        if isinstance(node, (cst.If, cst.IfExp, cst.While, cst.Assert))
        for condition in conditions(node, context)
        if isinstance(condition, cst.Name) and condition.value == name
    ]


def _parts(condition: cst.BaseExpression, context: Context) -> Iterator[cst.BaseExpression]:
    """The condition, or the conditions that a name stands for."""
    if not isinstance(condition, cst.Name):
        yield condition
        return
    for origin in context.bound_to(condition).found:
        yield from joined(origin.node)


def _sides(condition: cst.BaseExpression) -> list[cst.BaseExpression]:
    if not isinstance(condition, cst.Comparison):
        return [condition]
    return [condition.left, *(target.comparator for target in condition.comparisons)]


def _asks_a_buffer(condition: cst.BaseExpression, context: Context) -> bool:
    """`self.started`, `self.count >= 0`: a single value that is kept with the network."""
    sides = _sides(condition)
    kept = [side for side in sides if isinstance(side, cst.Attribute) and is_buffer(side, context)]
    return bool(kept) and all(side in kept or context.kind(side) is not Kind.TENSOR for side in sides)


def _is_element(side: cst.BaseExpression, context: Context) -> bool:
    """`words[i]` in a loop over `i`, or a name for it: one of many elements that are there before the loop."""
    if isinstance(side, cst.Name):
        value = context.stands_for(side)
        return isinstance(value, cst.Subscript) and _is_element(value, context)
    loop = context.loop(side)
    if not isinstance(side, cst.Subscript) or not isinstance(loop, cst.For):
        return False
    whole: cst.BaseExpression = side
    turns: set[str] = set()
    while isinstance(whole, cst.Subscript):
        turns |= {node.value for part in whole.slice for node in descendants(part) if isinstance(node, cst.Name)}
        whole = whole.value
    walked = {node.value for node in descendants(loop.target) if isinstance(node, cst.Name)}
    return (
        bool(turns & walked)
        and isinstance(whole, cst.Name)
        and context.kind(whole) is Kind.TENSOR
        and not context.is_bound_in(whole, loop)
    )


def _asks_for_an_argument(condition: cst.BaseExpression, context: Context) -> bool:
    """`position[0] > 0`, of a parameter: one element that whoever made the tensor knows."""
    sides = _sides(condition)
    return isinstance(condition, cst.Comparison) and any(
        isinstance(side, cst.Subscript)
        and not any(context.kind(other) is Kind.TENSOR for other in sides if other is not side)
        and isinstance(side.value, cst.Name)
        and all(isinstance(part.slice, cst.Index) and _is_literal(part.slice.value) for part in side.slice)
        and any(isinstance(binder, cst.Param) for binder in context.binders(side.value))
        for side in sides
    )


def _is_literal(node: cst.BaseExpression) -> bool:
    return isinstance(node.expression if isinstance(node, cst.UnaryOperation) else node, cst.Integer)


def _compares_all(condition: cst.BaseExpression) -> bool:
    """`torch.equal(a, b)`: what comes of it is seldom a tensor."""
    name = dotted(condition.func) or "" if isinstance(condition, cst.Call) else ""
    return name.rpartition(".")[2] in ("equal", "allclose")


def is_under_a_test(node: cst.CSTNode, context: Context) -> bool:
    """Whether this is asked only where another tensor's value has led to."""
    return any(
        isinstance(guard.node, cst.If) and tests_a_tensor(guard.node.test, context) for guard in context.guards(node)
    )


def is_caught(node: cst.If, context: Context) -> bool:
    """Whether the function catches the error that the branch raises: one that the device raises ends the program."""
    for guard in context.guards(node):
        if isinstance(guard.node, cst.Try) and guard.role is Role.TRY:
            return any(_catches(handler.type, node.body.body[-1]) for handler in guard.node.handlers)
    return False


def _catches(caught: cst.BaseExpression | None, line: cst.CSTNode) -> bool:
    if caught is None:
        return True
    names = [part.value for part in caught.elements] if isinstance(caught, cst.Tuple) else [caught]
    raised = (
        line.body[-1].exc
        if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[-1], cst.Raise)
        else None
    )
    kind = dotted(raised.func if isinstance(raised, cst.Call) else raised)
    return any(dotted(name) in ("Exception", "BaseException", kind) for name in names)


def _is_needed_as_number(condition: cst.BaseExpression, context: Context) -> bool:
    """Whether a part of the condition is a size or a bound elsewhere, for which Python needs the number anyway."""
    sides = [node for side in _sides(condition) for node in descendants(side) if _is_summand(node, side, context)]
    wanted = {
        context.code(node)
        for node in sides
        if isinstance(node, (cst.Name, cst.Call)) and context.kind(node) is Kind.TENSOR
    }
    scope = context.function(condition)
    if not wanted or scope is None:
        return False
    return any(
        isinstance(node, (cst.Name, cst.Call))
        and not context.tree.within(node, condition)
        and _is_number_here(node, context)
        and context.code(node) in wanted
        for node in descendants_in_scope(scope.body)
    )


def _is_summand(node: cst.CSTNode, side: cst.CSTNode, context: Context) -> bool:
    """Whether the node is the side of a comparison, or stands in it between operators only."""
    while node is not side:
        parent = context.parent(node)
        if not isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
            return False
        node = parent
    return True


def _is_number_here(use: cst.Name | cst.Call, context: Context) -> bool:
    others = (cst.Tuple, cst.List, cst.Call, cst.Index)
    match context.enclosing(use, cst.Slice, *others, within=context.tree.statement(use)):
        case cst.Slice() | cst.Call(func=cst.Name(value="range")):
            return True
        case (cst.Tuple() | cst.List()) as sequence:
            return isinstance(context.parent(sequence), cst.Arg)
    return False


# What a branch does


def fails(body: cst.BaseSuite) -> bool:
    """Whether the branch ends in an error."""
    last = body.body[-1] if body.body else None
    if not isinstance(last, cst.SimpleStatementLine):
        return isinstance(last, cst.Raise)
    match last.body[-1]:
        case cst.Raise():
            return True
        case cst.Expr(value=cst.Call(func=func)):
            return is_alarm(last) and (dotted(func) or "").endswith("_assert")
    return False


def only_picks(node: cst.If, context: Context) -> bool:
    """Whether the branches give names and parts of tensors other values, or return one, and do nothing else."""
    blocks: list[cst.BaseSuite] = [node.body]
    follows = node.orelse
    while follows is not None:
        blocks.append(follows.body)
        follows = follows.orelse if isinstance(follows, cst.If) else None
    return all(_is_picking(line, context) for block in blocks for line in block.body)


def _is_picking(line: cst.CSTNode, context: Context) -> bool:
    match line:
        case cst.SimpleStatementLine(body=statements):
            return all(_is_picking(statement, context) for statement in statements)
        case cst.If():
            return only_picks(line, context)
        case cst.Pass():
            return True
        case cst.Assign(targets=targets, value=value):
            into_names = all(isinstance(target.target, cst.Name) for target in targets)
            if into_names and any(_is_picked_by_mask(node, context) for node in descendants(value)):
                return False
            return _is_fit(value, context) and not any(_was_none(target.target, context) for target in targets)
        case cst.AugAssign(value=value) | cst.AnnAssign(value=cst.BaseExpression() as value):
            return _is_fit(value, context)
        case cst.Return(value=cst.BaseExpression() as value):
            is_tensor = context.kind(value) is Kind.TENSOR and context.loop(line) is None
            return is_tensor and not _may_give_none(line, context) and _is_fit(value, context)
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) as call):
            return name.endswith("_") and context.kind(owner) is Kind.TENSOR and _is_fit(call, context)
    return False


def _is_picked_by_mask(node: cst.CSTNode, context: Context) -> bool:
    """`x[y > 0]`, `x[mask, :]`: as many rows as the data has."""
    if not isinstance(node, cst.Subscript):
        return False
    return any(
        isinstance(part.slice, cst.Index)
        and any(isinstance(value, cst.Comparison) for value in _values(part.slice.value, context))
        for part in node.slice
    )


def _values(node: cst.BaseExpression, context: Context) -> list[cst.BaseExpression]:
    """The expression, or what a name for it is bound to."""
    if not isinstance(node, cst.Name):
        return [node]
    return [origin.node for origin in context.bound_to(node).found]


def _may_give_none(line: cst.CSTNode, context: Context) -> bool:
    """Whether the function has another `return` without a value."""
    function = context.function(line)
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(node, cst.Return)
        and (node.value is None or (isinstance(node.value, cst.Name) and node.value.value == "None"))
        for node in descendants_in_scope(function.body)
    )


def _is_fit(value: cst.BaseExpression, context: Context) -> bool:
    """Whether the value is computed by tensor operations alone, which may run whatever the answer is."""
    if isinstance(value, (cst.List, cst.Dict, cst.Tuple, cst.BaseString)):
        return False
    if isinstance(value, cst.Name) and value.value in ("None", "True", "False"):
        return False
    return all(_is_operation(node, context) for node in descendants(value) if isinstance(node, cst.Call))


def _is_operation(call: cst.Call, context: Context) -> bool:
    name = context.qualified_name(call.func) or ""
    if name.startswith("torch."):
        return name.rpartition(".")[2] not in _UNFIT
    if name in ("abs", "float", "int", "len"):
        return True
    func = call.func
    return isinstance(func, cst.Attribute) and func.attr.value not in _UNFIT and context.kind(func.value) is Kind.TENSOR


def _was_none(target: cst.BaseExpression, context: Context) -> bool:
    """`mask = None` before the branch: something else happens further down if it stays so."""
    if not isinstance(target, cst.Name):
        return False
    scope, _ = context.names.lookup(target)
    return scope is not None and _is_none_once(scope, context, target.value)


@query(bottom=False)
def _is_none_once(scope: Scope, _: Context, name: str) -> bool:
    """Whether any of a name's bindings is None."""
    return any(
        isinstance(binding.value, cst.Name) and binding.value.value == "None"
        for binding in scope.bindings.get(name, ())
    )
