"""What is brought to the CPU on purpose: to make room on the device, or because a file is written of each piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge.conventions.conditions import OFFLOADING_OPTION, SAVING_OPTION
from torchlint.semantics.knowledge.conventions.functions import FILE_WRITER, SAVING_FUNCTION
from torchlint.semantics.names.bindings import final_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants_in_scope

if TYPE_CHECKING:
    from torchlint.semantics.context import Context


def is_offloaded(node: cst.CSTNode, whole: cst.CSTNode, context: Context) -> bool:
    """Whether the copy, `whole` with what is taken of it, is there to make room.

    It is put into a part of a larger tensor or array, perhaps one that is too large for the device, or it has to be
    switched on.
    """
    statement = context.parent(whole)
    if isinstance(statement, cst.Assign) and any(
        _is_part_of_a_tensor(target.target, context) for target in statement.targets
    ):
        return True
    return any(is_taken and _is_option(test) for test, is_taken in context.conditions(node))


def _is_option(test: cst.BaseExpression) -> bool:
    return isinstance(test, (cst.Name, cst.Attribute)) and OFFLOADING_OPTION.suggests(final_part(test))


def _is_part_of_a_tensor(target: cst.CSTNode, context: Context) -> bool:
    if not isinstance(target, cst.Subscript):
        return False
    owner = context.value(target.value)
    if owner.kind in (Kind.TENSOR, Kind.NDARRAY):
        return owner.device is not Device.ACCELERATOR
    return len(target.slice) > 1


def is_saved(node: cst.CSTNode, context: Context) -> bool:
    """Whether the copy goes into a call that saves it, or stands under an option that asks for that."""
    return any(
        SAVING_FUNCTION.suggests(final_part(call.func)) and not context.tree.within(node, call.func)
        for call in context.around(node, cst.Call, within=context.function(node))
    ) or any(
        is_taken and isinstance(test, (cst.Name, cst.Attribute)) and SAVING_OPTION.suggests(final_part(test))
        for test, is_taken in context.conditions(node)
    )


def saves_as_it_goes(node: cst.CSTNode, context: Context) -> bool:
    """Whether each turn of the loop around writes a picture, or another file that takes longer than the copy."""
    loop = context.loop(node)
    return isinstance(loop, cst.For) and any(
        isinstance(call, cst.Call) and FILE_WRITER.suggests(final_part(call.func))
        for line in loop.body.body
        if isinstance(line, cst.SimpleStatementLine)
        for call in descendants_in_scope(line)
    )
