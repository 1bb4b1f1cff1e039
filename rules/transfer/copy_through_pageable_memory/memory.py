"""What memory of the host a tensor lies in that is copied to the device."""

from __future__ import annotations

from enum import IntEnum

import libcst as cst

from torchlint.analyses.data.batch_moves import is_to_accelerator
from torchlint.analyses.data.sample_code import is_for_samples
from torchlint.analyses.tensors.factories import factory
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import JOINING_FUNCTIONS, OF_LISTS
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.literals import integer

# Methods that leave the tensor in other memory, or that may.
_ELSEWHERE = frozenset({"to", "cuda", "cpu", "pin_memory", "share_memory_", "copy_", "type", "type_as", "set_"})


_NEW_ARRAYS = frozenset("zeros ones empty full arange array stack concatenate zeros_like ones_like".split())


_OF_SIZES = frozenset("torch.zeros torch.ones torch.empty torch.rand torch.randn".split())


class Pageable(IntEnum):
    """Whether a tensor was just made in pageable memory: of a list of Python's, or of an array, which may be large."""

    NO = 0
    NUMBERS = 1
    ARRAY = 2


def copied(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """What a call copies to the device; None where it goes elsewhere."""
    if not isinstance(call.func, cst.Attribute) or context.has_unpacking(call) or is_for_samples(call, context):
        return None
    if call.func.attr.value == "copy_":
        return context.argument(call, "src", 0) if context.is_on_gpu(call.func.value) else None
    if not is_to_accelerator(call, context):
        return None
    given = context.argument(call, "device", 0)
    is_named = given is None or context.kind(given) in (Kind.DEVICE, Kind.STRING, Kind.NUMBER, Kind.UNKNOWN)
    return call.func.value if is_named else None


@query(bottom=Pageable.NO)
def pageable(node: cst.BaseExpression, context: Context) -> Pageable:
    """Whether, and of what, this is a tensor that nobody has pinned."""
    match node:
        case cst.Name():
            origins = context.origins(node)
            found = {pageable(value, context) for value in origins.nodes} if origins.is_whole else {Pageable.NO}
            return Pageable.NO if Pageable.NO in found else max(found)
        case cst.Subscript(value=owner):
            return pageable(owner, context)
        case cst.Call(func=func, args=args):
            name = context.qualified_name(func) or ""
            if name:
                return _made(node, name, context)
            if isinstance(func, cst.Attribute) and func.attr.value in METHODS and func.attr.value not in _ELSEWHERE:
                return pageable(func.value, context)
            # A cast is a new tensor in memory of the same kind.
            if isinstance(func, cst.Attribute) and func.attr.value in ("to", "type") and len(args) == 1:
                return pageable(func.value, context) if context.kind(args[0].value) is Kind.DTYPE else Pageable.NO
    return Pageable.NO


def _made(call: cst.Call, name: str, context: Context) -> Pageable:
    if context.program.changes_default_device or context.argument(call, "device") is not None:
        return Pageable.NO
    pinned = context.argument(call, "pin_memory")
    if context.has_unpacking(call) or (pinned is not None and not _is_false(pinned)):
        return Pageable.NO
    first = call.args[0].value if call.args else None
    if first is None:
        return Pageable.NO
    if name == "torch.from_numpy":
        return Pageable.NO if _may_share_pinned_memory(first, context) else Pageable.ARRAY
    if name in OF_LISTS:
        return _of_data(first, context)
    if name in JOINING_FUNCTIONS:
        parts = first.elements if isinstance(first, (cst.List, cst.Tuple)) else ()
        found = {pageable(part.value, context) for part in parts}
        return min(found) if found else Pageable.NO
    return Pageable.NO if factory(call, context) is None or _is_empty(call, name) else Pageable.ARRAY


def _is_empty(made: cst.Call, name: str) -> bool:
    """`torch.zeros(0)`, `torch.empty((0, 4))`: nothing is copied."""
    first = made.args[0].value
    sizes = first.elements if isinstance(first, (cst.List, cst.Tuple)) else made.args
    return name in _OF_SIZES and any(integer(size.value) == 0 for size in sizes)


def _of_data(data: cst.BaseExpression, context: Context) -> Pageable:
    """What `torch.tensor(data)` is made of."""
    kind = context.kind(data)
    if kind is Kind.NDARRAY:
        return Pageable.NO if _may_share_pinned_memory(data, context) else Pageable.ARRAY
    origins = context.origins(data)
    is_list = origins.every(lambda value: isinstance(value, (cst.List, cst.ListComp, cst.Tuple)))
    is_written = isinstance(data, (cst.List, cst.ListComp, cst.Tuple)) or is_list
    if not is_written or any(_may_be_a_tensor(part, context) for part in origins.nodes):
        return Pageable.NO
    return Pageable.NUMBERS


def _may_be_a_tensor(data: cst.BaseExpression, context: Context) -> bool:
    """Whether the elements of a list may be tensors, of which a copy is made in another way."""
    match data:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return any(context.kind(element.value) in (Kind.TENSOR, Kind.UNKNOWN) for element in elements)
        case cst.ListComp(elt=element):
            return context.kind(element) is Kind.TENSOR
    return False


def _may_share_pinned_memory(array: cst.BaseExpression, context: Context) -> bool:
    """Whether an array may be a view of a tensor that somebody pinned: `self.buffer.numpy()`, or an attribute."""
    if context.origins(_whole(array), Through.ATTRIBUTES).every(lambda made: _is_made_by_numpy(made, context)):
        return False
    return any(
        (isinstance(part, cst.Attribute) and part.attr.value == "numpy") or _is_of_an_object(part)
        for part in context.ingredients(array)
    )


def _whole(array: cst.BaseExpression) -> cst.BaseExpression:
    """The array of which this is a part, or a view of another shape: `a` of `a.ravel()[:n]`."""
    match array:
        case cst.Subscript(value=inner):
            return _whole(inner)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="ravel" | "reshape"))):
            return _whole(inner)
    return array


def _is_made_by_numpy(made: cst.BaseExpression, context: Context) -> bool:
    """`np.zeros(n)`: memory of its own, which nobody has pinned."""
    name = context.qualified_name(made.func) if isinstance(made, cst.Call) else None
    return name is not None and name.startswith("numpy.") and name[6:] in _NEW_ARRAYS


def _is_of_an_object(node: cst.CSTNode) -> bool:
    match node:
        case cst.Attribute(value=cst.Name(value="self")):
            return True
    return False


def _is_false(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value in ("False", "None")


def brought_to_the_host(pinned: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The tensor that was copied to the host to be pinned there: `t` of `t.cpu().pin_memory()`."""
    if not isinstance(pinned.func, cst.Attribute) or is_for_samples(pinned, context):
        return None
    brought = pinned.func.value
    match brought:
        case cst.Call(
            func=cst.Attribute(value=cst.Call() as inner, attr=cst.Name(value="contiguous" | "detach" | "clone")),
            args=[],
        ):
            brought = inner
    match brought:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="cpu"))):
            is_host = True
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="to"))):
            given = context.argument(brought, "device", 0)
            is_host = given is not None and context.device(given) is Device.CPU
        case _:
            return None
    return owner if is_host and context.device(owner) is not Device.CPU else None


def is_for_a_new_object(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node runs as an object is made, and at no other time: in `__init__`, or in what that alone calls."""
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    if function.name.value == "__init__":
        return True
    makers = [context.function(call) for call in context.calls.callers(function)]
    return bool(makers) and all(
        isinstance(maker, cst.FunctionDef) and maker.name.value == "__init__" for maker in makers
    )
