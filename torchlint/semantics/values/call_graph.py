"""Which function of the module a call reaches, and who calls a function."""

from __future__ import annotations

from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.names.bindings import Binder, Names, last_part, parameters
from torchlint.semantics.names.classes import Classes, is_static
from torchlint.semantics.values.lattice import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlint.semantics.values.evaluator import Kinds
    from torchlint.syntax.tree import Tree


class Calls:
    """The call graph within one module."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.kinds = kinds
        self._by_name: dict[str, list[cst.Call]] | None = None
        self._asked_of_any: dict[tuple[str, str], bool] = {}

    def target(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function or method of this module that the call runs (`__init__` or `forward` for an object's)."""
        return self.kinds.settled(("target", call), None, self._resolve, call)

    def _resolve(self, call: cst.Call) -> cst.FunctionDef | None:
        match call.func:
            case cst.Name() as name:
                return self._named(name)
            case cst.Subscript():
                return self._forward(call.func)
            case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value=method)):
                return self._inherited(call, method)
            case cst.Attribute(value=owner, attr=cst.Name(value=method)):
                if isinstance(owner, cst.Name):
                    class_ = self.classes.self_class(owner)
                    if class_ is not None:
                        return self.classes.method(class_, method) or self._attribute_module(call)
                value = self.kinds.value(owner)
                if isinstance(value.definition, cst.ClassDef):
                    found = self.classes.method(value.definition, method)
                    if found is not None:
                        return found
                found = self._attribute_module(call)
                is_of_any_class = value.kind in (Kind.UNKNOWN, Kind.MODULE, Kind.OBJECT) or not value.proven
                is_known = not is_of_any_class or bool(value.qualified or value.definition)
                return found if found is not None or is_known else self._of_the_only_class(call, method)
        return None

    def _of_the_only_class(self, call: cst.Call, method: str) -> cst.FunctionDef | None:
        """The method of that name, where one class of the module alone has one, and hardly any of a library."""
        if method in apis.SHARED_METHODS or self.names.qualified(call.func) is not None:
            return None
        return self.classes.only_method(method)

    def _named(self, name: cst.Name) -> cst.FunctionDef | None:
        for binding in reversed(self.names.reaching(name)):
            if binding.binder is Binder.FUNCTION and isinstance(binding.node, cst.FunctionDef):
                return binding.node
            if binding.binder is Binder.CLASS and isinstance(binding.node, cst.ClassDef):
                return self.classes.method(binding.node, "__init__")
        return self._forward(name)

    def _attribute_module(self, call: cst.Call) -> cst.FunctionDef | None:
        return self._forward(call.func)

    def _forward(self, func: cst.CSTNode) -> cst.FunctionDef | None:
        value = self.kinds.value(func)
        if value.kind is Kind.MODULE and isinstance(value.definition, cst.ClassDef):
            return self.classes.method(value.definition, "forward")
        if value.kind is Kind.FUNCTION and isinstance(value.definition, cst.FunctionDef):
            return value.definition
        if value.kind is Kind.OBJECT and isinstance(value.definition, cst.ClassDef):
            return self.classes.method(value.definition, "__call__")
        return None

    def _inherited(self, call: cst.Call, method: str) -> cst.FunctionDef | None:
        class_ = self.tree.enclosing_class(call)
        if class_ is None:
            return None
        for base in self.classes.bases(class_):
            if not isinstance(base, str):
                found = self.classes.method(base, method)
                if found is not None:
                    return found
        return None

    def callers(self, function: cst.FunctionDef) -> tuple[cst.Call, ...]:
        """The calls in this module that run the function, in source order."""
        return self.kinds.settled(("callers", function), (), self._find_callers, function)

    def _find_callers(self, function: cst.FunctionDef) -> tuple[cst.Call, ...]:
        calls = [call for call in self._candidates(function) if self.target(call) is function]
        if self._is_kept(function.name.value):
            calls += [call for call in self._by_registry if function in self._registered(call.func)]
        return tuple(dict.fromkeys(calls))

    def wrapped_callers(self, function: cst.FunctionDef) -> tuple[cst.Call, ...]:
        """The calls of what `functools.partial` makes of the function: they pass some of its arguments."""
        if not self.names.spelt("partial"):
            return ()
        return tuple(
            call for call in self._of_instances if self._is_wrapped(function, self.kinds.value(call.func).definition)
        )

    def launches(self, function: cst.FunctionDef) -> tuple[cst.Call, ...]:
        """The calls that start processes or threads which run the function: `spawn(main)`, `Process(target=main)`."""
        return tuple(
            call
            for handed, call in self._handed.get(function.name.value, ())
            if (_is_started(handed, call) or self.names.qualified(call.func) in apis.LAUNCHERS)
            and self.kinds.value(handed.value).definition is function
        )

    @cached_property
    def _handed(self) -> dict[str, list[tuple[cst.Arg, cst.Call]]]:
        """The arguments that are a name, by the name, each with its call."""
        found: dict[str, list[tuple[cst.Arg, cst.Call]]] = {}
        for call in self.tree.of(cst.Call):
            for argument in call.args:
                if isinstance(argument.value, cst.Name):
                    found.setdefault(argument.value.value, []).append((argument, call))
        return found

    def _is_wrapped(self, function: cst.FunctionDef, partial: cst.CSTNode | None) -> bool:
        return (
            isinstance(partial, cst.Call)
            and bool(partial.args)
            and last_part(partial.args[0].value) == function.name.value
            and self.kinds.value(partial.args[0].value).definition is function
        )

    def _is_kept(self, name: str) -> bool:
        """Whether something whose last name this is stands in a dictionary: a function may be called from there."""
        return self._is_any(self._is_entry, name)

    def _is_any(self, is_so: Callable[[cst.Name], bool], name: str) -> bool:
        """Whether it is so of any node that is a name of this text: asked once, of however many functions."""
        key = is_so.__name__, name
        if key not in self._asked_of_any:
            self._asked_of_any[key] = any(map(is_so, self.names.spelt(name)))
        return self._asked_of_any[key]

    def _is_entry(self, name: cst.Name) -> bool:
        parent = self.tree.parent(name)
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            parent = self.tree.parent(parent)
        return isinstance(parent, cst.DictElement)

    @cached_property
    def _by_registry(self) -> list[cst.Call]:
        """The calls of what may come out of a dictionary: `LOSSES[name](x)`, and `loss(x)` for a name of it."""
        return [call for call in self.tree.of(cst.Call) if self._dictionaries(call.func)]

    def _registered(self, func: cst.BaseExpression) -> list[cst.FunctionDef]:
        """The functions that may come out of the dictionary that `func` looks into."""
        found = []
        for dictionary in self._dictionaries(func):
            for element in dictionary.elements:
                value = self.kinds.value(element.value)
                if value.kind is Kind.FUNCTION and isinstance(value.definition, cst.FunctionDef):
                    found.append(value.definition)
        return found

    def _dictionaries(self, func: cst.BaseExpression, *, looked_into: bool = False) -> list[cst.Dict]:
        """The literals that an expression looks into, or that it holds where it is `looked_into` itself."""
        match func:
            case cst.Dict() if looked_into:
                return [func]
            case cst.Subscript(value=owner) | cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="get"))):
                return self._dictionaries(owner, looked_into=True) if not looked_into else []
            case cst.Name():
                values = [binding.value for binding in self.names.reaching(func) if not binding.path]
            case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
                class_ = self.classes.self_class(owner)
                values = [] if class_ is None else [found.value for found in self.classes.attribute_sets(class_, name)]
            case _:
                return []
        return [
            dictionary
            for value in values
            if isinstance(value, cst.Dict) or (not looked_into and isinstance(value, (cst.Subscript, cst.Call)))
            if looked_into or not isinstance(value, cst.Dict)
            for dictionary in self._dictionaries(value, looked_into=looked_into)
        ]

    def dispatched(self, function: cst.FunctionDef) -> tuple[cst.Call, ...]:
        """The calls of `self.method(…)` in the classes that the method's own extends, which reach it there."""
        class_ = self.classes.owner(function)
        if class_ is None or function.name.value.startswith("__"):
            return ()
        bases = [base for base in self.classes.lineage(class_) if isinstance(base, cst.ClassDef) and base is not class_]
        return tuple(call for call in self._candidates(function) if bases and self._class_of_self(call) in bases)

    def _class_of_self(self, call: cst.Call) -> cst.ClassDef | None:
        match call.func:
            case cst.Attribute(value=cst.Name() as owner):
                return self.classes.self_class(owner)
        return None

    def _candidates(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Calls that could reach the function, by the last part of what they call."""
        if self._by_name is None:
            self._by_name = {}
            for call in self.tree.of(cst.Call):
                match call.func:
                    case cst.Name(value=last) | cst.Attribute(attr=cst.Name(value=last)):
                        self._by_name.setdefault(last, []).append(call)
        name = function.name.value
        handed = self._by_parameter if self._is_handed_on(name) else []
        held = self._of_instances if self._is_assigned(name) else []
        return [*self._by_own_name(function, name), *handed, *held]

    def _is_assigned(self, name: str) -> bool:
        """Whether something whose last name this is gets another one: `step = trainer.step`."""
        return self._is_any(self._is_bound_on, name)

    def _is_bound_on(self, name: cst.Name) -> bool:
        parent: cst.CSTNode | None = self.tree.parent(name)
        bound: cst.CSTNode = name
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            bound, parent = parent, self.tree.parent(parent)
        match parent:
            case cst.Assign(value=value, targets=[cst.AssignTarget(target=target)]):
                return value is bound and last_part(target) != name.value
        return False

    def _is_handed_on(self, name: str) -> bool:
        """Whether a call passes on something whose last name this is: a function may be it."""
        return self._is_any(self._is_passed, name)

    def _is_passed(self, name: cst.Name) -> bool:
        parent: cst.CSTNode | None = self.tree.parent(name)
        passed: cst.CSTNode = name
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            passed, parent = parent, self.tree.parent(parent)
        return (
            isinstance(parent, cst.Arg)
            and parent.value is passed
            and isinstance(self.tree.parent(parent), cst.Call)
            and last_part(passed) == name.value
        )

    @cached_property
    def _by_parameter(self) -> list[cst.Call]:
        """The calls of what was passed for a parameter."""
        return [
            call
            for call in self.tree.of(cst.Call)
            if isinstance(call.func, cst.Name)
            and any(binding.binder is Binder.PARAMETER for binding in self.names.reaching(call.func))
        ]

    def _by_own_name(self, function: cst.FunctionDef, name: str) -> list[cst.Call]:
        assert self._by_name is not None
        if name in ("forward", "__call__"):
            return self._of_instances
        if name == "__init__":
            owner = self.classes.owner(function)
            return self._by_name.get(owner.name.value, []) if owner is not None else []
        return self._by_name.get(name, [])

    @cached_property
    def _of_instances(self) -> list[cst.Call]:
        """The calls that may be of an instance, whatever it is called: not those of what is imported or built in."""
        return [
            call
            for call in self.tree.of(cst.Call)
            if self._may_be_an_instance(call.func) and self.names.qualified(call.func) is None
        ]

    def _may_be_an_instance(self, func: cst.BaseExpression) -> bool:
        """Whether this may be an object that was bound to the name, or `forward` itself: no function, no method."""
        match func:
            case cst.Attribute(attr=cst.Name(value=name)):
                return name == "forward" or name in self.classes.attribute_names
            case cst.Name(value=name):
                binders = {binding.binder for binding in self.names.reaching(func)}
                return name == "forward" or binders.isdisjoint({Binder.FUNCTION, Binder.CLASS})
        return False

    def argument_for(
        self, call: cst.Call, function: cst.FunctionDef, parameter: cst.Param
    ) -> cst.BaseExpression | None:
        """The expression that the call passes for a parameter, its default if none; None if it can't be told.

        What `*` and `**` hide may be any parameter but those given by name, or by their place before a `*`.
        """
        name = parameter.name.value
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value == name:
                return argument.value
        order = [found for found in parameters(function) if not found.star]
        if self.classes.owner(function) is not None and not is_static(function):
            order = order[1:]
        positional = [*takewhile(lambda argument: not argument.star and argument.keyword is None, call.args)]
        place = next((place for place, found in enumerate(order) if found is parameter), None)
        if place is not None and place < len(positional):
            return positional[place].value
        return None if any(argument.star for argument in call.args) else parameter.default


def _is_started(handed: cst.CSTNode | None, call: cst.Call) -> bool:
    """`Process(target=main)`, whatever context makes it."""
    class_ = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return (
        isinstance(handed, cst.Arg)
        and handed.keyword is not None
        and handed.keyword.value == "target"
        and isinstance(class_, cst.Name)
        and class_.value in ("Process", "Thread")
    )
