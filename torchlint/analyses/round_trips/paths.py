"""From what is taken to the device back to what was read from it: over names, and over what is done on the CPU."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.batching.comprehension_reads import is_listed
from torchlint.analyses.host.reads import CONVERSIONS, is_device_tensor
from torchlint.analyses.provenance.network import is_with_the_network
from torchlint.analyses.round_trips.equivalents import SAME, SHAPE, work
from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import Binder, Binding, last_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# What is asked on one way: work that takes longer than this to follow is no detour that a line could replace.
_LONGEST = 500
_CONSTANTS = frozenset({Kind.NUMBER, Kind.DTYPE, Kind.STRING, Kind.NONE, Kind.DEVICE})


class Way:
    """One way back from what is taken to the device: the reads it leads to, and the names and functions on it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.reads: list[cst.Call] = []
        self.done: list[str] = []
        self.passed: list[cst.Name] = []
        self.bindings: list[Binding] = []
        self._steps = 0

    def leads_back(self, node: cst.CSTNode) -> bool:
        """Whether the expression is made of nothing but what was read from the device, and of constants."""
        self._steps += 1
        if self._steps > _LONGEST:
            return False
        match node:
            case cst.Name():
                return self._name(node)
            case cst.Attribute(value=value, attr=cst.Name(value=name)) if name in SAME:
                return self.leads_back(value)
            case cst.Subscript(value=value):
                self._index(node, value)
                return self.leads_back(value)
            case cst.BinaryOperation(left=left, right=right):
                return self._all([left, right])
            case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert(), expression=inner):
                return self.leads_back(inner)
            case cst.Comparison(left=left, comparisons=targets):
                return self._all([left, *(target.comparator for target in targets)])
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return all(type(part) is cst.Element for part in elements) and self._all(
                    [part.value for part in elements]
                )
            case cst.ListComp(elt=elt):
                return self.leads_back(elt)
            case cst.Call():
                return self._is_read(node) or self._call(node)
        return False

    def keeps_nothing(self, gate: cst.If | None, passed: set[int]) -> bool:
        """Whether all that uses the data on the CPU is on its way back, or asks only for its shape.

        `passed` are the names on all ways of the function. What stands below the gate runs where there is no device.
        """
        place = self.context.tree.place
        uses = [use for binding in self.bindings for use in self.context.names.uses(binding) if id(use) not in passed]
        if gate is not None:
            uses = [use for use in uses if place(use) < place(gate)]
        return all(_is_harmless(use, self.context) for use in uses)

    def _all(self, nodes: list[cst.BaseExpression]) -> bool:
        return all(self._tried(node) or self._is_constant(node) for node in nodes)

    def _index(self, node: cst.Subscript, value: cst.BaseExpression) -> None:
        """Follow the indices, which may also be of the data and need not be."""
        for part in node.slice:
            match part.slice:
                case cst.Index(value=index):
                    is_data = self._tried(index)
                    if is_data and self.reads and self._is_eye(value):
                        self.done.append("torch.nn.functional.one_hot")
                case cst.Slice(step=cst.UnaryOperation(operator=cst.Minus())):
                    self.done.append("torch.flip")

    def _is_eye(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.context.qualified_name(node.func) in ("torch.eye", "numpy.eye")

    def _tried(self, node: cst.CSTNode) -> bool:
        kept = [(found, len(found)) for found in (self.reads, self.done, self.passed, self.bindings)]
        if self.leads_back(node):
            return True
        for found, length in kept:
            del found[length:]
        return False

    def _is_constant(self, node: cst.CSTNode) -> bool:
        if self.context.kind(node) in _CONSTANTS:
            return not any(_reads_something(part) for part in descendants(node))
        return (self.context.qualified_name(node) or "").startswith(("numpy.", "torch."))

    # Names

    def _name(self, name: cst.Name) -> bool:
        bindings = self.context.reaching(name)
        self.passed.append(name)
        return bool(bindings) and all(binding in self.bindings or self._binding(binding, name) for binding in bindings)

    def _binding(self, binding: Binding, name: cst.Name) -> bool:
        node, value = binding.node, binding.value
        if value is None or self.context.function(node) is not self.context.function(name):
            return False
        self.bindings.append(binding)
        match binding.binder:
            case Binder.AUGMENTED if isinstance(node, cst.AugAssign):
                found = self.leads_back(node.target) and self._all([value])
            case Binder.ASSIGN:
                found = self.leads_back(value) if not binding.path else self._part(value, binding.path)
            case Binder.LOOP:
                found = not binding.path and self.leads_back(value)
            case _:
                return False
        return found and all(self._stores(use, binding) for use in self.context.names.uses(binding))

    def _part(self, value: cst.BaseExpression, path: tuple[int, ...]) -> bool:
        match value:
            case cst.Tuple(elements=elements) if len(path) == 1 and 0 <= path[0] < len(elements):
                return self.leads_back(elements[path[0]].value)
        return False

    def _stores(self, use: cst.Name, binding: Binding) -> bool:
        """Whether the use puts nothing into the data but what is of the same kind: `a[a < 0] = 0`."""
        match self.context.parent(use):
            case cst.Subscript(value=value) as target if value is use and use not in self.passed:
                put = self._put(target)
                if put is None:
                    return True
                self.passed.append(use)
                self._index(target, use)
                return self._tried(put) or self._is_put_at_once(put, use, binding)
            case cst.Attribute(attr=cst.Name(value=name)) as method if name.endswith("_"):
                call = self.context.parent(method)
                if isinstance(call, cst.Call) and isinstance(self.context.parent(call), cst.Expr):
                    return self._tried(call)
        return True

    def _put(self, target: cst.Subscript) -> cst.BaseExpression | None:
        """What a statement puts into the part of the data; None where the part is only read."""
        child: cst.CSTNode = target
        above = self.context.parent(target)
        while isinstance(above, (cst.Subscript, cst.Element, cst.Tuple, cst.AssignTarget)):
            child, above = above, self.context.parent(above)
        is_target = isinstance(above, (cst.Assign, cst.AugAssign)) and above.value is not child
        return above.value if is_target else None  # type: ignore[union-attr]

    def _is_put_at_once(self, value: cst.BaseExpression, use: cst.Name, binding: Binding) -> bool:
        """Whether it is a constant: what Python computes, or puts in one by one, would go to the device as often."""
        is_computed = any(type(part) is cst.Call for part in descendants(value))
        is_alone = self.context.loop(use) is self.context.loop(binding.node)
        return is_alone and not is_computed and self._is_constant(value)

    # Calls

    def _is_read(self, call: cst.Call) -> bool:
        tensor = tensor_read(call, self.context)
        if tensor is None or is_listed(call, self.context) or not is_on_device(tensor, self.context):
            return False
        self.reads.append(call)
        return True

    def _call(self, call: cst.Call) -> bool:
        found = work(call, self.context)
        if found is None or not self._all(list(found.data)):
            return False
        if found.name:
            self.done.append(found.name)
        return True


def tensor_read(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The tensor that a call brings to the CPU; `t.numpy()` brings none, it needs one that is there."""
    match call:
        case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name(value="cpu" | "tolist" | "item"))):
            return tensor
        case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name(value="numpy"))) if call.args:
            return tensor
        case cst.Call(
            func=cst.Attribute(value=tensor, attr=cst.Name(value="to")),
            args=[cst.Arg(value=cst.SimpleString(value="'cpu'" | '"cpu"'), keyword=None), *_],
        ):
            return tensor
        case cst.Call(func=cst.Name(value=name), args=[cst.Arg(value=tensor, keyword=None, star="")]):
            return tensor if name in CONVERSIONS and context.qualified_name(call.func) == name else None
    return None


def _reads_something(node: cst.CSTNode) -> bool:
    return type(node) is cst.Call and last_part(node.func) in ("cpu", "numpy", "tolist", "item")


def is_on_device(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression gives a tensor, and one that is where the network is."""
    if not is_device_tensor(tensor, context) or not context.kinds.is_tensor(tensor):
        return False
    return context.device(tensor) is not Device.UNKNOWN or is_with_the_network(tensor, context)


def _is_harmless(use: cst.Name, context: Context) -> bool:
    match context.parent(use):
        case cst.Attribute(attr=cst.Name(value=name)):
            return name in SHAPE
        case cst.Del():
            return True
        case cst.Arg() as argument:
            call = context.parent(argument)
            return isinstance(call, cst.Call) and last_part(call.func) == "len"
    return False
