"""What the names in one iteration of a loop hold: its number, elements of tensors, what goes with them, others."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

import libcst as cst

from torchlint.analyses.iteration.carried import is_read
from torchlint.analyses.iteration.targets import (
    LoopNode,
    Visit,
    bound_by,
    names_in,
    parts_of,
    picks,
    picks_one,
    visit_of,
)
from torchlint.analyses.tensors.host_computed import is_computed_on_host
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import Comprehension, Loop, descendants, descendants_in_scope, speaks_of

# Attributes and methods that tell what a tensor is like, and methods that leave no result.
META = frozenset("shape device dtype ndim is_cuda requires_grad layout itemsize nbytes is_leaf".split())
ASK = frozenset(
    "size dim numel ndimension nelement element_size stride storage_offset data_ptr is_contiguous get_device "
    "is_floating_point is_complex backward register_hook retain_grad requires_grad_ share_memory_ pin_memory".split()
)


@dataclass(frozen=True, slots=True)
class Element:
    """An element of `tensor` on its way through the iteration, and what has become of it so far.

    `direct`: its value could have been on the host before the loop. `boolean`: it is the outcome of a comparison.
    `gathered`: it says which part of another tensor is taken. `selected`: it is as long as a mask has hits. `cut`: it
    ends at bounds of this turn. `opaque`: the call of a function from elsewhere that it went through.
    """

    tensor: cst.BaseExpression
    device: Device
    direct: bool = True
    boolean: bool = False
    gathered: bool = False
    selected: bool = False
    cut: bool = False
    opaque: cst.Call | None = None


@dataclass
class Turn:
    """One turn of a loop. `elements`, `counters` and `aligned` grow while its statements are looked at.

    `aligned` names are those of which there is a batch as well, though nothing shows that it is a tensor.
    """

    loop: LoopNode
    visit: Visit
    context: Context
    elements: dict[str, Element] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    aligned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Start with what the target of the loop holds."""
        self.counters.update(self.visit.counters)
        for name, tensor in self.visit.elements:
            self.elements[name] = self.element_of(tensor)

    @cached_property
    def parts(self) -> list[cst.CSTNode]:
        """What runs in each iteration."""
        return parts_of(self.loop, self.context)

    @cached_property
    def nodes(self) -> list[cst.CSTNode]:
        """All that runs in each iteration, in source order."""
        return [node for part in self.parts for node in descendants_in_scope(part)]

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that an iteration binds, its numbers aside."""
        return frozenset(name for node in self.nodes for name in bound_by(node)) - self.visit.counters

    @cached_property
    def others(self) -> dict[str, cst.BaseExpression]:
        """The names for items of what is no tensor, with that."""
        return dict(self.visit.others)

    @property
    def own_names(self) -> AbstractSet[str]:
        """The names that may hold something else in each iteration."""
        return self.bound | self.counters | self.elements.keys() | self.others.keys()

    def element_of(self, tensor: cst.BaseExpression, *, cut: bool = False) -> Element:
        """An element as the loop finds it."""
        device = self.context.device(tensor)
        if device is Device.UNKNOWN and is_computed_on_host(tensor, self.context):
            device = Device.CPU
        return Element(tensor, device, cut=cut)

    def uses_its_target(self) -> bool:
        """Whether it can visit an element at all: for most loops this ends the matter before anything is evaluated."""
        if self.visit.elements:
            return True
        return any(isinstance(node, (cst.Subscript, cst.Comparison, cst.Call)) for node in self.nodes) and any(
            isinstance(node, cst.Name) and node.value in self.counters for node in self.nodes
        )

    def is_own(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in the loop itself, not in one inside of it."""
        child = node
        for above in self.context.ancestors(node):
            if any(part is child for part in self.parts):
                return True
            if isinstance(above, (*Loop, *Comprehension)):
                return False
            child = above
        return True

    def is_given(self, tensor: cst.BaseExpression) -> bool:
        """Whether this is surely a tensor, and the same one in each iteration."""
        if names_in(tensor) & (self.counters | self.elements.keys() | self.others.keys()):
            return False
        return _root(tensor) not in self.bound and self.context.kinds.is_tensor(tensor)

    def is_foreign(self, node: cst.CSTNode) -> bool:
        """Whether the expression holds what this turn got from elsewhere: no batch of it need exist."""
        return any(
            self._is_astray(part) and is_read(part, self.context) and self.context.kind(part) is not Kind.NUMBER
            for part in descendants(node)
            if isinstance(part, cst.Name)
        )

    def _is_astray(self, name: cst.Name) -> bool:
        if name.value in self.elements or name.value in self.aligned:
            return False
        container = self.others.get(name.value)
        if container is not None:
            # A parameter beside a tensor is one too, as far as anyone knows; and so is what went to a device.
            is_moved = self.context.kind(container) is Kind.TENSOR and self.context.is_on_gpu(container)
            return not isinstance(container, (cst.Name, cst.Attribute)) or not (
                is_moved or self.context.kind(container) is Kind.UNKNOWN
            )
        return name.value in self.bound

    def varies(self, argument: cst.Arg) -> bool:
        """Whether the argument differs from turn to turn; the size of a row does not."""
        return any(
            isinstance(part, cst.Name) and part.value in self.own_names and not self._is_asked_for_size(part)
            for part in descendants(argument.value)
        )

    def _is_asked_for_size(self, name: cst.Name) -> bool:
        match self.context.parent(name):
            case cst.Attribute(attr=cst.Name(value=asked)):
                element = self.elements.get(name.value)
                return (asked in META or asked in ASK) and (element is None or not element.cut)
            case cst.Arg() as above:
                call = self.context.parent(above)
                return isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "len"
        return False

    def has_own_bounds(self, node: cst.Subscript) -> bool:
        """`x[i, :length[i]]`: the iteration says how much is taken."""
        return any(
            isinstance(part.slice, cst.Slice)
            and names_in(part.slice) & self.own_names
            and not picks_one(part.slice, self.counters)
            for part in node.slice
        )

    # What statements bind

    def bind_all(self) -> None:
        """Find the names for numbers of the iteration, and for what goes with the elements, not known as one."""
        astray: set[str] = set()
        for name, value in self._assignments():
            if name in self.elements:
                continue
            if self._is_number(value):
                self.counters.add(name)
            elif self._is_aligned(value):
                self.aligned.add(name)
            else:
                astray.add(name)
        self.aligned -= astray

    def _assignments(self) -> Iterator[tuple[str, cst.BaseExpression]]:
        for node in self.nodes:
            match node:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    yield name, value

    def _is_number(self, node: cst.BaseExpression) -> bool:
        """Whether this is arithmetic on the number of the iteration."""
        match node:
            case cst.Name(value=name):
                return name in self.counters
            case cst.BinaryOperation():
                reaches_out = any(isinstance(part, (cst.Call, cst.Subscript)) for part in descendants(node))
                return speaks_of(node, self.counters) and not reaches_out
        return False

    def _is_aligned(self, node: cst.BaseExpression) -> bool:
        """Whether there is a batch of it: `targets[i]`, what never changes, and torch's arithmetic on these."""
        if self.is_foreign(node):
            return False
        for part in descendants(node):
            if isinstance(part, cst.Subscript) and self.has_own_bounds(part):
                return False  # a part with a length of its own
            if isinstance(part, cst.Call):
                method = part.func.attr.value if isinstance(part.func, cst.Attribute) else ""
                name = self.context.qualified_name(part.func) or ""
                if method not in METHODS and not (name.startswith("torch.") and name[6:] not in apis.FACTORIES):
                    return False
        return True

    def listed(self) -> dict[str, cst.BaseExpression]:
        """The names for items of what is not known to be a tensor, `target = targets[i]`, with that."""
        return {
            name: value.value
            for name, value in self._assignments()
            if isinstance(value, cst.Subscript) and name not in self.elements and speaks_of(value, self.counters)
        }

    def descend(self, target: cst.BaseExpression, iterated: cst.BaseExpression) -> None:
        """A loop inside that goes over an element: its own elements are ours too."""
        for name, tensor in visit_of(target, iterated, self.context).elements:
            for inner in descendants(tensor):
                if isinstance(inner, cst.Name) and inner.value in self.elements:
                    self.elements[name] = self.elements[inner.value]
                elif isinstance(inner, cst.Subscript) and picks(inner, self.counters):
                    self.elements[name] = self.element_of(tensor)


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
