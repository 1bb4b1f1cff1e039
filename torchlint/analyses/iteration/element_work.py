"""What a loop does, iteration by iteration, with the elements of tensors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

import libcst as cst

from torchlint.analyses.iteration.bindings import ASK, META, Element, Turn
from torchlint.analyses.iteration.carried import Carried, carried_by, is_read
from torchlint.analyses.iteration.obstacles import (
    HOST_METHODS,
    RAGGED,
    is_batch_of_one,
    is_beside_stackable_items,
    is_mixed,
    is_ragged,
    runs_a_network,
)
from torchlint.analyses.iteration.targets import LoopNode, Visit, names_in, picks, unpacks
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import SUPPRESSION
from torchlint.semantics.knowledge.conventions.packages import ARRAY_PACKAGE
from torchlint.semantics.knowledge.conventions.values import LOOKUP_TABLE, MASK
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import dotted, final_part
from torchlint.semantics.names.loop_headers import iterables
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants, descendants_in_scope, speaks_of

_FILL = frozenset("fill_ zero_ copy_ normal_ uniform_ random_ bernoulli_".split())
_VIEWS = frozenset(
    "view reshape squeeze unsqueeze detach expand expand_as transpose permute t narrow select flatten diagonal unbind "
    "chunk split contiguous view_as unflatten movedim swapaxes data to cuda cpu float double half long int bool type "
    "type_as byte real imag clone detach_ squeeze_ unsqueeze_ atleast_1d atleast_2d atleast_3d unfold ravel".split()
)
_COMPARE = frozenset(
    "eq ne gt ge lt le greater greater_equal less less_equal not_equal isnan isfinite logical_not".split()
)
# What a size is given to: where it differs from turn to turn, so does the result.
_SIZED = frozenset(
    "pad interpolate resize resized_crop crop upsample narrow repeat repeat_interleave expand tile split view reshape "
    "new_zeros new_ones new_full new_empty roll rot90".split()
)
# What draws numbers as it goes: for all at once they would be others.
_DRAWN = frozenset("svd_lowrank pca_lowrank".split())
_JOINS = frozenset("stack cat concat concatenate vstack hstack dstack".split())
_SINKS = frozenset("append extend insert add put appendleft write info debug".split())
_CONVERSIONS = frozenset("float int bool complex round".split())
_LOOKS = frozenset("save is_tensor numel equal allclose from_numpy".split())
_COMPARISONS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
# Where an element comes to rest without being collected.
_REST = (
    cst.Assign,
    cst.AugAssign,
    cst.Attribute,
    cst.If,
    cst.While,
    cst.IfExp,
    cst.BooleanOperation,
    cst.UnaryOperation,
)
_REDUCE = frozenset(
    "sum mean max min amax amin std var norm prod any all median logsumexp argmax argmin count_nonzero nansum nanmean "
    "size numel dim item".split()
)
_ON_HOST = frozenset({Kind.NUMBER, Kind.STRING, Kind.SEQUENCE, Kind.MAPPING, Kind.NDARRAY, Kind.NONE})
_LOOKED_AT: frozenset[type] = frozenset({cst.Name, cst.Subscript, cst.Call, cst.For, cst.CompFor})
# A name bound to an element is one from the next pass on; chains of such names are short.
_PASSES = 4


class Work(Enum):
    """What is done at an iteration with an element, or with the tensor as a whole."""

    READ = "read"  # the host waits for one value
    KERNEL = "kernel"  # the device computes with one element or row
    GATHER = "gather"  # an element says which part of another tensor is taken
    MASK = "mask"  # a whole tensor is compared with the number of the iteration
    NETWORK = "network"  # a network runs on one row, as a batch of one
    HAND = "hand"  # a function of the project is given a row, and computes with tensors
    FILL = "fill"  # a part of a row, as long as the iteration says, is set to one number


@dataclass(frozen=True, slots=True)
class Step:
    """Work done in one iteration. `direct`: one `tolist()` before the loop would do instead of all the reads."""

    work: Work
    node: cst.CSTNode
    tensor: cst.BaseExpression
    device: Device
    direct: bool


@dataclass(frozen=True, slots=True)
class ElementLoop:
    """A loop whose turns work on elements of tensors.

    `ragged`: what an iteration takes or makes has a length of its own. `opaque`: an element goes into a function from
    elsewhere. `mixed`: an iteration works with items of a list of tensors, files, or a loop of unknown length. `runs`:
    it calls a network or autograd. `carried`: what it needs of those before. `selects`: an element is a mask
    by which parts are read, and the host waits.
    """

    node: LoopNode
    visit: Visit
    steps: tuple[Step, ...]
    ragged: bool
    opaque: bool
    mixed: bool
    runs: bool
    carried: Carried
    selects: bool


def element_loop(loop: LoopNode, visit: Visit, context: Context) -> ElementLoop | None:
    """What the loop does with elements, given what it binds; None if it visits none."""
    if not (visit.counters or visit.elements):
        return None
    turn = Turn(loop, visit, context)
    if not turn.uses_its_target():
        return None
    followed = _Following(
        turn, ragged=not isinstance(loop, cst.While) and any(unpacks(part, context) for part in iterables(loop.iter))
    )
    followed.follow()
    if not followed.steps:
        return None
    return ElementLoop(
        loop,
        visit,
        followed.found(),
        followed.ragged,
        bool(followed.opaque),
        is_mixed(turn) and not is_beside_stackable_items(turn),
        runs_a_network(turn),
        carried_by(turn.nodes, loop, turn.own_names, context),
        followed.selects,
    )


@dataclass(slots=True)
class _Following:
    """Follows each element of an iteration upwards, through all that is computed from it."""

    turn: Turn
    steps: dict[tuple[Work, cst.CSTNode], Step] = field(default_factory=dict)
    ragged: bool = False
    selects: bool = False
    opaque: set[cst.Call] = field(default_factory=set)
    _on_host: set[str] = field(default_factory=set)
    _pending: list[Step] = field(default_factory=list)
    _place: int = 0  # in the tuple that the way upwards came through last

    @property
    def context(self) -> Context:
        return self.turn.context

    def follow(self) -> None:
        turn = self.turn
        nodes = [node for node in turn.nodes if type(node) in _LOOKED_AT]
        for _ in range(_PASSES):
            before = (dict(turn.elements), set(turn.counters), set(turn.aligned))
            self.steps.clear()
            self.opaque.clear()
            turn.bind_all()
            for node in nodes:
                self._look(node)
            if before == (turn.elements, turn.counters, turn.aligned):
                break

    def found(self) -> tuple[Step, ...]:
        """The steps in source order; a tensor that gives arrays without a copy lives on the CPU."""
        return tuple(
            replace(step, device=Device.CPU) if self.context.code(step.tensor) in self._on_host else step
            for step in self.steps.values()
        )

    def _look(self, node: cst.CSTNode) -> None:
        turn = self.turn
        match node:
            case cst.Name(value=name) if name in turn.elements:
                # By now the name may hold what was read from it.
                if is_read(node, self.context) and self.context.kind(node) not in _ON_HOST:
                    self._climb(node, turn.elements[name])
            case cst.Name(value=name) if name in turn.counters:
                self._compare(node)
            case cst.Subscript(value=owner) if picks(node, turn.counters) and turn.is_given(owner):
                if (work := self._stored(node)) is not None:
                    self._note(work, node, turn.element_of(owner))
                    self._commit()
                self._climb(node, turn.element_of(owner, cut=turn.has_own_bounds(node)))
                if any(isinstance(part.slice, cst.Index) and turn.is_foreign(part.slice) for part in node.slice):
                    self.ragged = True
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="select" | "narrow")), args=args):
                if any(speaks_of(argument.value, turn.counters) for argument in args) and turn.is_given(owner):
                    self._climb(node, turn.element_of(owner))
            case cst.For(target=target, iter=iterated) | cst.CompFor(target=target, iter=iterated):
                turn.descend(target, iterated)

    def _stored(self, node: cst.Subscript) -> Work | None:
        """`mask[i, :lengths[i]] = 1`, `starts[i] = i * length`: a number goes into a row."""
        target = self.context.parent(node)
        statement = self.context.parent(target) if isinstance(target, cst.AssignTarget) else None
        if not isinstance(statement, cst.Assign):
            return None
        value = statement.value
        if isinstance(value, cst.UnaryOperation):
            value = value.expression
        is_plain = isinstance(value, cst.BaseNumber) or (
            isinstance(value, cst.Name) and value.value in ("True", "False")
        )
        if is_plain and self.turn.has_own_bounds(node):
            return Work.FILL
        is_number = self.context.kind(value) is Kind.NUMBER
        return Work.KERNEL if is_number and self.turn.element_of(node.value).device is Device.ACCELERATOR else None

    # The number of the iteration

    def _compare(self, name: cst.Name) -> None:
        """`x == i`, `x.eq(i)`: a pass over the whole tensor in each iteration."""
        child: cst.CSTNode = name
        for above in self.context.ancestors(name):
            match above:
                case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                    if isinstance(operator, _COMPARISONS) and not _is_test(self.context.parent(above), above):
                        self._mask(above, right if child is left else left)
                    return
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _COMPARE:
                    if child is not above.func:
                        self._mask(above, owner)
                    return
                case cst.Subscript() if self.context.kinds.is_tensor(above.value):
                    return
                case cst.Arg() | cst.BinaryOperation() | cst.ComparisonTarget() | cst.Subscript():
                    child = above
                case cst.Index() | cst.SubscriptElement():
                    child = above
                case _:
                    return

    def _mask(self, node: cst.BaseExpression, tensor: cst.BaseExpression) -> None:
        if not self.context.value(tensor).scalar and self.turn.is_given(tensor) and not self._is_for_arrays(node):
            element = replace(self.turn.element_of(tensor), direct=False, boolean=True)
            self._note(Work.MASK, node, element)
            self._climb(node, element)

    def _is_for_arrays(self, node: cst.BaseExpression) -> bool:
        """Whether numpy and the like are given this, which they take from the CPU alone: `np.where(labels == i)`."""
        call = self.context.parent(argument) if isinstance(argument := self.context.parent(node), cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        return ARRAY_PACKAGE.suggests((self.context.qualified_name(call.func) or "").partition(".")[0])

    # Notes

    def _note(self, work: Work, node: cst.CSTNode, element: Element) -> None:
        if work is Work.KERNEL and element.opaque is not None:
            return  # what came from elsewhere need not be a tensor
        if self.turn.visit.is_over_tensors or self.turn.is_own(node):
            self._pending.append(Step(work, node, element.tensor, element.device, element.direct))

    def _add_up(self, node: cst.CSTNode, element: Element) -> None:
        """What a function from elsewhere gives is added to a total or stored in a tensor: it computes."""
        if element.opaque is not None:
            self.opaque.discard(element.opaque)
        self._note(Work.KERNEL, node, replace(element, opaque=None))

    def _commit(self) -> None:
        for step in self._pending:
            key = (step.work, step.node)
            if key not in self.steps or (step.direct and not self.steps[key].direct):
                self.steps[key] = step
        self._pending.clear()

    # Upwards

    def _climb(self, root: cst.BaseExpression, element: Element) -> None:
        if isinstance(self.context.tree.statement(root), cst.Raise):
            return
        child: cst.CSTNode = root
        current, above = element, self.context.parent(root)
        while above is not None:
            found = self._through(above, child, current)
            if found is None:
                if current.selected and not isinstance(above, _REST):
                    self.ragged = True  # collected as it is, not summed up
                break
            current, child, above = found, above, self.context.parent(above)
        self._commit()

    def _through(self, above: cst.CSTNode, child: cst.CSTNode, element: Element) -> Element | None:
        """What has become of the element in the node above; None where it goes no further."""
        match above:
            case cst.Attribute(attr=cst.Name(value=name)):
                return None if name in META else element
            case cst.Call():
                return self._called(above, child, element)
            case cst.Arg() | cst.Element() | cst.ComparisonTarget() | cst.SubscriptElement():
                return element
            case cst.Tuple() | cst.List():
                self._place = next((place for place, part in enumerate(above.elements) if part is child), 0)
                return element if isinstance(self.context.parent(above), (cst.Arg, cst.Assign, cst.Index)) else None
            case cst.Index():
                return self._indexed(above, element)
            case cst.Slice():
                self._bound(above, element)
            case cst.Subscript():
                return self._taken(above, child, element)
            case cst.BinaryOperation():
                return self._combined(above, child, element)
            case cst.Comparison():
                return self._compared(above, child, element)
            case cst.UnaryOperation(operator=cst.Not()):
                self._note(Work.READ, above, element)
            case cst.UnaryOperation():
                self._note(Work.KERNEL, above, element)
                return element
            case cst.BooleanOperation() | cst.Assert() | cst.CompIf():
                self._note(Work.READ, child, element)
            case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) if test is child:
                self._note(Work.READ, child, element)
            case cst.IfExp():
                return element
            case cst.Assign():
                self._assigned(above, child, element)
            case cst.AugAssign():
                self._augmented(above, child, element)
            case cst.ListComp() | cst.GeneratorExp() if element.gathered and self._is_joined(above):
                self._note(Work.GATHER, child, element)
        return None

    def _is_joined(self, parts: cst.ListComp | cst.GeneratorExp) -> bool:
        """Whether the parts become one again, so that they are alike; a list that stays one may hold what isn't."""
        above = self.context.parent(parts)
        if not isinstance(above, cst.Assign):
            return isinstance(above, cst.Arg)
        names = (target.target for target in above.targets)
        uses = (use for name in names if isinstance(name, cst.Name) for use in self.context.uses.of(name.value, above))
        return any(self._is_joining(self.context.parent(use)) for use in uses)

    def _is_joining(self, argument: cst.CSTNode | None) -> bool:
        call = self.context.parent(argument) if isinstance(argument, cst.Arg) else None
        return isinstance(call, cst.Call) and final_part(call.func) in _JOINS

    def _taken(self, above: cst.Subscript, child: cst.CSTNode, element: Element) -> Element | None:
        if child is not above.value:
            return replace(element, direct=False)
        if not is_read(above, self.context):
            return None
        return replace(element, cut=element.cut or self.turn.has_own_bounds(above))

    def _indexed(self, above: cst.Index, element: Element) -> Element | None:
        """An element as an index: of a tensor, which gathers, or of a list, which reads it."""
        subscript = self.context.enclosing(above, cst.Subscript)
        if subscript is None:
            return None
        owner, kind = subscript.value, self.context.kind(subscript.value)
        self.selects = self.selects or (element.boolean and is_read(subscript, self.context))
        if element.boolean or (isinstance(above.value, cst.Name) and MASK.suggests(above.value.value)):
            return replace(element, selected=True)
        if kind is Kind.TENSOR:
            element = self._beside(element, owner)  # no index on the device picks from a tensor on the CPU
            device = self.context.device(owner)
            device = element.device if device is Device.CPU else device
            found = replace(element, direct=False, gathered=True, device=device)
            if not is_read(subscript, self.context):
                self._note(Work.GATHER, subscript, found)
            return found
        if kind is Kind.UNKNOWN and not LOOKUP_TABLE.suggests((dotted(owner) or "").rpartition(".")[2]):
            return None
        if kind is not Kind.NDARRAY:
            self._note(Work.READ, subscript, element)
        return None

    def _bound(self, above: cst.Slice, element: Element) -> None:
        """`mask[i, :length[i]] = 1` reads the length, where a comparison with `arange` would do."""
        subscript = self.context.enclosing(above, cst.Subscript)
        self._pending = [step for step in self._pending if step.work is not Work.KERNEL]
        if subscript is not None and not is_read(subscript, self.context):
            self._note(Work.READ, above, element)

    def _combined(self, above: cst.BinaryOperation, child: cst.CSTNode, element: Element) -> Element | None:
        other = above.right if child is above.left else above.left
        if self.context.kind(other) in (Kind.STRING, Kind.SEQUENCE):
            return None
        if self.turn.is_foreign(other) and not is_beside_stackable_items(self.turn):
            return None
        element = self._beside(element, other)
        self._note(Work.KERNEL, above, element)
        return replace(element, direct=element.direct and self.context.kind(other) is Kind.NUMBER)

    def _beside(self, element: Element, *others: cst.BaseExpression) -> Element:
        """The element in one operation with these: all are on the device that one is known to be on."""
        if element.device is Device.ACCELERATOR or not any(map(self._is_on_cpu, others)):
            return element
        return replace(element, device=Device.CPU)

    def _is_on_cpu(self, node: cst.BaseExpression) -> bool:
        """Whether this is a tensor on the CPU for certain, and none with a single value, which may meet any other."""
        if isinstance(node, cst.Subscript):
            return isinstance(node.value, cst.Name) and self._has_rows(node.value) and self._is_on_cpu(node.value)
        value = self.context.value(node)
        return value.kind is Kind.TENSOR and value.device is Device.CPU and value.proven and not value.scalar

    def _has_rows(self, name: cst.Name) -> bool:
        """Whether the tensor is made with more than one axis, so that no part of it is a single value."""
        return self.context.origins(name).every(
            lambda call: (
                isinstance(call, cst.Call)
                and (
                    sum(argument.keyword is None for argument in call.args) > 1 or any(part.star for part in call.args)
                )
            )
        )

    def _compared(self, above: cst.Comparison, child: cst.CSTNode, element: Element) -> Element | None:
        target = above.comparisons[0]
        other = target.comparator if child is above.left else above.left
        if isinstance(target.operator, (cst.Is, cst.IsNot)) or self.context.kind(other) in (Kind.STRING, Kind.NONE):
            return None
        foreign = self.turn.is_foreign(other)
        if isinstance(target.operator, (cst.In, cst.NotIn)):
            on_host = not foreign and self.context.kind(other) is not Kind.TENSOR
            self._note(Work.READ, above, replace(element, direct=element.direct and on_host))
            return None
        if not _is_test(self.context.parent(above), above):
            if foreign:
                return None
            self._note(Work.KERNEL, above, element)
        return replace(element, boolean=True)

    # Into names and tensors

    def _assigned(self, above: cst.Assign, child: cst.CSTNode, element: Element) -> None:
        for target in above.targets:
            match target.target:
                case cst.Name(value=name):
                    self._named(name, above, element)
                case cst.Tuple(elements=parts):
                    is_paired = isinstance(child, (cst.Tuple, cst.List)) and len(child.elements) == len(parts)
                    for part in parts[self._place : self._place + 1] if is_paired else parts:
                        if isinstance(part.value, cst.Name):
                            self.turn.elements.setdefault(part.value.value, element)
                case cst.Subscript(value=owner) as stored if self.context.kinds.is_tensor(owner):
                    self.ragged = self.ragged or element.selected or self.turn.has_own_bounds(stored)
                    if element.gathered:
                        self._note(Work.GATHER, above, element)
                    elif element.opaque is None or self._compares(element.opaque):
                        self._add_up(above, element)

    def _compares(self, call: cst.Call) -> bool:
        """Whether the call takes two elements, as a metric or a loss does, and not one, as a transformation."""
        counters, elements = self.turn.counters, self.turn.elements.keys()
        return sum(bool(names_in(argument.value) & (counters | elements)) for argument in call.args) > 1

    def _named(self, name: str, above: cst.Assign, element: Element) -> None:
        is_own = any(name == visited for visited, _ in self.turn.visit.elements)
        if element.opaque is not None and name in names_in(above.value) and not is_own:
            self._add_up(above, element)  # `total = total + f(x[i])`
            return
        known = self.turn.elements.get(name)
        if known is None or (known.direct and not element.direct):
            self.turn.elements[name] = element

    def _augmented(self, above: cst.AugAssign, child: cst.CSTNode, element: Element) -> None:
        if isinstance(above.target, cst.Subscript) and self.turn.has_own_bounds(above.target):
            self.ragged = True
        if child is above.value:
            if self.context.kind(above.target) not in (Kind.STRING, Kind.SEQUENCE):
                self._add_up(above, element)
        elif self.context.kind(above.value) is Kind.NUMBER or not (
            self.turn.is_foreign(above.value) or speaks_of(above.value, self.turn.counters)
        ):
            self._note(Work.KERNEL, above, element)

    # Into calls

    def _called(self, call: cst.Call, child: cst.CSTNode, element: Element) -> Element | None:
        if child is call.func:
            return self._method(call, element)
        name = self.context.qualified_name(call.func) or ""
        last = final_part(call.func)
        if name in _CONVERSIONS:
            self._note(Work.READ, call, element)
            return None
        if last in _SINKS:
            if element.gathered:
                self._note(Work.GATHER, call, element)
            return None
        owner = self.context.kind(call.func.value) if isinstance(call.func, cst.Attribute) else Kind.UNKNOWN
        if owner is Kind.STRING or name in apis.PYTHON_NAMES:
            return None
        if SUPPRESSION.suggests(last) or last in RAGGED or last in _DRAWN:
            self.ragged = True
            return self._computed(call, child, element)
        if owner is Kind.TENSOR or name in ("sum", "max", "min", "abs", "pow"):
            return self._computed(call, child, element)
        if name.startswith("torch."):
            return self._torch(call, child, element)
        return self._elsewhere(call, child, element)

    def _torch(self, call: cst.Call, child: cst.CSTNode, element: Element) -> Element | None:
        last = final_part(call.func)
        if last in _VIEWS or last == "Variable":
            return element
        if last in ("tensor", "as_tensor"):
            self._note(Work.READ, call, replace(element, direct=False))
            return None
        if last in apis.FACTORIES:
            self.ragged = True  # as many as the element says, which the host has to know
            self._note(Work.READ, call, element)
            return None
        if last in _LOOKS or last.endswith("_like"):
            return None
        if last == "where" and len(call.args) == 1:
            self.ragged = True
        return self._computed(call, child, element)

    def _method(self, call: cst.Call, element: Element) -> Element | None:
        """A method of the element itself."""
        method = final_part(call.func)
        if method == "item":
            self._note(Work.READ, call, element)
        if method == "numpy" and element.direct and element.device is not Device.CPU:
            self._on_host.add(self.context.code(element.tensor))
        if method == "cpu":
            return replace(element, device=Device.CPU)
        if method in HOST_METHODS or method in ASK or method in _FILL or method not in METHODS:
            return None
        if method in RAGGED or (method in _SIZED and any(map(self.turn.varies, call.args))):
            self.ragged = True
        if method in _VIEWS:
            return replace(element, boolean=element.boolean or method == "bool")
        if any(self.turn.is_foreign(argument.value) for argument in call.args):
            return None
        self._note(Work.KERNEL, call, element)
        return replace(
            element, direct=False, boolean=method in _COMPARE, selected=element.selected and method not in _REDUCE
        )

    def _computed(self, call: cst.Call, child: cst.CSTNode, element: Element) -> Element | None:
        """A kernel with an element among its arguments."""
        if final_part(call.func) in _SIZED and any(map(self.turn.varies, call.args[1:])):
            self.ragged = True
        if any(self.turn.is_foreign(argument.value) for argument in call.args if argument is not child):
            return None
        element = self._beside(element, *(argument.value for argument in call.args if argument is not child))
        self._note(Work.KERNEL, call, element)
        return replace(element, direct=False, selected=element.selected and final_part(call.func) not in _REDUCE)

    def _elsewhere(self, call: cst.Call, child: cst.CSTNode, element: Element) -> Element | None:
        """A call of something not in torch: it computes if what it gives is added up; else nobody knows."""
        if final_part(call.func) in _SIZED and any(map(self.turn.varies, call.args[1:])):
            self.ragged = True
        function = self.context.calls.target(call)
        if function is not None and is_ragged(function, self.context):
            self.ragged = True
        if is_batch_of_one(child, self.context) and self.context.kind(call.func) is Kind.MODULE:
            self._note(Work.NETWORK, call, replace(element, opaque=None))
        known = function is not None and not element.selected and self.context.kind(call) is Kind.TENSOR
        if (known and element.opaque is None) or self.context.kind(call.func) is Kind.MODULE:
            return self._computed(call, child, element)
        self.opaque.add(call)
        if function is not None and not element.selected and self._computes(function):
            self._note(Work.HAND, call, element)
        if element.selected or any(self._is_of_this_turn(argument) for argument in call.args if argument is not child):
            return None
        return replace(element, direct=False, opaque=call)

    def _computes(self, function: cst.FunctionDef) -> bool:
        """Whether the function calls torch: one that decodes a row to text does not."""
        calls = (node for node in descendants_in_scope(function.body) if isinstance(node, cst.Call))
        return any((self.context.qualified_name(call.func) or "").startswith("torch.") for call in calls)

    def _is_of_this_turn(self, argument: cst.Arg) -> bool:
        """Whether the argument is something of this turn's own, or a part of a tensor with bounds of its own."""
        return self.turn.is_foreign(argument.value) or any(
            isinstance(part, cst.Subscript) and self.turn.has_own_bounds(part) for part in descendants(argument.value)
        )


def _is_test(above: cst.CSTNode | None, node: cst.CSTNode) -> bool:
    match above:
        case cst.BooleanOperation() | cst.UnaryOperation(operator=cst.Not()):
            return True
        case cst.If() | cst.While() | cst.IfExp() | cst.CompIf() | cst.Assert():
            return above.test is node
    return False
