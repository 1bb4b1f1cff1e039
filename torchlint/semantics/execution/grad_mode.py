"""Whether autograd records what runs at a place."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import EVAL_NAME, INHERITED_EVALUATION, NO_GRAD_NAME
from torchlint.semantics.names.bindings import Binder, Names, dotted
from torchlint.syntax.tree import Tree, descendants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.semantics.names.classes import Classes
    from torchlint.semantics.values.call_graph import Calls
    from torchlint.semantics.values.other_files import Elsewhere


class GradMode(Enum):
    """The grad mode at a place. UNKNOWN: it depends on a value."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class Grads:
    """The grad mode of nodes in one module."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, calls: Calls, elsewhere: Elsewhere) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.calls = calls
        self.elsewhere = elsewhere
        self.kinds = calls.kinds
        self._set: dict[cst.IndentedBlock | cst.Module, list[tuple[int, GradMode | None]]] = {}

    def mode(self, node: cst.CSTNode) -> GradMode:
        """The grad mode in which the node runs: by `with`, decorators and, in this module, callers."""
        child = node
        for above in self.tree.ancestors(node):
            if isinstance(above, cst.With) and child is above.body:
                for item in reversed(above.items):
                    found = self._context(item.item)
                    if found is not None:
                        return found
            if isinstance(above, (cst.IndentedBlock, cst.Module)):
                found = self._set_before(above, child)
                if found is not None:
                    return found
            if isinstance(above, cst.FunctionDef) and child is above.body:
                return self.function(above)
            child = above
        return GradMode.ON

    def function(self, function: cst.FunctionDef) -> GradMode:
        """The grad mode in which a function is entered."""
        return self.kinds.settled(("grad", function), GradMode.OFF, self._entered, function)  # recursion says nothing

    def _entered(self, function: cst.FunctionDef) -> GradMode:
        for decorator in function.decorators:
            found = self._context(decorator.decorator)
            if found is not None:
                return found
            if self._is_called_without_grad_by(decorator.decorator):
                return GradMode.OFF
        if self.classes.owner(function) is not None and function.name.value in apis.NO_GRAD_METHODS:
            return GradMode.OFF
        if self.classes.is_training_method(function):
            return GradMode.ON  # whoever else calls it
        around = self._around(function)
        if around is not None:
            return around
        if self._is_hook(function):
            return GradMode.OFF
        callers = (*self.calls.callers(function), *self.calls.dispatched(function))
        modes = {self.mode(call) for call in callers}
        modes |= {GradMode(call.grad) for call in self.elsewhere.callers(function)}
        if len(modes) == 1:
            return modes.pop()
        return GradMode.UNKNOWN if modes else GradMode.ON

    def _is_called_without_grad_by(self, decorator: cst.BaseExpression) -> bool:
        """Whether a decorator of this module turns autograd off around what it is given, wherever it calls that."""
        made = self.kinds.value(decorator).definition
        if not isinstance(made, cst.FunctionDef) or not made.params.params:
            return False
        given = made.params.params[0].name.value
        calls = [part for part in descendants(made.body) if isinstance(part, cst.Call) and dotted(part.func) == given]
        return bool(calls) and all(self.mode(call) is GradMode.OFF for call in calls)

    def _is_hook(self, function: cst.FunctionDef) -> bool:
        """Whether a class from elsewhere that this one extends calls the method, and turns autograd off around it."""
        class_ = self.classes.owner(function)
        return (
            class_ is not None
            and INHERITED_EVALUATION.suggests(function.name.value)
            and any(isinstance(base, str) and base not in ("", "object") for base in self.classes.lineage(class_))
        )

    def _around(self, function: cst.FunctionDef) -> GradMode | None:
        """A function defined inside another, which is called where that one runs."""
        outer = self.tree.function(function)
        if isinstance(outer, cst.FunctionDef) and not self.calls.callers(function):
            mode = self.function(outer)
            return mode if mode is GradMode.OFF else None
        return None

    def _context(self, node: cst.CSTNode) -> GradMode | None:
        """The mode that a context manager or decorator sets; None if it sets none."""
        if isinstance(node, cst.IfExp):  # `torch.no_grad() if evaluating else nullcontext()`
            modes = {self._context(node.body), self._context(node.orelse)}
            return None if modes == {None} else modes.pop() if len(modes) == 1 else GradMode.UNKNOWN
        if isinstance(node, cst.Name):
            bound = self._bound(node)
            if bound is not None:
                return bound
        call = node if isinstance(node, cst.Call) else None
        func = call.func if call is not None else node
        name = self.names.qualified(func) or dotted(func) or ""
        last = name.rpartition(".")[2]
        if name in apis.NO_GRAD_CONTEXTS or last in ("no_grad", "inference_mode"):
            if call is not None and last == "inference_mode" and call.args:
                return _switched(call.args[0].value, when_false=GradMode.ON, when_true=GradMode.OFF)
            return GradMode.OFF
        if last == "enable_grad":
            return GradMode.ON
        if last == "set_grad_enabled" and call is not None and call.args:
            return _switched(call.args[0].value, when_false=GradMode.OFF, when_true=GradMode.ON)
        if NO_GRAD_NAME.suggests(last):
            return GradMode.OFF
        if EVAL_NAME.suggests(last) or (call is not None and self._is_made_to_switch(call)):
            return GradMode.UNKNOWN
        return None

    def _bound(self, name: cst.Name) -> GradMode | None:
        """The mode of a context manager that a name was given before."""
        return self.kinds.settled(("context", name), None, self._find_bound, name)

    def _find_bound(self, name: cst.Name) -> GradMode | None:
        values = [binding.value for binding in self.names.reaching(name) if binding.binder is Binder.ASSIGN]
        modes = {self._context(value) for value in values if isinstance(value, (cst.Call, cst.IfExp))} - {None}
        return None if not modes else modes.pop() if len(modes) == len(values) == 1 else GradMode.UNKNOWN

    def _is_made_to_switch(self, call: cst.Call) -> bool:
        """Whether the context manager or decorator is a function of this module that sets a mode somewhere."""
        target = self.calls.target(call)
        return target is not None and any(
            (dotted(inner) or "").endswith(("no_grad", "set_grad_enabled", "inference_mode"))
            for inner in descendants(target)
            if isinstance(inner, (cst.Name, cst.Attribute))
        )

    def _set_before(self, block: cst.IndentedBlock | cst.Module, child: cst.CSTNode) -> GradMode | None:
        """`torch.set_grad_enabled(False)` as a statement before this one in the block."""
        if block not in self._set:
            self._set[block] = []  # a call in one of them that asks for its own mode is told of none
            self._set[block] = list(self._settings(block))
        settings = self._set[block]
        if not settings:
            return None
        place = self.tree.place(child)
        return next((mode for at, mode in reversed(settings) if at < place), None)

    def _settings(self, block: cst.IndentedBlock | cst.Module) -> Iterator[tuple[int, GradMode | None]]:
        """Where statements of the block set the mode, and which is set from there on."""
        found = None
        for statement in block.body:
            if isinstance(statement, cst.SimpleStatementLine):
                before = found
                for small in statement.body:
                    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
                        func = small.value.func
                        if (dotted(func) or "").endswith(("set_grad_enabled", "_set_grad_enabled")):
                            found = self._context(small.value)
                        elif (
                            isinstance(func, cst.Attribute) and func.attr.value == "enter_context" and small.value.args
                        ):
                            found = self._context(small.value.args[0].value) or found
                if found is not before:
                    yield self.tree.place(statement), found


def _switched(node: cst.CSTNode, *, when_false: GradMode, when_true: GradMode) -> GradMode:
    match node:
        case cst.Name(value="False"):
            return when_false
        case cst.Name(value="True"):
            return when_true
    return GradMode.UNKNOWN
