"""A tensor that is made wider on the CPU, right before it is copied to the device."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Flag, Message, Method, NodeEdit, Replace, Rule, Status

RULE = Rule(
    name="cast-widens-h2d",
    code="TL205",
    group="transfer",
    summary="A tensor is cast to a wider type on the CPU, so more bytes are copied to the GPU.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="the GPU holds the tensor in both types for a moment",
)
_WIDENED = Message(
    "widened",
    "`{cast}` widens {narrow} to {wide} per element before the copy to the device",
    help="move it first and cast it on the device",
)

# What may stand between the cast and the move: it can follow the cast to the device.
_STEPS = frozenset(
    "div mul sub add div_ mul_ sub_ add_ unsqueeze unsqueeze_ squeeze view reshape permute transpose contiguous".split()
)


@RULE.on(Method("to"), Method("cuda"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a move of what a cast made wider than the code says that it was."""
    assert isinstance(node.func, cst.Attribute)
    cast = _cast(node.func.value)
    if cast is None or any(argument.keyword is None or argument.star for argument in node.args[1:]):
        return
    from torchlint.analyses.data.batch_moves import is_to_accelerator
    from torchlint.finding import Frequency
    from torchlint.semantics.values.lattice import Device

    from .widths import cast_width, is_mask, width

    wide = cast_width(cast, context)
    if wide is None or not is_to_accelerator(node, context) or context.frequency(node) is Frequency.ONCE:
        return
    assert isinstance(cast.func, cst.Attribute)
    narrow = width(cast.func.value, context)
    if narrow is None or narrow >= wide or context.device(cast.func.value) not in (Device.CPU, Device.UNKNOWN):
        return
    if is_mask(cast.func.value, context):
        return  # it is where the tensors are that were compared, or holds a few numbers that were counted up
    shown = context.shown(cast.func.value)
    yield Flag(
        node,
        _WIDENED.of(cast=shown, narrow=_bytes(narrow), wide=_bytes(wide)),
        title="Move it first and cast it on the device",
        edits=_swapped(node, cast, context),
    )


def _bytes(number: int) -> str:
    return "1 byte" if number == 1 else f"{number} bytes"


def _cast(node: cst.BaseExpression) -> cst.Call | None:
    """The last cast in a chain of methods, behind which only arithmetic with numbers and changes of shape follow."""
    while True:
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=args):
                if name in ("float", "double", "to", "type"):
                    return node
                if name not in _STEPS or any(_is_computed(argument.value) for argument in args):
                    return None
                node = owner
            case cst.BinaryOperation(left=left, operator=cst.Divide() | cst.Multiply() | cst.Subtract(), right=right):
                if _is_computed(right):
                    return None
                node = left
            case _:
                return None


def _is_computed(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    return not isinstance(node, cst.BaseNumber)


def _swapped(move: cst.Call, cast: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    """`x.to(device).float()` for `x.float().to(device)`; nothing where more is done between the two."""
    assert isinstance(move.func, cst.Attribute)
    assert isinstance(cast.func, cst.Attribute)
    if move.func.value is not cast or "#" in context.code(move) or cast.lpar:
        return ()
    moved = cast.func.with_changes(attr=move.func.attr)
    first = move.with_changes(func=moved, lpar=(), rpar=())
    second = cast.with_changes(func=cast.func.with_changes(value=first), lpar=move.lpar, rpar=move.rpar)
    return (Replace(move, context.code(second)),)
