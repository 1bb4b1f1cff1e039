"""Evaluates expressions to abstract values, on demand and without running anything."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.convention import remembered
from torchlint.semantics.knowledge.conventions.values import (
    DEVICE,
    GRAPH_FIELD,
    LOADER,
    LOSS,
    MODULE,
    OPTIMIZER,
    OUTPUT_FIELD,
    TENSOR_ATTRIBUTE,
)
from torchlint.semantics.knowledge.torch_signatures import MODULES
from torchlint.semantics.names.bindings import Binder, Binding, Names, dotted, last_part
from torchlint.semantics.names.classes import AttributeSet, Classes, class_attribute
from torchlint.semantics.names.entries import Entries
from torchlint.semantics.names.loop_headers import walked, walks_keys
from torchlint.semantics.values.annotations import Annotations
from torchlint.semantics.values.calls import Results
from torchlint.semantics.values.fixpoint import Ends, Questions
from torchlint.semantics.values.lattice import (
    BATCH,
    BOTTOM,
    DTYPE,
    NONE,
    NUMBER,
    TOP,
    UNKNOWN,
    Device,
    Kind,
    Rank,
    Value,
    arithmetic,
    join,
    off_cpu,
    part_of,
    sequence,
    sequence_of,
    tensor,
    turn_of,
)
from torchlint.semantics.values.operators import Operators
from torchlint.semantics.values.parameters import Parameters, is_class_name
from torchlint.semantics.values.signatures import Operands
from torchlint.semantics.values.usage import Evidence, has_several_axes, is_computed, speak_for_a_tensor
from torchlint.syntax.tree import SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchlint.semantics.values.call_graph import Calls
    from torchlint.semantics.values.module_profile import Program
    from torchlint.semantics.values.other_files import Elsewhere
    from torchlint.syntax.control_flow import Condition
    from torchlint.syntax.tree import Tree

_DTYPES = frozenset(
    "float32 float float64 double float16 half bfloat16 int8 int16 short int32 int int64 long uint8 bool complex64 "
    "complex128 cfloat cdouble float8_e4m3fn float8_e5m2".split()
)
_ENDS = Ends(UNKNOWN, TOP, join)
_MANY = 8  # bindings that reach one use
# What is computed from values alone: from one that is not known yet comes one that is not known yet.
# The parts of what `max(dim=…)`, `sort()`, `topk()` and the like give, in their order; no list or tuple has such.
_OF_A_PAIR = ("values", "indices")
_STRICT = frozenset(
    {
        cst.BinaryOperation,
        cst.Call,
        cst.Comparison,
        cst.Dict,
        cst.DictComp,
        cst.GeneratorExp,
        cst.List,
        cst.ListComp,
        cst.SetComp,
        cst.Subscript,
        cst.Tuple,
        cst.UnaryOperation,
    }
)
_CONSTANTS = {"None": NONE, "True": NUMBER, "False": NUMBER}

# What lists, mappings, arrays and texts have, and no tensor.
_OF_NO_TENSOR = frozenset(
    "copy append extend insert items keys **x "
    "lower upper strip lstrip rstrip startswith endswith encode splitlines".split()
)


class Kinds:
    """The values of expressions in one module."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, program: Program, elsewhere: Elsewhere) -> None:
        self.tree = tree
        self.names = names
        self._entries = Entries(tree, names)
        self.classes = classes
        self.elsewhere = elsewhere
        self.calls: Calls | None = None  # set by the context: calls and kinds need each other
        self.annotations = Annotations(self)
        self.evidence = Evidence(tree, names, classes)
        self.operands = Operands(self.value)
        self.parameters = Parameters(self)
        # Whether what is being evaluated has read a value that is not known yet.
        self._waits = False
        # What is found by node and otherwise, such as the callers of a function, may depend on each other.
        questions = Questions()
        self.settled, self._known = questions.settled, questions.known
        operators = Operators(self.value).handlers
        # Of names that many bindings reach: what those give for good, each value that is like another once.
        self._settled: dict[Binding, Value] = {}
        self._alike: dict[Value, Value] = {}
        self._of_a_part = operators[cst.Subscript]
        self._handlers: dict[type[cst.CSTNode], Callable[..., Value]] = {
            **operators,
            cst.Subscript: self._subscript,
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Call: Results(self, self.operands, self.evidence, program).value,
            cst.FunctionDef: self._function,
        }

    def value(self, node: cst.CSTNode) -> Value:
        """What the expression may hold."""
        found: Value | None = self._known.get(node)
        if found is None:
            waits = self._waits
            found = self.settled(node, BOTTOM, self._evaluate, node, _ENDS)
            self._waits = waits or found is BOTTOM
        return found

    def _evaluate(self, node: cst.CSTNode) -> Value:
        handler = self._handlers.get(type(node))
        if handler is None:
            return UNKNOWN
        outer, self._waits = self._waits, False
        try:
            value = handler(node)
            if self._waits:
                if type(node) in _STRICT:
                    value = BOTTOM
            elif value is BOTTOM:
                value = UNKNOWN  # indexing None gives nothing, but the code does run
        finally:
            self._waits = outer
        return value

    def _subscript(self, node: cst.Subscript) -> Value:
        written = self._entries.entry(node)
        value = self._of_a_part(node) if written is None else self.value(written)
        return self._by_its_like(node) if value is UNKNOWN else value

    def _by_its_like(self, node: cst.Subscript) -> Value:
        """What a numbered part of a name is, of which nothing is told, where another is used as a tensor alone can be.

        Numbers that the code computes go over things of one kind.
        """
        match node:
            case cst.Subscript(value=cst.Name() as name, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                if not is_computed(index) or not self.evidence.is_one_of_tensors(name, self.names.reaching(name)):
                    return UNKNOWN
                return tensor(rank=Rank.USED) if self.value(index).kind is Kind.NUMBER else UNKNOWN
        return UNKNOWN

    # Names

    def _name(self, node: cst.Name) -> Value:
        name = node.value
        bindings = self.names.reaching(node)
        if not bindings:
            if name in _CONSTANTS:
                return _CONSTANTS[name]
            return _named(self.names.qualified(node)) or _conventional(name)
        qualified = self.names.qualified(node)
        if qualified and any(binding.binder is Binder.IMPORT for binding in bindings):
            return _named(qualified)
        value = self.annotations.narrowed(node, self._either(bindings))
        if value is BOTTOM and self._waits:
            return BOTTOM
        is_likely = value.kind is Kind.TENSOR and not value.proven and not value.batch
        if is_likely and not self.evidence.uses(node, bindings).isdisjoint(_OF_NO_TENSOR):
            value = UNKNOWN
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            told = self.evidence.of_name(node, bindings)
            if told.kind is Kind.TENSOR and bindings:
                told = told.on(reduce(or_, map(self._computed_on, bindings)))
            value = told or value
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            value = _conventional(name) or self.evidence.likely(node, bindings) or value
        if value.kind is Kind.TENSOR and self.annotations.rules_out_a_tensor(node):
            return UNKNOWN
        if value.kind is Kind.TENSOR and not value.proven and not value.batch and MODULE.suggests(name):
            # `model = build().to(device)`: what moves is more often a tensor, but not under this name.
            value = _conventional(name).on(value.devices)
        if value.kind is Kind.TENSOR and not value.scalar and self.evidence.goes_backward(node):
            value = replace(value, scalar=True, rank=max(value.rank, Rank.USED))
        return value

    def _either(self, bindings: tuple[Binding, ...]) -> Value:
        """What the bindings give; one after the other, each use sees those of all loops above, but few values."""
        if len(bindings) < _MANY:
            return join([self.binding(binding) for binding in bindings])
        found: dict[int, Value] = {}
        for binding in bindings:
            value = self._settled.get(binding)
            if value is None:
                value = self.binding(binding)
                is_plain = binding.binder is Binder.ASSIGN and type(binding.node) is not cst.AnnAssign
                if is_plain and value.kind is not Kind.SEQUENCE and binding.value in self._known:
                    value = self._settled[binding] = self._alike.setdefault(value, value)
            found[id(value)] = value
        return join(found.values())

    def _computed_on(self, binding: Binding) -> Device:
        is_given = binding.binder is Binder.ASSIGN and binding.value is not None
        return self.computed_on(binding.value) if is_given and binding.value is not None else Device.UNKNOWN

    def computed_on(self, node: cst.CSTNode) -> Device:
        """Where a function out of sight makes a tensor: maybe on the accelerator on which it is given one.

        What it is given may come from such a function in turn, or lie under a name.
        """
        waits = self._waits
        is_given_one = self.settled(("given", node), False, self._is_given_one, node)  # noqa: FBT003
        self._waits = waits  # what it is does not hang on it
        return Device.MAYBE | Device.UNKNOWN if is_given_one else Device.UNKNOWN

    def _is_given_one(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.Call):
            return False
        # A method computes with what it is called on.
        owners = [node.func.value] if isinstance(node.func, cst.Attribute) else []
        for given in (*owners, *(argument.value for argument in node.args)):
            value = self.value(given)
            if value.kind is Kind.TENSOR and Device.ACCELERATOR in value.devices:
                return True
            is_open = value.kind in (Kind.TENSOR, Kind.UNKNOWN) and value.device is Device.UNKNOWN
            made_by = self._made_by(given) if is_open else ()
            if any(self.computed_on(made) is not Device.UNKNOWN for made in made_by):
                return True
        return False

    def _made_by(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        while isinstance(node, cst.Subscript):
            node = node.value
        if not isinstance(node, cst.Name):
            return [node]
        return [
            binding.value
            for binding in self.names.reaching(node)
            if binding.binder is Binder.ASSIGN and binding.value is not None
        ]

    def binding(self, binding: Binding) -> Value:
        """What one binding gives its name."""
        match binding.binder:
            case Binder.PARAMETER if isinstance(binding.node, cst.Param):
                return self.parameters.value(binding.node)
            case Binder.FUNCTION:
                return Value(Kind.FUNCTION, definition=binding.node)
            case Binder.CLASS:
                return Value(Kind.CLASS, definition=binding.node)
            case Binder.ANNOTATION if isinstance(binding.node, cst.AnnAssign):
                return self.annotations.value(binding.node.annotation.annotation)
            case Binder.AUGMENTED if isinstance(binding.node, cst.AugAssign):
                return self._augmented(binding.node)
            case Binder.ASSIGN | Binder.LOOP | Binder.CONTEXT if binding.value is not None:
                return self._assigned(binding)
        return UNKNOWN

    def _assigned(self, binding: Binding) -> Value:
        assert binding.value is not None
        if isinstance(binding.node, cst.AnnAssign):
            annotated = self.annotations.value(binding.node.annotation.annotation)
            if annotated:
                return annotated
        value = self.value(binding.value)
        if value is BOTTOM:
            return BOTTOM
        if binding.binder is Binder.LOOP:
            if value.kind is Kind.TENSOR and not value.proven and walks_keys(binding.node):
                return UNKNOWN
            if value.kind is Kind.LOADER and not value.proven and LOADER.suggests(binding.name):
                return value  # `for loader in loaders`
            value = turn_of(value)
            if not value and self.is_loader_like(binding.value):
                value = BATCH
        value = part_of(value, binding.path)
        if binding.binder is Binder.LOOP and value.kind is not Kind.LOADER and LOADER.suggests(binding.name):
            return _conventional(binding.name)  # `for loader in loaders` takes no batches
        if value.kind is Kind.SEQUENCE and (value.item is None or not value.item) and not binding.path:
            value = self._grown(binding, value)
        return value

    def _grown(self, binding: Binding, value: Value) -> Value:
        """`[]` with what is appended to it."""
        scope = self.names.scope_of(binding.node)
        added = [
            self.value(call.args[0].value)
            for call in self._appends.get(binding.name, ())
            if self.names.scope_of(call) is scope and call.args
        ]
        return sequence_of(join(added)) if added else value

    @cached_property
    def _appends(self) -> dict[str, list[cst.Call]]:
        found: dict[str, list[cst.Call]] = {}
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="append")):
                    found.setdefault(name, []).append(call)
        return found

    def _augmented(self, node: cst.AugAssign) -> Value:
        return arithmetic(self.value(node.target), self.value(node.value))

    # Attributes

    def _attribute(self, node: cst.Attribute) -> Value:
        name = node.attr.value
        qualified = self.names.qualified(node)
        if qualified:
            named = _named(qualified)
            if named:
                return named
        if isinstance(node.value, cst.Name):
            class_ = self.classes.self_class(node.value)
            if class_ is not None:
                return self._self_attribute(class_, name)
        owner = self.value(node.value)
        if owner is BOTTOM:
            return BOTTOM
        if owner.kind is Kind.TENSOR:
            code = apis.TENSOR_ATTRIBUTES.get(name)
            if code is not None:
                return self.operands.coded(code, owner, scalar=owner.scalar and name == "data")
            if not owner.proven and self._is_of_a_graph(name):
                return tensor(owner.devices, rank=Rank.CALLED)  # what a network is given may be a graph
            return owner if not owner.proven and OUTPUT_FIELD.suggests(name) else UNKNOWN
        if owner.kind is Kind.SEQUENCE and owner.untold and name == "data" and owner.definition is None:
            # A network that gives one tensor here and several there: no list has it.
            return tensor(owner.item.devices if owner.item is not None else Device.UNKNOWN, rank=Rank.CALLED)
        if owner.kind in (Kind.MODULE, Kind.OBJECT, Kind.SEQUENCE) and isinstance(owner.definition, cst.ClassDef):
            return self._instance_attribute(owner.definition, name)
        if name in _OF_A_PAIR and owner.kind is Kind.SEQUENCE and len(owner.items) == len(_OF_A_PAIR):
            return owner.items[_OF_A_PAIR.index(name)]
        if owner.kind is Kind.MODULE and name in ("weight", "bias"):
            return tensor(owner.devices)
        if owner.kind is Kind.MODULE and name == "module":
            return Value(Kind.MODULE, owner.devices)
        if name == "device":
            return Value(Kind.DEVICE, owner.devices if owner.kind is Kind.MODULE else Device.MAYBE, rank=Rank.CALLED)
        if name == "shape":
            return sequence_of(NUMBER)
        if name in ("ndim", "dtype"):
            return NUMBER if name == "ndim" else DTYPE.likely()
        if not owner and self._is_of_a_graph(name):
            return tensor(rank=Rank.CALLED)
        return _conventional(name)

    def _is_of_a_graph(self, name: str) -> bool:
        """Whether graphs of PyG, and their stores, hold a tensor by this name."""
        return GRAPH_FIELD.suggests(name) and "torch_geometric" in self.names.imported

    def _self_attribute(self, class_: cst.ClassDef, name: str) -> Value:
        value = self._instance_attribute(class_, name)
        if value is BOTTOM and self._waits:
            return BOTTOM
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            value = self.evidence.of_attribute(class_, name) or value
        elif value.kind is Kind.TENSOR and value.rank is Rank.CALLED:  # it was moved, no more
            told = self.evidence.of_attribute(class_, name)
            value = told.on(value.devices) if told.kind is Kind.MODULE else value
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            value = _conventional(name) or self.evidence.likely_of_attribute(class_, name) or value
        return value

    def _instance_attribute(self, class_: cst.ClassDef, name: str) -> Value:
        sets = self.classes.attribute_sets(class_, name)
        if sets:
            values = [self._attribute_set(entry) for entry in sets if not entry.augmented or len(sets) == 1]
            return join(values) if values else UNKNOWN
        method = self.classes.method(class_, name)
        if method is not None:
            if any(last_part(item.decorator) in ("property", "cached_property") for item in method.decorators):
                return self.returns(method)
            return Value(Kind.FUNCTION, definition=method)
        body = class_attribute(self.names, class_, name)
        declared = self._declared(class_, name)
        return declared or (self.value(body) if body is not None else UNKNOWN)

    def _declared(self, class_: cst.ClassDef, name: str) -> Value:
        """What the annotation of a field says, as in a dataclass: `loss: torch.Tensor`."""
        for owner in self.classes.lineage(class_):
            if isinstance(owner, str):
                continue
            for binding in self.names.class_scope(owner).bindings.get(name, []):
                if isinstance(binding.node, cst.AnnAssign):
                    return self.annotations.value(binding.node.annotation.annotation)
        return UNKNOWN

    def _attribute_set(self, entry: AttributeSet) -> Value:
        if isinstance(entry.node, cst.AnnAssign):
            annotated = self.annotations.value(entry.node.annotation.annotation)
            if annotated:
                return annotated
        if entry.value is None:
            return UNKNOWN
        value = part_of(self.value(entry.value), entry.path)
        return off_cpu(value) if isinstance(entry.node, cst.Call) else value  # a buffer moves with its module

    # Functions and classes

    def returns(self, function: cst.FunctionDef) -> Value:
        """What a call of the function gives."""
        if function.returns is not None:
            annotated = self.annotations.value(function.returns.annotation)
            if annotated:
                return _where_it_is(annotated, self.value(function)) if _may_be_on_cpu(annotated) else annotated
        return self.value(function)

    def _function(self, function: cst.FunctionDef) -> Value:
        given = self._given.get(function, [])
        yields = next((node for node in given if isinstance(node, cst.Yield)), None)
        if yields is not None and isinstance(yields.value, cst.BaseExpression):
            value = self.value(yields.value)
            return sequence_of(_as_batch(value) if self._is_of_a_chunk(yields) else value)
        values = [self.value(node.value) for node in given if isinstance(node.value, cst.BaseExpression)]
        values = [value for value in values if value.kind is not Kind.NONE]
        return join(values) if values else UNKNOWN

    def _is_of_a_chunk(self, node: cst.Yield) -> bool:
        """Whether the nearest loop goes on by several elements in each iteration: `for i in range(0, n, size)`."""
        loop = next((above for above in self.tree.ancestors(node) if isinstance(above, (cst.For, *SCOPES))), None)
        match loop:
            case cst.For(iter=cst.Call(func=cst.Name(value="range"), args=[_, _, cst.Arg(value=step)])):
                return not isinstance(step, (cst.Integer, cst.UnaryOperation))
        return False

    @cached_property
    def _given(self) -> dict[cst.CSTNode, list[cst.Return | cst.Yield]]:
        """For each function what it returns and what it yields, each in source order."""
        found: dict[cst.CSTNode, list[cst.Return | cst.Yield]] = {}
        nodes: list[cst.Return | cst.Yield] = [*self.tree.of(cst.Return), *self.tree.of(cst.Yield)]
        for node in nodes:
            child: cst.CSTNode = node
            above = self.tree.parent(node)
            while above is not None and type(above) not in SCOPES:
                child, above = above, self.tree.parent(above)
            if (
                isinstance(above, cst.FunctionDef)
                and child is above.body
                and isinstance(node.value, cst.BaseExpression)
            ):
                found.setdefault(above, []).append(node)
        return found

    def instance(self, class_: cst.ClassDef) -> Value:
        """An instance of a class of this module."""
        if self.classes.is_module(class_):
            return Value(Kind.MODULE, definition=class_)
        if self.classes.is_optimizer(class_):
            return Value(Kind.OPTIMIZER, definition=class_)
        if self.classes.is_dataset(class_):
            return Value(Kind.DATASET, Device.CPU, definition=class_)
        bases = {base for base in self.classes.lineage(class_) if isinstance(base, str)}
        if bases & apis.LOADERS:
            return Value(Kind.LOADER, definition=class_)
        if bases & {"typing.NamedTuple", "collections.namedtuple"}:
            return self.settled(("fields", class_), BOTTOM, self._of_fields, class_, _ENDS)  # one may be of the class
        return Value(Kind.OBJECT, definition=class_)

    def _of_fields(self, class_: cst.ClassDef) -> Value:
        fields = [
            self._declared(class_, name)
            for name, bindings in self.names.class_scope(class_).bindings.items()
            if any(isinstance(binding.node, cst.AnnAssign) for binding in bindings)
        ]
        return replace(sequence(*fields), definition=class_)

    # What a rule may rely on

    def likely(self, name: cst.Name) -> Value:
        """What the loops that use a name make likely that it holds, where nothing proves anything."""
        return self.evidence.likely(name, self.names.reaching(name))

    def is_tensor(self, node: cst.CSTNode) -> bool:
        """Whether the expression surely holds a tensor: by what it is made of or, where that is only likely, by use."""
        value = self.value(node)
        if value.kind is not Kind.TENSOR:
            return False
        if isinstance(node, cst.Name):
            bindings = self.names.reaching(node)
            uses = self.evidence.uses(node, bindings)
            if "or a list" in uses or any(self.annotations.may_be_a_list(binding.node) for binding in bindings):
                return self.is_checked_to_be_a_tensor(node)
        if value.proven:
            return True
        match node:
            case cst.Name():
                if bindings and all(self._gives_a_tensor(binding) for binding in bindings):
                    return True
            case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
                class_ = self.classes.self_class(owner)
                uses = self.evidence.uses_of_attribute(class_, name) if class_ is not None else frozenset()
            case cst.Subscript(value=owner):
                return has_several_axes(node) or (not _is_key(node) and self.is_tensor(owner))
            case cst.BinaryOperation(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case _:
                return False
        return speak_for_a_tensor(uses)

    def goes_backward(self, name: cst.Name) -> bool:
        """Whether the backward pass begins at what the name holds, which has one element then; cheap to ask."""
        return self.evidence.goes_backward(name)

    def tested(self, name: cst.Name) -> Iterator[Condition]:
        """What was tested of a name before it is used, and how it came out: by `if`, and by what left a block."""
        return self.annotations.tested(name)

    def is_checked_to_be_a_tensor(self, name: cst.Name) -> bool:
        """Whether a test around says so: `isinstance(x, torch.Tensor)`."""
        return self.annotations.narrowed(name, UNKNOWN).kind is Kind.TENSOR

    def _gives_a_tensor(self, binding: Binding) -> bool:
        value, path = binding.value, binding.path
        if binding.binder is Binder.LOOP and value is not None:
            value, path = walked(value, path)
        if path or value is None or binding.binder not in (Binder.ASSIGN, Binder.LOOP):
            return False
        if self.binding(binding).kind is not Kind.TENSOR:
            return False
        return self.settled(("tensor", value), False, self.is_tensor, value)  # noqa: FBT003

    def is_loader_like(self, node: cst.CSTNode) -> bool:
        """Whether iterating over this gives batches: by what it holds or, failing that, by its name."""
        value = self.value(node)
        if value:
            return value.kind is Kind.LOADER or (value.kind is Kind.SEQUENCE and _is_batched(value))
        if node in self.evidence.walks.walked or self._is_of_a_loader_class(node):
            return True
        name = dotted(node)
        if name is None and isinstance(node, cst.Subscript):
            name = dotted(node.value)
        return name is not None and LOADER.suggests(name.rpartition(".")[2])

    def _is_of_a_loader_class(self, node: cst.CSTNode) -> bool:
        """Whether this is `super().__iter__()` in a class of torch's loaders."""
        match node:
            case cst.Call(
                func=cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__iter__"))
            ):
                class_ = self.tree.enclosing_class(node)
                return class_ is not None and any(base in apis.LOADERS for base in self.classes.lineage(class_))
        return False


def _named(qualified: str | None) -> Value:
    """What a name in a library stands for."""
    if not qualified:
        return UNKNOWN
    if qualified.startswith("torch."):
        last = qualified[6:]
        if last in _DTYPES:
            return DTYPE
        place, _, type_ = last.rpartition(".")
        if type_ in apis.LEGACY_TENSORS and type_ != "Tensor" and place in ("", "cuda"):
            return DTYPE.on(Device.ACCELERATOR if place else Device.CPU)
        if last == "Tensor" or (last.startswith("nn.") and last[3:] in MODULES):
            return Value(Kind.CLASS, qualified=qualified)
    if qualified.startswith(("numpy.pi", "math.pi", "math.inf", "numpy.inf", "numpy.nan")):
        return NUMBER
    return UNKNOWN


@remembered(2048)
def _conventional(name: str) -> Value:
    """What the name alone makes likely."""
    if DEVICE.suggests(name):
        return Value(Kind.DEVICE, Device.MAYBE, rank=Rank.CALLED)
    if LOADER.suggests(name):
        return Value(Kind.LOADER, rank=Rank.CALLED)
    if MODULE.suggests(name) and not is_class_name(name):
        return Value(Kind.MODULE, rank=Rank.CALLED, scalar=LOSS.suggests(name))
    if OPTIMIZER.suggests(name):
        return Value(Kind.OPTIMIZER, rank=Rank.CALLED)
    if TENSOR_ATTRIBUTE.suggests(name):
        return tensor(rank=Rank.CALLED)
    return UNKNOWN


def _as_batch(value: Value) -> Value:
    """The same, as what a loader yields, where it is a tensor or has some."""
    if value.items:
        return replace(value, items=tuple(map(_as_batch, value.items)))
    return replace(value, batch=True) if value.kind is Kind.TENSOR else value


def _is_batched(value: Value) -> bool:
    item = value.item
    return item is not None and (item.batch or any(part.batch for part in item.items))


def _is_key(node: cst.Subscript) -> bool:
    return any(
        isinstance(part.slice, cst.Index) and isinstance(part.slice.value, (cst.SimpleString, cst.FormattedString))
        for part in node.slice
    )


def _may_be_on_cpu(annotated: Value) -> bool:
    return annotated.device is Device.UNKNOWN and (
        annotated.kind is Kind.TENSOR or any(item.kind is Kind.TENSOR for item in annotated.items)
    )


def _where_it_is(annotated: Value, given: Value) -> Value:
    """What an annotation says, with tensors on the CPU where what is returned is made there."""
    if annotated.kind is Kind.TENSOR:
        is_there = given.kind is Kind.TENSOR and given.device is Device.CPU
        return annotated.on(Device.CPU) if is_there and annotated.device is Device.UNKNOWN else annotated
    if len(annotated.items) != len(given.items):
        return annotated
    return replace(annotated, items=tuple(map(_where_it_is, annotated.items, given.items)))
