"""Sequences of modules that somebody takes apart: what runs between two of their parts is not in the sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.syntax.tree import descendants

_THROUGH = frozenset({"enumerate", "zip", "reversed", "list", "tuple"})
_PARTS = frozenset({"children", "named_children", "modules", "named_modules", "items", "values"})


def is_taken_apart(sequence: cst.Call, context: Context) -> bool:
    """Whether code of this module calls the parts of an `nn.Sequential` one by one, and does something between them."""
    return any(_is_part_called(read, context) for read in _reads(sequence, context))


def _reads(sequence: cst.Call, context: Context) -> Iterator[cst.CSTNode]:
    """The reads of what a sequence is assigned to, here or by a class of this module that gets it."""
    parent = context.parent(sequence)
    match parent:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() as target)]):
            yield from context.uses.mentions(target) or ()
        case cst.Arg():
            call = context.parent(parent)
            class_ = context.constructions.class_of(call) if isinstance(call, cst.Call) else None
            if isinstance(call, cst.Call) and class_ is not None:
                yield from _reads_in(class_, call, parent, context)


def _reads_in(class_: cst.ClassDef, call: cst.Call, argument: cst.Arg, context: Context) -> Iterator[cst.CSTNode]:
    init = context.classes.methods(class_).get("__init__")
    if init is None or argument.star:
        return
    parameters = [*init.params.posonly_params, *init.params.params][1:]
    if argument.keyword is not None:
        named = [parameter for parameter in parameters if parameter.name.value == argument.keyword.value]
    else:
        place = next(place for place, other in enumerate(call.args) if other is argument)
        named = parameters[place : place + 1]
    for parameter in named:
        for use in context.uses.of(parameter.name.value, parameter):
            match context.parent(use):
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)]):
                    yield from context.uses.mentions(target) or ()


def _is_part_called(read: cst.CSTNode, context: Context) -> bool:
    """Whether a part is called: `self.net[0](x)`, or in a loop that does more than to pass a value on."""
    node, parent = read, context.parent(read)
    if isinstance(parent, cst.Subscript) and parent.value is read:
        above = context.parent(parent)
        return isinstance(above, cst.Call) and above.func is parent
    if isinstance(parent, cst.Attribute) and parent.attr.value in (*_PARTS, "_modules"):
        node, parent = parent, context.parent(parent)
        if isinstance(parent, cst.Call) and parent.func is node:
            node, parent = parent, context.parent(parent)
    while isinstance(parent, cst.Arg):
        call = context.parent(parent)
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name) or call.func.value not in _THROUGH:
            return False
        node, parent = call, context.parent(call)
    match parent:
        case cst.For(target=target, iter=iterated, body=body) if iterated is node:
            return not _passes_on(body, _names(target)) and _calls(_names(target), descendants(body))
        case cst.CompFor(target=target, iter=iterated) if iterated is node:
            above = context.parent(parent)
            return above is not None and _calls(_names(target), descendants(above))
    return False


def _names(target: cst.CSTNode) -> set[str]:
    return {node.value for node in (target, *descendants(target)) if isinstance(node, cst.Name)}


def _calls(names: set[str], nodes: Iterable[cst.CSTNode]) -> bool:
    """Whether one of the names is called; to pass a module to a function is nothing that it computes."""
    return any(
        isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in names for node in nodes
    )


def _passes_on(body: cst.BaseSuite, names: set[str]) -> bool:
    """`x = layer(x)` alone, which is what the sequence does."""
    match body:
        case cst.IndentedBlock(
            body=[cst.SimpleStatementLine(body=[cst.Assign(value=cst.Call(func=cst.Name(value=called)))])]
        ):
            return called in names
    return False
