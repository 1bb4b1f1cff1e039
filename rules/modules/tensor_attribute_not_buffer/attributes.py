"""Tensors that a module keeps as plain attributes, on the CPU, and moves to the device each time it needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.names.classes import AttributeSet, class_attribute
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

_MOVES = frozenset({"to", "cuda", "type_as"})
# What is asked of a tensor wherever it is.
_SHAPE = frozenset({"shape", "size", "dim", "ndim", "dtype", "numel", "device"})
_COMPLEX = frozenset({"torch.view_as_complex", "torch.polar", "torch.complex"})
_COMPLEX_TYPES = frozenset({"complex32", "complex64", "complex128", "cfloat", "cdouble", "chalf"})


@dataclass(frozen=True, slots=True)
class Unregistered:
    """The moves of one attribute of a module, in source order, and what sets it; `owner` is its `self`."""

    class_: cst.ClassDef
    name: str
    entry: AttributeSet
    moves: tuple[cst.Call, ...]
    owner: str = "self"


def unregistered(move: cst.Call, context: Context) -> Unregistered | None:
    """The attribute that the call moves, if `__init__` of a module makes it on the CPU and nothing needs it there."""
    match move.func:
        case cst.Attribute(
            value=cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)), attr=cst.Name(value=method)
        ) if method in _MOVES:
            pass
        case _:
            return None
    class_ = context.classes.self_class(owner)
    if class_ is None or not _is_to_device(move, context):
        return None
    sets = context.classes.attribute_sets(class_, name)
    if len(sets) != 1 or not context.classes.is_module(class_) or not _is_made_in_init(sets[0], context):
        return None
    moves = []
    for mention in _mentions(class_, name, context):
        call = _moved(mention, context)
        if call is not None:
            moves.append(call)
        elif not _is_asked_for_its_shape(mention, context):
            return None
    hot = tuple(call for call in moves if context.frequency(call) >= Frequency.BATCH)
    return Unregistered(class_, name, sets[0], hot, owner.value) if move in hot else None


def may_be_registered(found: Unregistered, context: Context) -> bool:
    """Whether a buffer may take the place of the attribute: `Module.__init__` has run, and the name is free."""
    node = found.entry.node
    function = context.function(node)
    if not isinstance(node, cst.Assign) or len(node.targets) != 1 or not isinstance(function, cst.FunctionDef):
        return False
    if context.code(node).count("#") or context.classes.method(found.class_, found.name) is not None:
        return False
    if class_attribute(context.names, found.class_, found.name) is not None:
        return False
    return any(
        isinstance(part, cst.Expr) and _initializes(part.value) and context.tree.place(part) < context.tree.place(node)
        for line in function.body.body
        if isinstance(line, cst.SimpleStatementLine)
        for part in line.body
    )


def _initializes(node: cst.BaseExpression) -> bool:
    """`super().__init__()` or `nn.Module.__init__(self)`."""
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "__init__"


def _mentions(class_: cst.ClassDef, name: str, context: Context) -> Iterator[cst.Attribute]:
    """The reads of the attribute; what nobody knows and has an attribute of that name (`x.mean()`) does not count."""
    for attribute in context.uses.attributes(name):
        owner = context.uses.owner(attribute)
        if owner is None or context.uses.is_target(attribute):
            continue
        if any(base is class_ for base in context.classes.lineage(owner)) or owner in context.classes.lineage(class_):
            yield attribute


def _moved(mention: cst.CSTNode, context: Context) -> cst.Call | None:
    attribute = context.parent(mention)
    call = context.parent(attribute) if isinstance(attribute, cst.Attribute) else None
    is_move = isinstance(attribute, cst.Attribute) and attribute.value is mention and attribute.attr.value in _MOVES
    if is_move and isinstance(call, cst.Call) and call.func is attribute and _is_to_device(call, context):
        return call
    return None


def _is_asked_for_its_shape(mention: cst.CSTNode, context: Context) -> bool:
    attribute = context.parent(mention)
    return isinstance(attribute, cst.Attribute) and attribute.value is mention and attribute.attr.value in _SHAPE


def _is_to_device(call: cst.Call, context: Context) -> bool:
    assert isinstance(call.func, cst.Attribute)
    method = call.func.attr.value
    if method == "cuda":
        return True
    first = context.argument(call, "device", 0) or context.argument(call, "other", 0)
    if first is None:
        return False
    value = context.value(first)
    if value.kind is Kind.TENSOR:
        # Where nobody speaks of a device, `type_as` is there for the dtype.
        return value.device is not Device.CPU and context.program.mentions_accelerator
    return value.kind in (Kind.DEVICE, Kind.STRING) and value.device is not Device.CPU


def _is_made_in_init(entry: AttributeSet, context: Context) -> bool:
    function = context.function(entry.node)
    if not isinstance(function, cst.FunctionDef) or function.name.value != "__init__" or entry.path:
        return False
    if not isinstance(entry.node, (cst.Assign, cst.AnnAssign)) or entry.value is None:
        return False
    value = context.value(entry.value)
    if value.kind is not Kind.TENSOR or not value.proven or value.device is not Device.CPU:
        return False
    return not _is_complex(entry.value, context)


def _is_complex(value: cst.BaseExpression, context: Context) -> bool:
    """Whether a tensor is made complex: of a buffer `module.to(dtype)` keeps the real part only."""
    parts = [value, *descendants(value)]
    parts += [part for made in context.origins(value).nodes for part in (made, *descendants(made))]
    return any(
        (isinstance(part, cst.Call) and context.qualified_name(part.func) in _COMPLEX)
        or (isinstance(part, cst.Attribute) and part.attr.value in _COMPLEX_TYPES)
        for part in parts
    )
