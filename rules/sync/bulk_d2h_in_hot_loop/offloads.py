"""What is brought to the CPU on purpose: to make room on the device, or because a file is written of each piece."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names.bindings import final_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants_in_scope

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

# Options that are there to save the device's memory: `if self.cpu_cache`, `if args.offload`.
_MAKES_ROOM = re.compile(r"cpu_?(cache|offload|only|mem)|(cache|keep|store|on|to|use|move|save)_?(\w+_)?cpu|offload")
# What writes a file of its own: drawing it or encoding it takes longer than any copy.
_WRITES = re.compile(
    r"savefig|imsave|imwrite|save_(image|img|fig|video|audio|wav|mesh|ply|obj|nii)\w*"
    r"|write_?(flow|flo|pfm|png|jpe?g|image|video|wav|ply|obj|mesh|nii)\w*",
    re.IGNORECASE,
)
# What keeps what it is given, by its name, and options that ask for it.
_SAVES = re.compile(r"_?(save|write|dump)(_\w+)?|(save|write|dump)[A-Z]\w*")
_ASKS_TO_SAVE = re.compile(r"(^|_)(save|dump)(_|$)")


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
    child = node
    for above in context.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            return False
        if isinstance(above, (cst.If, cst.IfExp)) and child is above.body and _is_option(above.test):
            return True
        child = above
    return False


def _is_option(test: cst.BaseExpression) -> bool:
    return isinstance(test, (cst.Name, cst.Attribute)) and _MAKES_ROOM.search(final_part(test)) is not None


def _is_part_of_a_tensor(target: cst.CSTNode, context: Context) -> bool:
    if not isinstance(target, cst.Subscript):
        return False
    owner = context.value(target.value)
    if owner.kind in (Kind.TENSOR, Kind.NDARRAY):
        return owner.device is not Device.ACCELERATOR
    return len(target.slice) > 1


def is_saved(node: cst.CSTNode, context: Context) -> bool:
    """Whether the copy goes into a call that saves it, or stands under an option that asks for that."""
    child = node
    for above in context.ancestors(node):
        match above:
            case cst.FunctionDef() | cst.ClassDef() | cst.Lambda():
                return False
            case cst.Call(func=func) if child is not func and _SAVES.fullmatch(final_part(func)):
                return True
            case cst.If(test=cst.Name() | cst.Attribute() as test) if child is above.body:
                if _ASKS_TO_SAVE.search(final_part(test)):
                    return True
        child = above
    return False


def saves_as_it_goes(node: cst.CSTNode, context: Context) -> bool:
    """Whether each turn of the loop around writes a picture, or another file that takes longer than the copy."""
    loop = context.loop(node)
    return isinstance(loop, cst.For) and any(
        isinstance(call, cst.Call) and _WRITES.fullmatch(final_part(call.func)) is not None
        for line in loop.body.body
        if isinstance(line, cst.SimpleStatementLine)
        for call in descendants_in_scope(line)
    )
