"""What one turn of a loop needs of the turns before."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.names import Binder, Binding, dotted
from torchlint.model.tree import Loop
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
_META = frozenset("shape device dtype ndim size dim numel append extend add insert new_zeros new_ones new_tensor type".split())


def carried_by(nodes: list[cst.CSTNode], loop: cst.CSTNode, context: Context) -> Carried:
    """The most that a turn, of which these are the nodes, needs of those before."""
    inside = set(nodes)
    found = [
        *_by_names(nodes, inside, loop, context),
        *_by_attributes(nodes, context),
        *_by_elements(nodes, inside, context),
        *_by_lists(nodes, inside, context),
    ]
    return max(found, default=Carried.NOTHING)


# Names


def _by_names(
    nodes: list[cst.CSTNode], inside: set[cst.CSTNode], loop: cst.CSTNode, context: Context
) -> Iterator[Carried]:
    for node in nodes:
        if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            if not isinstance(node.operator, _SUMS) and context.kind(node.target) not in _ON_HOST:
                bindings = context.reaching(node.target)
                if not bindings or any(binding.node not in inside for binding in bindings):
                    yield Carried.RESULTS
        if not isinstance(node, cst.Name) or not is_read(node, context):
            continue
        own = _from_before(node, inside, loop, context)
        if own and not _is_folded(node, context):
            yield _kept(own, context)


def _from_before(
    node: cst.Name, inside: set[cst.CSTNode], loop: cst.CSTNode, context: Context
) -> list[Binding]:
    """The bindings of an earlier turn whose value the name may still hold."""
    bindings = context.reaching(node)
    if any(binding.node is loop for binding in bindings):
        return []
    own = [binding for binding in bindings if binding.node in inside and binding.binder is not Binder.IMPORT]
    if not own or any(binding.node not in inside for binding in bindings):
        return own
    place = context.tree.index[node]
    return [
        binding
        for binding in own
        if binding.effect >= place and not _share_a_loop(binding.node, node, inside, context)
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


def _kept(bindings: list[Binding], context: Context) -> Carried:
    if all(_is_on_host(binding, context) for binding in bindings):
        return Carried.HOST
    return Carried.RESULTS


def _is_on_host(binding: Binding, context: Context) -> bool:
    if context.kinds.binding(binding).kind in _ON_HOST:
        return True
    # `last = t[i]`: a neighbour, which is there beforehand.
    value = binding.value
    return (
        isinstance(value, (cst.Subscript, cst.Name))
        and not binding.path
        and not any(isinstance(part, cst.Name) and part.value == binding.name for part in _below(value))
        and isinstance(_innermost(value), cst.Name)
        and not any(
            other.node is not binding.node and other.value is None for other in context.reaching(_first_name(value))
        )
        and binding.binder is Binder.ASSIGN
    )


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    from torchlint.model.tree import descendants

    return descendants(node)


def _innermost(node: cst.CSTNode) -> cst.CSTNode:
    while isinstance(node, cst.Subscript):
        node = node.value
    return node


def _first_name(node: cst.CSTNode) -> cst.Name:
    inner = _innermost(node)
    assert isinstance(inner, cst.Name)
    return inner


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


def _by_elements(nodes: list[cst.CSTNode], inside: set[cst.CSTNode], context: Context) -> Iterator[Carried]:
    """`r[i] = r[i + 1] + …`: something is written at one place and read at another."""
    written: dict[str, set[str]] = {}
    writes: set[cst.CSTNode] = set()
    for node in nodes:
        target = _written(node)
        while isinstance(target, cst.Subscript):
            writes.add(target)
            name = dotted(target.value)
            if name is not None and not _is_new(target.value, inside, context):
                written.setdefault(name, set()).add(context.code(target))
            target = target.value
        if isinstance(target, (cst.Name, cst.Attribute)) and isinstance(node, cst.Call):
            writes.add(target)
            if not _is_new(target, inside, context):
                written.setdefault(dotted(target) or "", set())
    if not written:
        return
    for node in nodes:
        if not isinstance(node, (cst.Name, cst.Attribute)) or dotted(node) not in written or node in writes:
            continue
        above = context.parent(node)
        if isinstance(above, cst.Attribute) and (above.attr is node or above.attr.value in _META):
            continue
        if not is_read(node, context) or (isinstance(above, cst.Subscript) and above.value is node and above in writes):
            continue
        if isinstance(above, cst.Subscript) and above.value is node:
            if context.code(above) in written[dotted(node) or ""]:
                continue
        elif isinstance(above, cst.Arg) and (dotted(getattr(context.parent(above), "func", None)) or "") in ("len", "print"):
            continue
        yield Carried.HOST if context.kind(node) in _ON_HOST else Carried.RESULTS


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
