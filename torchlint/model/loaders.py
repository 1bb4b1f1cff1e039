"""Which loaders an expression may hold, and what goes over a loader, from its first batch, how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.model import tables
from torchlint.model.arguments import constant, keywords
from torchlint.model.frequency import LoopKind
from torchlint.model.idle import computes_nothing
from torchlint.model.names import Binder, Binding, dotted
from torchlint.model.tree import Loop, descendants, descendants_in_scope

if TYPE_CHECKING:
    from torchlint.model.batches import BatchMove
    from torchlint.model.context import Context

_DEEPEST = 6
# A name that is bound at more places than this could lead anywhere.
_MOST_BINDINGS = 6
# Constructors that take the options of torch's.
LOADERS = (
    "torch.utils.data.DataLoader",
    "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
)
# What gives the batches of what it is given first, or gives it back.
_WRAPPERS = frozenset({"enumerate", "iter", "itertools.islice", "itertools.cycle", "cycle", "islice", "reversed"})
_WRAPPER_METHODS = frozenset({"log_every", "track", "prepare", "prepare_data_loader", "setup_dataloaders"})


@dataclass(frozen=True, slots=True)
class Made:
    """The calls of a loader's constructor whose result an expression may hold; whether there may be others."""

    calls: tuple[cst.Call, ...] = ()
    complete: bool = True

    def __or__(self, other: Made) -> Made:
        """Either."""
        more = tuple(call for call in other.calls if call not in self.calls)
        return Made(self.calls + more, self.complete and other.complete)


_UNSEEN = Made(complete=False)


def is_loader(call: cst.Call, context: Context) -> bool:
    """Whether this constructs a loader that takes the options of `torch.utils.data.DataLoader`."""
    return context.qualified_name(call.func) in LOADERS


def made(node: cst.BaseExpression, context: Context, path: tuple[int, ...] = (), depth: int = 0) -> Made:
    """Where the loaders were made whose batches an expression gives, or which it holds; `path` leads to it."""
    if depth > _DEEPEST:
        return _UNSEEN
    match node:
        case cst.Call():
            return _called(node, context, path, depth + 1)
        case cst.Name():
            bindings = context.reaching(node)
            if len(bindings) > _MOST_BINDINGS:
                return _UNSEEN
            found = [_bound(binding, context, path, depth + 1) for binding in bindings]
            return _either(found) if found else _UNSEEN
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
            class_ = context.classes.self_class(owner)
            if class_ is None:
                definition = context.value(owner).definition
                class_ = definition if isinstance(definition, cst.ClassDef) else None
            sets = context.classes.attribute_sets(class_, name) if class_ is not None else []
            given = [entry for entry in sets if entry.value is not None and not _is_none(entry.value)]
            return _either(
                [
                    made(entry.value, context, (*entry.path, *path), depth + 1)
                    for entry in given
                    if entry.value is not None
                ]
            )
        case cst.Subscript(value=owner):
            return made(owner, context, (_step(node), *path), depth + 1)
        case cst.IfExp(body=body, orelse=orelse):
            return made(body, context, path, depth + 1) | made(orelse, context, path, depth + 1)
        case cst.Tuple(elements=elements) | cst.List(elements=elements) if path:
            values = [element.value for element in elements]
            chosen = values[path[0] : path[0] + 1] if path[0] >= 0 else values
            return _either([made(value, context, path[1:], depth + 1) for value in chosen])
        case cst.Dict(elements=elements) if path:
            return _either([made(element.value, context, path[1:], depth + 1) for element in elements])
        case cst.ListComp(elt=value) | cst.DictComp(value=value) if path:
            return made(value, context, path[1:], depth + 1)
    return _UNSEEN


def _either(found: list[Made]) -> Made:
    result = found[0] if found else _UNSEEN
    for other in found[1:]:
        result |= other
    return result


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _step(node: cst.Subscript) -> int:
    """The place that a subscript picks; -1 for any."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=number)))] if number.isdigit():
            return int(number)
    return -1


def _called(call: cst.Call, context: Context, path: tuple[int, ...], depth: int) -> Made:
    if is_loader(call, context):
        return Made((call,)) if not path or path == (-1,) else _UNSEEN
    name = context.qualified_name(call.func) or dotted(call.func) or ""
    last = name.rpartition(".")[2]
    given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
    if last in ("prepare", "setup_dataloaders") and path and len(given) > path[0] >= 0:
        return made(given[path[0]], context, path[1:], depth)
    inner = wrapped(call, context)
    if inner is not None:
        return made(inner, context, path, depth)
    if name == "zip":
        return _either([made(argument, context, path, depth) for argument in given])
    function = context.calls.target(call)
    if function is None or function.name.value in ("__init__", "forward"):
        return _UNSEEN
    returned = [
        node.value
        for node in descendants_in_scope(function.body)
        if isinstance(node, cst.Return) and node.value is not None and not _is_none(node.value)
    ]
    return _either([made(value, context, path, depth) for value in returned])


def wrapped(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The loader, or whatever it is, whose items a call gives as they are: `tqdm(loader)`."""
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    name = context.qualified_name(call.func) or dotted(call.func) or method
    is_wrapper = (
        name in _WRAPPERS
        or name in tables.PASS_THROUGH
        or name.rpartition(".")[2] in _WRAPPER_METHODS
        or "tqdm" in name.lower()
    )
    given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
    return given[0] if is_wrapper and given else None


def _bound(binding: Binding, context: Context, path: tuple[int, ...], depth: int) -> Made:
    match binding.binder:
        case Binder.ASSIGN if binding.value is not None:
            return made(binding.value, context, (*binding.path, *path), depth)
        case Binder.PARAMETER if isinstance(binding.node, cst.Param) and not binding.node.star:
            function = context.tree.function_of_parameter(binding.node)
            if not isinstance(function, cst.FunctionDef):
                return _UNSEEN
            passed = [
                context.calls.argument_for(call, function, binding.node) for call in context.calls.callers(function)
            ]
            found = [made(value, context, path, depth) if value is not None else _UNSEEN for value in passed]
            return _either(found)
        case Binder.LOOP if binding.value is not None and not binding.path:
            return made(binding.value, context, (-1, *path), depth)
    return _UNSEEN


# What the constructor was given


@dataclass(frozen=True, slots=True)
class Option:
    """An argument of a loader: what was given, None for the default; `known` is False where it is out of sight."""

    given: cst.BaseExpression | None = None
    known: bool = True


def option(loader: cst.Call, name: str, place: int | None, context: Context) -> Option:
    """What a loader was given for a parameter, at this position of torch's, through dictionaries that are in sight."""
    if (context.qualified_name(loader.func) or "").startswith("torch_geometric."):
        place = None
    given = context.argument(loader, name, place)
    if given is not None:
        return Option(given)
    for argument in loader.args:
        if argument.star:
            unpacked = keywords(argument.value, context) if argument.star == "**" else None
            if unpacked is None:
                return Option(known=False)
            if name in unpacked:
                return Option(unpacked[name])
    return Option()


# Who goes over it


# A loop over a loader's batches, or a call of `iter` that begins them.
Reading: TypeAlias = "cst.For | cst.Call"


class Passes:
    """What goes over the loaders that a module makes."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._of: dict[int, list[tuple[Reading, cst.BaseExpression]]] = {}
        for node, iterated in self._all():
            for call in made(iterated, context).calls:
                self._of.setdefault(id(call), []).append((node, iterated))

    def _all(self) -> Iterator[tuple[Reading, cst.BaseExpression]]:
        for loop in self.context.tree.of(cst.For):
            yield loop, loop.iter
        for call in self.context.tree.of(cst.Call):
            match call:
                case cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=first)]):
                    yield call, first

    @cached_property
    def moves(self) -> list[BatchMove]:
        """Where batches are moved to a device."""
        from torchlint.model.batches import batch_moves  # which stands on this module

        return batch_moves(self.context)

    def of(self, loader: cst.Call) -> list[tuple[Reading, cst.BaseExpression]]:
        """What goes over a loader from its start, each with the expression by which it knows the loader."""
        return self._of.get(id(loader), [])

    def repeated(self, loader: cst.Call) -> Reading | None:
        """What goes over one and the same loader again and again, and further than to its first batch, if anything."""
        for node, iterated in self.of(loader):
            if self._is_peek(node) or (isinstance(node, cst.For) and computes_nothing(node, self.context)):
                continue
            if self._is_repeated(node, self._roots(iterated), loader) and not self._is_replaced(node, iterated, loader):
                return node
        return None

    def _is_peek(self, node: Reading) -> bool:
        """`next(iter(loader))`."""
        above = self.context.parent(node)
        outer = self.context.parent(above) if isinstance(above, cst.Arg) else None
        return (
            isinstance(node, cst.Call) and isinstance(outer, cst.Call) and dotted(outer.func) in ("next", "zip", "list")
        )

    def _is_replaced(self, node: Reading, iterated: cst.BaseExpression, loader: cst.Call) -> bool:
        """Whether each turn but the first makes another loader of that name: `if epoch > 0: loader = …`."""
        return any(
            self.context.tree.within(node, loop.body)
            and not self.context.tree.within(loader, loop)
            and self._runs_from_the_second_turn(binding.node, loop)
            for name in descendants(self._core(iterated))
            if isinstance(name, cst.Name)
            for binding in self.context.reaching(name)
            if binding.binder is Binder.ASSIGN
            and isinstance(binding.value, cst.Call)
            and isinstance(loop := self.context.loop(binding.node), (cst.For, cst.While))
        )

    def _runs_from_the_second_turn(self, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
        """Whether the nearest `if` in the loop around this is `if epoch > 0:`."""
        child = node
        for above in self.context.ancestors(node):
            match above:
                case cst.If(test=cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator, comparator=end)])):
                    first = end.value if isinstance(end, cst.Integer) and child is above.body else ""
                    is_later = isinstance(operator, (cst.GreaterThan, cst.NotEqual)) and first == "0"
                    return is_later or (isinstance(operator, cst.GreaterThanEqual) and first == "1")
                case cst.If():
                    return False
            if above is loop:
                return False
            child = above
        return False

    def varies(self, expression: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether another turn of a loop may have another loader there: the loop names it, or makes it."""
        if any(root is loop for root in self._roots(expression)):
            return True
        return any(
            self.context.tree.within(binding.node, loop.body)
            for name in descendants(expression)
            if isinstance(name, cst.Name)
            for binding in self.context.reaching(name)
        ) or any(self.context.tree.within(call, loop.body) for call in made(expression, self.context).calls)

    def overlap(self, loader: cst.Call) -> bool:
        """Whether the loader is begun again while something is still going over it."""
        nodes = [node for node, _ in self.of(loader)]
        return any(
            other is not loop and self._is_reached(other, loop)
            for loop in nodes
            if isinstance(loop, cst.For)
            for other in nodes
        )

    def _is_reached(self, node: cst.CSTNode, loop: cst.For) -> bool:
        """Whether the node runs in the body of a loop, or in a function that is called there."""
        if self.context.tree.within(node, loop.body):
            return True
        function = self.context.function(node)
        return isinstance(function, cst.FunctionDef) and any(
            self.context.tree.within(call, loop.body) for call in self.context.calls.callers(function)
        )

    def _is_repeated(self, node: cst.CSTNode, roots: frozenset[cst.CSTNode], loader: cst.Call, depth: int = 0) -> bool:
        """Whether the node runs more than once for one run of the constructor, and that not only now and then.

        `roots` are the loops and parameters that say which loader it is.
        """
        context = self.context
        if depth > _DEEPEST or context.frequencies.is_rate_limited(node):
            return False
        child = node
        for above in context.ancestors(node):
            if isinstance(above, cst.ClassDef) or context.tree.within(loader, above):
                return False
            is_free = isinstance(above, Loop) and child is above.body and above not in roots
            if is_free and self._is_of_epochs(above) and not self._is_left(node):
                return True
            if isinstance(above, cst.FunctionDef) and child is above.body:
                return any(
                    self._is_repeated(call, self._roots_of_call(call, above, roots), loader, depth + 1)
                    for call in context.calls.callers(above)
                    if not self._passes_another(call, above, roots, loader)
                )
            child = above
        return False

    def _passes_another(
        self, call: cst.Call, function: cst.FunctionDef, roots: frozenset[cst.CSTNode], loader: cst.Call
    ) -> bool:
        """Whether a call passes something else where another call of the function passes this loader."""
        for parameter in roots:
            if isinstance(parameter, cst.Param) and self.context.tree.function_of_parameter(parameter) is function:
                calls = self.context.calls.callers(function)
                if any(self._is_passed(loader, other, function, parameter) for other in calls) and not self._is_passed(
                    loader, call, function, parameter
                ):
                    return True
        return False

    def _is_passed(self, loader: cst.Call, call: cst.Call, function: cst.FunctionDef, parameter: cst.Param) -> bool:
        passed = self.context.calls.argument_for(call, function, parameter)
        return passed is not None and loader in made(passed, self.context).calls

    def _roots_of_call(
        self, call: cst.Call, function: cst.FunctionDef, roots: frozenset[cst.CSTNode]
    ) -> frozenset[cst.CSTNode]:
        """What says which loader a call passes."""
        found: set[cst.CSTNode] = set()
        for parameter in roots:
            if isinstance(parameter, cst.Param) and self.context.tree.function_of_parameter(parameter) is function:
                passed = self.context.calls.argument_for(call, function, parameter)
                if passed is not None:
                    found |= self._roots(passed)
        return frozenset(found)

    def _roots(self, node: cst.BaseExpression) -> frozenset[cst.CSTNode]:
        """The loops and parameters on whose values it depends which loader an expression holds."""
        found: set[cst.CSTNode] = set()
        seen: set[Binding] = set()
        left = [node]
        while left:
            for name in descendants(self._core(left.pop())):
                for binding in self.context.reaching(name) if isinstance(name, cst.Name) else ():
                    if binding in seen:
                        continue
                    seen.add(binding)
                    if binding.binder in (Binder.LOOP, Binder.PARAMETER):
                        found.add(binding.node)
                    elif binding.binder is Binder.ASSIGN and binding.value is not None:
                        left.append(binding.value)
        return frozenset(found)

    def _core(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The expression without what wraps it: `loader` of `tqdm(enumerate(loader), desc=…)`."""
        while isinstance(node, cst.Call) and not is_loader(node, self.context):
            inner = wrapped(node, self.context)
            if inner is None:
                return node
            node = inner
        return node

    def _is_of_epochs(self, loop: cst.CSTNode) -> bool:
        if isinstance(loop, cst.For) and _is_single(loop.iter, self.context):
            return False
        return self.context.frequencies.loop_kind(loop) in (LoopKind.EPOCH, LoopKind.BATCH)

    def _is_left(self, node: cst.CSTNode) -> bool:
        """Whether the loop around it ends in the block in which the node stands."""
        block = self.context.parent(node)
        while block is not None and not isinstance(block, (cst.IndentedBlock, cst.Module)):
            block = self.context.parent(block)
        last = block.body[-1] if isinstance(block, cst.IndentedBlock) and block.body else None
        return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Break, cst.Return))


def _is_single(iterated: cst.BaseExpression, context: Context) -> bool:
    """`range(1)`, `[x]`: there is but one turn."""
    match iterated:
        case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=end)]):
            last = constant(end, context)
            return isinstance(last, cst.Integer) and last.value in ("0", "1")
        case cst.List(elements=[_]) | cst.Tuple(elements=[_]):
            return True
    return False
