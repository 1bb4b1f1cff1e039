"""Recurrent cells that a loop steps through inputs which were there before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import Binding
from torchlint.syntax.tree import descendants_in_scope

LAYERS = {"torch.nn.LSTMCell": "nn.LSTM", "torch.nn.GRUCell": "nn.GRU", "torch.nn.RNNCell": "nn.RNN"}
_LEAVING = (cst.Break, cst.Continue, cst.Return, cst.Yield, cst.Await)
_GROWING = frozenset({"append", "extend", "insert", "pop", "add", "update", "copy_", "add_", "mul_"})


class Step(NamedTuple):
    """A call of a cell, once per iteration, and the layer that takes all inputs at once."""

    call: cst.Call
    layer: str


@dataclass(slots=True)
class _Turn:
    """What is known of the iterations of a loop: `steps` are the statements that step cells, so far."""

    loop: cst.For
    context: Context
    steps: list[cst.Assign] = field(default_factory=list)
    uses_turn: bool = False


def steps(loop: cst.For, context: Context) -> list[Step]:
    """The cells that a loop steps, whose inputs don't hang on what earlier iterations gave."""
    if not isinstance(loop.body, cst.IndentedBlock) or _may_leave(loop) or _is_over_batches(loop, context):
        return []
    turn = _Turn(loop, context)
    found = []
    for line in loop.body.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            match statement:
                case cst.Assign(targets=[cst.AssignTarget(target=target)], value=cst.Call() as call):
                    layer = LAYERS.get(context.value(call.func).qualified)
                    if layer is not None and _is_stepped(statement, target, call, turn):
                        turn.steps.append(statement)
                        found.append(Step(call, layer))
    return found


def _may_leave(loop: cst.For) -> bool:
    return loop.orelse is not None or any(isinstance(node, _LEAVING) for node in descendants_in_scope(loop.body))


def _is_over_batches(loop: cst.For, context: Context) -> bool:
    iterated = [loop.iter]
    if isinstance(loop.iter, cst.Call):
        iterated += [argument.value for argument in loop.iter.args]
    return context.frequencies.steps(loop.body) or any(context.kinds.is_loader_like(node) for node in iterated)


def _is_stepped(statement: cst.Assign, target: cst.BaseAssignTargetExpression, call: cst.Call, turn: _Turn) -> bool:
    context = turn.context
    given, state = context.argument(call, "input", 0), context.argument(call, "hx", 1)
    if given is None or state is None or context.has_unpacking(call):
        return False
    names, before = _names(target), _names(state)
    if not names or [name.value for name in names] != [name.value for name in before]:
        return False
    if any(not _is_bound_only_by(name, statement, turn) for name in before):
        return False
    is_pair = LAYERS["torch.nn.LSTMCell"] == LAYERS[context.value(call.func).qualified]
    if is_pair and not _is_cell_state_unread(names, statement, call, turn):
        return False
    turn.uses_turn = False
    return _is_known(given, turn) and turn.uses_turn and not _changes(call.func, turn)


def _names(node: cst.BaseExpression) -> list[cst.Name]:
    match node:
        case cst.Name():
            return [node]
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [element.value for element in elements if isinstance(element.value, cst.Name)]
    return []


def _inside(bindings: tuple[Binding, ...], turn: _Turn) -> list[Binding]:
    return [binding for binding in bindings if turn.context.tree.within(binding.node, turn.loop)]


def _is_bound_only_by(name: cst.Name, statement: cst.Assign, turn: _Turn) -> bool:
    """Whether an iteration changes the state nowhere else: no mask, no dropout, no reset."""
    _, bindings = turn.context.names.lookup(name)
    return all(binding.node is statement for binding in _inside(bindings, turn)) and not _changes(name, turn)


def _is_cell_state_unread(names: list[cst.Name], statement: cst.Assign, call: cst.Call, turn: _Turn) -> bool:
    """Whether only the outputs are read in the loop: of the cell states `nn.LSTM` gives the last alone."""
    context = turn.context
    uses = context.uses.of(names[-1].value, statement)
    within = [use for use in uses if context.tree.within(use, turn.loop) and not context.tree.within(use, call)]
    if len(names) == 2:
        return not within
    for use in within:
        match context.parent(use):
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]):
                continue
        return False
    return len(names) == 1


def _is_known(node: cst.CSTNode, turn: _Turn) -> bool:
    """Whether all that an expression reads was there before the loop, or is computed from that in this turn."""
    context = turn.context

    def is_computed(binder: cst.CSTNode) -> bool:
        return context.tree.within(binder, turn.loop) and not _is_of_turn(binder, turn)

    for part in context.ingredients(node, bound_by=is_computed):
        if isinstance(part, (cst.Lambda, cst.NamedExpr)):
            return False
        if isinstance(part, cst.Attribute) and _is_attribute_set(part, turn):
            return False
        if isinstance(part, cst.Name) and not _is_name_known(part, turn):
            return False
    return True


def _is_of_turn(binder: cst.CSTNode, turn: _Turn) -> bool:
    return binder is turn.loop or binder in turn.steps


def _is_name_known(name: cst.Name, turn: _Turn) -> bool:
    """Whether an iteration has given the name its value before, by the loop, a cell or an assignment; or none has."""
    context = turn.context
    binders = context.binders(name)
    inside = [binder for binder in binders if context.tree.within(binder, turn.loop)]
    if not inside:
        return not _changes(name, turn)
    if len(inside) < len(binders) or not context.is_bound_before(name, name):
        return False  # what an earlier iteration gave
    turn.uses_turn |= any(_is_of_turn(binder, turn) for binder in inside)
    return all(_is_of_turn(binder, turn) or isinstance(binder, (cst.Assign, cst.AnnAssign)) for binder in inside)


def _changes(node: cst.CSTNode, turn: _Turn) -> bool:
    """Whether an iteration changes what a name holds, in place, or takes the cell from a list by number."""
    if isinstance(node, cst.Subscript):
        return True
    if not isinstance(node, cst.Name):
        return False
    for other in descendants_in_scope(turn.loop.body):
        match other:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=method))):
                if name == node.value and method in _GROWING:
                    return True
            case cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name))) if name == node.value:
                return True
    return False


def _is_attribute_set(node: cst.Attribute, turn: _Turn) -> bool:
    return any(
        isinstance(other, cst.AssignTarget)
        and isinstance(other.target, cst.Attribute)
        and other.target.deep_equals(node)
        for other in descendants_in_scope(turn.loop.body)
    )
