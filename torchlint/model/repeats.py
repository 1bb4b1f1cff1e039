"""Equal reads of one value in a block, and whether anything between them can change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.names import dotted
from torchlint.model.torch_table import FUNCTIONAL, MODULES
from torchlint.model.tree import Comprehension, Loop, descendants, descendants_in_scope
from torchlint.model.values import Kind

if TYPE_CHECKING:
    from torchlint.model.context import Context

# Calls that look at their arguments and change no tensor.
_HARMLESS = frozenset(
    "print len str repr format round int float bool abs min max sum range isinstance append format_map join info debug "
    "warning error log add_scalar set_postfix set_description write item update size dim numel time perf_counter "
    "zip enumerate list tuple dict sorted".split()
)
# Operations whose result shares its storage with their input.
_VIEWS = frozenset(
    "view reshape squeeze unsqueeze detach expand expand_as transpose permute t narrow select data T flatten "
    "diagonal unbind chunk split contiguous to cuda cpu float double half real imag view_as".split()
)


@dataclass(frozen=True, slots=True)
class Repeats:
    """Reads of `tensor` in one block, at least two, in source order; the first one always runs."""

    tensor: cst.Name | cst.Attribute
    reads: tuple[cst.Call, ...]
    first_line: cst.SimpleStatementLine | cst.BaseCompoundStatement
    context: Context

    @classmethod
    def of(cls, read: cst.Call, tensor: cst.Name | cst.Attribute, context: Context) -> Repeats | None:
        """The run of equal reads that this read belongs to; None if it stands alone."""
        wanted = dotted(tensor)
        if wanted is None:
            return None
        for suite in _suites(read, context):
            found = cls._in_suite(suite, read, tensor, wanted, context)
            if found is not None:
                return found
        return None

    @classmethod
    def _in_suite(
        cls,
        suite: cst.IndentedBlock | cst.Module,
        read: cst.Call,
        tensor: cst.Name | cst.Attribute,
        wanted: str,
        context: Context,
    ) -> Repeats | None:
        runs: list[tuple[cst.CSTNode, list[cst.Call]]] = []
        current: list[cst.Call] | None = None
        for line in suite.body:
            found = [call for call in _reads_in(line, wanted) if not _in_inner_loop(call, line, context)]
            if found and current is None and _always_runs(found[0], line, context):
                current = []
                runs.append((line, current))
            if current is not None:
                current += found
            if _may_rebind(line, wanted, context):
                if found and current is not None and _first_write(line, wanted, context) < context.tree.index[found[-1]]:
                    # Written between two reads of one statement: whose turn it is can't be told.
                    runs.pop()
                current = None
        for line, calls in runs:
            if len(calls) > 1 and any(call is read for call in calls):
                assert isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
                return cls(tensor, tuple(calls), line, context)
        return None

    def fresh_name(self) -> str | None:
        """A name for the value that the module does not use yet; None where none can be put before the block."""
        if isinstance(self.first_line, cst.BaseCompoundStatement) and not isinstance(self.first_line, (cst.If, cst.With)):
            return None
        if isinstance(self.first_line, cst.If) and self._is_elif(self.first_line):
            return None
        taken = {node.value for node in self.context.tree.of(cst.Name)}
        last = (dotted(self.tensor) or "").rpartition(".")[2]
        return next((name for name in (f"{last}_value", f"{last}_item") if name not in taken), None)

    def _is_elif(self, node: cst.If) -> bool:
        parent = self.context.parent(node)
        return isinstance(parent, cst.If) and parent.orelse is node

    def is_unchanged(self) -> bool:
        """Whether nothing between the first and the last read can write to the tensor.

        That holds for a fresh result that only this function knows, and for any tensor when nothing but harmless calls
        stand between the reads. At module level the new name would be seen from outside.
        """
        context = self.context
        if context.function(self.reads[0]) is None:
            return False
        first, last = context.tree.index[self.reads[0]], context.tree.index[self.reads[-1]]
        between = [
            node
            for node in descendants_in_scope(context.tree.parent(self.first_line) or context.tree.module)
            if first <= context.tree.index[node] <= last
        ]
        if any(isinstance(node, (cst.Await, cst.Yield)) for node in between):
            return False
        if any(_writes_in_place(node) for node in between):
            return self._is_fresh() and not any(_writes_to(node, dotted(self.tensor) or "") for node in between)
        calls = [node for node in between if isinstance(node, cst.Call)]
        return all(_called(call) in _HARMLESS for call in calls) or self._is_fresh_and_unshared(calls)

    def _is_fresh(self) -> bool:
        """Whether the tensor is the result of an operation of this function, which no other name views."""
        context = self.context
        if not isinstance(self.tensor, cst.Name):
            return False
        bindings = context.reaching(self.tensor)
        return bool(bindings) and all(
            binding.value is not None and not binding.path and _makes_new(binding.value, context) for binding in bindings
        )

    def _is_fresh_and_unshared(self, calls: list[cst.Call]) -> bool:
        """Whether no opaque call between gets the tensor: whoever does not have it can't change it."""
        name = dotted(self.tensor)
        if not self._is_fresh():
            return False
        return not any(
            _called(call) not in _HARMLESS
            and any(name == dotted(node) for argument in call.args for node in descendants(argument))
            for call in calls
        )


def _suites(read: cst.Call, context: Context) -> list[cst.IndentedBlock | cst.Module]:
    found: list[cst.IndentedBlock | cst.Module] = []
    for above in context.ancestors(read):
        if isinstance(above, (cst.IndentedBlock, cst.Module)):
            found.append(above)
        if isinstance(above, (*Loop, cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            break
    return found[::-1]


def _reads_in(line: cst.CSTNode, wanted: str) -> list[cst.Call]:
    return [
        node
        for node in descendants_in_scope(line)
        if isinstance(node, cst.Call)
        and not node.args
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "item"
        and dotted(node.func.value) == wanted
    ]


def _in_inner_loop(node: cst.CSTNode, line: cst.CSTNode, context: Context) -> bool:
    for above in context.ancestors(node):
        if isinstance(above, (*Loop, *Comprehension, cst.Lambda, cst.FunctionDef, cst.ClassDef)):
            return True
        if above is line:
            return False
    return False


def _always_runs(node: cst.CSTNode, line: cst.CSTNode, context: Context) -> bool:
    """Whether the read is made whenever the line runs, before anything else in it can leave."""
    child = node
    for above in context.ancestors(node):
        if above is line.__class__:
            break
        if isinstance(above, (cst.BooleanOperation, cst.IfExp)) and child is not getattr(above, "left", None):
            if not (isinstance(above, cst.IfExp) and child is above.test):
                return False
        if isinstance(above, (cst.IndentedBlock, cst.SimpleStatementSuite)) and above is not context.parent(line):
            return False
        if isinstance(above, (cst.Else, cst.ExceptHandler, cst.Finally, cst.Assert)):
            return False
        if above is line:
            break
        child = above
    return not isinstance(line, (cst.For, cst.While, cst.Try, cst.FunctionDef, cst.ClassDef))


def _may_rebind(line: cst.CSTNode, wanted: str, context: Context) -> bool:
    return any(_writes_to(node, wanted) for node in descendants(line))


def _first_write(line: cst.CSTNode, wanted: str, context: Context) -> int:
    return min(context.tree.index[node] for node in descendants(line) if _writes_to(node, wanted))


def _writes_to(node: cst.CSTNode, wanted: str) -> bool:
    """Whether the node binds the name or changes the tensor in place."""
    match node:
        case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.AnnAssign(target=target):
            return _covers(target, wanted)
        case cst.NamedExpr(target=target) | cst.For(target=target) | cst.CompFor(target=target):
            return _covers(target, wanted)
        case cst.AsName(name=target):
            return _covers(target, wanted)
        case cst.Del():
            return True
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))):
            return _is_in_place(method) and _root(receiver) == wanted
    return False


def _covers(target: cst.CSTNode, wanted: str) -> bool:
    for node in descendants(target):
        name = dotted(node)
        if name is not None and (wanted == name or wanted.startswith(f"{name}.")):
            return True
    return False


def _root(node: cst.CSTNode) -> str | None:
    while isinstance(node, (cst.Call, cst.Subscript)):
        node = node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else node.value if isinstance(node, cst.Subscript) else cst.Name("_")  # fmt: skip
    return dotted(node)


def _is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__")


def _writes_in_place(node: cst.CSTNode) -> bool:
    match node:
        case cst.AugAssign():
            return True
        case cst.AssignTarget(target=cst.Subscript()):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))):
            return _is_in_place(method) or method in ("step", "all_reduce", "reduce", "broadcast", "load_state_dict")
    return False


def _called(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else getattr(call.func, "value", "")


def _makes_new(value: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression computes a tensor that shares its storage with nothing."""
    match value:
        case cst.BinaryOperation():
            return context.kind(value) is Kind.TENSOR
        case cst.Call(func=func):
            name = context.qualified_name(func) or ""
            if name.startswith("torch.nn.functional.") and name.rpartition(".")[2] in FUNCTIONAL:
                return "loss" in name or "entropy" in name
            module = context.value(func)
            if module.kind is Kind.MODULE and module.qualified.startswith("torch.nn."):
                last = module.qualified.rpartition(".")[2]
                return last in MODULES and last.endswith("Loss")
            if isinstance(func, cst.Attribute) and context.kind(func.value) is Kind.TENSOR:
                return func.attr.value in ("sum", "mean", "norm", "prod", "std", "var") and func.attr.value not in _VIEWS
    return False
