"""What takes the output of a layer: through containers, attributes, `forward`, factories and classes of the module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

import libcst as cst

from torchlint.analyses.layers.sequential import LOOKS, REGISTERING, Sequences, as_variable, place_of
from torchlint.facts import Wrapper
from torchlint.semantics.context import Context
from torchlint.semantics.flow.instances import MODULE_LIST, MODULE_METHODS, SEQUENTIAL, WRAPPERS, EscapeError
from torchlint.semantics.flow.uses import Variable
from torchlint.semantics.names.bindings import parameters
from torchlint.semantics.names.classes import is_static

_FUNCTIONAL = "torch.nn.functional."
# Methods that give a tensor's values back, at most with another type or elsewhere.
_TENSOR_METHODS = frozenset({"contiguous", "to", "cuda", "cpu", "half", "float", "double", "bfloat16"})
# What reads a tensor's shape or type and not its values.
_SHAPE = frozenset({"shape", "size", "dim", "ndim", "dtype", "device", "numel", "is_cuda", "requires_grad"})
_STORING = frozenset({*REGISTERING, "extend", "insert", "add", "setattr", "__setitem__"})


class Layers:
    """The flow from layer to layer within one module."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.wrapped: dict[cst.ClassDef, tuple[cst.CSTNode, Wrapper] | None] = {}  # of the module `wrappers`
        self._followers: dict[cst.Call, tuple[cst.Call, ...]] = {}

    def followers(self, layer: cst.Call) -> tuple[cst.Call, ...]:
        """What takes the output of a layer: all that ever does, or nothing where others may.

        `layer` is a call that constructs a module of `torch.nn`, or that of a function of `torch.nn.functional`; so is
        what is returned. Containers, and classes and functions of this module, are looked through; what other files do
        with them is not known.
        """
        found = self._followers.get(layer)
        if found is None:
            self._followers[layer] = ()
            trace = Trace(self.context)
            is_functional = (self.context.qualified_name(layer.func) or "").startswith(_FUNCTIONAL)
            try:
                (trace.value if is_functional else trace.module)(layer)
                found = tuple(sorted(trace.found, key=self.context.tree.place))
            except EscapeError:
                found = ()
            self._followers[layer] = found
        return found

    def may_be(self, node: cst.CSTNode, layer: cst.Call) -> bool:
        """Whether an expression may hold this layer; unknown ones may."""
        try:
            return layer in self.context.constructions.of(node)
        except EscapeError:
            return True


class Trace:
    """One walk from a layer to what takes its output. Each step raises `EscapeError` where the trail is lost.

    Where the instances of `end` give the output, the walk has ended.
    """

    def __init__(self, context: Context, end: cst.ClassDef | None = None) -> None:
        self.context = context
        self.tree = context.tree
        self.uses = context.uses
        self.constructions = context.constructions
        self.found: dict[cst.Call, None] = {}
        self.end = end
        self.has_ended = False
        self._seen: set[tuple[str, int]] = set()

    @property
    def sequences(self) -> Sequences:
        """The steps within sequences. Made again: what holds each other stays in memory until the collector comes."""
        return Sequences(self)

    def is_new(self, what: str, node: cst.CSTNode) -> bool:
        """Whether this step was not taken from the node before."""
        key = (what, id(node))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def call_of(self, argument: cst.CSTNode) -> tuple[cst.Call, str]:
        """The call that an argument belongs to, and the qualified name that it calls."""
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call):
            raise EscapeError
        return call, self.context.qualified_name(call.func) or ""

    # The module itself

    def module(self, node: cst.CSTNode) -> None:
        """Follow an expression that holds the module."""
        if self.is_new("module", node):
            parent = self.tree.parent(node)
            step = self._STEPS.get(type(parent))
            if step is None:
                raise EscapeError
            step(self, node, parent)

    def _nowhere(self, node: cst.CSTNode, parent: cst.CSTNode) -> None:
        """A condition or a statement of its own: it passes nothing on."""

    def _module_called(self, node: cst.CSTNode, call: cst.Call) -> None:
        if call.func is not node:
            raise EscapeError
        self.value(call)

    def _module_attribute(self, _: cst.CSTNode, attribute: cst.Attribute) -> None:
        call = self.tree.parent(attribute)
        if not isinstance(call, cst.Call) or call.func is not attribute:
            return  # a parameter of the layer: the output is elsewhere
        method = attribute.attr.value
        if method in MODULE_METHODS:
            self.module(call)
        elif method == "forward":
            self.value(call)
        elif method in _STORING:
            raise EscapeError

    def _module_passed(self, _: cst.CSTNode, argument: cst.Arg) -> None:
        call, name = self.call_of(argument)
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if argument.star:
            raise EscapeError
        if name == SEQUENTIAL or self.sequences.sequential_init(call) is not None:
            self.sequences.next_argument(call, argument)
        elif name.startswith(WRAPPERS) and argument is call.args[0]:
            self.module(call)
        elif method in REGISTERING and argument is call.args[-1]:
            self.sequences.registered(call)
        elif name not in LOOKS and not self._is_for_effect(call, method or name.rpartition(".")[2]):
            raise EscapeError

    def _is_for_effect(self, call: cst.Call, name: str) -> bool:
        """Whether a call stands for itself and stores nothing: an initialisation."""
        return isinstance(self.tree.parent(call), cst.Expr) and name not in _STORING

    def _module_chosen(self, node: cst.CSTNode, choice: cst.IfExp) -> None:
        if node is not choice.test:
            self.module(choice)

    def _module_in_either(self, _: cst.CSTNode, operation: cst.BooleanOperation) -> None:
        self.module(operation)

    def _module_listed(self, _: cst.CSTNode, element: cst.Element) -> None:
        self.sequences.element(element)

    def _module_repeated(self, node: cst.CSTNode, comprehension: cst.ListComp) -> None:
        if comprehension.elt is not node:
            raise EscapeError
        self.container(comprehension, 1)

    def _module_assigned(self, _: cst.CSTNode, statement: cst.Assign | cst.AnnAssign) -> None:
        targets = (
            [statement.target] if isinstance(statement, cst.AnnAssign) else [to.target for to in statement.targets]
        )
        for target in targets:
            if isinstance(target, cst.Subscript):
                self.sequences.behind(target.value, statement)
            elif not isinstance(target, (cst.Name, cst.Attribute)):
                raise EscapeError
            elif self.constructions.is_sequential(statement.value) and self.constructions.filling(target).additions:
                self.sequences.behind(target, statement)
            else:
                self.all_modules(self._reads_of(target, statement))

    def _reads_of(self, target: Variable, statement: cst.CSTNode) -> list[Variable]:
        """The reads of what a statement puts into a name, and all reads of an attribute."""
        if isinstance(target, cst.Name):
            return list(self.uses.of(target.value, statement))
        return self.reads(self.uses.mentions(target))

    def reads(self, mentions: Iterable[Variable] | None) -> list[Variable]:
        """The mentions that read."""
        if mentions is None:
            raise EscapeError
        return [mention for mention in mentions if not self.uses.is_target(mention)]

    def all_modules(self, nodes: Iterable[cst.CSTNode]) -> None:
        """Follow each; where there is none, others may read the module."""
        nodes = list(nodes)
        if not nodes:
            raise EscapeError
        for node in nodes:
            self.module(node)

    def _module_returned(self, _: cst.CSTNode, statement: cst.Return) -> None:
        self.all_modules(self.calls_giving(statement))

    def calls_giving(self, statement: cst.Return) -> list[cst.Call]:
        """The calls that give what is returned: all that this module makes."""
        function = self.context.function(statement)
        if not isinstance(function, cst.FunctionDef) or (function.decorators and not is_static(function)):
            raise EscapeError
        calls = list(self.context.calls.callers(function))
        if self.context.classes.owner(function) is None:
            named = self.uses.of(function.name.value, function)
            if any(self.tree.parent(name) not in calls for name in named):
                raise EscapeError
        if not calls:
            raise EscapeError
        return calls

    def instances(self, class_: cst.ClassDef) -> None:
        """Follow every instance of a class of this module, and of the classes derived from it."""
        if class_ is self.end:
            self.has_ended = True
            return
        if not self.is_new("class", class_):
            return
        made = False
        for name in self.uses.of(class_.name.value, class_):
            parent = self.tree.parent(name)
            if isinstance(parent, cst.Call) and parent.func is name:
                self.module(parent)
                made = True
            elif isinstance(parent, cst.Arg):
                made = self._derived(parent) or made
            elif not isinstance(parent, cst.Annotation):
                raise EscapeError
        if not made:
            raise EscapeError

    def _derived(self, argument: cst.Arg) -> bool:
        """Follow the instances of a derived class; whether the class is passed to make one."""
        above = self.tree.parent(argument)
        if isinstance(above, cst.ClassDef):
            if "forward" in self.context.classes.methods(above):
                raise EscapeError
            self.instances(above)
            return True
        if not isinstance(above, cst.Call) or self.context.qualified_name(above.func) not in LOOKS:
            raise EscapeError
        return False

    # In a list that is no sequence: each module by itself

    def container(self, node: cst.CSTNode, depth: int) -> None:
        """Follow an expression that holds a list of modules, `depth` lists deep."""
        if not self.is_new(f"container {depth}", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Subscript(value=owner) if owner is node:
                self._inner(parent, depth)
            case cst.For(iter=iterated) | cst.CompFor(iter=iterated) if iterated is node:
                self._iterated(parent, parent.target, depth)
            case cst.Attribute(attr=cst.Name(value=method)) if method not in _STORING:
                pass
            case cst.Arg(star=""):
                self._container_passed(parent, depth)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                self.all_containers(self._reads_of(as_variable(target), parent), depth)
            case cst.If() | cst.Comparison() | cst.BooleanOperation():
                pass
            case _:
                raise EscapeError

    def all_containers(self, nodes: Iterable[cst.CSTNode], depth: int) -> None:
        """Follow each, but where it is only filled."""
        for node in nodes:
            if not self._is_filled_by(node):
                self.container(node, depth)

    def _is_filled_by(self, node: cst.CSTNode) -> bool:
        """Whether a mention only puts another module into the list."""
        match self.tree.parent(node):
            case cst.Attribute(attr=cst.Name(value="append" | "extend")):
                return True
        return False

    def _inner(self, node: cst.CSTNode, depth: int) -> None:
        if depth > 1:
            self.container(node, depth - 1)
        else:
            self.module(node)

    def _container_passed(self, argument: cst.Arg, depth: int) -> None:
        call, name = self.call_of(argument)
        if name == MODULE_LIST:
            self.container(call, depth)
        elif name in ("enumerate", "zip", "reversed"):
            place = {"enumerate": 1, "zip": place_of(argument, call.args)}.get(name)
            self._iterated_through(call, place, depth)
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "append":
            holder = as_variable(call.func.value)
            # Met at two depths, the list is put into itself.
            if not self.constructions.is_module_list(holder) or not self.is_new("filled", argument):
                raise EscapeError
            self.all_containers(self.constructions.filling(holder).reads, depth + 1)
        elif name not in LOOKS:
            raise EscapeError

    def _iterated_through(self, call: cst.Call, place: int | None, depth: int) -> None:
        """Follow the target of a loop, or the part of it at a place."""
        loop = self.tree.parent(call)
        if not isinstance(loop, (cst.For, cst.CompFor)):
            raise EscapeError
        target: cst.BaseExpression = loop.target
        if place is not None:
            if not isinstance(target, cst.Tuple) or place >= len(target.elements):
                raise EscapeError
            target = target.elements[place].value
        self._iterated(loop, target, depth)

    def _iterated(self, loop: cst.For | cst.CompFor, target: cst.BaseExpression, depth: int) -> None:
        if not isinstance(target, cst.Name):
            raise EscapeError
        for use in self.uses.of(target.value, loop):
            self._inner(use, depth)

    # The value that the module gives

    def value(self, node: cst.CSTNode) -> None:
        """Follow an expression that holds the output."""
        if not self.is_new("value", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg(star=""):
                self._value_passed(parent)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                self._all_values(self.uses.of(name, parent))
            case cst.AnnAssign(target=cst.Name(value=name)):
                self._all_values(self.uses.of(name, parent))
            case cst.Return():
                self._value_returned(parent)
            case cst.Attribute(attr=cst.Name(value=name)):
                self._value_attribute(parent, name)
            case cst.IfExp(test=test) if node is not test:
                self.value(parent)
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
                pass
            case cst.Expr() | cst.Del():
                pass
            case _:
                raise EscapeError

    def _all_values(self, nodes: Iterable[cst.CSTNode]) -> None:
        for node in nodes:
            self.value(node)

    def _value_attribute(self, attribute: cst.Attribute, name: str) -> None:
        call = self.tree.parent(attribute)
        if name in _TENSOR_METHODS and isinstance(call, cst.Call) and call.func is attribute:
            self.value(call)
        elif name not in _SHAPE:
            raise EscapeError

    def _value_passed(self, argument: cst.Arg) -> None:
        """The output is an argument of another layer, or of a function of this module."""
        call, name = self.call_of(argument)
        place = place_of(argument, call.args)
        if any(other.star for other in call.args[:place]):
            raise EscapeError
        if name.startswith(_FUNCTIONAL) and place == 0 and argument.keyword is None:
            self.found[call] = None
        elif name not in LOOKS:
            try:
                layers = self.constructions.of(call.func)
            except EscapeError:
                layers = []
            for layer in layers:
                self._enter(layer, argument, place)
            if not layers:
                self._parameter(self.context.calls.target(call), argument, place)

    def enter_expression(self, node: cst.CSTNode) -> None:
        """The output enters whatever module an expression holds."""
        layers = self.constructions.of(node)
        if not layers:
            raise EscapeError
        for layer in layers:
            self._enter(layer, None, 0)

    def _enter(self, layer: cst.Call, argument: cst.Arg | None, place: int) -> None:
        """The output enters a module, at a place among its arguments."""
        class_ = self.constructions.class_of(layer)
        if class_ is not None:
            self._parameter(self.context.classes.method(class_, "forward"), argument, place)
        elif place or (argument is not None and argument.keyword is not None):
            raise EscapeError
        elif not self.constructions.is_sequential(layer):
            self.found[layer] = None
        elif not layer.args:
            raise EscapeError
        elif self.is_new("enter", layer):
            self.sequences.enter_argument(layer.args[0])

    def _parameter(self, function: cst.FunctionDef | None, argument: cst.Arg | None, place: int) -> None:
        """The output becomes a parameter of a function of this module."""
        if function is None:
            raise EscapeError
        order = [parameter for parameter in parameters(function) if not parameter.star]
        if self.context.classes.owner(function) is not None and not is_static(function):
            order = order[1:]
        if argument is not None and argument.keyword is not None:
            order = [parameter for parameter in order if parameter.name.value == argument.keyword.value]
            place = 0
        if place >= len(order):
            raise EscapeError
        self._all_values(self.uses.of(order[place].name.value, order[place]))

    def _value_returned(self, statement: cst.Return) -> None:
        function = self.context.function(statement)
        class_ = self.context.classes.owner(function) if function is not None else None
        if isinstance(function, cst.FunctionDef) and class_ is not None and function.name.value == "forward":
            self.instances(class_)
        else:
            self._all_values(self.calls_giving(statement))

    # By what stands around an expression that holds the module.
    _STEPS: ClassVar[dict[type, Callable[..., None]]] = {
        cst.Call: _module_called,
        cst.Attribute: _module_attribute,
        cst.Arg: _module_passed,
        cst.Element: _module_listed,
        cst.Assign: _module_assigned,
        cst.AnnAssign: _module_assigned,
        cst.Return: _module_returned,
        cst.IfExp: _module_chosen,
        cst.BooleanOperation: _module_in_either,
        cst.ListComp: _module_repeated,
        cst.Expr: _nowhere,
        cst.If: _nowhere,
        cst.Comparison: _nowhere,
        cst.ComparisonTarget: _nowhere,
        cst.UnaryOperation: _nowhere,
        cst.Assert: _nowhere,
    }
