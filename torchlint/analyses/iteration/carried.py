"""What one iteration of a loop needs of the iterations before."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import Binder, Binding, dotted, final_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import Loop, descendants

# The indices by which something is reached, as far as they differ from turn to turn, as code.
Place: TypeAlias = "tuple[str, ...]"


class Carried(IntEnum):
    """NOTHING: turns could run in any order, sums and the like aside. HOST: only what the host keeps, as counters.

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
# Those that one operation does for elements at places that may be the same: `index_add_`, `index_reduce_`.
_REDUCTIONS = frozenset("max min maximum minimum add".split())
# What may be asked of a tensor, and done to a list, at any turn.
_HARMLESS = frozenset(
    "shape device dtype ndim size dim numel append extend add insert new_zeros new_ones new_tensor type".split()
)


def carried_by(nodes: list[cst.CSTNode], loop: cst.CSTNode, varying: AbstractSet[str], context: Context) -> Carried:
    """The most that an iteration, of which these are the nodes, needs of those before; `varying` are its own names."""
    body = _Body(nodes, frozenset(nodes), loop, varying, context)
    found = (*_by_names(body), *_by_attributes(body), *_by_elements(body), *_by_lists(body))
    return max(found, default=Carried.NOTHING)


def is_read(node: cst.CSTNode, context: Context) -> bool:
    """Whether the name, attribute or subscript is read here, not bound."""
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


@dataclass(frozen=True, slots=True)
class _Body:
    """What runs in each iteration of `loop`."""

    nodes: list[cst.CSTNode]
    inside: frozenset[cst.CSTNode]
    loop: cst.CSTNode
    varying: AbstractSet[str]
    context: Context

    def kept(self, node: cst.CSTNode) -> Carried:
        """What is carried if this is."""
        return Carried.HOST if self.context.kind(node) in _ON_HOST else Carried.RESULTS

    def is_new(self, node: cst.CSTNode) -> bool:
        """Whether this turn made the object itself."""
        return isinstance(node, cst.Name) and all(
            binder in self.inside or binder is self.loop for binder in self.context.binders(node)
        )


# Names


def _by_names(body: _Body) -> Iterator[Carried]:
    totals: dict[str, Carried] = {}
    others: set[str] = set()
    for node in body.nodes:
        if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name) and not body.is_new(node.target):
            totals[node.target.value] = body.kept(node.target)
            if not isinstance(node.operator, _SUMS):
                yield body.kept(node.target)
        elif isinstance(node, cst.Name) and is_read(node, body.context):
            earlier = _from_before(node, body)
            carried = _most(earlier, body)
            if earlier and _is_folded(node, body):
                totals[node.value] = carried
            else:
                others.add(node.value)
                yield carried
    # A total that is read on the way is no mere total.
    yield from (carried for name, carried in totals.items() if name in others)


def _from_before(node: cst.Name, body: _Body) -> list[Binding]:
    """The bindings of an earlier iteration whose value the name may still hold."""
    bindings = body.context.reaching(node)
    if any(binding.node is body.loop for binding in bindings):
        return []
    own = [binding for binding in bindings if binding.node in body.inside and binding.binder is not Binder.IMPORT]
    if len(own) < len(bindings):
        return own
    place = body.context.tree.place(node)
    around = {above for above in body.context.ancestors(node) if isinstance(above, Loop) and above in body.inside}
    return [
        binding
        for binding in own
        if binding.effect >= place
        and not any(above in around for above in (binding.node, *body.context.ancestors(binding.node)))
    ]


def _is_folded(node: cst.BaseExpression, body: _Body, folds: AbstractSet[str] = _FOLDS) -> bool:
    """Whether it is only read to be added to: `s = s + x`, `best[j] = torch.maximum(best[j], x)`."""
    child: cst.CSTNode = node
    ways: set[str] = set()
    for above in body.context.ancestors(node):
        match above:
            case cst.BinaryOperation(operator=cst.Add() | cst.Multiply() | cst.BitOr() | cst.BitAnd()):
                ways.add(type(above.operator).__name__)
            case cst.BinaryOperation(operator=cst.Subtract(), left=left) if left is child:
                ways.add("Add")
            case cst.Call(func=func) if final_part(func) in folds:
                ways.add("fold")
            case cst.Arg() | cst.Tuple() | cst.List() | cst.Element():
                pass
            case cst.Attribute(attr=cst.Name(value=method)) if method in folds:
                pass
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                return len(ways) == 1 and body.context.code(target) == body.context.code(node)
            case _:
                return False
        child = above
    return False


def _most(bindings: list[Binding], body: _Body) -> Carried:
    if not bindings:
        return Carried.NOTHING
    on_host = all(
        body.context.kinds.binding(binding).kind in _ON_HOST
        or (
            binding.binder is Binder.ASSIGN and not binding.path and _is_there_before(binding.value, body.varying, body)
        )
        for binding in bindings
    )
    return Carried.HOST if on_host else Carried.RESULTS


def _is_there_before(node: cst.CSTNode | None, varying: AbstractSet[str], body: _Body) -> bool:
    """Whether the value is an element that is not computed in the loop: `last = t[i]` remembers a neighbour."""
    while isinstance(node, cst.Subscript):
        node = node.value
    if not isinstance(node, cst.Name) or node.value not in varying:
        return isinstance(node, (cst.Name, cst.Attribute))
    return all(
        binding.node is body.loop
        or (
            binding.binder is Binder.ASSIGN
            and isinstance(binding.value, cst.Subscript)
            and _is_there_before(binding.value, varying - {node.value}, body)
            and not any(isinstance(part, cst.Name) and part.value == node.value for part in descendants(binding.value))
        )
        for binding in body.context.reaching(node)
    )


# Attributes of self


def _by_attributes(body: _Body) -> Iterator[Carried]:
    binders: dict[str, cst.CSTNode] = {}
    for node in body.nodes:
        if isinstance(node, cst.Assign):
            for target in node.targets:
                if isinstance(target.target, cst.Attribute):
                    binders.setdefault(dotted(target.target) or "", node)
    for node in body.nodes if binders else ():
        if isinstance(node, cst.Attribute) and is_read(node, body.context):
            binder = binders.get(dotted(node) or "")
            if binder is not None and body.context.tree.place(node) <= body.context.tree.end(binder):
                yield body.kept(node)


# Elements of what was there before the loop


def _by_elements(body: _Body) -> Iterator[Carried]:
    """`r[i] = r[i + 1] + …`: something is written at one place and read at another."""
    written: dict[str, set[Place]] = {}
    targets: dict[str, set[str]] = {}
    counted: dict[str, set[Place]] = {}
    writes: set[cst.CSTNode] = set()
    for node in body.nodes:
        target = _written(node)
        if target is not None:
            place, owner = _place(target, body)
            name = dotted(owner)
            writes.add(target)
            if name is not None and not body.is_new(owner):
                writes.add(owner)
                written.setdefault(name, set()).add(place)
                targets.setdefault(name, set()).add(body.context.code(target))
                if isinstance(node, cst.AugAssign) or _is_updated(target, body):
                    counted.setdefault(name, set()).add(place)
    for node in body.nodes if written else ():
        if isinstance(node, (cst.Name, cst.Attribute)) and node not in writes and is_read(node, body.context):
            places = written.get(dotted(node) or "")
            if places is not None and not _is_harmless(node, body):
                whole = _whole(node, body)
                if _is_folded(whole, body, _REDUCTIONS):
                    continue
                place, _ = _place(whole, body)
                if _is_of_one_row(place, places, body):
                    continue
                if (
                    () in places
                    or (
                        place in counted.get(dotted(node) or "", ())
                        and any(_is_looked_up(index, body) for index in place)
                    )
                    or (places != {place} and not _is_within(node, targets[dotted(node) or ""], body))
                ):
                    yield body.kept(node)


def _is_of_one_row(place: Place, places: set[Place], body: _Body) -> bool:
    """Whether both are parts of what the counter of the loop indexes, `x[i][x[i] < low[i]] = 0`: of no other turn's."""
    return (
        isinstance(body.loop, cst.For)
        and bool(place)
        and place[0] in _counters(body.loop)
        and all(other[:1] == place[:1] for other in places)
    )


def _is_looked_up(index: str, body: _Body) -> bool:
    """Whether the index comes from elsewhere, `labels[i]` or an element of such: several iterations may share it."""
    is_element = isinstance(body.loop, cst.For) and index.isidentifier() and index not in _counters(body.loop)
    return "[" in index or is_element


def _counters(loop: cst.For) -> set[str]:
    """The names of another number in each iteration: `i` of `for i in range(n)` and `for i, x in enumerate(y)`."""
    match loop:
        case cst.For(target=target, iter=cst.Call(func=cst.Name(value="range" | "arange"))):
            return {target.value} if isinstance(target, cst.Name) else set()
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), *_]),
            iter=cst.Call(func=cst.Name(value="enumerate")),
        ):
            return {name}
        case cst.For(target=target, iter=cst.Call(func=cst.Attribute(attr=cst.Name(value="arange")))):
            return {target.value} if isinstance(target, cst.Name) else set()
    return set()


def _is_updated(target: cst.BaseExpression, body: _Body) -> bool:
    """`x[i] = f(x[i])`: the new value of a part is made of the old one."""
    above = body.context.parent(target)
    statement = body.context.parent(above) if isinstance(above, cst.AssignTarget) else None
    if not isinstance(statement, cst.Assign):
        return False
    code = body.context.code(target)
    return any(
        isinstance(part, cst.Subscript) and body.context.code(part) == code for part in descendants(statement.value)
    )


def _written(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a statement or call changes in place."""
    match node:
        case cst.AssignTarget(target=cst.Subscript() as target) | cst.AugAssign(target=cst.Subscript() as target):
            return target
        case cst.Call(func=cst.Attribute(value=target, attr=cst.Name(value=method))):
            if method.endswith("_") and not method.endswith("__"):
                return target
    return None


def _place(node: cst.BaseExpression, body: _Body) -> tuple[Place, cst.BaseExpression]:
    """The indices that differ from turn to turn and what they index: `(i,)` and `x` of `x[i, 0]`."""
    found: list[str] = []
    while isinstance(node, cst.Subscript):
        found[:0] = [
            body.context.code(part.slice)
            for part in node.slice
            if any(isinstance(name, cst.Name) and name.value in body.varying for name in descendants(part))
        ]
        node = node.value
    return tuple(found), node


def _whole(node: cst.BaseExpression, body: _Body) -> cst.BaseExpression:
    """The subscripts around a name."""
    above = body.context.parent(node)
    while isinstance(above, cst.Subscript) and above.value is node:
        node, above = above, body.context.parent(above)
    return node


def _is_within(node: cst.BaseExpression, targets: set[str], body: _Body) -> bool:
    """Whether a name is only read for a part of what alone is written: `x[i][order]` where `x[i]` is."""
    above = body.context.parent(node)
    while isinstance(above, cst.Subscript) and above.value is node:
        if targets == {body.context.code(above)}:
            return True
        node, above = above, body.context.parent(above)
    return False


def _is_harmless(node: cst.BaseExpression, body: _Body) -> bool:
    """Whether only the shape or the like is asked for, or something is added to a list."""
    match body.context.parent(node):
        case cst.Attribute(attr=cst.Name(value=name)):
            return name in _HARMLESS
        case cst.Arg() as above:
            call = body.context.parent(above)
            return isinstance(call, cst.Call) and (dotted(call.func) or "") in ("len", "print")
    return False


# Lists


def _by_lists(body: _Body) -> Iterator[Carried]:
    """`out.append(f(out[-1]))`."""
    grown = set()
    for node in body.nodes:
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=method))):
                if method in ("append", "insert", "extend") and not body.is_new(owner):
                    grown.add(owner.value)
    for node in body.nodes if grown else ():
        match node:
            case cst.Subscript(value=cst.Name(value=name)) if name in grown:
                yield Carried.RESULTS
