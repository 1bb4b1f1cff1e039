"""Indices that are made on the CPU and index tensors on a device, to which each of them is copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.provenance.network import is_with_the_network
from torchlint.analyses.sync.inherent_branches import is_in_sample_code
from torchlint.analyses.tensors.aliasing import reflects
from torchlint.analyses.tensors.array_elements import may_be_a_number
from torchlint.analyses.tensors.factories import Factory, factory, is_whole
from torchlint.analyses.tensors.host_computed import is_computed_on_host
from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import dotted, last_part
from torchlint.semantics.values.lattice import UNKNOWN, Device, Kind, Value
from torchlint.syntax.tree import Comprehension, descendants

FACTORIES = ("arange", "randperm", "randint")
# Methods that give an index again; what else is asked of it needs none of its values.
_RESHAPING = frozenset(
    "unsqueeze squeeze view reshape flatten expand expand_as repeat repeat_interleave t transpose long int contiguous "
    "flip chunk split".split()
)
_INTEGERS = frozenset("int64 long int32 int int16 short int8 uint8".split())
_SHAPE = frozenset({"size", "dim", "numel", "shape", "ndim", "dtype"})


@dataclass(frozen=True, slots=True)
class HostIndex:
    """A factory whose tensor only indexes tensors on a device; `indexed` are those, with the subscripts."""

    made: Factory
    indexed: tuple[cst.Subscript, ...]


def host_index(call: cst.Call, context: Context) -> HostIndex | None:
    """The index that the call makes on the CPU, if it is used for nothing but to index tensors on a device."""
    if not isinstance(context.parent(call), (cst.Index, cst.Assign, cst.Attribute, cst.Subscript, cst.BinaryOperation)):
        return None
    made = factory(call, context)
    if made is None:
        return None
    found: list[cst.Subscript] = []
    for subscript in _indexed(call, context):
        if subscript is None or _is_moved(subscript, context) or not _is_indexed_there(subscript, context):
            return None
        found.append(subscript)
    return HostIndex(made, tuple(found)) if found else None


@dataclass(frozen=True, slots=True)
class ListIndex:
    """A list of numbers that indexes tensors; `is_there` says that they are on a device for certain."""

    indexed: tuple[cst.Subscript, ...]
    is_there: bool


def list_index(made: cst.ListComp | cst.List | cst.Call, context: Context) -> ListIndex | None:
    """The tensors that a list or a range indexes, `x[rows]`: each copies it again."""
    above = context.parent(made)
    if not isinstance(above, (cst.Index, cst.Assign)):
        return None
    if not isinstance(made, cst.ListComp) and isinstance(above, cst.Assign) and not _names_an_index(above, context):
        return None  # few lists that have a name are
    if _holds_slices(made, context):
        return None
    if isinstance(made, cst.Call) and (context.value(made).item or UNKNOWN).kind is not Kind.NUMBER:
        return None
    found: list[cst.Subscript] = []
    for node in context.destinations(made).nodes:
        index = context.parent(node)
        element = context.parent(index) if isinstance(index, cst.Index) else None
        subscript = context.parent(element) if isinstance(element, cst.SubscriptElement) else None
        if isinstance(subscript, cst.Subscript) and not _is_moved(subscript, context):
            value = context.value(subscript.value)
            if value.kind is Kind.TENSOR and value.device is not Device.CPU and not value.batch:
                found.append(subscript)
    if not found or any(is_computed_on_host(subscript.value, context) for subscript in found):
        return None
    return ListIndex(tuple(found), all(_is_on_device(subscript.value, context) for subscript in found))


def _holds_slices(made: cst.ListComp | cst.List | cst.Call, context: Context) -> bool:
    """Whether the list stands for a tuple, as PyTorch takes one of slices: nothing is copied then."""
    match made:
        case cst.ListComp(elt=part):
            parts = [part]
        case cst.List(elements=elements):
            parts = [element.value for element in elements]
        case _:
            return False
    return any(isinstance(part, cst.Call) and context.qualified_name(part.func) == "slice" for part in parts)


def _names_an_index(statement: cst.Assign, context: Context) -> bool:
    """Whether a name that the statement binds stands anywhere as an index: cheap to ask."""
    return any(
        isinstance(target.target, cst.Name)
        and any(isinstance(context.parent(use), cst.Index) for use in context.names.spelt(target.target.value))
        for target in statement.targets
    )


def array_index(subscript: cst.Subscript, context: Context) -> cst.BaseExpression | None:
    """The array of NumPy that indexes a tensor of the device, if any; it is not assigned to, nor moved at once."""
    for part in subscript.slice:
        match part.slice:
            case cst.Index(value=value) if context.kind(value) is Kind.NDARRAY and not may_be_a_number(value, context):
                is_there = _is_on_device(subscript.value, context) and not _is_moved(subscript, context)
                return value if is_there else None
    return None


def tensor_index(subscript: cst.Subscript, context: Context) -> cst.Name | None:
    """The name of a tensor on the CPU, or of a tuple of such, that indexes a tensor of the device, if any."""
    for part in subscript.slice:
        match part.slice:
            case cst.Index(value=cst.Name() as name) if _is_on_the_cpu(context.value(name)):
                is_there = _is_on_device(subscript.value, context) and not _is_moved(subscript, context)
                return name if is_there and _has_axes(name, context) and not is_in_sample_code(name, context) else None
    return None


def _is_on_the_cpu(value: Value) -> bool:
    """Whether it is a tensor with axes that is on the CPU for certain, or nothing but such tensors."""
    if value.kind is Kind.SEQUENCE:
        return bool(value.items) and all(part.kind is Kind.TENSOR and _is_on_the_cpu(part) for part in value.items)
    return value.kind is Kind.TENSOR and value.device is Device.CPU and value.proven and not value.scalar


def _has_axes(name: cst.Name, context: Context) -> bool:
    """Whether it is made as a whole, and by none of the factories: an element is a number."""
    made = context.origins(name).nodes
    is_computed = bool(made) and all(_is_computed(node, context) for node in made)
    return is_computed or context.value(name).kind is Kind.SEQUENCE


def _is_computed(node: cst.BaseExpression, context: Context) -> bool:
    if isinstance(node, cst.Call) and context.qualified_name(node.func) in ("torch.tensor", "torch.as_tensor"):
        data = context.argument(node, "data", 0)
        return data is not None and context.kind(data) in (Kind.SEQUENCE, Kind.NDARRAY)
    return isinstance(node, (cst.Call, cst.Comparison, cst.BinaryOperation)) and not any(
        isinstance(call, cst.Call) and last_part(call.func) in FACTORIES for call in descendants(node)
    )


def indexed_by(array: cst.BaseExpression, subscript: cst.Subscript, context: Context) -> tuple[cst.Subscript, ...]:
    """The subscripts that the same array indexes, in source order: of a name each that may read what it holds there."""
    if not isinstance(array, cst.Name):
        return (subscript,)
    found: list[cst.Subscript] = []
    for use in context.readers(array):
        index = context.parent(use)
        place = context.parent(context.parent(index) or index) if isinstance(index, cst.Index) else None
        if isinstance(place, cst.Subscript) and use in (array_index(place, context), tensor_index(place, context)):
            found.append(place)
    return tuple(found) or (subscript,)


def device(index: HostIndex, context: Context) -> str | None:
    """The code for the device of a tensor that is indexed, if one has a name and is there before the index is made."""
    made = index.made.call
    if context.code(made).count("#") or context.has_unpacking(made):
        return None
    for subscript in index.indexed:
        tensor = subscript.value
        if isinstance(tensor, cst.Name) and (context.tree.within(made, subscript) or _is_there(tensor, made, context)):
            return f"{tensor.value}.device"
    return None


def is_sure(index: HostIndex, context: Context) -> bool:
    """Whether the index is the same elsewhere, indexes one tensor only, that for certain, and whenever it is made."""
    made = index.made.call
    codes = {context.code(subscript.value) for subscript in index.indexed}
    if len(codes) != 1 or not all(context.kinds.is_tensor(subscript.value) for subscript in index.indexed):
        return False
    if not _is_of_integers(made, context) or not _stays_whole(made, context):
        return False
    return all(
        _has_no_walrus(subscript)
        if context.tree.within(made, subscript)
        else _follows_at_once(made, subscript, context)
        for subscript in index.indexed
    )


def _is_of_integers(made: cst.Call, context: Context) -> bool:
    dtype = context.argument(made, "dtype")
    return dtype is None or (context.qualified_name(dtype) or "").removeprefix("torch.") in _INTEGERS


def _has_no_walrus(subscript: cst.Subscript) -> bool:
    return not any(isinstance(node, cst.NamedExpr) for node in descendants(subscript))


def _follows_at_once(made: cst.Call, subscript: cst.Subscript, context: Context) -> bool:
    """Whether a function indexes wherever it has made the index, and nobody else sees that or moves the tensor."""
    first, last = context.tree.line(made), context.tree.line(subscript)
    block = context.parent(first) if first is not None else None
    function = context.function(made)
    if not isinstance(block, cst.IndentedBlock) or first is None or last is None or context.parent(last) is not block:
        return False
    if not isinstance(last, cst.SimpleStatementLine) or not isinstance(function, cst.FunctionDef):
        return False
    if any(reflects(node) or isinstance(node, cst.NamedExpr) for node in descendants(function.body)):
        return False
    if context.enclosing(subscript, cst.IfExp, cst.BooleanOperation, cst.Lambda, *Comprehension, within=last):
        return False
    lines = list(block.body)
    if lines.index(last) < lines.index(first):  # in the next iteration of a loop
        return False
    between = [node for line in lines[lines.index(first) : lines.index(last) + 1] for node in descendants(line)]
    tensor = context.code(subscript.value)
    before = [node for node in between[: between.index(subscript)] if not context.tree.within(subscript, node)]
    return not any(
        isinstance(node, (cst.Return, cst.Raise, cst.Yield, cst.Await, cst.Continue, cst.Break))
        or (isinstance(node, cst.AssignTarget) and dotted(node.target) == f"{tensor}.data")
        for node in before
    )


def _stays_whole(made: cst.Call, context: Context) -> bool:
    """Whether all that is done with the index gives the same whole numbers on each device, without another tensor."""

    def exactly(node: cst.BaseExpression, parent: cst.CSTNode) -> cst.BaseExpression | None:
        """What the parent computes of the index, if that is exact."""
        match parent:
            case cst.Attribute(attr=cst.Name(value=name)) if name not in _SHAPE:
                call = context.parent(parent)
                is_sized = isinstance(call, cst.Call) and all(_is_size(given.value, context) for given in call.args)
                return call if isinstance(call, cst.Call) and is_sized else None
            case cst.Subscript():
                bounds = [
                    part
                    for element in parent.slice
                    if isinstance(element.slice, cst.Slice)
                    for part in (element.slice.lower, element.slice.upper, element.slice.step)
                ]
                return parent if all(bound is None or _is_size(bound, context) for bound in bounds) else None
            case cst.BinaryOperation(left=left, operator=operator, right=right):
                other = right if left is node else left
                is_exact = isinstance(operator, (cst.Add, cst.Subtract, cst.Multiply)) and is_whole(other, context)
                is_divided = isinstance(operator, (cst.FloorDivide, cst.Modulo)) and left is node
                is_by_number = is_divided and isinstance(right, cst.Integer) and bool(right.evaluated_value)
                return parent if is_exact or is_by_number else None
        return None

    return all(_is_end(node, context) for node in context.destinations(made, handed_on=exactly).nodes)


def _is_end(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the index is put to use here, or only looked at."""
    match context.parent(node):
        case cst.Index():
            return True
        case cst.Attribute(attr=cst.Name(value=name)):
            return name in _SHAPE
    return False


def _is_size(node: cst.BaseExpression, context: Context) -> bool:
    return is_whole(node, context) or (context.kind(node) is Kind.NUMBER and context.value(node).proven)


def _is_moved(subscript: cst.Subscript, context: Context) -> bool:
    """Whether what the index picks is moved to a device, so that it is not there, as far as nothing else tells."""
    above = context.parent(subscript)
    is_moved = isinstance(above, cst.Attribute) and above.attr.value in ("to", "cuda", "pin_memory", "numpy")
    return is_moved and context.value(subscript.value).device is Device.UNKNOWN


def _is_on_device(node: cst.BaseExpression, context: Context) -> bool:
    value = context.value(node)
    if value.kind is not Kind.TENSOR or value.device is Device.CPU:
        return False
    if value.device is not Device.UNKNOWN:
        return True
    if not context.program.mentions_accelerator or _is_given_to_no_network(node, context):
        return False
    return is_with_the_network(node, context) and context.kinds.is_tensor(node)


def _is_indexed_there(subscript: cst.Subscript, context: Context) -> bool:
    """Whether the tensor is on a device: as far as is known of it, or since another index is, which no other takes."""
    return _is_on_device(subscript.value, context) or any(
        isinstance(part.slice, cst.Index)
        and (value := context.value(part.slice.value)).kind is Kind.TENSOR
        and not value.scalar
        and value.device in (Device.ACCELERATOR, Device.MAYBE)
        for part in subscript.slice
    )


def _is_given_to_no_network(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a function that is no `forward` is given the tensor by others: they may keep it wherever they like."""
    if not isinstance(node, cst.Name):
        return False
    function = context.function(node)
    if isinstance(function, cst.FunctionDef) and context.calls.callers(function):
        return False  # what these pass is in sight
    is_forward = isinstance(function, cst.FunctionDef) and function.name.value == "forward"
    return not is_forward and any(isinstance(binder, cst.Param) for binder in context.binders(node))


def _indexed(made: cst.Call, context: Context) -> Iterator[cst.Subscript | None]:
    """The subscripts in which the tensor is an index; None for any other use of its values."""

    def again(node: cst.BaseExpression, parent: cst.CSTNode) -> cst.BaseExpression | None:
        """What the parent makes of the index, if that is an index, too."""
        match parent:
            case cst.Attribute(attr=cst.Name(value=name)) if name in _RESHAPING:
                call = context.parent(parent)
                return call if isinstance(call, cst.Call) and call.func is parent else None
            case cst.Subscript(value=value) if value is node and _is_part(parent):
                return parent
            case cst.BinaryOperation(left=left, right=right):
                is_by_number = context.kind(right if left is node else left) is Kind.NUMBER
                return parent if is_by_number else None
        return None

    destinations = context.destinations(made, handed_on=again)
    if destinations.lost or not destinations.found:
        yield None
    for node, _, is_alone in destinations.found:
        if not is_alone or not _is_end(node, context):
            yield None
        elif isinstance(index := context.parent(node), cst.Index):
            subscript = context.parent(context.parent(index) or index)
            yield subscript if isinstance(subscript, cst.Subscript) else None


def _is_part(node: cst.Subscript) -> bool:
    """`t[a:b]` or `t[:, None]`, which is an index again."""
    return all(
        isinstance(element.slice, cst.Slice)
        or (isinstance(element.slice, cst.Index) and isinstance(element.slice.value, (cst.Name, cst.Ellipsis)))
        for element in node.slice
    ) and any(isinstance(element.slice, cst.Slice) for element in node.slice)


def _is_there(use: cst.Name, place: cst.CSTNode, context: Context) -> bool:
    """Whether the name holds at the place what it holds at its use."""
    if context.function(use) is not context.function(place):
        return False
    return len(context.binders(use)) == 1 and context.is_bound_before(use, place)
