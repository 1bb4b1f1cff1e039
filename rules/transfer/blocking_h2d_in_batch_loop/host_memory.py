"""Copies to the device of what the host has made itself: data of the step, and batches that it computed with."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.data.batch_moves import is_to_accelerator
from torchlint.analyses.data.sample_code import is_for_samples
from torchlint.analyses.tensors.factories import factory, is_made_on_a_gpu_by_default
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.values.lattice import Also, Device, Kind

_PLACES = (Kind.DEVICE, Kind.STRING, Kind.NUMBER)
_FACTORIES = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
# What gives the elements that it is given in another tensor.
_JOINING = frozenset({"torch.autograd.Variable", "torch.cat", "torch.concat", "torch.stack"})
# Those that make a tensor of what they are given where tensors are made by default.
_OF_COPIES = frozenset({"torch.tensor", "torch.Tensor"})


def is_copy_from_the_host(call: cst.Call, context: Context) -> bool:
    """Whether the call takes a tensor that lies on the CPU to an accelerator, and the CPU waits until it has."""
    if not isinstance(call.func, cst.Attribute):
        return False
    if not is_to_accelerator(call, context):
        return False
    given = context.argument(call, "device", 0)
    if call.func.attr.value == "to" and (given is None or context.kind(given) not in _PLACES):
        return False
    value = context.value(call.func.value)
    if value.kind is not Kind.TENSOR or value.device is not Device.CPU or value.batch:
        return False
    if not context.origins(_with_all_elements(call.func.value)).every(lambda made: _is_computed(made, context)):
        return False
    # Last what may ask for callers in other files.
    return not _is_of_a_factory(call.func.value, context) and not is_for_samples(call, context)


def _with_all_elements(node: cst.BaseExpression) -> cst.BaseExpression:
    """`image` of `image[None]`, which has another axis and no other elements."""
    match node:
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="None")))]):
            return owner
    return node


def _is_computed(made: cst.BaseExpression, context: Context) -> bool:
    """Whether a call or an operator gives it, or slices or an index of many: what a loop picks may be anything."""
    match made:
        case cst.Call() | cst.BinaryOperation() | cst.UnaryOperation() | cst.Comparison():
            return True
        case cst.Subscript(value=cst.Call() as owner) if context.kind(owner) is Kind.TENSOR:
            return True
        case cst.Subscript(slice=[_, _, *_] as parts):
            return any(isinstance(part.slice, cst.Slice) for part in parts)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            value = context.value(index)
            return value.kind is Kind.TENSOR and not value.scalar
    return False


def is_passed_from_the_host(call: cst.Call, context: Context) -> bool:
    """Whether the call moves what its function is passed, or a part of it, and one of the callers has it on the CPU.

    Others may pass what is there already. What takes the callers' tensors as they are, a loader's among them, is meant.
    """
    if not isinstance(call.func, cst.Attribute) or not is_to_accelerator(call, context):
        return False
    here = context.function(call)
    return any(
        context.function(passed) is not here and _is_made_for_a_step(passed, context)
        for moved in _whole(call.func.value, context)
        if context.parameter(moved) is not None
        for passed in context.origins(moved, Through.PARAMETERS).nodes
    )


def _whole(part: cst.BaseExpression, context: Context) -> Iterator[cst.Name]:
    """The names of what this is a part of, is joined of, or is cast from: `torch.cat([x[:, :8], y], 1).float()`."""
    match part:
        case cst.Name():
            yield part
        case cst.Subscript(value=inner):
            yield from _whole(inner, context)
        case cst.Call(func=func, args=[cst.Arg(value=inner, keyword=None), *_]) if (
            context.qualified_name(func) in _JOINING
        ):
            pieces = [each.value for each in inner.elements] if isinstance(inner, (cst.List, cst.Tuple)) else [inner]
            for piece in pieces:
                yield from _whole(piece, context)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)) as func) if (
            name in METHODS and name not in ("to", "cuda")
        ):
            yield from _whole(inner, context) if context.qualified_name(func) is None else ()


def is_of_picked_rows(call: cst.Call, context: Context) -> bool:
    """Whether the call moves rows that were just picked of what is not in sight: `x = data[rows]; x = x.to(device)`.

    Or what was just joined of the pieces of it.

    Who holds all of it on the device has nothing to move there.
    """
    if not isinstance(call.func, cst.Attribute):
        return False
    if not is_to_accelerator(call, context):
        return False
    value = context.value(call.func.value)
    if value.kind not in (Kind.TENSOR, Kind.UNKNOWN) or value.device is not Device.UNKNOWN or value.batch:
        return False
    if not context.origins(call.func.value).every(lambda made: _is_picked(made, context)):
        return False
    return not is_for_samples(call, context)


def _is_picked(made: cst.BaseExpression, context: Context) -> bool:
    """`data[first : first + size]`, `data[rows]`: some of many, and other ones each time."""
    match made:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice(lower=lower)), *_]):
            return lower is not None and not isinstance(lower, cst.Integer | cst.UnaryOperation)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            value = context.value(index)
            return value.kind in (Kind.TENSOR, Kind.NDARRAY) and not value.scalar
        case cst.Call(func=func, args=[cst.Arg(value=cst.ListComp(elt=piece, for_in=loop)), *_]) if (
            context.qualified_name(func) in _JOINING
        ):
            # Of what the function is handed: `torch.cat([graph.features for graph in graphs])`.
            is_held = isinstance(piece, (cst.Attribute, cst.Subscript)) and isinstance(piece.value, cst.Name)
            return is_held and loop.inner_for_in is None and context.parameter(loop.iter) is not None
    return False


def _is_made_for_a_step(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is a tensor of each step that lies on the CPU."""
    value = context.value(node)
    is_there = value.kind is Kind.TENSOR and value.device is Device.CPU and value.also is Also.NOTHING
    return is_there and context.frequency(node) >= Frequency.BATCH and not is_for_samples(node, context)


def is_drawn(call: cst.Call, context: Context) -> bool:
    """Whether the function draws what it copies, or which rows of what it holds: each call gives others.

    `rows = np.random.randint(0, self.size, n); return torch.as_tensor(self.states[rows], device=device)`
    """
    function = context.function(call)
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(part, cst.Call)
        and (context.qualified_name(part.func) or "").startswith(_DRAWING)
        and context.function(part) is function
        for part in context.ingredients(call)
    )


_DRAWING = ("numpy.random.", "random.", "torch.randint", "torch.randperm", "torch.multinomial")


def is_told(func: cst.BaseExpression, context: Context) -> bool:
    """Whether what is moved is such a tensor on every way that leads there."""
    return isinstance(func, cst.Attribute) and context.value(func.value).also is Also.NOTHING


def _is_of_a_factory(moved: cst.BaseExpression, context: Context) -> bool:
    """Whether it is filled with what could be made on the device: `torch.zeros(n).view(-1)`.

    What the host has written to is filled there: `mask = torch.zeros(n); mask[rows] = 1; mask = mask.cuda()`.
    """
    if isinstance(moved, cst.Name) and _is_written_to(moved, context):
        return False
    while isinstance(moved, cst.Call) and isinstance(moved.func, cst.Attribute) and moved.func.attr.value in METHODS:
        if context.qualified_name(moved.func) is not None:
            break
        moved = moved.func.value
    return any(
        isinstance(made, cst.Call) and factory(made, context) is not None for made in context.origins(moved).nodes
    )


def _is_written_to(moved: cst.Name, context: Context) -> bool:
    """Whether elements of what the name holds are assigned to before it is moved."""
    place = context.tree.place(moved)
    for use in context.readers(moved):
        subscript = context.parent(use)
        if isinstance(subscript, cst.Subscript) and subscript.value is use and context.tree.place(use) < place:
            above = context.parent(subscript)
            if isinstance(above, cst.AssignTarget) or (isinstance(above, cst.AugAssign) and above.target is subscript):
                return True
    return False


def is_sent_array(call: cst.Call, context: Context) -> bool:
    """Whether the call copies an array to the device: by `device=`, or as a type of tensors that lie there."""
    data = context.argument(call, "data", 0)
    if data is None or context.has_unpacking(call) or context.kind(data) is not Kind.NDARRAY:
        return False
    if not _is_to_the_device(call, context):
        return False
    return not is_for_samples(call, context)


def _is_to_the_device(call: cst.Call, context: Context) -> bool:
    if context.qualified_name(call.func) in (*_FACTORIES, "torch.Tensor"):
        given = context.argument(call, "device")
        if given is None:
            if context.qualified_name(call.func) not in _OF_COPIES:
                return False
            is_there = context.device(call) in (Device.ACCELERATOR, Device.MAYBE)
            return is_there or is_made_on_a_gpu_by_default(context)
        value = context.value(given)
        return value.kind in _PLACES and value.device not in (Device.CPU, Device.UNKNOWN)
    type_ = context.value(call.func)
    return type_.kind is Kind.DTYPE and type_.device in (Device.ACCELERATOR, Device.MAYBE) and len(call.args) == 1
