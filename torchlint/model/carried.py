"""What one turn of a loop needs of the turns before."""

from __future__ import annotations

from collections.abc import Iterator, Set
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.names import Binder, Binding, dotted
from torchlint.model.tree import Loop, descendants
from torchlint.model.values import Kind

if TYPE_CHECKING:
    from torchlint.model.context import Context


class Carried(IntEnum):
    """NOTHING: turns could run in any order, but for sums and the like. HOST: only what the host keeps, such as counters.

    RESULTS: what the device computed, so that turns have to follow each other.
    """

    NOTHING = 0
    HOST = 1
    RESULTS = 2


_ON_HOST = frozenset({Kind.NUMBER, Kind.STRING, Kind.SEQUENCE, Kind.MAPPING, Kind.NDARRAY, Kind.NONE})
_SUMS = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.BitOrAssign, cst.BitAndAssign)
_FOLDS = frozenset(
    "max min maximum minimum logaddexp logical_or logical_and cat concat concatenate stack add fmax fmin union".split()
)
_META = frozenset(
    "shape device dtype ndim size dim numel append extend add insert new_zeros new_ones new_tensor type".split()
)


def carried_by(nodes: list[cst.CSTNode], loop: cst.CSTNode, varying: Set[str], context: Context) -> Carried:
    """The most that a turn, of which these are the nodes, needs of those before; `varying` are names of its own."""
    inside = set(nodes)
    found = [
        *_by_names(nodes, inside, varying, loop, context),
        *_by_attributes(nodes, context),
        *_by_elements(nodes, inside | {loop}, varying, context),
        *_by_lists(nodes, inside, context),
    ]
    return max(found, default=Carried.NOTHING)


# Names


def _by_names(
    nodes: list[cst.CSTNode], inside: set[cst.CSTNode], varying: Set[str], loop: cst.CSTNode, context: Context
) -> Iterator[Carried]:
    totals: dict[str, Carried] = {}
    others: set[str] = set()
    for node in nodes:
        if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            if any(binding.node not in inside for binding in context.reaching(node.target)):
                carried = Carried.HOST if context.kind(node.target) in _ON_HOST else Carried.RESULTS
                totals[node.target.value] = carried
                if not isinstance(node.operator, _SUMS):
                    yield carried
        elif isinstance(node, cst.Name) and is_read(node, context):
            own = _from_before(node, inside, loop, context)
            carried = _kept(own, varying, loop, context) if own else Carried.NOTHING
            if own and _is_folded(node, context):
                totals[node.value] = carried
            else:
                others.add(node.value)
                yield carried
    # A total that is read on the way is no mere total.
    yield from (carried for name, carried in totals.items() if name in others)


def _from_before(node: cst.Name, inside: set[cst.CSTNode], loop: cst.CSTNode, context: Context) -> list[Binding]:
    """The bindings of an earlier turn whose value the name may still hold."""
    bindings = context.reaching(node)
    if any(binding.node is loop for binding in bindings):
        return []
    own = [binding for binding in bindings if binding.node in inside and binding.binder is not Binder.IMPORT]
    if not own or any(binding.node not in inside for binding in bindings):
        return own
    place = context.tree.index[node]
    return [
        binding for binding in own if binding.effect >= place and not _share_a_loop(binding.node, node, inside, context)
    ]


def _share_a_loop(binder: cst.CSTNode, node: cst.CSTNode, inside: set[cst.CSTNode], context: Context) -> bool:
    around = {above for above in context.ancestors(node) if isinstance(above, Loop) and above in inside}
    return any(above in around for above in (binder, *context.ancestors(binder)))


def _is_folded(node: cst.Name, context: Context) -> bool:
    """Whether the name is only read to be added to: `s = s + x`, `best = torch.maximum(best, x)`."""
    child: cst.CSTNode = node
    operators: set[str] = set()
    for above in context.ancestors(node):
        match above:
            case cst.BinaryOperation(operator=cst.Add() | cst.Multiply() | cst.BitOr() | cst.BitAnd()):
                operators.add(type(above.operator).__name__)
            case cst.BinaryOperation(operator=cst.Subtract(), left=left) if left is child:
                operators.add("Add")
            case cst.Call(func=func) if (dotted(func) or "").rpartition(".")[2] in _FOLDS:
                operators.add("fold")
            case cst.Arg() | cst.Tuple() | cst.List() | cst.Element():
                pass
            case cst.Attribute(attr=cst.Name(value=method)) if method in _FOLDS:
                pass
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                return name == node.value and len(operators) == 1
            case _:
                return False
        child = above
    return False


def _kept(bindings: list[Binding], varying: Set[str], loop: cst.CSTNode, context: Context) -> Carried:
    on_host = all(
        context.kinds.binding(binding).kind in _ON_HOST
        or (
            binding.binder is Binder.ASSIGN
            and not binding.path
            and _is_there_before(binding.value, varying, loop, context)
        )
        for binding in bindings
    )
    return Carried.HOST if on_host else Carried.RESULTS


def _is_there_before(node: cst.CSTNode | None, varying: Set[str], loop: cst.CSTNode, context: Context) -> bool:
    """Whether the value is an element that is not computed in the loop: `last = t[i]` remembers a neighbour."""
    while isinstance(node, cst.Subscript):
        node = node.value
    if not isinstance(node, cst.Name) or node.value not in varying:
        return isinstance(node, (cst.Name, cst.Attribute))
    return all(
        binding.node is loop
        or (
            binding.binder is Binder.ASSIGN
            and isinstance(binding.value, cst.Subscript)
            and _is_there_before(binding.value, varying - {node.value}, loop, context)
            and node.value not in {part.value for part in descendants(binding.value) if isinstance(part, cst.Name)}
        )
        for binding in context.reaching(node)
    )


# Attributes of self


def _by_attributes(nodes: list[cst.CSTNode], context: Context) -> Iterator[Carried]:
    set_: dict[str, cst.CSTNode] = {}
    for node in nodes:
        if isinstance(node, cst.Assign):
            for target in node.targets:
                if isinstance(target.target, cst.Attribute):
                    set_.setdefault(dotted(target.target) or "", node)
    for node in nodes:
        if isinstance(node, cst.Attribute) and dotted(node) in set_ and is_read(node, context):
            binder = set_[dotted(node) or ""]
            if context.tree.index[node] <= context.tree.end(binder):
                yield Carried.HOST if context.kind(node) in _ON_HOST else Carried.RESULTS


# Elements of what was there before the loop


def _by_elements(
    nodes: list[cst.CSTNode], inside: set[cst.CSTNode], varying: Set[str], context: Context
) -> Iterator[Carried]:
    """`r[i] = r[i + 1] + …`: something is written at one place and read at another."""
    written: dict[str, set[tuple[str, ...]]] = {}
    writes: set[cst.CSTNode] = set()
    for node in nodes:
        target = _written(node)
        if target is None:
            continue
        place, owner = _place(target, varying, context)
        writes.add(target)
        name = dotted(owner)
        if name is not None and not _is_new(owner, inside, context):
            writes.add(owner)
            written.setdefault(name, set()).add(place)
    for node in nodes if written else ():
        if isinstance(node, (cst.Name, cst.Attribute)) and node not in writes and is_read(node, context):
            places = written.get(dotted(node) or "")
            if places is not None and not _is_asked(node, context):
                whole = _whole(node, context)
                if places != {_place(whole, varying, context)[0]} or () in places:
                    yield Carried.HOST if context.kind(node) in _ON_HOST else Carried.RESULTS


def _place(node: cst.BaseExpression, varying: Set[str], context: Context) -> tuple[tuple[str, ...], cst.BaseExpression]:
    """The indices that differ from turn to turn, as code, and what they index: `(i,)` and `x` of `x[i, 0]`."""
    found: list[str] = []
    while isinstance(node, cst.Subscript):
        inner = [
            context.code(part.slice)
            for part in node.slice
            if any(isinstance(name, cst.Name) and name.value in varying for name in descendants(part))
        ]
        found[:0] = inner
        node = node.value
    return tuple(found), node


def _whole(node: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """The subscripts around a name."""
    above = context.parent(node)
    while isinstance(above, cst.Subscript) and above.value is node:
        node, above = above, context.parent(above)
    return node


def _is_asked(node: cst.BaseExpression, context: Context) -> bool:
    """Whether only the shape or the like is asked for, or an element is added."""
    match context.parent(node):
        case cst.Attribute(attr=cst.Name(value=name)):
            return name in _META
        case cst.Arg() as above:
            call = context.parent(above)
            return isinstance(call, cst.Call) and (dotted(call.func) or "") in ("len", "print")
    return False


def _written(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a statement or call changes in place."""
    match node:
        case cst.AssignTarget(target=cst.Subscript() as target) | cst.AugAssign(target=cst.Subscript() as target):
            return target
        case cst.Call(func=cst.Attribute(value=target, attr=cst.Name(value=method))):
            if method.endswith("_") and not method.endswith("__"):
                return target
    return None


def _is_new(node: cst.CSTNode, inside: set[cst.CSTNode], context: Context) -> bool:
    """Whether this turn made the object itself."""
    return isinstance(node, cst.Name) and all(binding.node in inside for binding in context.reaching(node))


# Lists


def _by_lists(nodes: list[cst.CSTNode], inside: set[cst.CSTNode], context: Context) -> Iterator[Carried]:
    """`out.append(f(out[-1]))`."""
    grown = {
        node.func.value.value
        for node in nodes
        if isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and isinstance(node.func.value, cst.Name)
        and node.func.attr.value in ("append", "insert", "extend")
        and not _is_new(node.func.value, inside, context)
    }
    for node in nodes:
        match node:
            case cst.Subscript(value=cst.Name(value=name)) if name in grown:
                yield Carried.RESULTS


def is_read(node: cst.CSTNode, context: Context) -> bool:
    """Whether the name or attribute is read here, not bound."""
    match context.parent(node):
        case cst.AssignTarget() | cst.Param() | cst.AsName() | cst.NameItem():
            return False
        case cst.AugAssign() | cst.AnnAssign() | cst.NamedExpr() | cst.For() | cst.CompFor() as above:
            return above.target is not node
        case cst.Arg() as above:
            return above.keyword is not node
        case cst.Attribute() as above:
            return above.attr is not node
        case cst.Element() as above:
            outer = context.parent(above)
            return outer is None or is_read(outer, context)
    return True
