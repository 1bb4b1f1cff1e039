"""What is brought to the CPU on purpose: to make room on the device, or because a file is written of each piece."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.conditions import OFFLOADING_OPTION, SAVING_OPTION
from torchlint.semantics.knowledge.conventions.functions import FILE_WRITER, SAVING_FUNCTION
from torchlint.semantics.names.bindings import final_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants_in_scope


def is_made_room_for(whole: cst.CSTNode, context: Context) -> bool:
    """Whether the copy, with what is taken of it, is put into a part of a larger tensor or array.

    Perhaps that is too large for the device.
    """
    statement = context.parent(whole)
    return isinstance(statement, cst.Assign) and any(
        _is_part_of_a_tensor(target.target, context) for target in statement.targets
    )


def is_switched_on(node: cst.CSTNode, context: Context) -> bool:
    """Whether somebody has to ask for the copy, by the name of an option to make room or to save something."""
    return any(is_taken and _is_option(test) for test, is_taken in context.conditions(node))


def _is_option(test: cst.BaseExpression) -> bool:
    return isinstance(test, (cst.Name, cst.Attribute)) and (
        OFFLOADING_OPTION.suggests(final_part(test)) or SAVING_OPTION.suggests(final_part(test))
    )


def _is_part_of_a_tensor(target: cst.CSTNode, context: Context) -> bool:
    if not isinstance(target, cst.Subscript):
        return False
    owner = context.value(target.value)
    if owner.kind in (Kind.TENSOR, Kind.NDARRAY):
        return owner.device is not Device.ACCELERATOR
    return len(target.slice) > 1


def is_saved(node: cst.CSTNode, context: Context) -> bool:
    """Whether the copy goes into a call that saves it."""
    return any(
        SAVING_FUNCTION.suggests(final_part(call.func)) and not context.tree.within(node, call.func)
        for call in context.around(node, cst.Call, within=context.function(node))
    )


def saves_as_it_goes(node: cst.CSTNode, context: Context) -> bool:
    """Whether each iteration of the loop around writes a picture, or another file that takes longer than the copy."""
    loop = context.loop(node)
    return isinstance(loop, cst.For) and any(
        isinstance(call, cst.Call) and FILE_WRITER.suggests(final_part(call.func))
        for line in loop.body.body
        if isinstance(line, cst.SimpleStatementLine)
        for call in descendants_in_scope(line)
    )
