"""A cast by the name of a CPU tensor type: it takes a tensor from the device to the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Method, Replace, Rule, Status
from torchlint.semantics.knowledge.conventions.conditions import PLACE_CONDITION

from ._shared.doubts import WAIT_DOUBTS, weighed

RULE = Rule(
    name="legacy-type-cast",
    code="TL321",
    group="sync",
    summary="`type(torch.FloatTensor)` copies a GPU tensor to the CPU and waits for it.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    doubts=WAIT_DOUBTS,
    unsafe="the result stays on the GPU",
)
_CAST = Message(
    "cast",
    "`{call}` copies the tensor to the CPU{often} and waits for it",
    help="cast it where it is, with `.{cast}()`",
)

_CASTS = {
    "FloatTensor": "float",
    "DoubleTensor": "double",
    "HalfTensor": "half",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "byte",
    "CharTensor": "char",
    "ShortTensor": "short",
    "IntTensor": "int",
    "LongTensor": "long",
    "BoolTensor": "bool",
}


@RULE.on(Method("type"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a cast to a type of the CPU of a tensor that is on the device, or may be."""
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.edits.expressions import loses_comment
    from torchlint.edits.messages import how_often

    cast = _cast(node, context)
    if cast is None or not isinstance(node.func, cst.Attribute):
        return
    tensor = node.func.value
    if _is_asked_where(node, context) or not is_device_tensor(tensor, context):
        return
    doubts = weighed(RULE, _doubts(node, tensor, context))
    has_comment = loses_comment(node, node.func.value, context=context)
    yield Flag(
        node,
        _CAST.of(call=context.shown(node), cast=cast, often=how_often(node, context)),
        title=f"Cast with `{cast}()`",
        edits=() if has_comment or doubts else (Replace(node.func.attr, cast), Replace(node.args[0], "")),
        doubts=doubts,
    )


def _cast(call: cst.Call, context: Context) -> str | None:
    """The method that casts to the same numbers wherever the tensor is."""
    if len(call.args) != 1 or call.args[0].keyword is not None or call.args[0].star:
        return None
    given = call.args[0].value
    if isinstance(given, cst.SimpleString):
        name = str(given.evaluated_value)
    elif isinstance(given, cst.Attribute) and given.attr.value in _CASTS:
        name = context.qualified_name(given) or ""
    else:
        return None
    module, _, last = name.rpartition(".")
    return _CASTS.get(last) if module == "torch" else None


def _is_asked_where(call: cst.Call, context: Context) -> bool:
    """Whether a branch asks first where the tensor is."""
    return any(PLACE_CONDITION.suggests(context.uncommented(condition.test)) for condition in context.conditions(call))


def _doubts(call: cst.Call, tensor: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against casting the tensor where it is, in the order of what it costs to know."""
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.semantics.values.lattice import Device

    match context.enclosing(call, cst.Assign, cst.FunctionDef, cst.Lambda):
        case cst.Assign(targets=targets) if any(isinstance(each.target, cst.Subscript) for each in targets):
            yield Doubt.HOST_NEEDS_IT  # the copy goes into a part of another tensor
    value = context.value(tensor)
    # It is on the device where it was put there, or the result is taken there at once. What a loader gives is cast
    # before it moves.
    if value.device is Device.UNKNOWN and (value.batch or not _is_taken_back(call, context)):
        yield Doubt.DEVICE_UNKNOWN
    yield from wait_doubts(call, tensor, context)


def _is_taken_back(call: cst.Call, context: Context) -> bool:
    """`….cuda()` or `….to(device)` behind the cast."""
    from torchlint.semantics.values.lattice import Kind

    method = context.parent(call)
    outer = context.parent(method) if isinstance(method, cst.Attribute) and method.value is call else None
    match outer:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="cuda"))):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="to")), args=[cst.Arg(value=given), *_]):
            return context.kind(given) is Kind.DEVICE
    return False
