"""Which functions of a module `torch.compile` compiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import descendants, descendants_in_scope

COMPILE = "torch.compile"
# One of these stands in each file that compiles something: `re.compile(` is in far more.
_OPTIONS = ("mode", "fullgraph", "backend", "dynamic", "options", "disable", "**")
MARKS = (
    "torch.compile",
    "import compile",
    "import torch as",
    ".compile()",
    *(f".compile({option}" for option in _OPTIONS),
)
# What keeps a function out of the graphs of the code that calls it.
_LEFT_OUT = frozenset(
    {"torch.compiler.disable", "torch._dynamo.disable", "torch._dynamo.graph_break", "torch.compiler.allow_in_graph"}
)
# Methods that `torch.compile(module)` compiles.
_ENTRY = "forward"

Compilable: TypeAlias = "cst.FunctionDef | cst.Lambda"


class Compiled:
    """The functions of one module that are compiled: those handed to `torch.compile`, and what they call."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def holds(self, node: cst.CSTNode) -> bool:
        """Whether the node runs inside a compiled graph, as far as the module shows."""
        if not self.is_used:
            return False
        child = node
        for above in self._context.ancestors(node):
            if isinstance(above, cst.FunctionDef) and self._is_left_out(above):
                return False
            if isinstance(above, cst.If) and child is not above.test and _asks_whether_compiling(above.test):
                return False
            if above in self.functions:
                return True
            child = above
        return False

    @cached_property
    def is_used(self) -> bool:
        """Whether the module may compile anything; costs a look at the text."""
        return any(mark in self._context.source.text for mark in MARKS)

    @cached_property
    def functions(self) -> frozenset[cst.CSTNode]:
        """The compiled functions."""
        return self._reached(self._roots) if self.is_used else frozenset()

    @cached_property
    def in_one_graph(self) -> frozenset[cst.CSTNode]:
        """Those compiled with `fullgraph=True`, where whatever splits a graph is an error."""
        return self._reached(root for root, whole in self._roots.items() if whole)

    def is_root(self, function: cst.CSTNode) -> bool:
        """Whether the function itself was handed over: nothing is compiled around it."""
        return function in self._roots

    def _reached(self, roots: Iterable[Compilable]) -> frozenset[cst.CSTNode]:
        found: set[cst.CSTNode] = set()
        waiting = list(roots)
        while waiting:
            function = waiting.pop()
            if function in found or self._is_left_out(function):
                continue
            found.add(function)
            waiting += self._called(function)
        return frozenset(found)

    @cached_property
    def _roots(self) -> dict[Compilable, bool]:
        """What is handed to `torch.compile`, and whether as one graph."""
        found: dict[Compilable, bool] = {}
        for compiled, whole in (*self._decorated(), *self._handed_over()):
            found[compiled] = found.get(compiled, False) or whole
        return found

    # Ways to compile

    def _decorated(self) -> Iterator[tuple[Compilable, bool]]:
        for function in self._context.tree.of(cst.FunctionDef):
            for item in function.decorators:
                if self._compiles(item.decorator):
                    yield function, _gives_true(item.decorator, "fullgraph")
        for class_ in self._context.tree.of(cst.ClassDef):
            for item in class_.decorators:
                if self._compiles(item.decorator):
                    yield from ((entry, _gives_true(item.decorator, "fullgraph")) for entry in self._entries(class_))

    def _compiles(self, node: cst.BaseExpression) -> bool:
        """`torch.compile`, `torch.compile(…)`, or `partial(torch.compile, …)`."""
        if isinstance(node, cst.Call):
            if self._context.qualified_name(node.func) == "functools.partial" and node.args:
                return self._compiles(node.args[0].value)
            return self._compiles(node.func) and not _gives_true(node, "disable")
        return self._context.qualified_name(node) == COMPILE

    def _handed_over(self) -> Iterator[tuple[Compilable, bool]]:
        for call in self._context.tree.of(cst.Call):
            compiled = self._operand(call)
            if compiled is not None and not _gives_true(call, "disable"):
                options = call.func if isinstance(call.func, cst.Call) else call
                whole = _gives_true(options, "fullgraph")
                yield from ((function, whole) for function in self._run_by(compiled))

    def _operand(self, call: cst.Call) -> cst.BaseExpression | None:
        """What a call compiles: of `torch.compile(f)`, `torch.compile(mode=…)(f)` and `f.compile()` this is `f`."""
        match call.func:
            case cst.Attribute(value=owner, attr=cst.Name(value="compile")):
                if self._context.qualified_name(call.func) == COMPILE:
                    return self._context.argument(call, "model", 0)
                return owner
            case cst.Name() if self._context.qualified_name(call.func) == COMPILE:
                return self._context.argument(call, "model", 0)
            case cst.Call(func=inner) if self._context.qualified_name(inner) == COMPILE and call.args:
                return call.args[0].value
        return None

    # What runs when it is called

    def _run_by(self, compiled: cst.BaseExpression) -> Iterator[Compilable]:
        """The functions that a function or module runs when it is called."""
        if isinstance(compiled, cst.Lambda):
            yield compiled
            return
        definition = self._context.value(compiled).definition
        if isinstance(definition, cst.FunctionDef):
            yield definition
        elif isinstance(definition, cst.ClassDef) and self._context.classes.is_module(definition):
            yield from self._entries(definition)
        else:
            for made in self._made(compiled):
                yield from self._parts(made)

    def _made(self, compiled: cst.BaseExpression) -> Iterator[cst.CSTNode]:
        """The expressions that constructed it, where it is none of this module's classes: an `nn.Sequential`."""
        match compiled:
            case cst.Call() | cst.Name() | cst.Attribute():
                for made, path in self._context.origins(compiled, Through.ATTRIBUTES).found:
                    if isinstance(made, cst.Call) and not path:
                        yield made

    def _parts(self, node: cst.CSTNode) -> Iterator[cst.FunctionDef]:
        """The entries of the modules of this file that are constructed anywhere below the node."""
        for inner in descendants(node):
            if isinstance(inner, cst.Call):
                definition = self._context.value(inner.func).definition
                if isinstance(definition, cst.ClassDef) and self._context.classes.is_module(definition):
                    yield from self._entries(definition)

    def _entries(self, class_: cst.ClassDef) -> Iterator[cst.FunctionDef]:
        entry = self._context.classes.method(class_, _ENTRY)
        if entry is not None:
            yield entry

    def _called(self, function: Compilable) -> Iterator[cst.FunctionDef]:
        for node in descendants_in_scope(function.body):
            if isinstance(node, cst.Call):
                target = self._context.calls.target(node)
                if target is not None and target.name.value != "__init__":
                    yield target
        owner = self._context.classes.owner(function)
        if owner is not None and isinstance(function, cst.FunctionDef) and function.name.value == _ENTRY:
            made = self._context.classes.method(owner, "__init__")
            if made is not None:
                yield from self._parts(made.body)

    def _is_left_out(self, function: Compilable) -> bool:
        if isinstance(function, cst.Lambda):
            return False
        names = (
            item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator
            for item in function.decorators
        )
        return any(self._context.qualified_name(name) in _LEFT_OUT for name in names)


def _gives_true(node: cst.CSTNode, keyword: str) -> bool:
    return isinstance(node, cst.Call) and any(
        argument.keyword is not None
        and argument.keyword.value == keyword
        and isinstance(argument.value, cst.Name)
        and argument.value.value == "True"
        for argument in node.args
    )


def _asks_whether_compiling(test: cst.BaseExpression) -> bool:
    return any(
        (dotted(inner) or "").rpartition(".")[2] in ("is_compiling", "is_dynamo_compiling", "is_torchdynamo_compiling")
        for inner in descendants(test)
        if isinstance(inner, (cst.Name, cst.Attribute))
    )
