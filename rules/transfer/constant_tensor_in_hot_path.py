"""A tensor of constants that is made on the CPU and sent to the device for each batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.apis import OF_LISTS
from torchlint.semantics.knowledge.marks import TORCHSCRIPT

if TYPE_CHECKING:
    import libcst as cst

    from ._shared.literal_tensors import Constant

RULE = Rule(
    name="constant-tensor-in-hot-path",
    code="TL208",
    group="transfer",
    summary="A tensor of constants is created on the CPU and copied to the GPU every batch.",
    since="0.2.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="a large or special number may be converted or checked differently",
    yields_to=("host-factory-then-move",),
    eager=True,
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "One copy costs microseconds."),
        (Doubt.RARE, "A copy now and then costs microseconds."),
        (Doubt.WAITS_ANYWAY, "Where the CPU waits anyway, to wait for a copy costs next to nothing."),
    ),
)
_CONSTANT = Message(
    "constant", "`{made}` is copied from the CPU{often}, which waits until the GPU has caught up", help="{advice}"
)
_SMALL = 127  # up to here every number fits each type that a tensor may have
_PLAIN = ("tensor", "as_tensor")
_UNSEEN = frozenset({Doubt.RATE_UNKNOWN, Doubt.UNCALLED})


@RULE.on(*map(Call, OF_LISTS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a tensor of literal numbers; the fix fills one on the device, if all are the same."""
    from torchlint.edits.messages import how_often

    from ._shared.literal_tensors import constant, is_where_data_are_made

    found = constant(node, context)
    if found is None or is_where_data_are_made(found.moved, context):
        return
    made = found.moved if context.tree.within(node, found.moved) else node
    doubts = tuple(dict.fromkeys(_doubts(found.moved, context)))
    if found.is_kept and not _UNSEEN.isdisjoint(doubts):
        return  # it may be made once
    yield Flag(
        found.moved,
        _CONSTANT.of(made=context.shown(made), often=how_often(found.moved, context), advice=_advice(found, context)),
        title="Use `torch.full` on the device",
        edits=_edits(found, context),
        applicability=Applicability.SAFE if _is_same(found, context) else Applicability.UNSAFE,
        about=(node,),
        doubts=doubts,
    )


def _doubts(moved: cst.Call, context: Context) -> Iterator[Doubt]:
    """Why it may cost next to nothing: it is seldom made, or the CPU waits just before or right behind it."""
    from torchlint.analyses.execution.hot import rate_doubts

    from ._shared import literal_tensors

    if literal_tensors.is_read_at_once(moved, context) or literal_tensors.is_behind_a_wait(moved, context):
        yield Doubt.WAITS_ANYWAY
    rare = (
        literal_tensors.stands_in_for_nothing,
        literal_tensors.is_last_resort,
        literal_tensors.is_kept_by_object,
        literal_tensors.is_of_a_cached_function,
    )
    if any(asks(moved, context) for asks in rare):
        yield Doubt.RARE
    yield from rate_doubts(moved, context)  # last, since other files may have to say it


def _advice(found: Constant, context: Context) -> str:
    if found.value:
        return f"fill it there with `torch.full({_shape(found)}, {found.value}, device=…)`"
    class_ = context.tree.enclosing_class(found.call)
    is_of_a_module = class_ is not None and context.classes.is_module(class_)
    return "make it a buffer of the module" if is_of_a_module else "create it once and keep it there"


def _shape(found: Constant) -> str:
    return f"({', '.join(map(str, found.axes))}{',' if len(found.axes) == 1 else ''})"


def _is_same(found: Constant, context: Context) -> bool:
    """Whether it is the same tensor for certain: `uint64` is strict, and TorchScript's `full` makes no leaves."""
    dtype = context.argument(found.call, "dtype", 1)
    is_strict = dtype is not None and context.qualified_name(dtype) == "torch.uint64"
    is_leaf = context.argument(found.call, "requires_grad") is not None and TORCHSCRIPT.is_in(context.program.code)
    return _is_small(found.value) and not is_leaf and not is_strict


def _is_small(value: str) -> bool:
    """Whether the number is one that each type of a tensor either holds or rounds, whoever makes the tensor."""
    try:
        number = float(value)
    except ValueError:
        return value in ("True", "False")
    return abs(number) <= _SMALL


def _edits(found: Constant, context: Context) -> tuple[NodeEdit, ...]:
    import libcst as cst  # the registry loads rules without it

    from torchlint.edits.expressions import as_argument, in_place_of

    call, func = found.call, found.call.func
    if not (found.value and found.where and isinstance(func, cst.Attribute)) or func.attr.value not in _PLAIN:
        return ()
    others = [argument for argument in call.args if argument.value is not found.data]
    if "#" in context.code(found.moved) or any(argument.keyword is None for argument in others):
        return ()
    filling = f"{_shape(found)}, {found.value}"
    if found.value in ("True", "False") and context.argument(call, "dtype") is None:
        filling += f", dtype={context.code(func.value)}.bool"  # TorchScript makes whole numbers of truth values
    if found.moved is call and call.args[0].keyword is None:
        return (Replace(func.attr, "full"), Replace(found.data, filling))
    given = [filling, *(as_argument(argument, context) for argument in others)]
    if found.moved is not call:
        given.append(f"device={found.where}")
    made = f"{context.code(func.value)}.full({', '.join(given)})"
    return (Replace(found.moved, in_place_of(found.moved, made, context)),)
