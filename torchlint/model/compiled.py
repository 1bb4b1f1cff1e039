"""Which functions of a module `torch.compile` compiles."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.tree import descendants_in_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.model.context import Context

COMPILE = "torch.compile"
# What keeps a function out of the graphs of the code that calls it.
_LEFT_OUT = frozenset(
    {"torch.compiler.disable", "torch._dynamo.disable", "torch._dynamo.graph_break", "torch.compiler.allow_in_graph"}
)
# Methods that `torch.compile(module)` compiles.
_ENTRY = "forward"


class Compiled:
    """The functions of one module that are compiled: those handed to `torch.compile`, and what they call."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def holds(self, node: cst.CSTNode) -> bool:
        """Whether the node runs inside a compiled graph, as far as the module shows."""
        if "compile" not in self._context.source.text:  # under whatever name torch goes
            return False
        return any(above in self.functions for above in self._context.ancestors(node))

    @cached_property
    def functions(self) -> frozenset[cst.CSTNode]:
        """The compiled functions."""
        found: set[cst.CSTNode] = set()
        waiting = [*self._decorated(), *self._handed_over()]
        while waiting:
            function = waiting.pop()
            if function in found or self._is_left_out(function):
                continue
            found.add(function)
            waiting += self._called(function)
        return frozenset(found)

    def _decorated(self) -> Iterator[cst.FunctionDef]:
        for function in self._context.tree.of(cst.FunctionDef):
            if any(self._compiles(item.decorator) for item in function.decorators):
                yield function
        for class_ in self._context.tree.of(cst.ClassDef):
            if any(self._compiles(item.decorator) for item in class_.decorators):
                yield from self._entries(class_)

    def _compiles(self, decorator: cst.BaseExpression) -> bool:
        """`torch.compile`, `torch.compile(…)`, or `partial(torch.compile, …)`."""
        if isinstance(decorator, cst.Call):
            if self._context.qualified_name(decorator.func) == "functools.partial" and decorator.args:
                return self._compiles(decorator.args[0].value)
            return self._compiles(decorator.func) and not self._is_disabled(decorator)
        return self._context.qualified_name(decorator) == COMPILE

    def _is_disabled(self, call: cst.Call) -> bool:
        disabled = self._context.argument(call, "disable")
        return isinstance(disabled, cst.Name) and disabled.value == "True"

    def _handed_over(self) -> Iterator[cst.FunctionDef]:
        for call in self._context.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(value=owner, attr=cst.Name(value="compile")):
                    if self._context.qualified_name(call.func) == COMPILE:
                        compiled = self._context.argument(call, "model", 0)
                    else:  # `model.compile()`
                        compiled = owner
                case cst.Name() if self._context.qualified_name(call.func) == COMPILE:
                    compiled = self._context.argument(call, "model", 0)
                case _:
                    continue
            if compiled is not None and not self._is_disabled(call):
                yield from self._run_by(compiled)

    def _run_by(self, compiled: cst.BaseExpression) -> Iterator[cst.FunctionDef]:
        """The functions that a function or module runs when it is called."""
        definition = self._context.value(compiled).definition
        if isinstance(definition, cst.FunctionDef):
            yield definition
        elif isinstance(definition, cst.ClassDef) and self._context.classes.is_module(definition):
            yield from self._entries(definition)

    def _entries(self, class_: cst.ClassDef) -> Iterator[cst.FunctionDef]:
        entry = self._context.classes.method(class_, _ENTRY)
        if entry is not None:
            yield entry

    def _called(self, function: cst.FunctionDef) -> Iterator[cst.FunctionDef]:
        for node in descendants_in_scope(function.body):
            if isinstance(node, cst.Call):
                target = self._context.calls.target(node)
                if target is not None and target.name.value != "__init__":
                    yield target

    def _is_left_out(self, function: cst.FunctionDef) -> bool:
        names = (
            item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator
            for item in function.decorators
        )
        return any(self._context.qualified_name(name) in _LEFT_OUT for name in names)
