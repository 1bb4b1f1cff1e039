"""What a loop does, turn by turn, with the elements of tensors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model import tables
from torchlint.model.carried import Carried, carried_by, is_read
from torchlint.model.names import dotted
from torchlint.model.torch_table import METHODS
from torchlint.model.tree import Comprehension, Loop, descendants, descendants_in_scope
from torchlint.model.values import Device, Kind
from torchlint.model.visits import Turn, Visit, bound_by, names_in, parts_of, visit, visit_of

if TYPE_CHECKING:
    from torchlint.model.context import Context


class Work(Enum):
    """What is done at a turn with an element, or with the tensor as a whole."""

    READ = "read"  # the host waits for one value
    KERNEL = "kernel"  # the device computes with one element or row
    GATHER = "gather"  # an element says which part of another tensor is taken
    MASK = "mask"  # a whole tensor is compared with the number of the turn


@dataclass(frozen=True, slots=True)
class Step:
    """Work done in one turn. `direct`: one `tolist()` before the loop would do instead of all the reads."""

    work: Work
    node: cst.CSTNode
    tensor: cst.BaseExpression
    device: Device
    direct: bool


@dataclass(frozen=True, slots=True)
class ElementLoop:
    """A loop whose turns work on elements of tensors.

    `ragged`: what a turn takes or makes has a length of its own. `opaque`: an element goes into a function from
    elsewhere. `mixed`: a turn works with items of a list of tensors, with files or in a loop of unknown length. `runs`:
    it calls a network or autograd. `carried`: what it needs of those before.
    """

    node: Turn
    visit: Visit
    steps: tuple[Step, ...]
    ragged: bool
    opaque: bool
    mixed: bool
    runs: bool
    carried: Carried


def element_loop(loop: Turn, context: Context) -> ElementLoop | None:
    """What the loop does with elements; None if it visits none."""
    visited = visit(loop, context)
    if not (visited.counters or visited.elements):
        return None
    turn = _Turn(loop, visited, context)
    turn.follow()
    if not turn.steps:
        return None
    varying = turn.bound | turn.counters | turn.names.keys()
    return ElementLoop(
        loop,
        visited,
        tuple(turn.steps.values()),
        turn.ragged,
        bool(turn.opaque),
        turn.is_mixed(),
        turn.runs_a_network(),
        carried_by(turn.nodes, loop, varying, context),
    )


@dataclass(frozen=True, slots=True)
class _State:
    """An element on its way through the turn, and what has become of it so far.

    `opaque` is the call of a function from elsewhere that it went through, `gathered` says that it indexes a
    tensor, `selected` that it is as many elements as a mask holds, `cut` that it ends at bounds of this turn.
    """

    tensor: cst.BaseExpression
    device: Device
    direct: bool = True
    boolean: bool = False
    opaque: cst.Call | None = None
    gathered: bool = False
    selected: bool = False
    cut: bool = False


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
_COMPARE = frozenset(
    "eq ne gt ge lt le greater greater_equal less less_equal not_equal isnan isfinite logical_not".split()
)
_RAGGED = frozenset("nonzero masked_select unique unique_consecutive argwhere bincount nms batched_nms".split())
# What a size is given to: where it differs from turn to turn, so does the result.
_SIZED = frozenset(
    "pad interpolate resize resized_crop crop upsample narrow repeat repeat_interleave expand tile split view reshape "
    "new_zeros new_ones new_full new_empty roll rot90".split()
)
_HOST_METHODS = frozenset("numpy tolist item".split())
_SINKS = frozenset("append extend insert add put appendleft write info debug".split())
_CONVERSIONS = frozenset("float int bool complex round".split())
_COMPARISONS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_HOST_KINDS = frozenset({Kind.NUMBER, Kind.STRING, Kind.SEQUENCE, Kind.MAPPING, Kind.NDARRAY, Kind.NONE})
_FILES = frozenset(
    "load imread imwrite read_image imshow imsave savefig save fromarray subplot save_image putText".split()
)
# Packages whose functions take one sample, on the host.
_ONE_BY_ONE = frozenset("scipy sklearn skimage PIL matplotlib pycocotools cv2 torchaudio".split())
# Modules that keep nothing from one call to the next and take rows as well as batches of them.
_STATELESS = re.compile(
    r"^torch\.nn\.(\w*Loss|Linear|Conv\w*|\w*ReLU6?|Sigmoid|Tanh|(Log)?Softmax|GELU|Embedding|\w*Pool\w*|\w*Norm)$"
)
_MASK = re.compile(r"mask|keep|valid|^pos$|^neg$", re.IGNORECASE)
_LOSS = re.compile(r"criterion|loss|crit$", re.IGNORECASE)
# Lists and mappings by their usual names, where nothing else tells them from tensors.
_LOOKUP = re.compile(r"name|class|word|vocab|char|token|label|dict|map|2|itos|categor|palette|colou?r", re.IGNORECASE)


@dataclass(slots=True)
class _Turn:
    """Follows the elements through one turn of the loop."""

    loop: Turn
    visit: Visit
    context: Context
    names: dict[str, _State] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    aligned: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    steps: dict[tuple[Work, cst.CSTNode], Step] = field(default_factory=dict)
    nodes: list[cst.CSTNode] = field(default_factory=list)
    ragged: bool = False
    opaque: set[cst.Call] = field(default_factory=set)
    _parts: list[cst.CSTNode] = field(default_factory=list)
    _pending: list[Step] = field(default_factory=list)

    def follow(self) -> None:
        """Find what is done with elements, in passes: a name bound to an element is one from then on."""
        self._parts = parts_of(self.loop, self.context)
        self.nodes = [node for part in self._parts for node in descendants_in_scope(part)]
        self.counters = set(self.visit.counters)
        if not self._may_visit():
            return
        self.bound = {name for node in self.nodes for name in bound_by(node)} - self.counters
        for name, tensor in self.visit.elements:
            self.names[name] = _State(tensor, self.context.device(tensor))
        for _ in range(4):
            before = (dict(self.names), set(self.counters), set(self.aligned))
            self.steps.clear()
            self.opaque.clear()
            self._bind_all()
            for node in self.nodes:
                self._look(node)
            if before == (self.names, self.counters, self.aligned):
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
                    if self.context.kind(node) not in _HOST_KINDS:  # it may have been read in the meantime
                        self._climb(node, self.names[name])
                elif name in self.counters:
                    self._compared(node)
            case cst.Subscript(value=owner) if self._is_picked(node) and self._is_given(owner):
                self._climb(node, _State(owner, self.context.device(owner), cut=self._has_bounds_of_its_own(node)))
                if any(isinstance(part.slice, cst.Index) and self._is_foreign(part.slice) for part in node.slice):
                    self.ragged = True
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="select" | "narrow")), args=args):
                if any(self._counts(argument.value) for argument in args) and self._is_given(owner):
                    self._climb(node, _State(owner, self.context.device(owner)))
            case cst.For(target=target, iter=iterated) | cst.CompFor(target=target, iter=iterated):
                self._descend(target, iterated)

    def _bind_all(self) -> None:
        """The names for numbers of the turn, and for what goes with the elements without being known to be one."""
        astray: set[str] = set()
        for node in self.nodes:
            match node:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    if name in self.names:
                        continue
                    if self._is_number(value):
                        self.counters.add(name)
                    elif self._is_aligned(value):
                        self.aligned.add(name)
                    else:
                        astray.add(name)
        self.aligned -= astray

    def _is_number(self, node: cst.BaseExpression) -> bool:
        """Whether this is arithmetic on the number of the turn."""
        match node:
            case cst.Name(value=name):
                return name in self.counters
            case cst.BinaryOperation():
                return self._counts(node) and not any(
                    isinstance(part, (cst.Call, cst.Subscript)) for part in descendants(node)
                )
        return False

    def _is_aligned(self, node: cst.BaseExpression) -> bool:
        """Whether there is a batch of it: `targets[i]`, what is the same at each turn, and torch's arithmetic on these."""
        if self._is_foreign(node):
            return False
        for part in descendants(node):
            if isinstance(part, cst.Call):
                method = part.func.attr.value if isinstance(part.func, cst.Attribute) else ""
                name = self.context.qualified_name(part.func) or ""
                if method not in METHODS and not (name.startswith("torch.") and name[6:] not in tables.FACTORIES):
                    return False
        return True

    def _descend(self, target: cst.BaseExpression, iterated: cst.BaseExpression) -> None:
        """A loop inside that goes over an element: its own elements are ours too."""
        for name, tensor in visit_of(target, iterated, self.context).elements:
            for inner in descendants(tensor):
                if isinstance(inner, cst.Name) and inner.value in self.names:
                    self.names[name] = self.names[inner.value]
                elif isinstance(inner, cst.Subscript) and self._is_picked(inner):
                    self.names[name] = _State(tensor, self.context.device(tensor))

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
        if names_in(tensor) & (self.counters | self.names.keys() | {name for name, _ in self.visit.others}):
            return False
        return self.context.kinds.is_tensor(tensor)

    def _is_foreign(self, node: cst.CSTNode) -> bool:
        """Whether the expression holds what this turn got from elsewhere: no batch of it need exist."""
        others = dict(self.visit.others)
        for part in descendants(node):
            if not isinstance(part, cst.Name) or part.value in self.names or part.value in self.aligned:
                continue
            if part.value in others:
                container = others[part.value]
                if self.context.kind(container) is Kind.UNKNOWN and isinstance(container, (cst.Name, cst.Attribute)):
                    continue
            elif part.value not in self.bound:
                continue
            if is_read(part, self.context) and self.context.kind(part) is not Kind.NUMBER:
                return True
        return False

    # The number of the turn

    def _compared(self, name: cst.Name) -> None:
        """`x == i`, `x.eq(i)`: a pass over the whole tensor at each turn."""
        above: cst.CSTNode = name
        for parent in self.context.ancestors(name):
            match parent:
                case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                    other = right if above is left else left
                    if isinstance(operator, _COMPARISONS) and not _is_test(self.context.parent(parent), parent):
                        self._mask(parent, other)
                    return
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _COMPARE:
                    if above is not parent.func:
                        self._mask(parent, owner)
                    return
                case cst.Subscript() if self.context.kinds.is_tensor(parent.value):
                    return
                case cst.Arg() | cst.BinaryOperation() | cst.ComparisonTarget() | cst.Subscript():
                    above = parent
                case cst.Index() | cst.SubscriptElement():
                    above = parent
                case _:
                    return

    def _mask(self, node: cst.BaseExpression, tensor: cst.BaseExpression) -> None:
        if not self.context.value(tensor).scalar and self._is_given(tensor):
            state = _State(tensor, self.context.device(tensor), direct=False, boolean=True)
            self._note(Work.MASK, node, state)
            self._climb(node, state)

    # Upwards from an element to all that is computed from it

    def _climb(self, root: cst.BaseExpression, state: _State) -> None:
        if isinstance(self.context.tree.statement(root), cst.Raise):
            return
        child: cst.CSTNode = root
        current: _State | None = state
        above = self.context.parent(root)
        while above is not None and current is not None:
            current = self._through(above, child, current)
            child, above = above, self.context.parent(above)
        self._commit()

    def _note(self, work: Work, node: cst.CSTNode, state: _State) -> None:
        if work is Work.KERNEL and state.opaque is not None:
            return  # what came from elsewhere need not be a tensor
        if self.visit.is_over_tensors or self._is_own(node):
            self._pending.append(Step(work, node, state.tensor, state.device, state.direct))

    def _add_up(self, node: cst.CSTNode, state: _State) -> None:
        """What a function from elsewhere gives is added to a total or stored in a tensor: it computes."""
        if state.opaque is not None:
            self.opaque.discard(state.opaque)
        self._note(Work.KERNEL, node, replace(state, opaque=None))

    def _commit(self) -> None:
        for step in self._pending:
            key = (step.work, step.node)
            if key not in self.steps or step.direct:
                self.steps[key] = step
        self._pending.clear()

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

    def _through(self, above: cst.CSTNode, child: cst.CSTNode, state: _State) -> _State | None:
        """The state in which the node above holds the element; None where the element goes no further."""
        match above:
            case cst.Attribute(attr=cst.Name(value=name)):
                return None if name in _META else state
            case cst.Call():
                return self._called(above, child, state)
            case cst.Arg() | cst.Element() | cst.ComparisonTarget() | cst.SubscriptElement():
                return state
            case cst.Tuple() | cst.List():
                return state if isinstance(self.context.parent(above), (cst.Arg, cst.Assign, cst.Index)) else None
            case cst.Index():
                return self._indexed(above, state)
            case cst.Slice():
                return self._bounding(above, state)
            case cst.Subscript():
                if child is above.value:
                    if not is_read(above, self.context):
                        return None
                    return replace(state, cut=state.cut or self._has_bounds_of_its_own(above))
                return replace(state, direct=False)
            case cst.BinaryOperation():
                return self._combined(above, child, state)
            case cst.Comparison():
                return self._tested(above, child, state)
            case cst.UnaryOperation(operator=cst.Not()):
                self._note(Work.READ, above, state)
            case cst.UnaryOperation():
                self._note(Work.KERNEL, above, state)
                return state
            case cst.BooleanOperation() | cst.Assert() | cst.CompIf():
                self._note(Work.READ, child, state)
            case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) if test is child:
                self._note(Work.READ, child, state)
            case cst.IfExp():
                return state
            case cst.Assign():
                self._assigned(above, state)
            case cst.AugAssign():
                self._augmented(above, child, state)
            case cst.ListComp() | cst.GeneratorExp() if state.gathered:
                self._note(Work.GATHER, child, state)
        return None

    def _combined(self, above: cst.BinaryOperation, child: cst.CSTNode, state: _State) -> _State | None:
        other = above.right if child is above.left else above.left
        if self.context.kind(other) in (Kind.STRING, Kind.SEQUENCE) or self._is_foreign(other):
            return None
        self._note(Work.KERNEL, above, state)
        return replace(state, direct=state.direct and self.context.kind(other) is Kind.NUMBER)

    def _indexed(self, above: cst.Index, state: _State) -> _State | None:
        """An element as an index: of a tensor, which gathers, or of a list, which reads it."""
        subscript = self.context.parent(self.context.parent(above) or above)
        while isinstance(subscript, cst.Tuple):
            subscript = self.context.parent(self.context.parent(self.context.parent(subscript) or above) or above)
        if not isinstance(subscript, cst.Subscript):
            return None
        owner, kind = subscript.value, self.context.kind(subscript.value)
        if state.boolean or (isinstance(above.value, cst.Name) and _MASK.search(above.value.value)):
            self.ragged = True
            return replace(state, selected=True)
        if kind is Kind.TENSOR:
            device = self.context.device(owner)
            found = replace(state, direct=False, gathered=True, device=state.device if device is Device.CPU else device)
            if not is_read(subscript, self.context):
                self._note(Work.GATHER, subscript, found)
            return found
        if kind is Kind.UNKNOWN and not _LOOKUP.search((dotted(owner) or "").rpartition(".")[2]):
            return None
        if kind is not Kind.NDARRAY:
            self._note(Work.READ, subscript, state)
        return None

    def _bounding(self, above: cst.Slice, state: _State) -> None:
        """`mask[i, :length[i]] = 1` reads the length, where a comparison with `arange` would do."""
        subscript = self.context.parent(self.context.parent(above) or above)
        self._pending = [step for step in self._pending if step.work is not Work.KERNEL]
        if isinstance(subscript, cst.Subscript) and not is_read(subscript, self.context):
            self._note(Work.READ, above, state)

    def _tested(self, above: cst.Comparison, child: cst.CSTNode, state: _State) -> _State | None:
        operator = above.comparisons[0].operator
        if isinstance(operator, (cst.Is, cst.IsNot)):
            return None
        other = above.comparisons[0].comparator if child is above.left else above.left
        if isinstance(operator, (cst.In, cst.NotIn)):
            on_host = self.context.kind(other) is not Kind.TENSOR and not self._is_foreign(other)
            self._note(Work.READ, above, replace(state, direct=state.direct and on_host))
            return None
        if self.context.kind(other) in (Kind.STRING, Kind.NONE):
            return None
        if not _is_test(self.context.parent(above), above):
            if self._is_foreign(other):
                return None
            self._note(Work.KERNEL, above, state)
        return replace(state, boolean=True)

    def _assigned(self, above: cst.Assign, state: _State) -> None:
        for target in above.targets:
            match target.target:
                case cst.Name(value=name) if state.opaque is not None and name in names_in(above.value):
                    self._add_up(above, state)  # `total = total + f(x[i])`
                case cst.Name(value=name):
                    known = self.names.get(name)
                    if known is None or (known.direct and not state.direct):
                        self.names[name] = state
                case cst.Tuple(elements=elements):
                    for element in elements:
                        if isinstance(element.value, cst.Name):
                            self.names.setdefault(element.value.value, state)
                case cst.Subscript(value=owner) as stored if self.context.kinds.is_tensor(owner):
                    if self._has_bounds_of_its_own(stored):
                        self.ragged = True
                    if state.gathered:
                        self._note(Work.GATHER, above, state)
                    else:
                        self._add_up(above, state)

    def _has_bounds_of_its_own(self, node: cst.Subscript) -> bool:
        mine = self.bound | self.counters | self.names.keys() | {name for name, _ in self.visit.others}
        return any(
            isinstance(part.slice, cst.Slice) and names_in(part.slice) & mine and not self._is_one(part.slice)
            for part in node.slice
        )

    def _augmented(self, above: cst.AugAssign, child: cst.CSTNode, state: _State) -> None:
        if child is above.value:
            if self.context.kind(above.target) not in (Kind.STRING, Kind.SEQUENCE):
                self._add_up(above, state)
        elif not self._is_foreign(above.value) and not self._counts(above.value):
            self._note(Work.KERNEL, above, state)
        if child is above.value and isinstance(above.target, cst.Subscript) and self._has_bounds_of_its_own(above.target):
            self.ragged = True

    # Calls

    def _called(self, call: cst.Call, child: cst.CSTNode, state: _State) -> _State | None:
        if child is call.func:
            return self._method(call, state)
        name = self.context.qualified_name(call.func) or ""
        last = name.rpartition(".")[2] or (dotted(call.func) or "").rpartition(".")[2]
        if name in _CONVERSIONS:
            self._note(Work.READ, call, state)
            return None
        if last in _SINKS:
            if state.gathered:
                self._note(Work.GATHER, call, state)
            return None
        if "nms" in last or last in _RAGGED:
            self.ragged = True
            return self._computed(call, child, state)
        if isinstance(call.func, cst.Attribute):
            owner = self.context.kind(call.func.value)
            if owner is Kind.STRING:
                return None
            if owner is Kind.TENSOR:  # an argument of another tensor's method
                return self._computed(call, child, state)
        if name.startswith("torch."):
            return self._torch(call, child, last, state)
        if name in ("sum", "max", "min", "abs", "pow"):
            return self._computed(call, child, state)
        if name in tables.PYTHON_NAMES or name.partition(".")[0] in tables.HOST_PACKAGES:
            return None
        return self._elsewhere(call, child, state)

    def _torch(self, call: cst.Call, child: cst.CSTNode, last: str, state: _State) -> _State | None:
        if last in _VIEWS or last == "Variable":
            return state
        if last in ("tensor", "as_tensor"):
            self._note(Work.READ, call, replace(state, direct=False))
            return None
        if last in tables.FACTORIES:
            self.ragged = True  # as many as the element says
            return None
        if last in ("save", "is_tensor", "numel", "equal", "allclose", "from_numpy") or last.endswith("_like"):
            return None
        if last == "where" and len(call.args) == 1:
            self.ragged = True
        return self._computed(call, child, state)

    def _method(self, call: cst.Call, state: _State) -> _State | None:
        """A method of the element itself."""
        assert isinstance(call.func, cst.Attribute)
        method = call.func.attr.value
        if method in _HOST_METHODS:
            if method == "item":
                self._note(Work.READ, call, state)
            return None
        if method in _ASK or method in _FILL or method not in METHODS:
            return None
        if method in _RAGGED:
            self.ragged = True
        if method in _SIZED and any(self._varies(argument) for argument in call.args):
            self.ragged = True
        if method in _VIEWS:
            return replace(state, boolean=state.boolean or method == "bool")
        if any(self._is_foreign(argument.value) for argument in call.args):
            return None
        self._note(Work.KERNEL, call, state)
        return replace(state, direct=False, boolean=method in _COMPARE)

    def _computed(self, call: cst.Call, child: cst.CSTNode, state: _State) -> _State | None:
        """A kernel with an element among its arguments."""
        last = (
            (dotted(call.func) or "").rpartition(".")[2]
            if not isinstance(call.func, cst.Attribute)
            else call.func.attr.value
        )
        if last in _SIZED and any(self._varies(argument) for argument in call.args if argument is not call.args[0]):
            self.ragged = True
        if any(self._is_foreign(argument.value) for argument in call.args if argument is not child):
            return None
        self._note(Work.KERNEL, call, state)
        return replace(state, direct=False)

    def _varies(self, argument: cst.Arg) -> bool:
        """Whether the argument differs from turn to turn; the size of a row does not."""
        mine = self.bound | self.counters | self.names.keys() | {name for name, _ in self.visit.others}
        return any(
            isinstance(part, cst.Name) and part.value in mine and not self._is_asked_for_size(part)
            for part in descendants(argument.value)
        )

    def _is_asked_for_size(self, name: cst.Name) -> bool:
        match self.context.parent(name):
            case cst.Attribute(attr=cst.Name(value=asked)):
                state = self.names.get(name.value)
                return (asked in _META or asked in _ASK) and (state is None or not state.cut)
            case cst.Arg() as above:
                call = self.context.parent(above)
                return isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "len"
        return False

    def _elsewhere(self, call: cst.Call, child: cst.CSTNode, state: _State) -> _State | None:
        """A call of something not in torch."""
        function = self.context.calls.target(call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _SIZED and any(map(self._varies, call.args[1:])):
            self.ragged = True
        if self.context.kind(call.func) is Kind.MODULE or (
            function is not None and not state.selected and self.context.kind(call) is Kind.TENSOR
        ):
            if function is not None and _is_ragged(function):
                self.ragged = True
            return self._computed(call, child, state)
        # It computes if what it gives is added up; otherwise nobody knows what it does.
        self.opaque.add(call)
        if state.selected or any(self._is_of_this_turn(argument) for argument in call.args if argument is not child):
            return None
        return replace(state, direct=False, opaque=call)

    def _is_of_this_turn(self, argument: cst.Arg) -> bool:
        """Whether the argument is something of this turn's own, or a part of a tensor with bounds of its own."""
        return self._is_foreign(argument.value) or any(
            isinstance(part, cst.Subscript) and self._has_bounds_of_its_own(part) for part in descendants(argument.value)
        )

    # What else goes on in a turn

    def is_mixed(self) -> bool:
        """Whether a turn works with items of a list of tensors, with files, or in a loop of unknown length."""
        others, listed = dict(self.visit.others), self._listed()
        for node in self.nodes:
            match node:
                case cst.Name(value=name) if name in others and is_read(node, self.context):
                    if self._is_item(node, others[name]):
                        return True
                case cst.Name(value=name) if name in listed and is_read(node, self.context):
                    if self._is_item(node, listed[name]):
                        return True
                case cst.Subscript(value=owner) if self._is_picked(node) and not self.context.kinds.is_tensor(owner):
                    if self._is_item(node, owner):
                        return True
                case cst.While() if isinstance(self.loop, (cst.For, cst.CompFor)):
                    return True
                case cst.Call(func=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)) as func):
                    package = (self.context.qualified_name(func) or "").partition(".")[0]
                    if name in _FILES or package in _ONE_BY_ONE:
                        return True
        return False

    def _listed(self) -> dict[str, cst.BaseExpression]:
        """The names for items of what is not known to be a tensor, `target = targets[i]`, with that."""
        found: dict[str, cst.BaseExpression] = {}
        for node in self.nodes:
            match node:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Subscript(value=owner) as value
                ) if name not in self.names and self._counts(value):
                    found[name] = owner
        return found

    def _is_item(self, item: cst.BaseExpression, container: cst.BaseExpression) -> bool:
        """Whether this is a tensor out of a list, a record, or anything else that no batched operation takes."""
        if self.context.kind(container) is Kind.TENSOR:
            return False
        if self.context.kind(item) in (Kind.TENSOR, Kind.MAPPING, Kind.MODULE, Kind.DISTRIBUTION):
            return True
        above: cst.CSTNode | None = self.context.parent(item)
        child: cst.CSTNode = item
        match above:
            case cst.Subscript(
                value=value,
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() | cst.FormattedString()))],
            ) if value is item:
                return True
        while isinstance(above, cst.Subscript) and above.value is child:
            child, above = above, self.context.parent(above)
        match above:
            case cst.Attribute(attr=cst.Name(value=name)) if above.value is child:
                call = self.context.parent(above)
                if not isinstance(call, cst.Call):
                    return True
                return name in METHODS or any(names_in(argument.value) & self.names.keys() for argument in call.args)
            case cst.Call(func=func):
                return func is child
            case cst.For(iter=iterated) | cst.CompFor(iter=iterated):
                return iterated is child
        return False

    def runs_a_network(self) -> bool:
        """Whether a turn calls autograd, or a module other than one that treats rows as it treats batches of them."""
        calls = [node for node in self.nodes if isinstance(node, cst.Call)]
        called = (self.context.calls.target(call) for call in calls)
        return any(_is_network(call, self.context) for call in calls) or any(
            _is_network(node, self.context)
            for function in called
            if function is not None
            for node in descendants_in_scope(function.body)
            if isinstance(node, cst.Call)
        )


_PLAIN_METHODS = tables.MODULE_ONLY_METHODS | {
    "to",
    "cuda",
    "cpu",
    "half",
    "float",
    "zero_grad",
    "get",
    "items",
    "keys",
}


def _is_network(call: cst.Call, context: Context) -> bool:
    """Whether the call runs autograd, or a module that is not known to keep nothing and to take rows."""
    if isinstance(call.func, cst.Attribute):
        if call.func.attr.value in tables.BACKWARD_METHODS:
            return True
        owner = call.func.value
        if isinstance(owner, cst.Attribute) and context.kind(owner) is Kind.MODULE:  # `self.vae.encode(…)`
            return call.func.attr.value not in _PLAIN_METHODS
    if context.qualified_name(call.func) == "torch.autograd.grad":
        return True
    if isinstance(call.func, (cst.Subscript, cst.Call)):  # `self.heads[i](x[:, i])`
        return True
    value = context.value(call.func)
    if value.kind is not Kind.MODULE or _STATELESS.match(value.qualified):
        return False
    return not _LOSS.search((dotted(call.func) or "").rpartition(".")[2])


def _is_ragged(function: cst.FunctionDef) -> bool:
    """Whether what the function does depends on the values of one sample."""
    for node in descendants_in_scope(function.body):
        match node:
            case cst.While():
                return True
            case cst.Call(func=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name))):
                if (
                    name in _RAGGED
                    or name in _HOST_METHODS
                    or "nms" in name
                    or name in ("interpolate", "resize", "int")
                ):
                    return True
                if name == "where" and len(node.args) == 1:
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


def _is_test(above: cst.CSTNode | None, node: cst.CSTNode) -> bool:
    match above:
        case (
            cst.If(test=test)
            | cst.While(test=test)
            | cst.IfExp(test=test)
            | cst.CompIf(test=test)
            | cst.Assert(test=test)
        ):
            return test is node
        case cst.BooleanOperation() | cst.UnaryOperation(operator=cst.Not()):
            return True
    return False
