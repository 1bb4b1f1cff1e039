"""Where a value comes from: through names, unpacking, branches of expressions, attributes, parameters and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Flag, auto
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.names.bindings import Binder
from torchlint.syntax.literals import integer
from torchlint.syntax.tree import children, descendants, descendants_in_scope

if TYPE_CHECKING:
    from torchlint.semantics.flow.uses import Uses
    from torchlint.semantics.names.bindings import Binding, Names
    from torchlint.semantics.names.classes import Classes
    from torchlint.semantics.values.call_graph import Calls
    from torchlint.syntax.tree import Tree


class Through(Flag):
    """What a value is followed through. Names that are bound to an expression as a whole always are.

    PARTS: unpacking of and subscripts into what is written as a tuple or list. BRANCHES: `a if c else b`, `a or b`.
    ATTRIBUTES: what the class assigns to them. PARAMETERS: what the calls in the module pass, and defaults. CALLS: what
    functions of the module return. ELEMENTS: what a loop takes them from. CONTEXTS: the context manager that gives it.
    UPDATES: what a name held before `x += y`.
    """

    NAMES = 0
    PARTS = auto()
    BRANCHES = auto()
    ATTRIBUTES = auto()
    PARAMETERS = auto()
    CALLS = auto()
    ELEMENTS = auto()
    CONTEXTS = auto()
    UPDATES = auto()


# An element of what a loop goes over, in the path of an origin.
ELEMENT = -2

EVERYTHING = Through.PARTS | Through.BRANCHES | Through.ATTRIBUTES | Through.PARAMETERS | Through.CALLS

# A value that comes from more places than this could be anything.
MOST_STEPS = 200


class Origin(NamedTuple):
    """An expression whose value it may be; with a `path`, a part of that value.

    In the path -1 stands for a starred part, and `ELEMENT` for any element.
    """

    node: cst.BaseExpression
    path: tuple[int, ...] = ()


class Origins(NamedTuple):
    """Where a value may come from: `found` are expressions that make it, `lost` names and such that lead further.

    What is `lost` is a parameter that nobody in the module passes, an import, what a loop binds, or an attribute that
    its class does not set. Both are in the order in which they were met, without doubles.
    """

    found: tuple[Origin, ...] = ()
    lost: tuple[Origin, ...] = ()

    @property
    def nodes(self) -> tuple[cst.BaseExpression, ...]:
        """The expressions whose whole value it may be, and those names that lead further."""
        return tuple(origin.node for origin in (*self.found, *self.lost) if not origin.path)

    @property
    def is_complete(self) -> bool:
        """Whether nothing else in the module can be where the value comes from."""
        return not self.lost

    def every(self, holds: Callable[[cst.BaseExpression], bool]) -> bool:
        """Whether it is known to be one of some expressions, as a whole, and this holds for each.

        Among them may be None, True and False, which are names: what asks this of each name has to be a query.
        """
        return self.is_whole and all(holds(origin.node) for origin in self.found)

    def some(self, holds: Callable[[cst.BaseExpression], bool]) -> bool:
        """Whether this holds for an expression whose whole value it may be."""
        return any(holds(origin.node) for origin in self.found if not origin.path)

    @property
    def is_whole(self) -> bool:
        """Whether all that it may be is in sight, and written as an expression for itself."""
        return not self.lost and bool(self.found) and not any(origin.path for origin in self.found)


class _Step(NamedTuple):
    """Where one step leads: further, to where the trail is lost, to both, or nowhere, which is then the end."""

    further: tuple[Origin, ...] = ()
    is_lost: bool = False


_END = _Step()
_LOST = _Step(is_lost=True)


class Sources:
    """Where the values of expressions in one module come from."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, calls: Calls, uses: Uses) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.calls = calls
        self.uses = uses

    def of(
        self,
        node: cst.BaseExpression,
        through: Through = Through.NAMES,
        *,
        path: tuple[int, ...] = (),
        is_end: Callable[[cst.BaseExpression], bool] | None = None,
        passed_on: Callable[[cst.Call], cst.BaseExpression | None] | None = None,
    ) -> Origins:
        """Where the value of an expression may come from.

        `is_end` names expressions that are not followed further; `passed_on` gives the argument that a call returns
        as it is. Recursion and loops end where they began: each place is looked at once.
        """
        found: list[Origin] = []
        lost: list[Origin] = []
        waiting = [Origin(node, path)]
        seen: set[tuple[int, tuple[int, ...]]] = set()
        while waiting:
            origin = waiting.pop()
            key = (id(origin.node), origin.path)
            if key in seen:
                continue
            seen.add(key)
            if is_end is not None and is_end(origin.node):
                found.append(origin)
                continue
            step = _LOST if len(seen) > MOST_STEPS else self._step(origin, through, passed_on)
            waiting += reversed(step.further)
            if step.is_lost:
                lost.append(origin)
            elif not step.further:
                found.append(origin)
        return Origins(tuple(found), tuple(lost))

    def bound_to(self, name: cst.Name, through: Through = Through.NAMES) -> Origins:
        """What the bindings of a name give it, as it is written there: the first step of where its value comes from."""
        step = self._named(name, (), through)
        if not step.further and not step.is_lost:
            return Origins((Origin(name),))
        further = map(_written, step.further) if Through.PARTS in through else step.further
        return Origins(tuple(dict.fromkeys(further)), (Origin(name),) if step.is_lost else ())

    def ingredients(
        self,
        node: cst.CSTNode,
        *,
        bound_by: Callable[[cst.CSTNode], bool] | None = None,
        is_end: Callable[[cst.CSTNode], bool] | None = None,
    ) -> Iterator[cst.CSTNode]:
        """All that goes into what a node computes: the nodes below it, and those of what their names are bound to.

        Names are followed to the bindings that `bound_by` allows, and nothing below what `is_end` names is looked at.
        Each node comes once; the order is that of the source within what one name is bound to.
        """
        waiting = [node]
        seen: set[int] = set()
        while waiting:
            current = waiting.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            if not isinstance(current, cst.Name):
                yield current
                if is_end is None or not is_end(current):
                    waiting += reversed(children(current))
            elif self.names.is_read(current) or isinstance(self.tree.parent(current), cst.AugAssign):
                yield current
                if is_end is None or not is_end(current):
                    waiting += reversed([*self._operands(current, bound_by)])

    def _operands(self, name: cst.Name, bound_by: Callable[[cst.CSTNode], bool] | None) -> Iterator[cst.BaseExpression]:
        """What the name is bound to, and for `x += y` what it held before."""
        for binding in self.names.reaching(name):
            if bound_by is None or bound_by(binding.node):
                if binding.value is not None:
                    yield binding.value
                if isinstance(binding.node, cst.AugAssign):
                    yield binding.node.target

    def stands_for(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The one expression that a name is bound to, by one assignment as a whole; a node that is no name, itself."""
        if not isinstance(node, cst.Name):
            return node
        bindings = self.names.reaching(node)
        if len(bindings) == 1 and bindings[0].binder is Binder.ASSIGN and not bindings[0].path:
            return bindings[0].value
        return None

    def arguments_for(self, parameter: cst.Param) -> Iterator[cst.BaseExpression]:
        """What the calls in this module pass for a parameter."""
        function = self.tree.function_of_parameter(parameter)
        if isinstance(function, cst.FunctionDef):
            for call in self.calls.callers(function):
                argument = self.calls.argument_for(call, function, parameter)
                if argument is not None:
                    yield argument

    def _step(
        self,
        origin: Origin,
        through: Through,
        passed_on: Callable[[cst.Call], cst.BaseExpression | None] | None,
    ) -> _Step:
        node, path = origin
        match node:
            case cst.Name():
                return self._named(node, path, through)
            case cst.NamedExpr(value=value):
                return _Step((Origin(value, path),))
            case cst.IfExp(body=body, orelse=orelse) if Through.BRANCHES in through:
                return _Step((Origin(body, path), Origin(orelse, path)))
            case cst.BooleanOperation(left=left, operator=cst.Or(), right=right) if Through.BRANCHES in through:
                return _Step((Origin(left, path), Origin(right, path)))
            case cst.Tuple(elements=elements) | cst.List(elements=elements) if path and Through.PARTS in through:
                part = _element(elements, path[0])
                return _END if part is None else _Step((Origin(part, path[1:]),))
            case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                place = integer(index) if Through.PARTS in through else None
                return _END if place is None or place < 0 else self._part_of(owner, (place, *path), through)
            case cst.Attribute() if Through.ATTRIBUTES in through:
                return self._attribute(node, path)
            case cst.Call():
                inner = passed_on(node) if passed_on is not None else None
                if inner is not None:
                    return _Step((Origin(inner, path),))
                return self._returned(node, path) if Through.CALLS in through else _END
        return _END

    def _part_of(self, owner: cst.BaseExpression, path: tuple[int, ...], through: Through) -> _Step:
        """A part of what is written as a tuple or list, or of a name for a tuple; otherwise the subscript itself."""
        written = owner if isinstance(owner, (cst.Tuple, cst.List)) else self.stands_for(owner)
        if not isinstance(written, cst.Tuple) and written is not owner:
            return _END  # a list that has a name may be changed through it
        return self._step(Origin(written, path), through, None) if isinstance(written, (cst.Tuple, cst.List)) else _END

    def _named(self, name: cst.Name, path: tuple[int, ...], through: Through) -> _Step:
        bindings = self.names.reaching(name)
        if not bindings:
            return _END if name.value in ("None", "True", "False") else _LOST
        steps = [self._bound(binding, path, through) for binding in bindings]
        return _Step(tuple(origin for step in steps for origin in step.further), any(step.is_lost for step in steps))

    def _bound(self, binding: Binding, path: tuple[int, ...], through: Through) -> _Step:
        if binding.binder is Binder.PARAMETER and isinstance(binding.node, cst.Param):
            if Through.PARAMETERS not in through or binding.node.star:
                return _LOST
            given = [*self.arguments_for(binding.node)]
            if binding.node.default is not None:
                given.append(binding.node.default)
            return _Step(tuple(Origin(argument, path) for argument in given), is_lost=not given)
        if binding.binder is Binder.AUGMENTED and Through.UPDATES in through:
            before = binding.node.target if isinstance(binding.node, cst.AugAssign) else None
            return _Step((Origin(before, path),)) if before is not None else _LOST
        if binding.value is None:
            return _LOST
        if binding.binder is Binder.LOOP and Through.ELEMENTS in through:
            return _Step((Origin(binding.value, (ELEMENT, *binding.path, *path)),))
        is_followed = binding.binder in (Binder.ASSIGN, Binder.ANNOTATION)
        if not is_followed and (binding.binder is not Binder.CONTEXT or Through.CONTEXTS not in through):
            return _LOST
        if binding.path and Through.PARTS not in through:
            return _LOST
        return _Step((Origin(binding.value, (*_places(binding), *path) if binding.path else path),))

    def _attribute(self, node: cst.Attribute, path: tuple[int, ...]) -> _Step:
        class_ = self.uses.owner(node)
        sets = self.classes.attribute_sets(class_, node.attr.value) if class_ is not None else []
        further = tuple(Origin(entry.value, (*entry.path, *path)) for entry in sets if entry.value is not None)
        return _Step(further, is_lost=not further or len(further) < len(sets))

    def _returned(self, call: cst.Call, path: tuple[int, ...]) -> _Step:
        """What a function of the module returns; a call of anything else is itself the end."""
        function = self.calls.target(call)
        if function is None or function.name.value in ("__init__", "forward"):
            return _END
        body = list(descendants_in_scope(function.body))
        if any(isinstance(inner, (cst.Yield, cst.Await)) for inner in body) or function.asynchronous is not None:
            return _END
        values = [inner.value for inner in body if isinstance(inner, cst.Return) and inner.value is not None]
        return _Step(tuple(Origin(value, path) for value in values)) if values else _END


def _places(binding: Binding) -> tuple[int, ...]:
    """The path to what a name is bound to; a starred target moves what comes after it, nobody knows how far."""
    if not binding.path or binding.path[-1] == -1 or not isinstance(binding.node, cst.Assign):
        return binding.path
    parts = (part for target in binding.node.targets for part in descendants(target))
    is_moved = any(isinstance(part, cst.StarredElement) for part in parts)
    return (ELEMENT,) * len(binding.path) if is_moved else binding.path


def _written(origin: Origin) -> Origin:
    """The part of what is written as a tuple or list, as far as the path leads into it."""
    node, path = origin
    while path and isinstance(node, (cst.Tuple, cst.List)) and (part := _element(node.elements, path[0])) is not None:
        node, path = part, path[1:]
    return Origin(node, path)


def _element(elements: object, place: int) -> cst.BaseExpression | None:
    """The element at a place; None where a starred one may have moved it, or there is none."""
    if not isinstance(elements, (tuple, list)) or not 0 <= place < len(elements):
        return None
    before = elements[: place + 1]
    return elements[place].value if all(isinstance(element, cst.Element) for element in before) else None
