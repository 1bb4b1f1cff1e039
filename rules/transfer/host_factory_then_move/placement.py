"""The code that makes a tensor on its device, in the place of code that makes it on the CPU and moves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.tensors.factories import Factory, Sameness
from torchlint.analyses.transfer.moves import Move, is_plain
from torchlint.edits.expressions import deleted, space_before_added
from torchlint.rule import NodeEdit, Replace
from torchlint.semantics.knowledge.marks import DEVICE_SETTING_CALL
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

_SMALL = 127


def is_same(made: Factory, moved: Move) -> bool:
    """Whether the tensor made on the device is the one that was moved there, bit for bit and by type and strides."""
    is_cast = moved.destination.cast is not None and not _takes_dtype(made, moved)
    return moved.sameness >= (Sameness.INTEGRAL if is_cast else Sameness.EXACT) and not moved.destination.like


def placed(made: Factory, moved: Move, context: Context) -> tuple[NodeEdit, ...]:
    """The edits that give the factory its device and drop the move; none where that can't be done."""
    if not moved.destination.device or moved.is_shaped_before or moved.is_joined or _has_comments(moved, context):
        return ()
    call = _on_device(made, moved, context)
    if call is None:
        return ()
    if moved.binding is not None:
        return tuple(_in_two_statements(made, moved, call, context))
    if not (moved.is_direct or is_plain(moved.destination.node)):
        return ()  # the device would be asked for before the steps on the way to it
    receiver = moved.receiver.deep_replace(made.call, call)
    assert isinstance(receiver, cst.BaseExpression)
    rest = _without_move(made, moved, receiver)
    return (Replace(moved.call, context.code_at(rest, moved.call)),)


def _takes_dtype(made: Factory, moved: Move) -> bool:
    """Whether the factory can make the dtype that the move casts to."""
    has_own = any(argument.keyword is not None and argument.keyword.value == "dtype" for argument in made.call.args)
    return moved.is_direct and moved.binding is None and made.takes_any_dtype and not has_own and _fits_all(made)


def _fits_all(made: Factory) -> bool:
    """Whether each dtype holds the number that the tensor is filled with: a cast wraps 300 to 44, `full` refuses it."""
    if made.name not in ("full", "full_like"):
        return True
    filled = [argument.value for argument in made.call.args if _is_fill(argument)] or [
        argument.value for argument in made.call.args[1:2]
    ]
    return all(
        isinstance(node, cst.Integer) and abs(node.evaluated_value) <= _SMALL
        for node in (part.expression if isinstance(part, cst.UnaryOperation) else part for part in filled)
    )


def _is_fill(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value == "fill_value"


def _has_comments(moved: Move, context: Context) -> bool:
    """Whether comments stand in what is dropped."""
    return context.code(moved.call).count("#") > context.code(moved.receiver).count("#")


def _without_move(made: Factory, moved: Move, receiver: cst.BaseExpression) -> cst.BaseExpression:
    """The receiver, with the cast that the move also made and the brackets that stood around it."""
    cast = moved.destination.cast
    if cast is not None and not _takes_dtype(made, moved):
        assert isinstance(cast.func, cst.Attribute)
        return cast.with_changes(func=cast.func.with_changes(value=receiver))
    call = moved.call
    return receiver.with_changes(lpar=[*call.lpar, *receiver.lpar], rpar=[*receiver.rpar, *call.rpar])


# The factory's own call


def _on_device(made: Factory, moved: Move, context: Context) -> cst.Call | None:
    """The factory's call with the device, a legacy constructor turned into its successor."""
    destination = moved.destination
    dtype = destination.dtype if _takes_dtype(made, moved) else ""
    call = made.call
    if made.legacy:
        successor = _successor(made, context)
        if successor is None:
            return None
        call, own_dtype = successor
        dtype = dtype or own_dtype
    added = (
        {"dtype": dtype, "device": destination.device}
        if made.legacy
        else {"device": destination.device, "dtype": dtype}
    )
    return _with_arguments(call, {name: code for name, code in added.items() if code})


def _successor(made: Factory, context: Context) -> tuple[cst.Call, str] | None:
    """`torch.empty(2, 3)` for `torch.FloatTensor(2, 3)`, `torch.full((n,), 1)` for `torch.IntTensor([1] * n)`."""
    call = made.call
    if not isinstance(call.func, cst.Attribute):
        return None
    torch = call.func.value
    dtype = f"{context.code(torch)}.{made.dtype}" if made.dtype else ""
    if made.repeated is None:
        return call.with_changes(func=call.func.with_changes(attr=cst.Name("empty"))), dtype
    value, count = made.repeated
    if made.name == "Tensor":
        dtype = f"{context.code(torch)}.get_default_dtype()"
    sizes = cst.Arg(cst.Tuple([cst.Element(count, comma=cst.Comma())]))
    func = call.func.with_changes(attr=cst.Name("full"))
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    arguments = [
        sizes.with_changes(comma=comma),
        cst.Arg(value, comma=comma if call.args[1:] else cst.MaybeSentinel.DEFAULT),
    ]
    return call.with_changes(func=func, args=[*arguments, *call.args[1:]]), dtype


def _with_arguments(call: cst.Call, added: dict[str, str]) -> cst.Call:
    """The call with keyword arguments behind the others, each on a line if those are; a comma at the end kept."""
    *before, last = call.args
    comma = cst.Comma(whitespace_after=space_before_added(call))
    new = [
        cst.Arg(
            cst.parse_expression(code),
            keyword=cst.Name(name),
            equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
            comma=comma,
        )
        for name, code in added.items()
    ]
    new[-1] = new[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    first = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*before, first, *new])


# The two-statement form


def _in_two_statements(made: Factory, moved: Move, call: cst.Call, context: Context) -> Iterator[NodeEdit]:
    """The factory with the device, and the other statement without the move, or gone if it did nothing else."""
    assert moved.binding is not None
    first, second = context.tree.line(made.call), context.tree.line(moved.call)
    if first is None or second is None or not _may_be_asked_earlier(made, moved, first, second, context):
        return
    if not _only_moves(moved, moved.binding.name, context):
        yield Replace(made.call, context.code_at(call, made.call))
        yield Replace(moved.call, context.code_at(_without_move(made, moved, moved.receiver), moved.call))
    elif isinstance(second, cst.SimpleStatementLine) and len(second.body) == 1 and "#" not in context.code(second):
        yield Replace(made.call, context.code_at(call, made.call))
        yield deleted(second, context)


def _only_moves(moved: Move, name: str, context: Context) -> bool:
    """Whether the statement is `t = t.to(device)`, of which nothing would be left."""
    match context.parent(moved.call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))]):
            return target == name and moved.is_direct and moved.destination.cast is None
    return False


def _may_be_asked_earlier(
    made: Factory,
    moved: Move,
    first: cst.SimpleStatementLine | cst.BaseCompoundStatement,
    second: cst.SimpleStatementLine | cst.BaseCompoundStatement,
    context: Context,
) -> bool:
    """Whether the device is the same where the factory stands: one block, and nothing between that could change it."""
    block = context.parent(first)
    own = {id(context.tree.statement(made.call)), id(context.tree.statement(moved.call))}
    if block is not context.parent(second) or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return False
    lines = list(block.body)
    beside = [small for line in (first, second) for small in _smalls(line) if id(small) not in own]
    between = [*beside, *lines[lines.index(first) + 1 : lines.index(second)]]
    node = moved.destination.node
    if node is None or isinstance(node, (cst.SimpleString, cst.Integer)):
        return not any(DEVICE_SETTING_CALL.is_in(context.uncommented(line)) for line in between)
    if not is_plain(node):
        return False
    asked = {name.value for name in descendants(node) if isinstance(name, cst.Name)}
    return all(_leaves(line, asked, context) for line in between)


def _smalls(line: cst.CSTNode) -> list[cst.CSTNode]:
    return list(line.body) if isinstance(line, cst.SimpleStatementLine) else []


def _leaves(line: cst.CSTNode, asked: set[str], context: Context) -> bool:
    """Whether a statement only makes or moves something else."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call(func=func))]
        ) if name not in asked:
            called = context.qualified_name(func) or ""
            return called.startswith("torch.") or (dotted(func) or "").rpartition(".")[2] in ("to", "cuda")
    return False
