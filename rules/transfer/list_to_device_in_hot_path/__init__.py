"""A Python list that is made into a tensor and sent to the device for each batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Insert, Message, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.apis import OF_LISTS

if TYPE_CHECKING:
    import libcst as cst

    from .lists import SentList

RULE = Rule(
    name="list-to-device-in-hot-path",
    code="TL215",
    group="transfer",
    summary="A Python list is converted to a tensor and copied to the GPU every batch.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="pinned memory is limited, and the first tensor of each size costs an allocation",
    yields_to=(
        "host-factory-then-move",
        "constant-tensor-in-hot-path",
        "tensor-from-list-of-arrays",
        "array-from-list-of-tensors",
        "device-round-trip",
        "tensor-attribute-not-buffer",
    ),
    eager=True,
    doubts=(
        (Doubt.HOST_BOUND, ""),
        (Doubt.DATA_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.NAMED_OTHERWISE, ""),
        (Doubt.RUNS_ONCE, "One copy costs microseconds."),
        (Doubt.RARE, "A copy now and then costs microseconds."),
        (Doubt.WAITS_ANYWAY, "Where the CPU waits anyway, to wait for a copy costs next to nothing."),
    ),
)
_LIST = Message("list", "`{made}` is built{data} on the CPU and copied to the device{often}", help="{advice}")
_SELDOM = frozenset({Doubt.RATE_UNKNOWN, Doubt.UNCALLED})
_FILLING = "Use `torch.full` on the device"


@RULE.on(*map(Call, OF_LISTS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a tensor that is made of a list and goes to the device; the fix pins it and does not wait for the copy."""
    from torchlint.edits.messages import how_often

    from .lists import doubts_of, sent_list

    found = sent_list(node, context)
    if found is None:
        return
    doubts = tuple(dict.fromkeys(doubts_of(found, context)))
    if not _SELDOM.isdisjoint(doubts) and (found.moved is node or not found.is_known):
        return  # a short list, made where it is needed: its copy adds up only where it is known to recur
    made = found.moved if context.tree.within(node, found.moved) else node
    kind = "range" if found.is_range else "list"
    data = f" from a {kind}" if found.is_known and found.axes != "()" else ""
    yield Flag(
        found.moved,
        _LIST.of(made=context.shown(made), data=data, often=how_often(found.moved, context), advice=_advice(found)),
        title=_FILLING if found.one else "Pin the tensor and pass `non_blocking=True`",
        edits=() if found.is_kept or found.is_range or not found.is_known else _edits(found, context),
        about=(node,),
        doubts=doubts if found.one else (Doubt.HOST_BOUND, *doubts),
    )


def _advice(found: SentList) -> str:
    if found.is_kept:
        return "make it a buffer of the module"
    if found.is_range:
        return "make it there with `torch.arange(…, device=…)`"
    if found.one:
        return f"fill it there with `torch.full({found.axes}, {found.one}, device=…)`"
    return "copy it from pinned memory with `non_blocking=True`"


def _edits(found: SentList, context: Context) -> tuple[NodeEdit, ...]:
    import libcst as cst  # the registry loads rules without it

    from torchlint.edits.expressions import as_argument, in_place_of

    call, func = found.call, found.call.func
    is_plain = context.qualified_name(func) == "torch.tensor" and isinstance(func, cst.Attribute)
    if not is_plain or not found.where or "#" in context.code(found.moved):
        return ()
    assert isinstance(func, cst.Attribute)
    if found.one:
        others = [argument for argument in call.args if argument.value is not context.argument(call, "data", 0)]
        given = [f"{found.axes}, {found.one}", *(as_argument(argument, context) for argument in others)]
        given += [] if found.moved is call else [f"device={found.where}"]
        filled = f"{context.code(func.value)}.full({', '.join(given)})"
        return (Replace(found.moved, in_place_of(found.moved, filled, context)),)
    pin = f"{context.code(func.value)}.cuda.is_available()"
    move = f".to({found.where}, non_blocking=True)"
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "device":
            return (Replace(argument.keyword, "pin_memory"), Replace(argument.value, pin), Insert(call, move))
    given = [*(as_argument(argument, context) for argument in call.args), f"pin_memory={pin}"]
    return (Replace(found.moved, f"{context.code(func)}({', '.join(given)}){move}"),)
