"""Equal reads of one value in a block, and whether anything between them can change it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeGuard

import libcst as cst

from torchlint.analyses.execution.hot import rate_doubts
from torchlint.analyses.tensors.aliasing import is_in_place, makes_new, reflects
from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import dotted, final_part, parameters
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import Comprehension, Loop, descendants, descendants_in_scope

Chain: TypeAlias = "cst.Name | cst.Attribute"

# Builtins that look at their arguments and run no code that could matter.
_BUILTINS = frozenset("print len str repr format round int float bool abs min max isinstance type id range".split())
_PURE_ROOTS = ("math.", "time.", "logging.")
# What is done with a tensor without another name for its storage coming of it.
_TENSOR_METHODS = frozenset("item backward numel dim size tolist mean sum norm sqrt exp log isnan isfinite".split())
_TENSOR_FIELDS = frozenset("shape device dtype ndim requires_grad grad_fn is_cuda".split())


@dataclass(frozen=True, eq=False)
class Repeats:
    """Reads of `tensor` in one block, in source order; the first always runs when the block comes to its line.

    `counted` are those of them that are made again and again: not in a branch that the value itself decides about.
    """

    tensor: Chain
    reads: tuple[cst.Call, ...]
    counted: tuple[cst.Call, ...]
    first_line: cst.SimpleStatementLine | cst.If
    suite: cst.IndentedBlock | cst.Module
    context: Context

    @classmethod
    def of(cls, read: cst.Call, tensor: Chain, context: Context) -> Repeats | None:
        """The run of equal reads that this read belongs to; None if it stands alone."""
        wanted = dotted(tensor)
        if wanted is None or _is_property(tensor, context):
            return None
        for suite in _suites(read, context):
            found = _repeats_in(suite, context, wanted).get(read)
            if found is not None:
                line, reads, counted = found
                return cls(tensor, reads, counted, line, suite, context)
        return None

    @property
    def name(self) -> str:
        """The tensor as it is written."""
        return dotted(self.tensor) or ""

    # The fix

    def fresh_name(self) -> str | None:
        """A name for the value that is free here; None where the reads can't be replaced by one."""
        context = self.context
        if any("#" in context.code(read) or _is_quoted(read, context) for read in self.reads):
            return None
        *_, outermost = (context.tree.module, *context.around(self.first_line, cst.FunctionDef))
        stem = _stem(self.name)
        inside = list(descendants(outermost))
        taken = {node.value for node in inside if isinstance(node, cst.Name)}
        others = {dotted(node.func.value) for node in inside if _is_item(node)}  # type: ignore[attr-defined]
        if any(other is not None and other != self.name and _stem(other) == stem for other in others):
            return None
        return next((name for name in (f"{stem}_value", f"{stem}_item") if name not in taken), None)

    # The proof

    def is_unchanged(self) -> bool:
        """Whether nothing that runs from the first line to the last read can change the value, or see the new name.

        Either the tensor is a result that only this function has, or nothing but plain code stands between.
        """
        context = self.context
        scope = context.names.scope_of(self.first_line).node
        if not isinstance(scope, cst.FunctionDef) or self._is_reflected(scope):
            return False
        if context.kind(self.tensor) is not Kind.TENSOR:
            return False  # an `item` of something else may do anything
        if any(_suspends(node) or isinstance(node, cst.ClassDef) for node in self._between):
            return False
        if self._is_private():
            return True
        if isinstance(self.tensor, cst.Attribute) and not self._is_own_attribute(self.tensor):
            return False
        return all(self._is_plain(node) for node in self._between)

    @cached_property
    def _between(self) -> list[cst.CSTNode]:
        """All nodes that run from the start of the first line to the last read, and perhaps some more."""
        place = self.context.tree.place
        last = self.reads[-1]
        match self.context.tree.statement(last):
            case cst.Assign(targets=targets):
                after = {id(node) for target in targets for node in descendants(target)}
            case cst.AugAssign(target=target):
                after = {id(node) for node in descendants(target)}
            case _:
                after = set()
        start, end = place(self.first_line), place(last)
        return [
            node
            for node in descendants(self.suite)
            if start < place(node) < end
            and id(node) not in after
            # What holds the last read runs after it; a `with` is entered before, and may be left.
            and (isinstance(node, cst.With) or not self.context.tree.within(last, node))
        ]

    def _is_reflected(self, function: cst.FunctionDef) -> bool:
        return any(reflects(node) for node in descendants(function.body))

    def _is_own_attribute(self, tensor: cst.Attribute) -> bool:
        """Whether `self.x` is a plain attribute, by what this class and its bases here set."""
        if not isinstance(tensor.value, cst.Name):
            return False
        class_ = self.context.classes.self_class(tensor.value)
        return class_ is not None and bool(self.context.classes.attribute_sets(class_, tensor.attr.value))

    def _is_private(self) -> bool:
        """Whether the tensor is computed here and everything done with it leaves it to this function alone."""
        context, tensor = self.context, self.tensor
        if not isinstance(tensor, cst.Name):
            return False
        scope = context.names.scope_of(tensor)
        if context.names.lookup(tensor)[0] is not scope or tensor.value in scope.globals:
            return False
        if not context.bound_to(tensor).every(lambda value: makes_new(value, context)):
            return False
        return all(
            context.names.scope_of(use) is scope and self._keeps_to_itself(use) for use in context.readers(tensor)
        )

    def _keeps_to_itself(self, use: cst.Name) -> bool:
        """Whether this use gives nobody the tensor or a view of it."""
        context = self.context
        parent = context.parent(use)
        match parent:
            case cst.Attribute(attr=cst.Name(value=attr)):
                if attr in _TENSOR_FIELDS:
                    return True
                return attr in _TENSOR_METHODS and isinstance(context.parent(parent), cst.Call)
            case cst.BinaryOperation() | cst.Comparison() | cst.ComparisonTarget() | cst.UnaryOperation():
                return True
            case cst.FormattedStringExpression() | cst.Return() | cst.If() | cst.While():
                return True
            case cst.Arg():
                call = context.parent(parent)
                if not isinstance(call, cst.Call):
                    return False
                name = context.qualified_name(call.func) or ""
                if name in _BUILTINS:
                    return name not in ("max", "min")  # which return one of their arguments
                return name.startswith("math.") or final_part(call.func) == "backward" or self._scales(call)
        return False

    def _scales(self, call: cst.Call) -> bool:
        """`scaler.scale(loss)`."""
        return isinstance(call.func, cst.Attribute) and (
            call.func.attr.value == "scale" and self.context.kind(call.func.value) is Kind.SCALER
        )

    def _is_plain(self, node: cst.CSTNode) -> bool:
        """Whether a node between the reads runs no code that could change a tensor it may know."""
        context = self.context
        match node:
            case cst.Call():
                return self._is_plain_call(node)
            case cst.AugAssign(target=target):
                return isinstance(target, cst.Name) and context.kind(target) in (Kind.NUMBER, Kind.STRING)
            case cst.AssignTarget(target=cst.Subscript(value=owner)):
                return context.kind(owner) is Kind.MAPPING
            case cst.AssignTarget(target=target) | cst.AnnAssign(target=target):
                return _binds_names_only(target)
            case cst.With() | cst.For() | cst.While() | cst.CompFor() | cst.Import() | cst.ImportFrom() | cst.Del():
                return False
            case cst.FunctionDef() | cst.Decorator():
                return False
        return True

    def _is_plain_call(self, call: cst.Call) -> bool:
        context = self.context
        name = context.qualified_name(call.func) or ""
        if name in _BUILTINS or name.startswith(_PURE_ROOTS):
            return True
        if not isinstance(call.func, cst.Attribute):
            return False
        owner, method = call.func.value, call.func.attr.value
        if _is_item(call):
            return True
        if method in ("debug", "info", "warning", "error") and self._is_logger(owner):
            return True
        match context.kind(owner):
            case Kind.STRING:
                return method in ("format", "join", "ljust", "rjust", "strip")
            case Kind.SEQUENCE:
                return method == "append"
            case Kind.TENSOR:
                return method in _TENSOR_METHODS and method != "backward"
        return False

    def _is_logger(self, owner: cst.BaseExpression) -> bool:
        return self.context.origins(owner).every(
            lambda made: isinstance(made, cst.Call) and self.context.qualified_name(made.func) == "logging.getLogger"
        )


# Finding the reads


def _suites(read: cst.Call, context: Context) -> list[cst.IndentedBlock | cst.Module]:
    """The blocks around a read that run together with it, the outermost first."""
    whole = context.enclosing(read, *Loop, cst.FunctionDef, cst.ClassDef, cst.Lambda) or context.tree.module
    return [suite.block for suite in context.suites(read) if context.tree.within(suite.block, whole)][::-1]


@query(bottom={})
def _repeats_in(suite: cst.IndentedBlock | cst.Module, context: Context, wanted: str) -> dict[cst.Call, _Run]:
    """Of each read of the tensor that is made again and again in a block the run it belongs to."""
    found: dict[cst.Call, _Run] = {}
    for line, reads in _runs(suite, wanted, context):
        counted = tuple(
            call
            for call in reads
            if not _is_seldom(call, context) and not _is_decided_by_itself(call, wanted, suite, context)
        )
        if len(counted) > 1:
            for call in reads:
                found.setdefault(call, (line, tuple(reads), counted))
    return found


# The line of the first read, all reads, and those that count.
_Run: TypeAlias = "tuple[cst.SimpleStatementLine | cst.If, tuple[cst.Call, ...], tuple[cst.Call, ...]]"


def _runs(
    suite: cst.IndentedBlock | cst.Module, wanted: str, context: Context
) -> Iterator[tuple[cst.SimpleStatementLine | cst.If, list[cst.Call]]]:
    """The stretches of a block in which the tensor stays what it is: the line of the first read, and all reads."""
    start: cst.SimpleStatementLine | cst.If | None = None
    reads: list[cst.Call] = []
    place = context.tree.place
    for line in suite.body:
        found = [call for call in _reads_in(line, wanted, context) if not _runs_apart(call, line, context)]
        if start is None and _starts(line, found, context):
            start, reads = line, []
        if start is not None:
            reads += found
        writes = [
            place(node)
            for node in descendants(line)
            if _writes_to(node, wanted) or _calls_a_writer(node, wanted, context)
        ]
        if writes:
            # Written before the last read of a line: whose turn it is can't be told.
            if start is not None and not (found and min(writes) < place(found[-1])):
                yield start, reads
            start = None
    if start is not None:
        yield start, reads


def _starts(line: cst.CSTNode, found: list[cst.Call], context: Context) -> TypeGuard[cst.SimpleStatementLine | cst.If]:
    """Whether the line always makes its first read, and a statement can be put above it."""
    return bool(found) and isinstance(line, (cst.SimpleStatementLine, cst.If)) and _always_runs(found[0], line, context)


def _is_item(node: cst.CSTNode) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="item")), args=[]):
            return True
    return False


def _reads_in(line: cst.CSTNode, wanted: str, context: Context) -> list[cst.Call]:
    """The reads of the tensor in a line; not `loss.item()` as a statement, which is there to wait."""
    return [
        node
        for node in descendants_in_scope(line)
        if isinstance(node, cst.Call)
        and _is_item(node)
        and dotted(node.func.value) == wanted  # type: ignore[attr-defined]
        and not isinstance(context.parent(node), cst.Expr)
    ]


def _runs_apart(node: cst.CSTNode, line: cst.CSTNode, context: Context) -> bool:
    """Whether the node runs at other times than its line, or more often."""
    apart = (*Loop, *Comprehension, cst.Lambda, cst.FunctionDef, cst.ClassDef)
    return isinstance(line, apart) or context.enclosing(node, *apart, within=line) is not None


def _always_runs(node: cst.CSTNode, line: cst.CSTNode, context: Context) -> bool:
    """Whether the node runs whenever the line does."""
    if isinstance(line, cst.If) and not context.tree.within(node, line.test):
        return False
    return not any(context.guards(node, within=line)) and context.enclosing(node, cst.Lambda, within=line) is None


def _is_decided_by_itself(read: cst.Call, wanted: str, suite: cst.CSTNode, context: Context) -> bool:
    """Whether a branch was taken because of the value: `if loss.item() > limit: print(loss.item())` reads it rarely."""
    if context.enclosing(read, cst.ExceptHandler, cst.Raise, cst.Assert, within=suite) is not None:
        return True
    return any(_reads_in(condition.test, wanted, context) for condition in context.conditions(read, within=suite))


def _is_seldom(read: cst.Call, context: Context) -> bool:
    """Whether the read is known to run less often than for each batch."""
    return not {Doubt.RARE, Doubt.RUNS_ONCE}.isdisjoint(rate_doubts(read, context))


def _is_property(tensor: Chain, context: Context) -> bool:
    """Whether a class of this module computes the attribute each time."""
    if not isinstance(tensor, cst.Attribute):
        return False
    class_ = context.classes.self_class(tensor.value) if isinstance(tensor.value, cst.Name) else None
    owner = class_ or context.value(tensor.value).definition
    if isinstance(owner, cst.ClassDef) and context.classes.method(owner, tensor.attr.value) is not None:
        return True
    return isinstance(tensor.value, cst.Attribute) and _is_property(tensor.value, context)


def _is_quoted(read: cst.Call, context: Context) -> bool:
    """Whether the text of the read is printed too: `f"{loss.item()=}"`."""
    shown = context.enclosing(read, cst.FormattedStringExpression, within=context.tree.statement(read))
    return shown is not None and shown.equal is not None


def _stem(name: str) -> str:
    return name.removeprefix("self.").replace(".", "_").strip("_") or "tensor"


# What changes a name or its tensor


def _writes_to(node: cst.CSTNode, wanted: str) -> bool:
    """Whether the node binds the name or changes the tensor in place."""
    match node:
        case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.AnnAssign(target=target):
            return _covers(target, wanted)
        case (
            cst.NamedExpr(target=target) | cst.For(target=target) | cst.CompFor(target=target) | cst.Del(target=target)
        ):
            return _covers(target, wanted)
        case cst.AsName(name=target) | cst.FunctionDef(name=target) | cst.ClassDef(name=target):
            return _covers(target, wanted)
        case cst.MatchAs(name=cst.Name() as target) | cst.MatchStar(name=cst.Name() as target):
            return _covers(target, wanted)
        case cst.ImportAlias() | cst.MatchMapping():
            return any(_covers(part, wanted) for part in descendants(node) if isinstance(part, cst.Name))
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if is_in_place(method):
            return _covers(receiver, wanted)
    return False


def _calls_a_writer(node: cst.CSTNode, wanted: str, context: Context) -> bool:
    """Whether a method of the same object is called that binds the attribute or changes it: `self.grow()`."""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=me) as owner, attr=cst.Name(value=name))) if (
            wanted.startswith(f"{me}.")
        ):
            class_ = context.classes.self_class(owner)
            method = context.classes.method(class_, name) if class_ is not None else None
            first = next(parameters(method), None) if method is not None else None
            if method is None or first is None:
                return False
            return _is_writer(method, context, f"{first.name.value}.{wanted.removeprefix(f'{me}.')}")
    return False


@query(bottom=False)
def _is_writer(method: cst.FunctionDef, context: Context, wanted: str) -> bool:
    """Whether a method binds the attribute or changes it, or calls one that does."""
    return any(
        _writes_to(part, wanted) or _calls_a_writer(part, wanted, context) for part in descendants_in_scope(method.body)
    )


def _covers(target: cst.CSTNode, wanted: str) -> bool:
    """Whether the name, or one that it is an attribute of, occurs."""
    for node in descendants(target):
        name = dotted(node)
        if name is not None and (wanted == name or wanted.startswith(f"{name}.")):
            return True
    return False


def _binds_names_only(target: cst.BaseExpression) -> bool:
    match target:
        case cst.Name():
            return True
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return all(_binds_names_only(element.value) for element in elements)
    return False


def _suspends(node: cst.CSTNode) -> bool:
    """Whether other code may run at the node."""
    if isinstance(node, (cst.Await, cst.Yield)):
        return True
    return isinstance(node, (cst.For, cst.With, cst.CompFor)) and node.asynchronous is not None
