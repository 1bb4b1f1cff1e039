"""Operations whose result is as long as the data says: the CPU waits for the device to tell how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Rule
from torchlint.semantics.flow.query import query

from ._shared.doubts import WAIT_DOUBTS, weighed

RULE = Rule(
    name="data-dependent-size",
    code="TL312",
    group="sync",
    summary="The size of the result depends on the data, and PyTorch reads it back from the GPU.",
    since="0.2.0",
    yields_to=(
        "graph-break-in-compiled",
        "item-in-train-loop",
        "item-in-eval-loop",
        "repeated-item",
        "bulk-d2h-in-hot-loop",
        "device-round-trip",
        "python-loop-over-tensor",
        "item-comprehension",
        "tensor-truthiness-branch",
        "tensor-as-python-int",
    ),
    doubts=(*WAIT_DOUBTS, (Doubt.DATA_UNKNOWN, ""), (Doubt.OPTION_DECIDES, "")),
)
_SIZED = Message("sized", "`{call}` synchronizes with the GPU{often}: its size depends on the data", help="{advice}")
_CHECKED = Message("checked", "`{call}` reads its smallest and largest value back from the GPU{often}", help="{advice}")


_FIXED = "compute with the mask itself, or use `torch.nonzero_static` with a fixed size"
_HELPED = Message(
    "helped",
    "`{call}` synchronizes with the GPU{often}: the largest index sizes its result",
    help="pass `{keyword}=`, {known}",
)


class _Helper(NamedTuple):
    """Where a function of a library takes the tensor whose largest value tells a size, and where the size itself."""

    tensor: str
    place: int
    size: str
    size_place: int


_POOL = _Helper("batch", 1, "size", 2)
_SCATTER = _Helper("index", 1, "dim_size", 4)
# Without the size these compute `int(index.max()) + 1`: torch_geometric/utils/_scatter.py, num_nodes.py;
# torch_scatter/scatter.py.
_HELPERS = {
    **{f"torch_geometric.nn.global_{name}_pool": _POOL for name in ("add", "mean", "max")},
    "torch_geometric.utils.scatter": _Helper("index", 1, "dim_size", 3),
    "torch_geometric.utils.softmax": _Helper("index", 1, "num_nodes", 3),
    "torch_geometric.utils.degree": _Helper("index", 0, "num_nodes", 1),
    "torch_geometric.utils.num_nodes.maybe_num_nodes": _Helper("edge_index", 0, "num_nodes", 1),
    **{f"torch_scatter.{name}": _SCATTER for name in ("scatter", "scatter_add", "scatter_sum", "scatter_mean")},
    **{f"torch_scatter.{name}": _SCATTER for name in ("scatter_max", "scatter_min")},
}
_ADVICE = {
    "repeat_interleave": "pass `output_size=`, the total that the CPU knows",
    "one_hot": "pass `num_classes=`",
    "nonzero": _FIXED,
    "argwhere": _FIXED,
    "where": _FIXED,
    "unique": "mark or count the values in a tensor of fixed size",
    "unique_consecutive": "mark where a value differs from the one before, which keeps the shape",
    "bincount": "add ones with `torch.zeros(n).scatter_add_`, which reads nothing back",
    "masked_select": "keep the shape and mask with `torch.where`",
}
# Those whose result is as long as the program says, whatever the data is.
_KNOWN = frozenset({"one_hot", "repeat_interleave"})


@RULE.on(
    Method("repeat_interleave"),
    Method("nonzero"),
    Method("argwhere"),
    Method("unique"),
    Method("unique_consecutive"),
    Method("bincount"),
    Method("masked_select"),
)
def check_method(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a method that has to ask the device how long its result is, unless the host tells it."""
    assert isinstance(call.func, cst.Attribute)
    if context.qualified_name(call.func) is not None:
        return  # a function, of torch or of somebody else
    name, tensor = call.func.attr.value, call.func.value
    if name == "repeat_interleave":
        if not context.is_tensor(tensor):
            return
        tensor = context.argument(call, "repeats", 0) or tensor
    if name == "masked_select":
        tensor = _mask(call, context) or tensor
    yield from _flagged(call, name, tensor, context)


@RULE.on(
    Call("torch.repeat_interleave"),
    Call("torch.nn.functional.one_hot"),
    Call("torch.nonzero"),
    Call("torch.argwhere"),
    Call("torch.where"),
    Call("torch.unique"),
    Call("torch.unique_consecutive"),
    Call("torch.bincount"),
    Call("torch.masked_select"),
)
def check(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a function that has to ask the device how long its result is, unless the host tells it."""
    name = (context.qualified_name(call.func) or "").rpartition(".")[2]
    tensor = context.argument(call, "condition" if name == "where" else "input", 0)
    if name == "repeat_interleave" and len(call.args) > 1:
        tensor = context.argument(call, "repeats", 1)
    if name == "masked_select":
        tensor = _mask(call, context)
    if tensor is not None:
        yield from _flagged(call, name, tensor, context)


@RULE.on(*map(Call, _HELPERS))
def check_helper(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a function of a library that looks for the largest index, where it is not told the size."""
    helper = _HELPERS[context.qualified_name(call.func) or ""]
    tensor = context.argument(call, helper.tensor, helper.place)
    size = context.argument(call, helper.size, helper.size_place)
    if tensor is None or context.has_unpacking(call) or not context.is_tensor(tensor):
        return
    if size is not None and not _may_be_left_out(size, context):
        return
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.analyses.sync.inherent_branches import is_in_sample_code
    from torchlint.edits.messages import how_often

    if not is_device_tensor(tensor, context) or is_in_sample_code(call, context):
        return
    is_counted = _is_counted_in_sight(tensor, context)
    said = _HELPED.of(
        call=context.shown(call),
        often=how_often(call, context),
        keyword=helper.size,
        known="which the CPU knows" if is_counted else "if the CPU knows it",
    )
    is_optional = (Doubt.OPTION_DECIDES,) if size is not None else ()
    unknown = () if is_counted else (Doubt.DATA_UNKNOWN,)
    yield Flag(call, said, doubts=weighed(RULE, (*is_optional, *unknown, *_of_the_place(call, tensor, context))))


def _is_counted_in_sight(index: cst.BaseExpression, context: Context) -> bool:
    """Whether the file shows where the numbers come from: `torch.unique(…, return_inverse=True)`, a batch of graphs."""
    from torchlint.semantics.flow.origins import Through

    match index:
        case cst.Subscript(value=owner):
            return _is_counted_in_sight(owner, context)
        case cst.Attribute():
            return True
    origins = context.origins(index, Through.PARTS | Through.PARAMETERS | Through.UPDATES)
    return not origins.lost and all(
        isinstance(origin.node, (cst.Call, cst.Attribute)) and context.parameter(origin.node) is None
        for origin in origins.found
    )


def _may_be_left_out(size: cst.BaseExpression, context: Context) -> bool:
    """Whether this is `None`, or a parameter that is unless a caller gives it."""
    if isinstance(size, cst.Name) and size.value == "None":
        return True
    parameter = context.parameter(size)
    default = parameter.default if parameter is not None else None
    return isinstance(default, cst.Name) and default.value == "None"


def _flagged(call: cst.Call, name: str, tensor: cst.BaseExpression, context: Context) -> Iterator[Flag]:
    if context.has_unpacking(call) or _is_told(call, name, context) or not context.is_tensor(tensor):
        return
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.analyses.sync.avoidable import UNSEEN
    from torchlint.analyses.sync.inherent_branches import is_in_sample_code
    from torchlint.edits.messages import how_often

    if not is_device_tensor(tensor, context) or is_in_sample_code(call, context):
        return
    doubts = weighed(RULE, _doubts(call, tensor, name, context))
    is_guess = Doubt.USE_UNKNOWN in doubts and Doubt.DEVICE_UNKNOWN in doubts and not UNSEEN.isdisjoint(doubts)
    if is_guess and not _takes_a_device(call, context):
        return  # a guess: neither how often nor where it runs is in sight, nor what for
    places: tuple[cst.Call, ...] = ()
    if name == "masked_select":
        alike = _selections(context.tree.module, context)
        first, *others = alike.get((context.function(call), context.code(tensor)), [call])
        if first is not call:
            return
        places = tuple(others)
    message = _CHECKED if name == "bincount" else _SIZED
    said = message.of(call=context.shown(call), often=how_often(call, context), advice=_ADVICE[name])
    yield Flag(call, said, places=places, doubts=doubts)


def _mask(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    return context.argument(call, "mask", 0 if context.qualified_name(call.func) is None else 1)


@query(bottom=None)
def _selections(_module: cst.Module, context: Context) -> dict[object, list[cst.Call]]:
    """What each function selects by the same mask, in the order of the source: one cause."""
    found: dict[object, list[cst.Call]] = {}
    for each in map(context.parent, context.uses.attributes("masked_select")):
        if isinstance(each, cst.Call) and (by := _mask(each, context)) is not None:
            found.setdefault((context.function(each), context.code(by)), []).append(each)
    for calls in found.values():
        calls.sort(key=context.tree.place)
    return found


def _is_told(call: cst.Call, name: str, context: Context) -> bool:
    """Whether the host tells how long the result is, or nobody need know."""
    match name:
        case "repeat_interleave":
            return context.argument(call, "output_size") is not None
        case "one_hot":
            return len(call.args) > 1
        case "where":
            return len(call.args) != 1
    return False


def _doubts(call: cst.Call, tensor: cst.BaseExpression, name: str, context: Context) -> Iterator[Doubt]:
    """What speaks against sparing the wait, in the order of what it costs to know."""
    from torchlint.analyses.host.purpose import is_known_already
    from torchlint.analyses.sync.adjacent_waits import is_beside_a_wait
    from torchlint.analyses.sync.inherent_branches import design_doubts

    if is_known_already(call, tensor, context) or is_beside_a_wait(call, tensor, context):
        yield Doubt.WAITS_ANYWAY
    if name not in _KNOWN:  # that the data decides says no more than that nobody sees what it is for
        yield from (doubt for doubt in design_doubts(call, context) if doubt is not Doubt.VALUE_DECIDES)
    if name == "bincount":
        if context.argument(call, "minlength") is None:
            yield Doubt.VALUE_DECIDES  # how many there are to count, the data alone may tell
    elif name == "repeat_interleave":
        if not _is_counted_on_host(tensor, context):
            yield Doubt.DATA_UNKNOWN  # of what the device has counted, the CPU may not know the total
    elif name not in _KNOWN:
        yield Doubt.USE_UNKNOWN
    yield from _of_the_place(call, tensor, context)


def _of_the_place(call: cst.Call, tensor: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against it, whatever is called: where the tensor is, and how often it runs."""
    from torchlint.analyses.provenance.network import place_doubts
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.analyses.sync.inherent_branches import named_sample_code

    yield from named_sample_code(call, context)
    yield from place_doubts(tensor, context)
    # Last, since other files may have to say how often it runs.
    yield from wait_doubts(call, tensor, context)


def _is_counted_on_host(repeats: cst.BaseExpression, context: Context) -> bool:
    """Whether the numbers were Python's before they were a tensor, so that it can add them up, too."""
    from torchlint.semantics.flow.origins import Through
    from torchlint.semantics.knowledge.apis import OF_LISTS

    return context.origins(repeats, Through.UPDATES).every(
        lambda value: (
            isinstance(value, cst.Call)
            and (
                context.qualified_name(value.func) in OF_LISTS
                or (isinstance(value.func, cst.Attribute) and _is_moved_list(value.func, context))
            )
        )
    )


def _is_moved_list(method: cst.Attribute, context: Context) -> bool:
    """`torch.tensor(lengths).to(device)`, `torch.tensor(lengths).cuda()`."""
    return method.attr.value in ("to", "cuda", "long", "int") and _is_counted_on_host(method.value, context)


def _takes_a_device(node: cst.CSTNode, context: Context) -> bool:
    """Whether the function around is told on which device to work, and not left to find out."""
    from torchlint.semantics.names.bindings import parameters

    function = context.function(node)
    return function is not None and any(given.name.value == "device" for given in parameters(function))
