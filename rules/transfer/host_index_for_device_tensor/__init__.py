"""An index made on the CPU for a tensor that lives on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Node, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.finding import Frequency

RULE = Rule(
    name="host-index-for-device-tensor",
    code="TL202",
    group="transfer",
    summary="An index created on the CPU is copied to the GPU whenever it indexes a tensor there.",
    since="0.2.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="random numbers come from the generator of the GPU, and rounding may differ",
    doubts=(
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "One copy costs microseconds."),
        (Doubt.RARE, "A copy now and then costs microseconds."),
    ),
)
_INDEX = Message(
    "index",
    "`{index}` is created on the CPU and copied to the device{often} to index `{indexed}`",
    help="create it there with `{device}`",
)
_LIST = Message(
    "list",
    "indexing `{indexed}` by a list copies the list to the device{often}",
    help="index with a tensor or a mask that is on the device",
)
_RANGE = Message(
    "range",
    "indexing `{indexed}` by a `range` copies its numbers to the device{often}",
    help="index with `torch.arange(…, device=…)`",
)
_ARRAY = Message(
    "array",
    "indexing `{indexed}` by `{index}` copies the array to the device{often}",
    help="copy it once, as `torch.from_numpy({index})` on the device, or make it there",
)
_TENSOR = Message(
    "tensor",
    "indexing `{indexed}` by `{index}`, which is on the CPU, copies the index to the device{often}",
    help="move `{index}` there once, or make it there",
)


@RULE.on(Call("torch.arange"), Call("torch.randperm"), Call("torch.randint"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the factory of an index that only indexes tensors of the device; the fix makes it there."""
    from torchlint.analyses.tensors.factories import Sameness, is_made_on_a_gpu_by_default
    from torchlint.edits.expressions import with_argument
    from torchlint.edits.messages import every

    from .indices import device, host_index, is_sure

    found = host_index(node, context)
    # Asked in any case: whether the tensor is on a device other files may say, and that they are asked but once.
    if is_made_on_a_gpu_by_default(context) or found is None:
        return
    how_often = max(map(context.frequency, (node, *found.indexed)))
    indexed = found.indexed[0]
    where = device(found, context)
    is_same = found.made.sameness >= Sameness.EXACT and is_sure(found, context)
    yield Flag(
        node,
        _INDEX.of(
            index=context.shown(node),
            indexed=context.shown(indexed.value),
            often=every(how_often),
            device=f"device={where}" if where else "device=",
        ),
        title=f"Create the index with `device={where}`",
        edits=(with_argument(node, f"device={where}", context),) if where else (),
        applicability=Applicability.SAFE if is_same else Applicability.UNSAFE,
        places=tuple(each for each in found.indexed if not context.tree.within(node, each)),
        doubts=tuple(_rate_doubts(node, how_often, context)),
    )


@RULE.on(
    Node("ListComp", (b"torch",)),
    Node("List", (b"torch",)),
    Call("range"),
    Call("random.sample"),
    Call("random.choices"),
    Call("sorted"),
)
def check_list(node: cst.ListComp | cst.List | cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a tensor of the device that is indexed by a list, or by a range, of which PyTorch makes one."""
    from torchlint.edits.messages import every

    from .indices import list_index

    found = list_index(node, context)
    if found is None:
        return
    indexed = found.indexed[0]
    how_often = context.frequency(indexed)
    doubts = [*([] if found.is_there else [Doubt.DEVICE_UNKNOWN]), *_rate_doubts(indexed, how_often, context)]
    message = _RANGE if context.qualified_name(getattr(node, "func", node)) == "range" else _LIST
    said = message.of(indexed=context.shown(indexed.value), often=every(how_often))
    yield Flag(indexed, said, places=found.indexed[1:], doubts=tuple(doubts))


@RULE.on(Node("Subscript", (b"[",)))
def check_array(node: cst.Subscript, context: Context) -> Iterator[Flag]:
    """Flag a tensor of the device that an array or a tensor of the CPU indexes; what that indexes is one finding."""
    from torchlint.edits.messages import every
    from torchlint.semantics.values.lattice import Device

    from .indices import array_index, indexed_by, tensor_index

    message, index = _ARRAY, array_index(node, context)
    if index is None:
        message, index = _TENSOR, tensor_index(node, context)
    if index is None:
        return
    indexed = indexed_by(index, node, context)
    if indexed[0] is not node:
        return
    how_often = context.frequency(node)
    said = message.of(indexed=context.shown(node.value), index=context.shown(index), often=every(how_often))
    is_unknown = message is _TENSOR and context.device(node.value) is Device.UNKNOWN
    unknown = (Doubt.DEVICE_UNKNOWN,) if is_unknown else ()
    yield Flag(node, said, places=indexed[1:], doubts=(*unknown, *_rate_doubts(node, how_often, context)))


def _rate_doubts(node: cst.CSTNode, how_often: Frequency, context: Context) -> Iterator[Doubt]:
    """Why it may run too seldom to matter."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.finding import Frequency

    if context.frequencies.is_of_the_first_time(node):
        yield Doubt.RARE
    if how_often <= Frequency.ONCE:
        yield from rate_doubts(node, context)
