"""Where the output of a layer goes: through containers, attributes, `forward`, factories and classes of the module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import libcst as cst

from torchlint.model.calls import Calls
from torchlint.model.classes import Classes, is_static
from torchlint.model.names import Binder, Binding, Names, parameters
from torchlint.model.order import Order
from torchlint.model.tree import Tree, descendants_in_scope

SEQUENTIAL = "torch.nn.Sequential"
_LISTS = frozenset({"torch.nn.ModuleList", "list", "tuple"})
_ORDERED = frozenset({"collections.OrderedDict", "dict"})
_FUNCTIONAL = "torch.nn.functional."
# What wraps a layer and leaves what it computes a layer's: its bias is still added last.
_WRAPPERS = ("torch.nn.utils.spectral_norm", "torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations.")
# Methods that return the module they are called on, and the tensor.
_MODULE_METHODS = frozenset(
    "to cuda cpu half float double bfloat16 train eval apply requires_grad_ share_memory to_empty".split()
)
_TENSOR_METHODS = frozenset("contiguous to cuda cpu half float double bfloat16".split())
# What reads a tensor's shape or type and not its values.
_SHAPE = frozenset("shape size dim ndim dtype device numel is_cuda requires_grad is_contiguous".split())
_ADDING = frozenset({"append", "extend", "add_module", "register_module"})
_STORING = frozenset({"append", "extend", "add_module", "register_module", "insert", "add", "setattr", "__setitem__"})
_LOOKS = frozenset({"isinstance", "len", "type", "id", "hasattr", "super", "callable", "repr", "str", "print"})
_DEEPEST = 40

Variable: TypeAlias = "cst.Name | cst.Attribute"


class _EscapeError(Exception):
    """The value goes where this module does not show what becomes of it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Filling:
    """How a variable is filled with layers: the nodes that put parts behind its last, or a new list in its place.

    `starts` are those that put a new one; `reads` what else is done with the variable.
    """

    additions: dict[cst.CSTNode, list[cst.CSTNode]] = field(default_factory=dict)
    starts: dict[cst.CSTNode, cst.BaseExpression | None] = field(default_factory=dict)
    reads: list[Variable] = field(default_factory=list)


class Layers:
    """The flow from layer to layer within one module."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, calls: Calls) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.calls = calls
        self._followers: dict[cst.Call, tuple[cst.Call, ...]] = {}

    def followers(self, layer: cst.Call) -> tuple[cst.Call, ...]:
        """What takes the output of a layer: all of it that there can be in this module, or nothing.

        `layer` is the call that constructs a module of `torch.nn`, or a call of `torch.nn.functional`; so is what is
        returned. Containers, and classes and functions of this module, are looked through.
        """
        found = self._followers.get(layer)
        if found is None:
            self._followers[layer] = ()
            trace = _Trace(self)
            try:
                if self.is_functional(layer):
                    trace.value(layer)
                else:
                    trace.module(layer)
                found = tuple(sorted(trace.found, key=self.tree.index.__getitem__))
            except _EscapeError:
                found = ()
            self._followers[layer] = found
        return found

    def is_functional(self, call: cst.Call) -> bool:
        """Whether this calls `torch.nn.functional`, rather than constructing a layer."""
        return (self.names.qualified(call.func) or "").startswith(_FUNCTIONAL)

    def may_be(self, node: cst.CSTNode, layer: cst.Call) -> bool:
        """Whether an expression may hold this layer; unknown ones may."""
        try:
            return layer in self.constructions(node)
        except _EscapeError:
            return True

    def may_receive(self, call: cst.Call, keyword: str, depth: int = 0) -> bool:
        """Whether a call may pass this keyword, also through `**kwargs` of a function that this module calls."""
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value == keyword:
                return True
            if argument.star == "*" or (argument.star and self._may_hold(argument.value, keyword, depth)):
                return True
        return False

    def _may_hold(self, kwargs: cst.BaseExpression, keyword: str, depth: int) -> bool:
        if not isinstance(kwargs, cst.Name) or depth > _DEEPEST:
            return True
        bindings = self.names.reaching(kwargs)
        if len(bindings) != 1 or bindings[0].binder is not Binder.PARAMETER or len(self._mentions_of(bindings[0])) > 1:
            return True
        function = self.tree.function_of_parameter(bindings[0].node)
        if not isinstance(function, cst.FunctionDef):
            return True
        callers = self.calls.callers(function)
        owner = self.classes.owner(function)
        named: cst.FunctionDef | cst.ClassDef = owner if owner is not None else function
        uses = self.uses(named.name.value, named)
        if not callers or any(self.tree.parent(use) not in callers for use in uses):
            return True
        return any(self.may_receive(call, keyword, depth + 1) for call in callers)

    def _mentions_of(self, parameter: Binding) -> list[cst.Name]:
        return self.uses(parameter.name, parameter.node)

    # Where names and attributes are mentioned

    @cached_property
    def _names(self) -> dict[str, list[cst.Name]]:
        found: dict[str, list[cst.Name]] = {}
        for node in self.tree.of(cst.Name):
            if self._is_expression(node):
                found.setdefault(node.value, []).append(node)
        return found

    @cached_property
    def _attributes(self) -> dict[str, list[cst.Attribute]]:
        found: dict[str, list[cst.Attribute]] = {}
        for node in self.tree.of(cst.Attribute):
            found.setdefault(node.attr.value, []).append(node)
        return found

    def _is_expression(self, name: cst.Name) -> bool:
        """Whether the name stands for itself: not as the name of an attribute, keyword, parameter or import."""
        match self.tree.parent(name):
            case cst.Attribute(attr=attr):
                return attr is not name
            case cst.Arg(keyword=keyword):
                return keyword is not name
            case cst.Param() as param:
                return param.default is name
            case cst.FunctionDef() | cst.ClassDef() | cst.ImportAlias() | cst.AsName() | cst.NameItem():
                return False
        return True

    def is_target(self, node: cst.CSTNode) -> bool:
        """Whether an assignment, a loop or `with` binds the node."""
        match self.tree.parent(node):
            case cst.AssignTarget() | cst.AsName() | cst.Del():
                return True
            case cst.AnnAssign(target=target) | cst.For(target=target) | cst.CompFor(target=target):
                return target is node
            case cst.NamedExpr(target=target):
                return target is node
            case cst.Element() as element:
                above = self.tree.parent(element)
                return isinstance(above, (cst.Tuple, cst.List)) and self.is_target(above)
        return False

    def uses(self, name: str, node: cst.CSTNode) -> list[cst.Name]:
        """The places that read the value which a statement, parameter, class or function gives a name."""
        return [
            use
            for use in self._names.get(name, [])
            if not self.is_target(use) and any(binding.node is node for binding in self.names.reaching(use))
        ]

    def mentions(self, variable: Variable) -> Iterator[Variable]:
        """Every place that names the same variable, whatever it holds there. Raises `_EscapeError`."""
        if isinstance(variable, cst.Name):
            scope, _ = self.names.lookup(variable)
            for name in self._names.get(variable.value, []):
                if self.names.lookup(name)[0] is scope:
                    yield name
            return
        class_ = self._owner(variable)
        if class_ is None:
            raise _EscapeError
        family = {id(base) for base in self.classes.lineage(class_)}
        for attribute in self._attributes.get(variable.attr.value, []):
            owner = self._owner(attribute)
            if owner is None:
                # An attribute of that name on something unknown matters only where it is called.
                parent = self.tree.parent(attribute)
                if isinstance(parent, cst.Call) and parent.func is attribute and self._may_be(attribute.value, family):
                    raise _EscapeError
            elif id(owner) in family or any(base is class_ for base in self.classes.lineage(owner)):
                yield attribute

    def _owner(self, attribute: cst.Attribute) -> cst.ClassDef | None:
        """The class whose instance an attribute is read from, where it is known."""
        if isinstance(attribute.value, cst.Name):
            class_ = self.classes.self_class(attribute.value)
            if class_ is not None:
                return class_
        definition = self.calls.kinds.value(attribute.value).definition
        return definition if isinstance(definition, cst.ClassDef) else None

    def _may_be(self, node: cst.BaseExpression, family: set[int]) -> bool:
        """Whether something that is no known class of this module may be one of the family."""
        if self.names.qualified(node) is not None:
            return False
        value = self.calls.kinds.value(node)
        return not value.qualified and id(value.definition) not in family

    # What an expression may have constructed

    def constructions(self, node: cst.CSTNode, depth: int = 0) -> list[cst.Call]:
        """The calls, one of which constructed the module that an expression holds. Raises `_EscapeError`."""
        if depth > _DEEPEST:
            raise _EscapeError
        match node:
            case cst.Call():
                return self._constructed_by(node, depth + 1)
            case cst.Name(value="None"):
                return []
            case cst.Name():
                found = [self._bound_to(binding, depth + 1) for binding in self.names.reaching(node)]
                return [call for calls in (found or [self._unknown()]) for call in calls]
            case cst.Attribute():
                return self._set_to(node, depth + 1)
            case cst.Subscript(value=owner):
                return [
                    call
                    for element in self.elements(owner, depth + 1)
                    for call in self.constructions(element, depth + 1)
                ]
            case cst.IfExp(body=body, orelse=orelse):
                return self.constructions(body, depth + 1) + self.constructions(orelse, depth + 1)
        raise _EscapeError

    @staticmethod
    def _unknown() -> list[cst.Call]:
        raise _EscapeError

    def _constructed_by(self, call: cst.Call, depth: int) -> list[cst.Call]:
        name = self.names.qualified(call.func) or ""
        if name.startswith(_WRAPPERS) and call.args:
            return self.constructions(call.args[0].value, depth)
        if name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
            return [call]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _MODULE_METHODS:
            return self.constructions(call.func.value, depth)
        if self.class_of(call) is not None:
            return [call]
        function = self.calls.target(call)
        if function is None or function.name.value in ("forward", "__init__"):
            raise _EscapeError
        returned = [node for node in descendants_in_scope(function.body) if isinstance(node, cst.Return)]
        if not returned or any(node.value is None for node in returned):
            raise _EscapeError
        return [found for node in returned if node.value for found in self.constructions(node.value, depth)]

    def class_of(self, call: cst.Call) -> cst.ClassDef | None:
        """The class of this module that the call makes an instance of."""
        if isinstance(call.func, cst.Name):
            for binding in self.names.reaching(call.func):
                if binding.binder is Binder.CLASS and isinstance(binding.node, cst.ClassDef):
                    return binding.node
        return None

    def _bound_to(self, binding: Binding, depth: int) -> list[cst.Call]:
        if binding.value is None or binding.binder not in (Binder.ASSIGN, Binder.LOOP):
            raise _EscapeError
        if binding.binder is Binder.ASSIGN:
            if binding.path:
                raise _EscapeError
            return self.constructions(binding.value, depth)
        iterated = _iterated(binding.value, binding.path)
        return [call for element in self.elements(iterated, depth) for call in self.constructions(element, depth)]

    def _set_to(self, attribute: cst.Attribute, depth: int) -> list[cst.Call]:
        class_ = self._owner(attribute)
        sets = self.classes.attribute_sets(class_, attribute.attr.value) if class_ is not None else []
        if not sets or any(entry.value is None or entry.path or entry.augmented for entry in sets):
            raise _EscapeError
        return [call for entry in sets if entry.value for call in self.constructions(entry.value, depth)]

    def elements(self, node: cst.CSTNode, depth: int = 0) -> list[cst.BaseExpression]:
        """The expressions whose values a list of modules may hold. Raises `_EscapeError`."""
        if depth > _DEEPEST:
            raise _EscapeError
        match node:
            case cst.List(elements=parts) | cst.Tuple(elements=parts):
                if any(isinstance(part, cst.StarredElement) for part in parts):
                    raise _EscapeError
                return [part.value for part in parts]
            case cst.ListComp(elt=element) | cst.GeneratorExp(elt=element):
                return [element]
            case cst.Call(args=[]) if self.names.qualified(node.func) in _LISTS:
                return []
            case cst.Call(args=[cst.Arg(value=first, star="", keyword=None)]) if (
                self.names.qualified(node.func) in _LISTS
            ):
                return self.elements(first, depth + 1)
            case cst.Subscript(value=owner):
                return [
                    inner for element in self.elements(owner, depth + 1) for inner in self.elements(element, depth + 1)
                ]
            case cst.Name() | cst.Attribute():
                return self._filled_with(node, depth + 1)
        raise _EscapeError

    def _filled_with(self, variable: Variable, depth: int) -> list[cst.BaseExpression]:
        filling = self.filling(variable)
        if not filling.starts:
            raise _EscapeError
        found: list[cst.BaseExpression] = []
        for value in filling.starts.values():
            if value is None:
                raise _EscapeError
            found += self.elements(value, depth)
        for parts in filling.additions.values():
            for part in parts:
                if not isinstance(part, cst.BaseExpression):
                    raise _EscapeError
                found.append(part)
        return found

    # How a list or a container is filled

    def filling(self, variable: Variable) -> _Filling:
        """The statements that fill a variable, in no order. Raises `_EscapeError`."""
        filling = _Filling()
        for mention in self.mentions(variable):
            parent = self.tree.parent(mention)
            match parent:
                case cst.AssignTarget():
                    assign = self.tree.parent(parent)
                    assert isinstance(assign, cst.Assign)
                    added = self._sum(assign.value, mention)
                    if added is not None:
                        filling.additions[assign] = added
                    else:
                        filling.starts[assign] = assign.value
                case cst.AnnAssign(target=target, value=value) if target is mention:
                    filling.starts[parent] = value
                case cst.AugAssign(target=target, value=value) if target is mention:
                    filling.additions[parent] = self.parts(value)
                case cst.Attribute(attr=cst.Name(value=method)) if method in _ADDING:
                    call = self.tree.parent(parent)
                    if not isinstance(call, cst.Call) or not call.args:
                        raise _EscapeError
                    last = call.args[-1].value
                    filling.additions[call] = self.parts(last) if method == "extend" else [last]
                case cst.Subscript(value=owner) if owner is mention and self.is_target(parent):
                    assign = self.tree.parent(self.tree.parents[parent])
                    if not isinstance(assign, cst.Assign):
                        raise _EscapeError
                    filling.additions[assign] = [assign.value]
                case _ if self.is_target(mention):
                    raise _EscapeError
                case cst.BinaryOperation(left=left) if left is mention and self._is_added_to(parent, mention):
                    pass
                case _:
                    filling.reads.append(mention)
        return filling

    def _sum(self, value: cst.BaseExpression, variable: Variable) -> list[cst.CSTNode] | None:
        """What `layers = layers + […]` adds."""
        match value:
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right) if left.deep_equals(variable):
                return self.parts(right)
        return None

    def _is_added_to(self, sum_: cst.BinaryOperation, variable: Variable) -> bool:
        assign = self.tree.parent(sum_)
        return isinstance(assign, cst.Assign) and any(target.target.deep_equals(variable) for target in assign.targets)

    def parts(self, value: cst.BaseExpression) -> list[cst.CSTNode]:
        """The elements of a list; one that is not spelt out stands for itself, as the node around it."""
        match value:
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                return [element.value if isinstance(element, cst.Element) else element for element in elements]
            case cst.Call(args=[cst.Arg(value=first)]) if self.names.qualified(value.func) in _ORDERED:
                return self.parts(first)
        return [cst.Arg(value)]

    # Conditions

    def decide(self, test: cst.BaseExpression) -> bool | None:
        """What a condition always is, as all callers in this module pass the same constant; None where it depends."""
        match test:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                decided = self.decide(inner)
                return None if decided is None else not decided
            case cst.Name(value="True"):
                return True
            case cst.Name(value="False" | "None"):
                return False
            case cst.Name():
                return self._decided_by_callers(test)
        return None

    def _decided_by_callers(self, name: cst.Name) -> bool | None:
        bindings = self.names.reaching(name)
        if len(bindings) != 1 or bindings[0].binder is not Binder.PARAMETER:
            return None
        parameter = bindings[0].node
        assert isinstance(parameter, cst.Param)
        function = self.tree.function_of_parameter(parameter)
        if not isinstance(function, cst.FunctionDef):
            return None
        passed = [self.calls.argument_for(call, function, parameter) for call in self.calls.callers(function)]
        words = {argument.value if isinstance(argument, cst.Name) else "" for argument in passed}
        if len(words) != 1:
            return None
        return {"True": True, "False": False}.get(words.pop())


def _iterated(value: cst.BaseExpression, path: tuple[int, ...]) -> cst.BaseExpression:
    """The list that a loop's target runs over: `x` of `for i, t in enumerate(x)`. Raises `_EscapeError`."""
    match value, path:
        case cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=first), *_]), (1,):
            return first
        case cst.Call(func=cst.Name(value="zip"), args=args), (place,) if 0 <= place < len(args):
            return args[place].value
        case cst.Call(func=cst.Name(value="reversed"), args=[cst.Arg(value=first)]), ():
            return first
        case _, ():
            return value
    raise _EscapeError


class _Trace:
    """One walk from a layer to what takes its output. Every method raises `_EscapeError` where the trail is lost."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.tree = layers.tree
        self.names = layers.names
        self.classes = layers.classes
        self.found: dict[cst.Call, None] = {}
        self._seen: set[tuple[str, int]] = set()

    def _is_new(self, what: str, node: cst.CSTNode) -> bool:
        key = (what, id(node))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    # The module itself

    def module(self, node: cst.CSTNode) -> None:
        """Follow an expression that holds the module."""
        if not self._is_new("module", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Call(func=func) if func is node:
                self.value(parent)
            case cst.Attribute():
                self._module_attribute(parent)
            case cst.Arg():
                self._module_argument(node, parent)
            case cst.Element():
                self._element(parent)
            case cst.Assign(targets=targets):
                for target in targets:
                    self._module_stored(target.target, parent)
            case cst.AnnAssign(target=target):
                self._module_stored(target, parent)
            case cst.Return():
                for call in self._calls_returning(parent):
                    self.module(call)
            case cst.IfExp(test=test):
                if node is not test:
                    self.module(parent)
            case cst.BooleanOperation():
                self.module(parent)
            case (
                cst.Expr() | cst.If() | cst.Comparison() | cst.ComparisonTarget() | cst.UnaryOperation() | cst.Assert()
            ):
                pass
            case _:
                raise _EscapeError

    def _module_attribute(self, attribute: cst.Attribute) -> None:
        call = self.tree.parent(attribute)
        if not isinstance(call, cst.Call) or call.func is not attribute:
            return  # a parameter of the layer: its output is elsewhere
        method = attribute.attr.value
        if method in _MODULE_METHODS:
            self.module(call)
        elif method == "forward":
            self.value(call)
        elif method in _STORING:
            raise _EscapeError

    def _module_argument(self, node: cst.CSTNode, argument: cst.Arg) -> None:
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call) or argument.star:
            raise _EscapeError
        name = self.names.qualified(call.func) or ""
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if name == SEQUENTIAL or self._sequential_init(call) is not None:
            self._next_argument(call, argument)
        elif name.startswith(_WRAPPERS) and argument is call.args[0]:
            self.module(call)
        elif name in _LOOKS:
            return
        elif method in ("append", "add_module", "register_module") and argument is call.args[-1]:
            self._added(call)
        elif isinstance(self.tree.parent(call), cst.Expr) and (method or name.rpartition(".")[2]) not in _STORING:
            return  # what is called for its effect alone: an initialisation
        else:
            raise _EscapeError

    def _sequential_init(self, call: cst.Call) -> cst.ClassDef | None:
        """The class whose layers `super().__init__(…)` of an `nn.Sequential` passes."""
        match call.func:
            case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")):
                class_ = self.tree.enclosing_class(call)
                return class_ if class_ is not None and self._is_sequential(class_) else None
        return None

    def _is_sequential(self, class_: cst.ClassDef) -> bool:
        return SEQUENTIAL in self.classes.lineage(class_) and self.classes.method(class_, "forward") is None

    def _next_argument(self, call: cst.Call, argument: cst.Arg) -> None:
        """From an argument of `nn.Sequential(…)` to the next, or out of it."""
        place = next(place for place, other in enumerate(call.args) if other is argument)
        if place + 1 < len(call.args):
            following = call.args[place + 1]
            if following.star:
                self._enter_first(self.layers.parts(following.value))
            else:
                self.enter_expression(following.value)
            return
        class_ = self._sequential_init(call)
        if class_ is None:
            self.module(call)
        else:
            self._instances(class_)

    def _enter_first(self, parts: Sequence[cst.CSTNode]) -> None:
        if not parts:
            raise _EscapeError
        self.enter_part(parts[0])

    def enter_part(self, part: cst.CSTNode) -> None:
        """The value enters a part of a list: a layer, or a layer with its name."""
        match part:
            case cst.Tuple(elements=[_, cst.Element(value=layer)]):
                self.enter_expression(layer)
            case cst.BaseExpression():
                self.enter_expression(part)
            case _:
                raise _EscapeError

    # Lists and containers that are filled

    def _element(self, element: cst.Element) -> None:
        """From an element of a list that becomes an `nn.Sequential` to the next."""
        sequence = self.tree.parent(element)
        if isinstance(sequence, cst.Tuple) and isinstance(outer := self.tree.parent(sequence), cst.Element):
            if len(sequence.elements) != 2 or sequence.elements[1] is not element:
                raise _EscapeError
            element, sequence = outer, self.tree.parent(outer)
        if not isinstance(sequence, (cst.List, cst.Tuple)):
            raise _EscapeError
        if self._is_module_list(sequence):
            self.container(self.tree.parents[self.tree.parents[sequence]], 1)
            return
        place = next(place for place, other in enumerate(sequence.elements) if other is element)
        if place + 1 == len(sequence.elements):
            self.list_end(sequence)
        else:
            self._check_order(sequence)
            self._enter_first(self.layers.parts(sequence)[place + 1 :])

    def _is_module_list(self, sequence: cst.CSTNode) -> bool:
        match self.tree.parent(sequence):
            case cst.Arg(star="") as argument:
                call = self.tree.parent(argument)
                return isinstance(call, cst.Call) and self.names.qualified(call.func) == "torch.nn.ModuleList"
        return False

    def _check_order(self, node: cst.CSTNode) -> None:
        """Raise unless all that is ever made of a list is an `nn.Sequential`."""
        self._ends_in_sequential(node, set())

    def _ends_in_sequential(self, node: cst.CSTNode, seen: set[int]) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg(star=star):
                call = self.tree.parent(parent)
                if not isinstance(call, cst.Call):
                    raise _EscapeError
                name = self.names.qualified(call.func) or ""
                if name in _ORDERED:
                    self._ends_in_sequential(call, seen)
                elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "extend":
                    self._reads_end_in_sequential(call.func.value, seen)
                elif not (star == "*" or self._is_ordered(node)) or (
                    name != SEQUENTIAL and self._sequential_init(call) is None
                ):
                    raise _EscapeError
            case cst.BinaryOperation(operator=cst.Add()):
                self._ends_in_sequential(parent, seen)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                self._reads_end_in_sequential(target, seen)
            case cst.AugAssign(target=target):
                self._reads_end_in_sequential(target, seen)
            case cst.Return():
                for call in self._calls_returning(parent):
                    self._ends_in_sequential(call, seen)
            case _:
                raise _EscapeError

    def _reads_end_in_sequential(self, variable: cst.CSTNode, seen: set[int]) -> None:
        if not isinstance(variable, (cst.Name, cst.Attribute)):
            raise _EscapeError
        filling = self.layers.filling(variable)
        if any(self._is_layer(value) for value in filling.starts.values()):
            return  # an `nn.Sequential` that is filled
        for read in filling.reads:
            match self.tree.parent(read):
                case cst.Arg() as argument:
                    call = self.tree.parent(argument)
                    if isinstance(call, cst.Call) and self.names.qualified(call.func) in _LOOKS:
                        continue
            self._ends_in_sequential(read, seen)

    def _is_layer(self, value: cst.BaseExpression | None) -> bool:
        return isinstance(value, cst.Call) and self.names.qualified(value.func) == SEQUENTIAL

    def _is_ordered(self, node: cst.CSTNode) -> bool:
        """Whether an expression holds an ordered dictionary, which `nn.Sequential` takes whole."""
        match node:
            case cst.Call():
                return self.names.qualified(node.func) in _ORDERED
            case cst.Name():
                return any(
                    binding.value is not None and self._is_ordered(binding.value)
                    for binding in self.names.reaching(node)
                    if not isinstance(binding.value, cst.Name)
                )
        return False

    def list_end(self, node: cst.CSTNode) -> None:
        """From the last part of a list to what comes behind it, wherever the list goes."""
        if not self._is_new("list", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg(star=star):
                self._list_argument(node, parent, star)
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
                if left is node:
                    self._check_order(node)
                    self._enter_first(self.layers.parts(right))
                else:
                    self.list_end(parent)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]) | cst.AugAssign(target=target):
                self._behind(target, parent)
            case cst.Return():
                for call in self._calls_returning(parent):
                    self.list_end(call)
            case _:
                raise _EscapeError

    def _list_argument(self, node: cst.CSTNode, argument: cst.Arg, star: str) -> None:
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call):
            raise _EscapeError
        name = self.names.qualified(call.func) or ""
        if name in _ORDERED:
            self.list_end(call)
        elif (name == SEQUENTIAL or self._sequential_init(call) is not None) and (
            star == "*" or self._is_ordered(node)
        ):
            self._next_argument(call, argument)
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "extend" and not star:
            self._behind(call.func.value, call)
        else:
            raise _EscapeError

    def _added(self, call: cst.Call) -> None:
        """From a layer that is the last argument of `x.append(…)` or `x.add_module(…)`."""
        assert isinstance(call.func, cst.Attribute)
        holder = call.func.value
        class_ = self.classes.self_class(holder) if isinstance(holder, cst.Name) else None
        if class_ is not None:
            assert isinstance(holder, cst.Name)
            self._registered(holder, class_, call)
            return
        if not isinstance(holder, (cst.Name, cst.Attribute)):
            raise _EscapeError
        if self._holds_list(holder):
            for read in self.layers.filling(holder).reads:
                self.container(read, 1)
            return
        self._behind(holder, call)

    def _holds_list(self, variable: Variable) -> bool:
        starts = self.layers.filling(variable).starts.values()
        return bool(starts) and all(
            isinstance(value, cst.Call) and self.names.qualified(value.func) == "torch.nn.ModuleList"
            for value in starts
        )

    def _registered(self, self_: cst.Name, class_: cst.ClassDef, call: cst.Call) -> None:
        """From `self.add_module(name, layer)`: an attribute, or in a subclass of `nn.Sequential` the next layer."""
        if not self._is_sequential(class_):
            match call.args[0].value:
                case cst.SimpleString() as name if isinstance(name.evaluated_value, str):
                    self._module_mentioned(cst.Attribute(self_, cst.Name(name.evaluated_value)), class_)
                    return
            raise _EscapeError
        function = self.tree.function(call)
        added = [
            other
            for other in self.tree.of(cst.Call)
            if self.tree.function(other) is function
            and isinstance(other.func, cst.Attribute)
            and other.func.attr.value in ("add_module", "register_module")
            and isinstance(other.func.value, cst.Name)
            and other.func.value.value == self_.value
        ]
        following, ends = Order(self.tree, set(added), self.layers.decide).after(call)
        for other in following:
            assert isinstance(other, cst.Call)
            self.enter_expression(other.args[-1].value)
        if ends:
            self._instances(class_)

    def _module_mentioned(self, attribute: cst.Attribute, class_: cst.ClassDef) -> None:
        family = list(self.classes.lineage(class_))
        for mention in self.tree.of(cst.Attribute):
            if mention.attr.value == attribute.attr.value and isinstance(mention.value, cst.Name):
                owner = self.classes.self_class(mention.value)
                if owner is not None and any(owner is base for base in family):
                    self.module(mention)

    def _behind(self, variable: cst.CSTNode, node: cst.CSTNode) -> None:
        """From the statement or call that put the last part into a list to the one that puts the next."""
        if not isinstance(variable, (cst.Name, cst.Attribute)):
            raise _EscapeError
        if not self._is_new("behind", node):
            return
        filling = self.layers.filling(variable)
        is_module = bool(filling.starts) and all(self._is_layer(value) for value in filling.starts.values())
        if not is_module:
            if not filling.starts or any(self._is_opaque(value) for value in filling.starts.values()):
                raise _EscapeError
            self._reads_end_in_sequential(variable, set())
        function = self.tree.function(node)
        if any(self.tree.function(other) is not function for other in filling.additions):
            raise _EscapeError
        here = [read for read in filling.reads if self.tree.function(read) is function and not self._only_looks(read)]
        elsewhere = [read for read in filling.reads if self.tree.function(read) is not function]
        order = Order(self.tree, {*filling.additions, *filling.starts, *here}, self.layers.decide)
        following, ends = order.after(node)
        for other in following:
            if other in filling.additions:
                parts = filling.additions[other]
                if parts:
                    self.enter_part(parts[0])
                else:
                    self._behind(variable, other)
            elif other not in filling.starts:
                self._read(other, order, filling, is_module=is_module)
        if elsewhere and (ends or is_module):
            if not is_module:
                raise _EscapeError
            for read in elsewhere:
                self.module(read)

    def _is_opaque(self, value: cst.BaseExpression | None) -> bool:
        """Whether a list starts as something that is not seen to be one."""
        match value:
            case cst.List() | cst.ListComp() | cst.Tuple() | cst.BinaryOperation():
                return False
            case cst.Call():
                return self.names.qualified(value.func) not in (*_ORDERED, "list")
        return True

    def _only_looks(self, read: cst.CSTNode) -> bool:
        argument = self.tree.parent(read)
        call = self.tree.parent(argument) if isinstance(argument, cst.Arg) else None
        return isinstance(call, cst.Call) and self.names.qualified(call.func) in _LOOKS

    def _read(self, read: cst.CSTNode, order: Order, filling: _Filling, *, is_module: bool) -> None:
        """From the end of a list to where it is used, if it does not grow again behind that."""
        following, _ = order.after(read)
        if any(other in filling.additions for other in following):
            raise _EscapeError
        for other in (read, *(other for other in following if other not in filling.starts)):
            if is_module:
                self.module(other)
            else:
                self.list_end(other)

    def container(self, node: cst.CSTNode, depth: int) -> None:
        """Follow an expression that holds a list of modules, `depth` lists deep, in which the order says nothing."""
        if not self._is_new(f"container {depth}", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Subscript(value=owner) if owner is node:
                self._inner(parent, depth)
            case cst.For(iter=iterated) if iterated is node:
                self._iterated(parent, parent.target, depth)
            case cst.CompFor(iter=iterated) if iterated is node:
                self._iterated(parent, parent.target, depth)
            case cst.Attribute(attr=cst.Name(value=method)) if method not in _STORING:
                pass
            case cst.Arg(star=""):
                self._container_argument(node, parent, depth)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                if isinstance(target, cst.Name):
                    for use in self.layers.uses(target.value, parent):
                        self.container(use, depth)
                elif isinstance(target, cst.Attribute):
                    for read in self.layers.filling(target).reads:
                        self.container(read, depth)
                else:
                    raise _EscapeError
            case cst.If() | cst.Comparison() | cst.BooleanOperation():
                pass
            case _:
                raise _EscapeError

    def _inner(self, node: cst.CSTNode, depth: int) -> None:
        if depth > 1:
            self.container(node, depth - 1)
        else:
            self.module(node)

    def _container_argument(self, node: cst.CSTNode, argument: cst.Arg, depth: int) -> None:
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call):
            raise _EscapeError
        name = self.names.qualified(call.func) or ""
        place = next(place for place, other in enumerate(call.args) if other is argument)
        if name == "torch.nn.ModuleList":
            self.container(call, depth)
        elif name in ("enumerate", "zip", "reversed"):
            loop = self.tree.parent(call)
            if not isinstance(loop, (cst.For, cst.CompFor)):
                raise _EscapeError
            target: cst.BaseExpression = loop.target
            if name != "reversed":
                place = 1 if name == "enumerate" else place
                if not isinstance(target, cst.Tuple) or place >= len(target.elements):
                    raise _EscapeError
                target = target.elements[place].value
            self._iterated(loop, target, depth)
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "append":
            holder = call.func.value
            if not isinstance(holder, (cst.Name, cst.Attribute)) or not self._holds_list(holder):
                raise _EscapeError
            for read in self.layers.filling(holder).reads:
                self.container(read, depth + 1)
        elif name not in _LOOKS:
            raise _EscapeError

    def _iterated(self, loop: cst.For | cst.CompFor, target: cst.BaseExpression, depth: int) -> None:
        if not isinstance(target, cst.Name):
            raise _EscapeError
        for use in self.layers.uses(target.value, loop):
            self._inner(use, depth)

    # Names and attributes that hold the module

    def _module_stored(self, target: cst.CSTNode, statement: cst.CSTNode) -> None:
        if not isinstance(target, (cst.Name, cst.Attribute)):
            raise _EscapeError
        value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
        if self._is_layer(value) and self.layers.filling(target).additions:
            self._behind(target, statement)
            return
        if isinstance(target, cst.Name):
            uses: list[Variable] = list(self.layers.uses(target.value, statement))
        else:
            uses = [use for use in self.layers.mentions(target) if not self.layers.is_target(use)]
        if not uses:
            raise _EscapeError
        for use in uses:
            self.module(use)

    def _calls_returning(self, return_: cst.Return) -> list[cst.Call]:
        """The calls that give what is returned here. Raises `_EscapeError` where others may get it."""
        function = self.tree.function(return_)
        if not isinstance(function, cst.FunctionDef) or function.decorators and not is_static(function):
            raise _EscapeError
        if self.classes.owner(function) is None:
            for name in self.layers.uses(function.name.value, function):
                parent = self.tree.parent(name)
                if not isinstance(parent, cst.Call) or parent.func is not name:
                    raise _EscapeError
        calls = list(self.layers.calls.callers(function))
        if not calls:
            raise _EscapeError
        return calls

    def _instances(self, class_: cst.ClassDef) -> None:
        """Follow every instance of a class of this module."""
        if not self._is_new("class", class_):
            return
        made = False
        for name in self.layers.uses(class_.name.value, class_):
            parent = self.tree.parent(name)
            match parent:
                case cst.Call(func=func) if func is name:
                    self.module(parent)
                    made = True
                    continue
                case cst.Arg():
                    above = self.tree.parent(parent)
                    if isinstance(above, cst.Call) and self.names.qualified(above.func) in _LOOKS:
                        continue
                    if isinstance(above, cst.ClassDef):
                        if self.classes.methods(above).get("forward") is not None:
                            raise _EscapeError
                        self._instances(above)
                        made = True
                        continue
                case cst.Annotation():
                    continue
            raise _EscapeError
        if not made:
            raise _EscapeError

    # The value that the module gives

    def value(self, node: cst.CSTNode) -> None:
        """Follow an expression that holds the output."""
        if not self._is_new("value", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg():
                self._passed(parent)
            case (
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)])
                | cst.AnnAssign(target=cst.Name() as target)
            ):
                for use in self.layers.uses(target.value, parent):
                    self.value(use)
            case cst.Return():
                self._value_returned(parent)
            case cst.Attribute(attr=cst.Name(value=name)):
                call = self.tree.parent(parent)
                if name in _TENSOR_METHODS and isinstance(call, cst.Call) and call.func is parent:
                    self.value(call)
                elif name not in _SHAPE:
                    raise _EscapeError
            case cst.IfExp(test=test) if node is not test:
                self.value(parent)
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]) | cst.Del():
                pass
            case cst.Expr():
                pass
            case _:
                raise _EscapeError

    def _passed(self, argument: cst.Arg) -> None:
        """The output is an argument: of another layer, or of a function of this module."""
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call) or argument.star:
            raise _EscapeError
        name = self.names.qualified(call.func) or ""
        place = next(place for place, other in enumerate(call.args) if other is argument)
        if any(other.star for other in call.args[:place]):
            raise _EscapeError
        if name.startswith(_FUNCTIONAL) and place == 0 and argument.keyword is None:
            self.found[call] = None
            return
        if name in _LOOKS:
            return
        try:
            layers = self.layers.constructions(call.func)
        except _EscapeError:
            layers = []
        for layer in layers:
            self.enter(layer, argument, place)
        if not layers:
            function = self.layers.calls.target(call)
            if function is None:
                raise _EscapeError
            self._parameter(function, argument, place)

    def enter_expression(self, node: cst.CSTNode) -> None:
        """The output enters whatever module an expression holds."""
        layers = self.layers.constructions(node)
        if not layers:
            raise _EscapeError
        for layer in layers:
            self.enter(layer, None, 0)

    def enter(self, layer: cst.Call, argument: cst.Arg | None, place: int) -> None:
        """The output enters a module at a place among its arguments."""
        class_ = self.layers.class_of(layer)
        if class_ is not None:
            forward = self.classes.method(class_, "forward")
            if forward is None:
                raise _EscapeError
            self._parameter(forward, argument, place)
            return
        if place or (argument is not None and argument.keyword is not None):
            raise _EscapeError
        if self.names.qualified(layer.func) != SEQUENTIAL:
            self.found[layer] = None
            return
        if not self._is_new("enter", layer):
            return
        first = layer.args[0] if layer.args else None
        if first is None:
            raise _EscapeError
        if first.star or self._is_ordered(first.value):
            self._enter_first(self.layers.parts(first.value))
        else:
            self.enter_expression(first.value)

    def _parameter(self, function: cst.FunctionDef, argument: cst.Arg | None, place: int) -> None:
        order = [parameter for parameter in parameters(function) if not parameter.star]
        if self.classes.owner(function) is not None and not is_static(function):
            order = order[1:]
        if argument is not None and argument.keyword is not None:
            order = [parameter for parameter in order if parameter.name.value == argument.keyword.value]
            place = 0
        if place >= len(order):
            raise _EscapeError
        for use in self.layers.uses(order[place].name.value, order[place]):
            self.value(use)

    def _value_returned(self, return_: cst.Return) -> None:
        function = self.tree.function(return_)
        class_ = self.classes.owner(function) if function is not None else None
        if isinstance(function, cst.FunctionDef) and class_ is not None and function.name.value == "forward":
            self._instances(class_)
            return
        for call in self._calls_returning(return_):
            self.value(call)
