"""What a loop does, turn by turn, with the elements of tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.model import tables
from torchlint.model.carried import Carried, carried_by, is_read
from torchlint.model.names import dotted
from torchlint.model.torch_table import METHODS
from torchlint.model.tree import Comprehension, Loop, descendants, descendants_in_scope
from torchlint.model.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.model.context import Context

Turn: TypeAlias = "cst.For | cst.CompFor | cst.While"


class Work(Enum):
    """What is done at a turn with an element, or with the tensor as a whole."""

    READ = "read"  # the host waits for one value
    KERNEL = "kernel"  # the device computes with one element or row
    GATHER = "gather"  # an element says which part of another tensor is taken
    MASK = "mask"  # a whole tensor is compared with the number of the turn


@dataclass(frozen=True, slots=True)
class Step:
    """Work done in one turn: what kind, where, on an element of which tensor."""

    work: Work
    node: cst.CSTNode
    tensor: cst.BaseExpression
    device: Device
    # Whether one `tolist()` before the loop would do instead of all the reads.
    direct: bool = False


@dataclass(frozen=True, slots=True)
class Visit:
    """What the target of a loop takes on: numbers that count, elements of tensors, items of anything else."""

    counters: frozenset[str] = frozenset()
    elements: tuple[tuple[str, cst.BaseExpression], ...] = ()
    others: frozenset[str] = frozenset()
    count: cst.BaseExpression | None = None
    beside: tuple[cst.BaseExpression, ...] = ()

    def __or__(self, other: Visit) -> Visit:
        """Both, as `zip` has it."""
        return Visit(
            self.counters | other.counters,
            self.elements + other.elements,
            self.others | other.others,
            self.count if self.count is not None else other.count,
            self.beside + other.beside,
        )

    @property
    def over_tensors(self) -> bool:
        """Whether the number of turns is that of a tensor's elements or a plain number, not that of a list's items."""
        return bool(self.elements) or self.count is not None


@dataclass(frozen=True, slots=True)
class ElementLoop:
    """A loop whose turns work on elements of tensors.

    `ragged`: a turn makes or takes parts whose length depends on the data. `listed`: it combines elements with items of
    a list of tensors. `runs`: it calls a network. `carried`: what a turn needs of the one before.
    """

    node: Turn
    visit: Visit
    steps: tuple[Step, ...]
    ragged: bool
    listed: bool
    runs: bool
    carried: Carried


@dataclass(frozen=True, slots=True)
class _State:
    """How an expression came from an element: untouched, or through a comparison."""

    tensor: cst.BaseExpression
    device: Device
    direct: bool = True
    boolean: bool = False


def parts_of(loop: Turn, context: Context) -> list[cst.CSTNode]:
    """What runs at each turn."""
    if isinstance(loop, cst.For):
        return [loop.body]
    if isinstance(loop, cst.While):
        return [loop.test, loop.body]
    owner: cst.CSTNode | None = context.parent(loop)
    while isinstance(owner, cst.CompFor):
        owner = context.parent(owner)
    inner = [] if loop.inner_for_in is None else [loop.inner_for_in]
    if isinstance(owner, cst.DictComp):
        return [*loop.ifs, *inner, owner.key, owner.value]
    assert isinstance(owner, (cst.ListComp, cst.SetComp, cst.GeneratorExp))
    return [*loop.ifs, *inner, owner.elt]


def element_loop(loop: Turn, context: Context) -> ElementLoop | None:
    """What the loop does with elements; None if it visits none."""
    visit = _counted(loop, context) if isinstance(loop, cst.While) else visit_of(loop.target, loop.iter, context)
    if not (visit.counters or visit.elements):
        return None
    turn = _Turn(loop, visit, context)
    turn.follow()
    if not turn.steps:
        return None
    return ElementLoop(
        loop,
        visit,
        tuple(turn.steps.values()),
        turn.ragged,
        turn.is_listed(),
        turn.runs_a_network(),
        carried_by(turn.nodes, loop, context),
    )


# What the target takes on


def visit_of(target: cst.BaseExpression, iterated: cst.BaseExpression, context: Context) -> Visit:
    """What looping over the expression gives the names of the target."""
    if isinstance(iterated, cst.Call):
        name = context.qualified_name(iterated.func) or ""
        given = [argument.value for argument in iterated.args if argument.keyword is None and not argument.star]
        elements = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
        if name == "range":
            return _ranged(target, given)
        if name == "enumerate" and given and len(elements) == 2:
            inner = visit_of(elements[1], given[0], context)
            return replace(inner, counters=inner.counters | _names(elements[0]))
        if name == "zip" and len(elements) == len(given):
            found = Visit()
            for element, part in zip(elements, given, strict=True):
                found |= visit_of(element, part, context)
            return found
        if name == "itertools.product" and (len(elements) == len(given) or iterated.args[-1].keyword is not None):
            found = Visit()
            for place, element in enumerate(elements):
                found |= visit_of(element, given[min(place, len(given) - 1)], context)
            return found
        if (name in tables.PASS_THROUGH or name.rpartition(".")[2] in ("tqdm", "reversed")) and given:
            return visit_of(target, given[0], context)
        unbound = _unbound(iterated, context)
        if unbound is not None:
            return visit_of(target, unbound, context)
    if context.kinds.is_tensor(iterated):
        return Visit(elements=tuple((name, iterated) for name in sorted(_names(target))))
    return Visit(others=_names(target), beside=(iterated,))


def _ranged(target: cst.BaseExpression, given: list[cst.BaseExpression]) -> Visit:
    step = given[2] if len(given) == 3 else None
    if not given or (step is not None and _sign(step) is None):
        return Visit()  # steps over chunks, not elements
    return Visit(counters=_names(target), count=given[0] if len(given) == 1 or _sign(step) == -1 else given[1])


def _sign(node: cst.BaseExpression | None) -> int | None:
    match node:
        case cst.Integer(value="1"):
            return 1
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="1")):
            return -1
    return None


def _unbound(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The tensor in `t.unbind(…)`."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "unbind":
        if context.qualified_name(call.func) == "torch.unbind":
            return call.args[0].value if call.args else None
        return call.func.value
    return None


def _counted(loop: cst.While, context: Context) -> Visit:
    """The names that a `while` counts up or down by one."""
    return Visit(
        counters=frozenset(
            node.target.value
            for node in descendants_in_scope(loop.body)
            if isinstance(node, cst.AugAssign)
            and isinstance(node.target, cst.Name)
            and isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))
            and isinstance(node.value, cst.Integer)
            and node.value.value == "1"
            and context.frequencies.loop(node) is loop
        )
    )


def _names(target: cst.CSTNode) -> frozenset[str]:
    return frozenset(node.value for node in descendants(target) if isinstance(node, cst.Name))


# What becomes of the elements

_META = frozenset("shape device dtype ndim is_cuda requires_grad layout itemsize nbytes is_leaf".split())
_ASK = frozenset(
    "size dim numel ndimension nelement element_size stride storage_offset data_ptr is_contiguous get_device "
    "is_floating_point is_complex backward register_hook retain_grad requires_grad_ share_memory_ pin_memory".split()
)
_FILL = frozenset("fill_ zero_ copy_ normal_ uniform_ random_ bernoulli_".split())
_VIEWS = frozenset(
    "view reshape squeeze unsqueeze detach expand expand_as transpose permute t narrow select flatten diagonal unbind "
    "chunk split contiguous view_as unflatten movedim swapaxes data to cuda cpu float double half long int bool type "
    "type_as byte real imag clone detach_ squeeze_ unsqueeze_ atleast_1d atleast_2d atleast_3d unfold ravel".split()
)
_COMPARE = frozenset("eq ne gt ge lt le greater greater_equal less less_equal not_equal isnan isfinite logical_not".split())
_RAGGED = frozenset("nonzero masked_select unique unique_consecutive argwhere bincount nms batched_nms".split())
_TRANSFER = frozenset("numpy tolist item".split())
_TO_HOST = frozenset("float int bool complex round str".split())
_COMPARISONS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
# Modules that keep nothing from one call to the next and that take rows as well as batches of them.
_STATELESS = re.compile(r"^torch\.nn\.(\w*Loss|Linear|Conv\w*|\w*ReLU6?|Sigmoid|Tanh|Softmax|LogSoftmax|GELU|Embedding|\w*Pool\w*|\w*Norm)$")
_LOSS = re.compile(r"criterion|loss|crit$", re.IGNORECASE)


@dataclass(slots=True)
class _Turn:
    """Follows the elements through one turn of the loop."""

    loop: Turn
    visit: Visit
    context: Context
    names: dict[str, _State] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    steps: dict[tuple[Work, cst.CSTNode], Step] = field(default_factory=dict)
    nodes: list[cst.CSTNode] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    ragged: bool = False
    _parts: list[cst.CSTNode] = field(default_factory=list)

    def follow(self) -> None:
        """Find all roots, in passes: a name bound to an element is one from then on."""
        context = self.context
        self._parts = parts_of(self.loop, context)
        self.nodes = [node for part in self._parts for node in descendants_in_scope(part)]
        self.counters = set(self.visit.counters)
        if not self._may_visit():
            return
        self.bound = {name for node in self.nodes for name in _bound_by(node)} - self.counters
        for name, tensor in self.visit.elements:
            self.names[name] = _State(tensor, context.device(tensor))
        for _ in range(4):
            before = (dict(self.names), set(self.counters))
            self.steps.clear()
            for node in self.nodes:
                self._look(node)
            if before == (self.names, self.counters):
                break

    def _may_visit(self) -> bool:
        """Whether a name of the target is used at all: most loops end here, before anything is evaluated."""
        if self.visit.elements:
            return True
        subscripts = any(isinstance(node, (cst.Subscript, cst.Comparison, cst.Call)) for node in self.nodes)
        return subscripts and any(isinstance(node, cst.Name) and node.value in self.counters for node in self.nodes)

    def _look(self, node: cst.CSTNode) -> None:
        match node:
            case cst.Name(value=name):
                if name in self.names and is_read(node, self.context):
                    self._climb(node, self.names[name])
                elif name in self.counters:
                    self._compared(node)
            case cst.Subscript(value=owner) if self._is_picked(node) and self._is_given(owner):
                self._climb(node, _State(owner, self.context.device(owner)))
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="select" | "narrow")), args=args):
                if any(self._counts(argument.value) for argument in args) and self._is_given(owner):
                    self._climb(node, _State(owner, self.context.device(owner)))
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                if self._is_number(value) and name not in self.names:
                    self.counters.add(name)
            case cst.For(target=target, iter=iterated) | cst.CompFor(target=target, iter=iterated):
                self._descend(target, iterated)

    def _descend(self, target: cst.BaseExpression, iterated: cst.BaseExpression) -> None:
        """A loop inside that goes over an element: its own elements are ours too."""
        for name, tensor in visit_of(target, iterated, self.context).elements:
            states = [
                self.names[inner.value]
                for inner in descendants(tensor)
                if isinstance(inner, cst.Name) and inner.value in self.names
            ]
            picked = [inner for inner in descendants(tensor) if isinstance(inner, cst.Subscript) and self._is_picked(inner)]
            if states or picked:
                self.names[name] = states[0] if states else _State(tensor, self.context.device(tensor))

    def _is_number(self, node: cst.BaseExpression) -> bool:
        """Whether this is arithmetic on the number of the turn."""
        match node:
            case cst.Name(value=name):
                return name in self.counters
            case cst.BinaryOperation(left=left, right=right):
                return (self._counts(left) or self._counts(right)) and not any(
                    isinstance(part, (cst.Call, cst.Subscript)) for part in descendants(node)
                )
        return False

    def _counts(self, node: cst.CSTNode) -> bool:
        return any(isinstance(inner, cst.Name) and inner.value in self.counters for inner in descendants(node))

    def _is_picked(self, node: cst.Subscript) -> bool:
        """`t[i]`, `t[:, i + 1]`, `t[i:i + 1]`: the number of the turn says which element."""
        return any(
            self._counts(part.slice.value)
            if isinstance(part.slice, cst.Index)
            else isinstance(part.slice, cst.Slice) and self._is_one(part.slice)
            for part in node.slice
        )

    def _is_one(self, part: cst.Slice) -> bool:
        match part:
            case cst.Slice(
                lower=cst.Name(value=low),
                upper=cst.BinaryOperation(left=cst.Name(value=left), operator=cst.Add(), right=cst.Integer(value="1")),
            ):
                return low == left and low in self.counters
        return False

    def _is_given(self, tensor: cst.BaseExpression) -> bool:
        """Whether this is surely a tensor, and the same one at each turn."""
        root = _root(tensor)
        if root is not None and (root in self.names or root in self.bound):
            return False
        own = {node.value for node in descendants(tensor) if isinstance(node, cst.Name)}
        if own & (self.counters | self.names.keys() | self.visit.others):
            return False
        return self.context.kinds.is_tensor(tensor)

    def _compared(self, name: cst.Name) -> None:
        """`x == i`, `x.eq(i)`: a pass over the whole tensor at each turn."""
        above: cst.CSTNode = name
        for parent in self.context.ancestors(name):
            match parent:
                case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                    other = right if above is left else left
                    test = self.context.parent(parent)
                    if isinstance(operator, _COMPARISONS) and not _is_test(test, parent) and self._is_whole(other):
                        self._note(Work.MASK, parent, _State(other, self.context.device(other), direct=False))
                    return
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _COMPARE:
                    if above is not parent.func and self._is_whole(owner):
                        self._note(Work.MASK, parent, _State(owner, self.context.device(owner), direct=False))
                    return
                case cst.Subscript() if self.context.kinds.is_tensor(parent.value):
                    return
                case cst.Arg() | cst.BinaryOperation() | cst.ComparisonTarget() | cst.Subscript():
                    above = parent
                case cst.Index() | cst.SubscriptElement():
                    above = parent
                case _:
                    return

    def _is_whole(self, node: cst.BaseExpression) -> bool:
        return not self.context.value(node).scalar and self._is_given(node)

    def _note(self, work: Work, node: cst.CSTNode, state: _State) -> None:
        if not self.visit.over_tensors and not self._is_own(node):
            return
        key = (work, node)
        if key not in self.steps or state.direct:
            self.steps[key] = Step(work, node, state.tensor, state.device, direct=state.direct)

    def _is_own(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in the loop itself, not in one inside of it."""
        child = node
        for above in self.context.ancestors(node):
            if any(part is child for part in self._parts):
                return True
            if isinstance(above, (*Loop, *Comprehension)):
                return False
            child = above
        return True

    # Upwards from an element to all that is computed from it

    def _climb(self, root: cst.BaseExpression, state: _State) -> None:
        child: cst.CSTNode = root
        current: _State | None = state
        above = self.context.parent(root)
        while above is not None and current is not None:
            current = self._through(above, child, current)
            child, above = above, self.context.parent(above)

    def _through(self, above: cst.CSTNode, child: cst.CSTNode, state: _State) -> _State | None:
        """The state in which the node above holds the element; None where the element goes no further."""
        match above:
            case cst.Attribute(attr=cst.Name(value=name)):
                return None if name in _META else state
            case cst.Call():
                return self._called(above, child, state)
            case cst.Arg() | cst.Element() | cst.Tuple() | cst.List() | cst.ComparisonTarget() | cst.SubscriptElement():
                return state if not isinstance(self.context.parent(above), (cst.AssignTarget, cst.For)) else None
            case cst.Index():
                return self._indexed(above, state)
            case cst.Slice():
                if self._is_filled(above):
                    self._note(Work.READ, above, state)
                return None
            case cst.Subscript():
                return self._taken(above, child, state)
            case cst.BinaryOperation():
                if isinstance(above.operator, cst.Modulo) and isinstance(above.left, cst.SimpleString):
                    return None
                self._note(Work.KERNEL, above, state)
                return replace(state, direct=state.direct and self._is_plain(above, child))
            case cst.UnaryOperation(operator=operator):
                self._note(Work.READ if isinstance(operator, cst.Not) else Work.KERNEL, above, state)
                return None if isinstance(operator, cst.Not) else state
            case cst.Comparison():
                return self._tested(above, child, state)
            case cst.BooleanOperation() | cst.While() | cst.If() | cst.Assert() | cst.CompIf():
                if not isinstance(above, (cst.While, cst.If)) or above.test is child:
                    self._note(Work.READ, child, state)
                return None
            case cst.IfExp():
                if above.test is child:
                    self._note(Work.READ, child, state)
                    return None
                return state
            case cst.Assign():
                self._assigned(above, state)
                return None
            case cst.AugAssign():
                self._note(Work.KERNEL, above, state)
                return None
        return None

    def _is_filled(self, part: cst.Slice) -> bool:
        """`mask[i, :length[i]] = 1`, which one comparison with an `arange` would do."""
        above = self.context.parent(self.context.parent(part) or part)
        return isinstance(above, cst.Subscript) and not is_read(above, self.context)

    def _is_plain(self, node: cst.BinaryOperation, child: cst.CSTNode) -> bool:
        """Whether the other operand is a Python number, so that the arithmetic could move to the host."""
        other = node.right if child is node.left else node.left
        return self.context.kind(other) is Kind.NUMBER

    def _indexed(self, above: cst.Index, state: _State) -> _State | None:
        """An element as an index: of a tensor, which gathers, or of a list, which reads it."""
        subscript = self.context.parent(self.context.parent(above) or above)
        if not isinstance(subscript, cst.Subscript):
            return None
        owner = subscript.value
        kind = self.context.kind(owner)
        if state.boolean:
            self.ragged = True
            return state
        if kind is Kind.TENSOR:
            self._note(Work.GATHER, subscript, state)
            return replace(state, direct=False)
        if kind is not Kind.NDARRAY:
            self._note(Work.READ, subscript, state)
        return None

    def _taken(self, above: cst.Subscript, child: cst.CSTNode, state: _State) -> _State | None:
        if child is above.value:
            if not is_read(above, self.context):
                return None
            return state
        return replace(state, direct=False) if self.context.kind(above.value) is Kind.TENSOR else None

    def _tested(self, above: cst.Comparison, child: cst.CSTNode, state: _State) -> _State | None:
        operator = above.comparisons[0].operator
        if isinstance(operator, (cst.Is, cst.IsNot)):
            return None
        if isinstance(operator, (cst.In, cst.NotIn)):
            self._note(Work.READ, above, state)
            return None
        other = above.comparisons[0].comparator if child is above.left else above.left
        if self.context.kind(other) in (Kind.STRING, Kind.NONE):
            return None
        if not _is_test(self.context.parent(above), above):
            self._note(Work.KERNEL, above, state)
        return replace(state, boolean=True)

    def _assigned(self, above: cst.Assign, state: _State) -> None:
        for target in above.targets:
            match target.target:
                case cst.Name(value=name):
                    known = self.names.get(name)
                    if known is None or (known.direct and not state.direct):
                        self.names[name] = state
                case cst.Tuple(elements=elements):
                    for element in elements:
                        if isinstance(element.value, cst.Name):
                            self.names.setdefault(element.value.value, state)
                case cst.Subscript(value=owner) if self.context.kinds.is_tensor(owner):
                    self._note(Work.KERNEL, above, state)

    # Calls

    def _called(self, call: cst.Call, child: cst.CSTNode, state: _State) -> _State | None:
        if child is call.func:
            return self._method(call, state)
        name = self.context.qualified_name(call.func) or ""
        last = name.rpartition(".")[2] or (dotted(call.func) or "").rpartition(".")[2]
        if name in _TO_HOST:
            if name != "str":
                self._note(Work.READ, call, state)
            return None
        if "nms" in last or last in _RAGGED:
            self.ragged = True
            self._note(Work.KERNEL, call, replace(state, direct=False))
            return replace(state, direct=False)
        if isinstance(call.func, cst.Attribute) and self.context.kind(call.func.value) is Kind.TENSOR:
            return self._computed(call, state)  # an argument of another tensor's method
        if name.startswith("torch."):
            return self._torch(call, name, last, state)
        if name in ("sum", "max", "min", "abs", "pow"):
            return self._computed(call, state)
        if "." not in name and name and name in tables.PYTHON_NAMES:
            return None
        if name.partition(".")[0] in tables.HOST_PACKAGES:
            return None
        return self._elsewhere(call, state)

    def _torch(self, call: cst.Call, name: str, last: str, state: _State) -> _State | None:
        if last in _VIEWS or name == "torch.autograd.Variable":
            return state
        if last in ("save", "is_tensor", "numel", "equal", "allclose") or last in tables.FACTORIES or last.endswith("_like"):
            if last in ("tensor", "as_tensor"):
                self._note(Work.READ, call, state)
            return None
        if last == "where" and len(call.args) == 1:
            self.ragged = True
        return self._computed(call, state)

    def _method(self, call: cst.Call, state: _State) -> _State | None:
        """A method of the element itself."""
        assert isinstance(call.func, cst.Attribute)
        method = call.func.attr.value
        if method in _ASK or method in _FILL:
            return None
        if method in _TRANSFER:
            if method == "item":
                self._note(Work.READ, call, state)
            return None
        if method in _VIEWS:
            return state
        if method in _RAGGED:
            self.ragged = True
        if method not in METHODS and method not in _RAGGED:
            return None
        return replace(self._computed(call, state), boolean=method in _COMPARE)

    def _computed(self, call: cst.Call, state: _State) -> _State:
        self._note(Work.KERNEL, call, state)
        return replace(state, direct=False)

    def _elsewhere(self, call: cst.Call, state: _State) -> _State | None:
        """A call of something not in torch: it computes if what it gives is a tensor, or is added up."""
        func = self.context.value(call.func)
        if func.kind is Kind.MODULE:
            return self._computed(call, state)
        if self.context.kind(call) is Kind.TENSOR or self._is_added(call):
            return self._computed(call, state)
        return None

    def _is_added(self, call: cst.Call) -> bool:
        above = self.context.parent(call)
        while isinstance(above, cst.BinaryOperation):
            above = self.context.parent(above)
        if isinstance(above, cst.AugAssign):
            return isinstance(above.operator, (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign))
        match above:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=owner))]):
                return self.context.kinds.is_tensor(owner)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.BinaryOperation(left=left)):
                return isinstance(left, cst.Name) and left.value == name
        return False

    # What else goes on in a turn

    def is_listed(self) -> bool:
        """Whether a turn also takes an item of a list of tensors or of records: those differ in length."""
        for node in self.nodes:
            match node:
                case cst.Name(value=name) if name in self.visit.others and is_read(node, self.context):
                    item: cst.BaseExpression = node
                case cst.Subscript(value=owner) if self._is_picked(node) and not self.context.kinds.is_tensor(owner):
                    item = node
                case _:
                    continue
            if self.context.kind(item) is Kind.TENSOR and not self.context.kinds.is_tensor(item):
                continue
            if self.context.kind(item) in (Kind.TENSOR, Kind.MAPPING, Kind.MODULE) or self._is_record(item):
                return True
        return False

    def _is_record(self, item: cst.BaseExpression) -> bool:
        match self.context.parent(item):
            case cst.Attribute(attr=cst.Name(value=name)) as above if above.value is item:
                return name in _META or name in METHODS or not isinstance(self.context.parent(above), cst.Call)
            case cst.Subscript(
                value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() | cst.FormattedString()))]
            ):
                return value is item
        return False

    def runs_a_network(self) -> bool:
        """Whether a turn calls a module other than one that treats rows as it treats batches of them."""
        for node in self.nodes:
            if isinstance(node, cst.Call):
                value = self.context.value(node.func)
                if value.kind is not Kind.MODULE or _STATELESS.match(value.qualified):
                    continue
                if not _LOSS.search((dotted(node.func) or "").rpartition(".")[2]):
                    return True
        return False


def _root(node: cst.CSTNode) -> str | None:
    """`x` of `x.data[0].T`, `self.x` of `self.x[0]`."""
    while True:
        name = dotted(node)
        if name is not None:
            parts = name.split(".")
            return ".".join(parts[:2]) if parts[0] == "self" else parts[0]
        if isinstance(node, (cst.Subscript, cst.Attribute)):
            node = node.value
        elif isinstance(node, cst.Call):
            node = node.func
        else:
            return None


def _bound_by(node: cst.CSTNode) -> Iterator[str]:
    targets: list[cst.CSTNode] = []
    match node:
        case cst.Assign():
            targets = [target.target for target in node.targets]
        case cst.AnnAssign() | cst.NamedExpr() | cst.For() | cst.CompFor():
            targets = [node.target]
        case cst.AsName():
            targets = [node.name]
    while targets:
        target = targets.pop()
        if isinstance(target, (cst.Tuple, cst.List)):
            targets += [element.value for element in target.elements]
        elif isinstance(target, (cst.Name, cst.Attribute)):
            name = dotted(target)
            if name is not None:
                yield name


def _is_test(above: cst.CSTNode | None, node: cst.CSTNode) -> bool:
    match above:
        case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) | cst.CompIf(test=test) | cst.Assert(test=test):
            return test is node
        case cst.BooleanOperation() | cst.UnaryOperation(operator=cst.Not()):
            return True
    return False
