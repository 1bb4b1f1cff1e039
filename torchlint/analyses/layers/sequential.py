"""From one part of an `nn.Sequential` to the next: its arguments, the lists and the statements that fill it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.layers.statement_order import Order
from torchlint.analyses.layers.unpacked import is_taken_apart
from torchlint.analyses.provenance.constants import decided
from torchlint.semantics.flow.instances import MODULE_LIST, ORDERED, SEQUENTIAL, EscapeError, Filling

if TYPE_CHECKING:
    from torchlint.analyses.layers.followers import Trace
    from torchlint.semantics.flow.uses import Variable

# Methods that put their last argument behind what is there.
REGISTERING = frozenset({"append", "add_module", "register_module"})
# Functions that pass nothing on.
LOOKS = frozenset({"isinstance", "len", "type", "id", "hasattr", "super", "callable", "repr", "str", "print"})


class Sequences:
    """The steps of a trace within sequences. Each raises `EscapeError` where the trail is lost."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.context = trace.context
        self.tree = trace.tree
        self.uses = trace.uses
        self.constructions = trace.constructions

    def sequential_init(self, call: cst.Call) -> cst.ClassDef | None:
        """The class that passes its layers on as `super().__init__(…)` to `nn.Sequential`."""
        match call.func:
            case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")):
                class_ = self.tree.enclosing_class(call)
                return class_ if class_ is not None and self._is_sequential(class_) else None
        return None

    def _is_sequential(self, class_: cst.ClassDef) -> bool:
        classes = self.context.classes
        return SEQUENTIAL in classes.lineage(class_) and classes.method(class_, "forward") is None

    def next_argument(self, call: cst.Call, argument: cst.Arg) -> None:
        """From an argument of `nn.Sequential(…)` to the next, or out of it."""
        following = call.args[place_of(argument, call.args) + 1 :]
        class_ = self.sequential_init(call)
        if following:
            self._check_whole(call)
            self.enter_argument(following[0])
        elif class_ is None:
            self.trace.module(call)
        else:
            self.trace.instances(class_)

    def _check_whole(self, call: cst.Call) -> None:
        if is_taken_apart(call, self.context):
            raise EscapeError

    def enter_argument(self, argument: cst.Arg) -> None:
        """The output enters the first part of a sequence, from the first argument of `nn.Sequential(…)`."""
        if argument.star or self.constructions.is_ordered(argument.value):
            self._enter_first(self.constructions.parts(argument.value))
        else:
            self.trace.enter_expression(argument.value)

    def _enter_first(self, parts: list[cst.CSTNode]) -> None:
        """The output enters the first part of a list: a layer, or a layer with its name."""
        match parts:
            case [cst.Tuple(elements=[_, cst.Element(value=layer)]), *_]:
                self.trace.enter_expression(layer)
            case [cst.BaseExpression() as part, *_]:
                self.trace.enter_expression(part)
            case _:
                raise EscapeError

    def element(self, element: cst.Element) -> None:
        """From an element of a list to the next, if the list becomes an `nn.Sequential`."""
        sequence = self.tree.parent(element)
        outer = self.tree.parent(sequence) if isinstance(sequence, cst.Tuple) else None
        if isinstance(outer, cst.Element) and isinstance(sequence, cst.Tuple):
            if sequence.elements[-1] is not element:
                raise EscapeError
            element, sequence = outer, self.tree.parent(outer)
        if not isinstance(sequence, (cst.List, cst.Tuple)):
            raise EscapeError
        argument = self.tree.parent(sequence)
        if isinstance(argument, cst.Arg) and not argument.star and self.trace.call_of(argument)[1] == MODULE_LIST:
            self.trace.container(self.trace.call_of(argument)[0], 1)
            return
        following = self.constructions.parts(sequence)[place_of(element, sequence.elements) + 1 :]
        if following:
            self._check_sequence(sequence, set())
            self._enter_first(following)
        else:
            self._list_end(sequence)

    def _check_sequence(self, node: cst.CSTNode, seen: set[int]) -> None:
        """Raise unless all that is ever made of a list is an `nn.Sequential`."""
        if id(node) in seen:
            return
        seen.add(id(node))
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg():
                call, name = self.trace.call_of(parent)
                if name in ORDERED:
                    self._check_sequence(call, seen)
                elif holder := _extended(call):
                    self._check_variable(holder, seen)
                elif not self._is_spliced(node, parent, call, name):
                    raise EscapeError
            case cst.BinaryOperation(operator=cst.Add()):
                self._check_sequence(parent, seen)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]) | cst.AugAssign(target=target):
                self._check_variable(target, seen)
            case cst.Return():
                for call in self.trace.calls_giving(parent):
                    self._check_sequence(call, seen)
            case _:
                raise EscapeError

    def _check_variable(self, variable: cst.CSTNode, seen: set[int]) -> None:
        filling = self.constructions.filling(as_variable(variable))
        if not any(self.constructions.is_sequential(value) for value in filling.starts.values()):
            for read in filling.reads:
                if not self._is_looked_at(read):
                    self._check_sequence(read, seen)

    def _is_looked_at(self, read: cst.CSTNode) -> bool:
        argument = self.tree.parent(read)
        return isinstance(argument, cst.Arg) and self.trace.call_of(argument)[1] in LOOKS

    def _is_spliced(self, node: cst.CSTNode, argument: cst.Arg, call: cst.Call, name: str) -> bool:
        """Whether a list becomes part of an `nn.Sequential` here: `*layers`, or an ordered dictionary whole."""
        into = name == SEQUENTIAL or self.sequential_init(call) is not None
        if into:
            self._check_whole(call)
        return into and (argument.star == "*" or self.constructions.is_ordered(node))

    def _list_end(self, node: cst.CSTNode) -> None:
        """From the last part of a list to what comes behind it, wherever the list goes."""
        if not self.trace.is_new("list", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg():
                self._list_passed(node, parent)
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
                if left is node:
                    self._check_sequence(node, set())
                    self._enter_first(self.constructions.parts(right))
                else:
                    self._list_end(parent)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]) | cst.AugAssign(target=target):
                self.behind(target, parent)
            case cst.Return():
                for call in self.trace.calls_giving(parent):
                    self._list_end(call)
            case _:
                raise EscapeError

    def _list_passed(self, node: cst.CSTNode, argument: cst.Arg) -> None:
        call, name = self.trace.call_of(argument)
        if name in ORDERED:
            self._list_end(call)
        elif self._is_spliced(node, argument, call, name):
            self.next_argument(call, argument)
        elif (holder := _extended(call)) and not argument.star:
            self.behind(holder, call)
        else:
            raise EscapeError

    # A sequence that statements fill

    def registered(self, call: cst.Call) -> None:
        """From a layer that is the last argument of `x.append(…)` or `x.add_module(…)`."""
        assert isinstance(call.func, cst.Attribute)
        holder = as_variable(call.func.value)
        class_ = self.context.classes.self_class(holder) if isinstance(holder, cst.Name) else None
        if class_ is not None and self._is_sequential(class_):
            self._next_registered(call, class_)
        elif class_ is not None:
            match call.args[0].value:
                case cst.SimpleString() as name:
                    self.trace.all_modules(self.trace.reads(self.uses.of_attribute(class_, str(name.evaluated_value))))
                case _:
                    raise EscapeError
        elif self.constructions.is_module_list(holder):
            self.trace.all_containers(self.constructions.filling(holder).reads, 1)
        else:
            self.behind(holder, call)

    def _next_registered(self, call: cst.Call, class_: cst.ClassDef) -> None:
        """From `self.add_module(…)` of an `nn.Sequential` to the next."""
        function = self.context.function(call)
        added: dict[cst.CSTNode, cst.Call] = {}
        for other in self.tree.of(cst.Call):
            match other.func:
                case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=method)) if method in REGISTERING:
                    if self.context.function(other) is function and self.context.classes.self_class(owner) is class_:
                        added[other] = other
        following, ends = Order(self.tree, added, self._decide).after(call)
        for node in following:
            self.trace.enter_expression(added[node].args[-1].value)
        if ends:
            self.trace.instances(class_)

    def behind(self, holder: cst.CSTNode, node: cst.CSTNode) -> None:
        """From the statement or call that put the last part into a variable to the one that puts the next."""
        if not self.trace.is_new("behind", node):
            return
        variable = as_variable(holder)
        filling = self.constructions.filling(variable)
        starts = filling.starts.values()
        is_module = bool(starts) and all(self.constructions.is_sequential(value) for value in starts)
        if not is_module:
            if not starts or not all(self._is_list(value) for value in starts):
                raise EscapeError
            self._check_variable(variable, set())
        function = self.context.function(node)
        if any(self.context.function(other) is not function for other in filling.additions):
            raise EscapeError
        reads = [read for read in filling.reads if not self._is_looked_at(read)]
        here = [read for read in reads if self.context.function(read) is function]
        elsewhere = [read for read in reads if self.context.function(read) is not function]
        order = Order(self.tree, {*filling.additions, *filling.starts, *here}, self._decide)
        for other in order.after(node)[0]:
            if other in filling.additions:
                self._enter_addition(variable, other, filling)
            elif other not in filling.starts:
                self._filled(other, order, filling, is_module=is_module)
        for read in elsewhere:
            self.trace.module(read)

    def _enter_addition(self, variable: Variable, node: cst.CSTNode, filling: Filling) -> None:
        if filling.additions[node]:
            self._enter_first(filling.additions[node])
        else:
            self.behind(variable, node)

    def _filled(self, read: cst.CSTNode, order: Order, filling: Filling, *, is_module: bool) -> None:
        """From the end of a sequence to where it is read, if it does not grow again behind that."""
        following, _ = order.after(read)
        if any(other in filling.additions for other in following):
            raise EscapeError
        for other in (read, *(other for other in following if other not in filling.starts)):
            if is_module:
                self.trace.module(other)
            else:
                self._list_end(other)

    def _is_list(self, value: cst.BaseExpression | None) -> bool:
        if isinstance(value, cst.Call):
            return self.context.qualified_name(value.func) in (*ORDERED, "list")
        return isinstance(value, (cst.List, cst.ListComp, cst.Tuple, cst.BinaryOperation))

    def _decide(self, test: cst.BaseExpression) -> bool | None:
        return decided(test, self.context)


def place_of(node: cst.CSTNode, among: Iterable[cst.CSTNode]) -> int:
    """The index of a node among others."""
    return next(place for place, other in enumerate(among) if other is node)


def as_variable(node: cst.CSTNode) -> Variable:
    """The node, if it is a name or an attribute; the trail is lost in others."""
    if isinstance(node, (cst.Name, cst.Attribute)):
        return node
    raise EscapeError


def _extended(call: cst.Call) -> cst.BaseExpression | None:
    """The list that `x.extend(…)` extends."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "extend":
        return call.func.value
    return None
