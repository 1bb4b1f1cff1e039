"""Arrays of NumPy in float64, its default, that reach the device as they are."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Flag, Insert, Message, Method, Rule, Status
from torchlint.semantics.knowledge.conventions.texts import FLOAT64_WANTED

RULE = Rule(
    name="float64-leak",
    code="TL608",
    group="precision",
    summary="A float64 NumPy array is copied to the GPU, and what is computed with it becomes float64.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="results are rounded to float32",
)
_FLOAT64 = Message(
    "float64",
    "a float64 NumPy array is copied to the device as it is, twice the bytes of float32",
    help="cast it with `.float()` before the copy",
)


@RULE.on(Method("to"), Method("cuda"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the move, at each batch, of a tensor that is made right there of a float64 array."""
    from torchlint.finding import Frequency

    from .array_types import is_of_float64

    if not isinstance(node.func, cst.Attribute) or not isinstance(node.func.value, cst.Call):
        return
    made = node.func.value
    if not is_of_float64(made, context) or FLOAT64_WANTED.suggests(context.program.code):
        return
    if not _only_moves(node, context) or _is_cast(node, context):
        return
    if context.frequency(node) < Frequency.BATCH or not _goes_to_a_device(node, context):
        return
    yield Flag(
        node,
        _FLOAT64.of(),
        title="Cast to float32 before the move",
        edits=(Insert(made, ".float()"),),
    )


def _only_moves(node: cst.Call, context: Context) -> bool:
    """Whether the call names a device, and neither a type nor another tensor."""
    from torchlint.semantics.values.lattice import Kind

    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "cuda":
        return True
    plain = [argument for argument in node.args if argument.keyword is None]
    if any(context.kind(argument.value) is Kind.TENSOR for argument in plain):
        return False
    keywords = {argument.keyword.value for argument in node.args if argument.keyword is not None}
    return len(plain) <= 1 and not context.has_unpacking(node) and keywords <= {"device", "non_blocking", "copy"}


def _goes_to_a_device(node: cst.Call, context: Context) -> bool:
    """Whether the move leads to what may be an accelerator."""
    from torchlint.semantics.values.lattice import Device

    return context.device(node) in (Device.ACCELERATOR, Device.MAYBE)


def _is_cast(node: cst.Call, context: Context) -> bool:
    """Whether something is done to the result at once that has a type of its own."""
    from torchlint.syntax.tree import descendants_in_scope

    statement = context.tree.statement(node)
    if statement is None:
        return True
    casts = {"float", "half", "bfloat16", "type", "type_as", "long", "int", "bool"}
    names = {"float32", "float16", "dtype"}
    if any(isinstance(n, cst.Attribute) and n.attr.value in casts | names for n in descendants_in_scope(statement)):
        return True
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            uses = [context.parent(use) for use in context.uses.of(name, statement)]
            return any(isinstance(use, cst.Attribute) and use.attr.value in (*casts, "to") for use in uses)
    return isinstance(statement, cst.Assign)
