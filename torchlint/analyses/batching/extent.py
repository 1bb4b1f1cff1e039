"""How much a loop goes over, how often it is run, and whether its author wanted it."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.data.sample_code import is_in_a_dataset
from torchlint.analyses.execution.hot import is_exceptional
from torchlint.analyses.execution.meant import is_meant
from torchlint.analyses.execution.occasions import runs_once
from torchlint.analyses.execution.rarity import runs_rarely, words_of
from torchlint.analyses.host.reads import is_host_only
from torchlint.analyses.iteration.targets import LoopNode, Visit, is_surely_no_tensor, loops_around, owner_of, parts_of
from torchlint.analyses.tensors.lengths import has_one_row, length_along, written_length
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.knowledge.conventions.comments import MEMORY_COMMENT
from torchlint.semantics.knowledge.conventions.conditions import MEMORY_OPTION
from torchlint.semantics.knowledge.conventions.counts import BEST_FEW, CLASS_NUMBER, STRUCTURE
from torchlint.semantics.knowledge.conventions.values import CHANNEL_STATISTICS, PYRAMID
from torchlint.semantics.names.loop_headers import is_shape
from torchlint.syntax.literals import integer
from torchlint.syntax.tree import descendants, descendants_in_scope

FEW = 4
# As many iterations are few where they are all there are.
FEW_IN_ALL = 16
# So many that their launches alone, of a few kernels each, take a millisecond.
MANY = 64


def is_few(loop: LoopNode, visit: Visit, context: Context) -> bool:
    """Whether the loop goes over parts of a model, channels, or a handful of things."""
    if visit.count is not None:
        number = _literal(visit.count, context)
        words = (*visit.counters, *words_of(visit.count))
        if any(STRUCTURE.suggests(word) for word in words):
            return True
        return number is not None and (
            number <= FEW or (number <= FEW_IN_ALL and runs_once(owner_of(loop, context), context))
        )
    if isinstance(loop, cst.While) or not (visit.counters or visit.elements):
        return False
    if any(STRUCTURE.suggests(name) for name in visit.counters):
        return True
    if any(map(_is_of_a_shape, (container for _, container in (*visit.elements, *visit.others)))):
        return True
    if any(_has_few_rows(tensor, context) for _, tensor in visit.elements):
        return True
    if visit.others and _goes_over_blocks(loop, visit, context):
        return True
    return any(0 < len(context.value(container).items) <= FEW for _, container in visit.others)


def is_named_few(visit: Visit) -> bool:
    """Whether names say that there are few iterations: for levels of a pyramid, channels, or each of the best."""
    return (
        any(PYRAMID.suggests(word) for _, tensor in visit.elements for word in words_of(tensor))
        or any(CHANNEL_STATISTICS.suggests(word) for _, container in visit.others for word in words_of(container))
        or (isinstance(visit.count, cst.Name) and BEST_FEW.suggests(visit.count.value))
    )


def is_a_handful(visit: Visit, context: Context) -> bool:
    """Whether the number of iterations is literal, more than one and few, and no part of a model is what it counts."""
    if visit.count is None or any(STRUCTURE.suggests(word) for word in (*visit.counters, *words_of(visit.count))):
        return False
    number = _literal(visit.count, context)
    return number is not None and 1 < number <= FEW


def is_many(visit: Visit, tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the iterations are known to be so many that to launch them takes long."""
    number = None if visit.count is None else _literal(visit.count, context)
    return max(number or 0, length_along(tensor, 0, context) or 0) >= MANY


def _goes_over_blocks(loop: LoopNode, visit: Visit, context: Context) -> bool:
    """Whether a list has the numbers of blocks, `x[crop * size : (crop + 1) * size]`: an iteration takes many rows."""
    named = {name for name, _ in visit.others}
    return any(
        isinstance(node, cst.Slice) and isinstance(node.lower, cst.BinaryOperation) and _is_times(node.lower, named)
        for part in parts_of(loop, context)
        for node in descendants(part)
    )


def _is_times(node: cst.BinaryOperation, named: set[str]) -> bool:
    sides = (node.left, node.right)
    is_product = isinstance(node.operator, cst.Multiply)
    return is_product and any(isinstance(side, cst.Name) and side.value in named for side in sides)


def _has_few_rows(tensor: cst.BaseExpression, context: Context) -> bool:
    length = length_along(tensor, 0, context)
    return has_one_row(tensor, context) if length is None else length <= FEW


def _is_of_a_shape(node: cst.BaseExpression) -> bool:
    """`x.shape`, `x.size()[2:]`: there is an iteration for each axis."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return is_shape(node)


def _literal(node: cst.BaseExpression, context: Context) -> int | None:
    match node:
        case cst.Integer():
            return integer(node)
        case cst.Name():
            parameter = context.parameter(node)
            value = context.stands_for(node) if parameter is None else parameter.default
            return _literal(value, context) if isinstance(value, cst.Integer) else None
        case cst.Call(func=cst.Name(value="min"), args=args):
            numbers = (_literal(argument.value, context) for argument in args)
            return min((number for number in numbers if number is not None), default=None)
        case cst.Call() | cst.Subscript():
            return written_length(node, context)
    return None


def is_over_classes(visit: Visit) -> bool:
    """Whether there is an iteration for each class, bin or cluster, as far as the number of iterations tells."""
    match visit.count:
        case None:
            return False
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[cst.Arg(value=cst.Integer(value=axis))]):
            return axis != "0"
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name(value="shape")),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=axis)))],
        ):
            return axis != "0"
    return any(CLASS_NUMBER.suggests(word) for word in words_of(visit.count))


def is_plain(loop: LoopNode, context: Context) -> bool:
    """Whether the loop is neither one over batches or epochs nor one that yields."""
    if context.frequencies.loop_kind(owner_of(loop, context)) is not LoopKind.OTHER:
        return False
    return not any(
        isinstance(node, cst.Yield) for part in parts_of(loop, context) for node in descendants_in_scope(part)
    )


def is_sure_tensor(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is one tensor, and not what a loader, a mapping or a model gives that may be several."""
    return not is_surely_no_tensor(node) and not context.value(node).batch and context.kinds.is_tensor(node)


def is_worth_batching(node: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether it pays to do at once what is done here for each element: on the CPU only where it is hot."""
    if runs_rarely(node, context) or is_exceptional(node, context) or has_one_row(tensor, context):
        return False
    return may_wait(tensor, context) or context.frequency(node) >= Frequency.BATCH


def may_wait(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether reading the tensor may make the host wait: it need not live on the CPU."""
    device = context.device(tensor)
    return device.may_be_accelerator and not is_host_only(context, device) and not is_in_a_dataset(tensor, context)


def saves_memory(loop: LoopNode, context: Context) -> bool:
    """Whether the author says beside the loop that it is there for the memory that one batched operation would take."""
    for each in (loop, *loops_around(loop, context)):
        head = each.test if isinstance(each, cst.While) else each.iter
        if is_meant(head, context, behind=MEMORY_COMMENT, above=MEMORY_COMMENT):
            return True
    return False


def may_save_memory(loop: LoopNode, context: Context) -> bool:
    """Whether the function around may be asked to save memory, by the name of an option."""
    function = context.function(loop)
    return function is not None and any(
        isinstance(part, cst.If) and any(map(MEMORY_OPTION.suggests, words_of(part.test)))
        for part in descendants(function.body)
    )
