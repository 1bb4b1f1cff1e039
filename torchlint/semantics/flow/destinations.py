"""What becomes of a value: through names, branches of expressions, containers, and whatever else hands it on."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

from torchlint.semantics.flow.origins import ELEMENT, MOST_STEPS, Through

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchlint.semantics.flow.uses import Uses
    from torchlint.semantics.names.bindings import Names
    from torchlint.syntax.tree import Tree


_Binds: TypeAlias = "cst.Assign | cst.AnnAssign | cst.NamedExpr"


class Destination(NamedTuple):
    """An expression that has the value where something else takes it: `context.parent(node)` is what does.

    With a `path` it is a part of what the expression holds, `ELEMENT` standing for any. `is_alone` says that the
    names it came by have no other binding there.
    """

    node: cst.BaseExpression
    path: tuple[int, ...] = ()
    is_alone: bool = True


class Destinations(NamedTuple):
    """Where a value goes: `found` are the places that take it, `lost` those where it goes further out of sight.

    What is `lost` is assigned to an attribute or an element, or unpacked from a container that holds it somewhere.
    `held` are all expressions that have it on its way, from the first on. All are in the order in which they were met,
    without doubles.
    """

    found: tuple[Destination, ...] = ()
    lost: tuple[Destination, ...] = ()
    held: tuple[Destination, ...] = ()

    @property
    def nodes(self) -> tuple[cst.BaseExpression, ...]:
        """The expressions that have the value, or a container with it, at its last places, in sight or not."""
        return tuple(destination.node for destination in (*self.found, *self.lost))


class Sinks:
    """Where the values of expressions in one module go."""

    def __init__(self, tree: Tree, names: Names, uses: Uses) -> None:
        self.tree = tree
        self.names = names
        self.uses = uses

    def of(
        self,
        node: cst.BaseExpression,
        through: Through = Through.NAMES,
        *,
        handed_on: Callable[[cst.BaseExpression, cst.CSTNode], cst.BaseExpression | None] | None = None,
    ) -> Destinations:
        """Where the value of an expression goes: the reads of the names that it is bound to as a whole, and so on.

        Through BRANCHES it goes on as the value of `a if c else b` and of `a or b`; through PARTS as a part of what is
        written as a container, and out of it where that is unpacked; through ELEMENTS, what an expression gives goes on
        as whatever is unpacked from it. `handed_on` is asked at each place, with the
        expression and what takes it, for the expression that has the value from there. Each place is looked at once.
        """
        found: list[Destination] = []
        lost: list[Destination] = []
        held: list[Destination] = []
        waiting = [Destination(node)]
        seen: set[tuple[int, tuple[int, ...]]] = set()
        while waiting:
            place = waiting.pop()
            key = (id(place.node), place.path)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > MOST_STEPS:
                lost.append(place)
                continue
            held.append(place)
            taker = self.tree.parent(place.node)
            further = handed_on(place.node, taker) if handed_on is not None and taker is not None else None
            if further is not None:
                waiting.append(place._replace(node=further))
            elif (holder := self._holder(place, through)) is not None:
                waiting.append(holder)
            elif isinstance(taker, (cst.Assign, cst.AnnAssign, cst.NamedExpr)) and place.node is taker.value:
                bound = [*_bound(taker, place.path, spread=Through.ELEMENTS in through)]
                waiting += reversed([*self._reads(taker, bound, is_alone=place.is_alone)])
                if None in bound:
                    lost.append(place)
            else:
                found.append(place)
        return Destinations(tuple(found), tuple(lost), tuple(held))

    def readers(self, name: cst.Name) -> tuple[cst.Name, ...]:
        """Every place that may read what a name holds here, or change it in place, in source order, itself too."""
        found = {
            id(use): use for binding in self.names.reaching(name) for use in self.names.uses(binding)
        }  # fmt: skip
        return tuple(sorted(found.values(), key=self.tree.place))

    def _holder(self, place: Destination, through: Through) -> Destination | None:
        """The expression around one that has its value too, or holds it as a part."""
        node = place.node
        match self.tree.parent(node):
            case cst.IfExp(test=test) as branches if node is not test and Through.BRANCHES in through:
                return place._replace(node=branches)
            case cst.BooleanOperation() as either if Through.BRANCHES in through:
                return place._replace(node=either)
            case (cst.Element() | cst.DictElement()) as element if node is element.value and Through.PARTS in through:
                container = self.tree.parent(element)
                if isinstance(container, (cst.Set, cst.Dict)):
                    return Destination(container, (ELEMENT, *place.path), place.is_alone)
                if isinstance(container, (cst.Tuple, cst.List)) and not self.uses.is_target(node):
                    before = list(takewhile(lambda other: other is not element, container.elements))
                    is_moved = any(isinstance(other, cst.StarredElement) for other in before)
                    return Destination(container, (ELEMENT if is_moved else len(before), *place.path), place.is_alone)
        return None

    def _reads(
        self, statement: _Binds, bound: list[tuple[cst.Name, tuple[int, ...]] | None], *, is_alone: bool
    ) -> Iterator[Destination]:
        """The reads of the names that a statement binds, and a walrus itself."""
        for name, path in filter(None, bound):
            if isinstance(statement, cst.NamedExpr):
                yield Destination(statement, path, is_alone)
            for use in self.uses.of(name.value, statement):
                if not isinstance(self.tree.parent(use), cst.Del):
                    yield Destination(use, path, is_alone and len(self.names.reaching(use)) == 1)


def _bound(
    statement: _Binds, path: tuple[int, ...], *, spread: bool
) -> Iterator[tuple[cst.Name, tuple[int, ...]] | None]:
    """The names that get what lies at a path in the value of a statement; None for what gets it and is no name."""
    waiting: list[tuple[cst.BaseExpression, tuple[int, ...]]]
    if isinstance(statement, cst.Assign):
        waiting = [(target.target, path) for target in statement.targets]
    else:
        waiting = [(statement.target, path)]
    for target, inside in waiting:
        match target, inside:
            case cst.Name(), _:
                yield target, inside
            case ((cst.Tuple(elements=elements) | cst.List(elements=elements)), (int(place), *more)) if (
                0 <= place < len(elements)
                and all(isinstance(element, cst.Element) for element in elements[: place + 1])
            ):
                waiting.append((elements[place].value, tuple(more)))
            case ((cst.Tuple(elements=elements) | cst.List(elements=elements)), ()) if spread:
                waiting += [(part.value, ()) for part in elements if isinstance(part, cst.Element)]
                if any(isinstance(part, cst.StarredElement) for part in elements):
                    yield None
            case _:
                yield None
