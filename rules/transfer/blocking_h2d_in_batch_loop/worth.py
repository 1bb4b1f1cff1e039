"""Parts of batches that may be no tensors, and moves of them that nothing is gained by not waiting for."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.data.idle_loops import computes_nothing
from torchlint.analyses.execution.training_steps import trains
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.knowledge.conventions.conditions import CUDA_FLAG
from torchlint.semantics.knowledge.conventions.functions import CALIBRATION
from torchlint.semantics.knowledge.conventions.packages import GRAPH_PACKAGE
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import final_part
from torchlint.syntax.tree import Loop, children, descendants

# What tensors have and objects with a method `to` have as well, or no tensor of its own kind.
_COMMON = frozenset({"to", "cuda", "cpu", "int", "long", "float", "half", "type", "clone", "detach", "values", "size"})
_TELLING = (frozenset(METHODS) - _COMMON) | {"shape", "ndim", "dtype"}


def is_shown_to_be_a_tensor(moved: cst.Call, receiver: cst.BaseExpression, context: Context) -> bool:
    """Whether something is done with it, before or after the move, that only tensors know of."""
    uses: list[cst.CSTNode] = [moved, receiver]
    match context.parent(moved):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            uses += context.uses.of(name, statement)
    if isinstance(receiver, cst.Name):
        uses += context.readers(receiver)
    return any(_tells(use, context) for use in uses)


def _tells(use: cst.CSTNode, context: Context) -> bool:
    match context.parent(use):
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            return value is use and name in _TELLING
        case cst.BinaryOperation():
            return True
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            return not isinstance(operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
        case cst.ComparisonTarget(operator=operator):
            return not isinstance(operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
    return False


def may_be_an_object(receiver: cst.BaseExpression, context: Context) -> bool:
    """Whether what is moved by `to` may be no tensor, but have a method `to` of its own.

    Graphs are; one element after the other of a part of the batch may be, such as boxes; and so may what comes beside
    a part that is taken to pieces, such as images of different sizes.
    """
    if GRAPH_PACKAGE.suggests_any(context.names.imported):
        return True
    if not isinstance(receiver, cst.Name):
        return False
    return any(
        _is_piece(binder, context) or _is_beside_pieces(binder, receiver.value) for binder in context.binders(receiver)
    )


def is_of_a_training_loop(moved: cst.Call, context: Context) -> bool:
    """Whether a loop that takes a step in each iteration hands out what is moved, whole or in parts."""
    if not isinstance(moved.func, cst.Attribute) or not isinstance(moved.func.value, cst.Name):
        return False
    if context.frequency(moved) < Frequency.BATCH:
        return False
    match context.binders(moved.func.value):
        case [cst.For() as loop] if context.frequencies.loop_kind(loop) is LoopKind.BATCH:
            return trains(loop, context)
    return False


def is_dug_out(receiver: cst.BaseExpression, context: Context) -> bool:
    """Whether it is picked by several numbers, `data[0][1]`, which is how DALI gives what is on the GPU already."""
    return any(_picked_by(origin.node) > 1 for origin in context.origins(receiver).found)


def _picked_by(node: cst.BaseExpression) -> int:
    """How many numbers in a row it is picked by."""
    match node:
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]):
            return _picked_by(value) + 1
    return 0


def _is_piece(binder: cst.CSTNode, context: Context) -> bool:
    """Whether a comprehension binds it to the elements of a name that is a part of a batch itself."""
    match binder:
        case cst.CompFor(target=cst.Name(), iter=cst.Name() as part):
            return any(map(_siblings, context.binders(part)))
    return False


def _is_beside_pieces(binder: cst.CSTNode, name: str) -> bool:
    """Whether another part of the same batch is gone through in the loop: `for target in targets`."""
    if not isinstance(binder, cst.For):
        return False
    others = _siblings(binder) - {name}
    return any(
        isinstance(node, (cst.CompFor, cst.For)) and isinstance(node.iter, cst.Name) and node.iter.value in others
        for node in descendants(binder.body)
    )


def _siblings(binder: cst.CSTNode) -> set[str]:
    """The names of the parts that a batch is taken apart to, where it is."""
    match binder:
        case cst.For(target=target) | cst.Assign(targets=[cst.AssignTarget(target=target)]):
            if isinstance(target, (cst.Tuple, cst.List)):
                return {node.value for node in descendants(target) if isinstance(node, cst.Name)}
    return set()


def is_waited_for(moved: cst.CSTNode, context: Context) -> bool:
    """Whether each iteration of the loop waits for the device by `torch.cuda.synchronize()`, as a clock needs it."""
    loop = context.frequencies.batch_loop(moved)
    return loop is not None and any(
        context.qualified_name(call.func) == "torch.cuda.synchronize" for call in _always_called(loop.body)
    )


def is_collected(moved: cst.CSTNode, context: Context) -> bool:
    """Whether the loop only puts what it moves into lists, `parts.append(x.cuda())`, and gives the device no work."""
    argument, loop = context.parent(moved), context.frequencies.batch_loop(moved)
    match context.parent(argument) if isinstance(argument, cst.Arg) else None:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="append"))):
            return isinstance(loop, cst.For) and computes_nothing(loop, context)
    return False


def is_of_calibration(moved: cst.CSTNode, context: Context) -> bool:
    """Whether the batches are there to calibrate: a few of them, once.

    Their name says it, or a call of the function around, `quantizer.enable_calib()`.
    """
    loop, function = context.frequencies.batch_loop(moved), context.function(moved)
    if not isinstance(loop, cst.For) or not CALIBRATION.suggests(context.program.code.lower()):
        return False
    if any(isinstance(node, cst.Name) and CALIBRATION.suggests(node.value.lower()) for node in descendants(loop.iter)):
        return True
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(node, cst.Call) and CALIBRATION.suggests(final_part(node.func).lower())
        for node in descendants(function.body)
    )


def is_without_cuda(moved: cst.Call, context: Context) -> bool:
    """Whether a move by `to` stands in a branch for what is not CUDA: behind `if device.type == "cuda": … else:`."""
    if not isinstance(moved.func, cst.Attribute) or moved.func.attr.value != "to":
        return False
    for test, is_taken in context.conditions(moved):
        is_cuda = _asks_for_cuda(test, context)
        if is_cuda is not None and is_cuda is not is_taken:
            return True
    return False


def _asks_for_cuda(test: cst.BaseExpression, context: Context) -> bool | None:
    """Whether the condition holds for CUDA, or only for the rest: None where it says neither."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            found = _asks_for_cuda(inner, context)
            return None if found is None else not found
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            names = [_kind_of_device(left), _kind_of_device(right)]
            if isinstance(operator, (cst.Equal, cst.NotEqual)) and any(names):
                return isinstance(operator, cst.Equal) is ("cuda" in names)
            return True if isinstance(operator, cst.In) and names[0] == "cuda" else None
        case cst.Call(func=func, args=[]):
            return True if context.qualified_name(func) == "torch.cuda.is_available" else None
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return True if CUDA_FLAG.suggests(name.lower()) else None
    return None


def _kind_of_device(node: cst.BaseExpression) -> str:
    """`cuda` of `"cuda"` and of `Device.CUDA`, and the same for the CPU; nothing of what has a number, `"cuda:1"`."""
    match node:
        case cst.SimpleString() if isinstance(node.evaluated_value, str):
            name = node.evaluated_value
        case cst.Attribute(attr=cst.Name(value=name)) if name.isupper():
            pass
        case _:
            return ""
    return name.lower() if name.lower() in ("cuda", "cpu") else ""


def _always_called(body: cst.CSTNode) -> Iterator[cst.Call]:
    waiting: list[cst.CSTNode] = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*Loop, cst.If, cst.Try, cst.FunctionDef, cst.Lambda)):
            continue
        if isinstance(node, cst.Call):
            yield node
        waiting.extend(children(node))
