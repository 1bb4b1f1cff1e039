"""Which loaders an expression may hold, and what goes over a loader, from its first batch, how often."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.provenance.constants import keywords
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import (
    PROGRESS_BAR,
    WRAPPING_METHOD,
)
from torchlint.semantics.names.bindings import Binder, Binding, dotted
from torchlint.syntax.tree import descendants_in_scope

_DEEPEST = 6
# A name that is bound at more places than this could lead anywhere.
_MOST_BINDINGS = 6
# Constructors that take the options of torch's.
LOADERS = (
    "torch.utils.data.DataLoader",
    "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
    "dgl.dataloading.GraphDataLoader",
)
# What gives the batches of what it is given first, or gives it back.
_WRAPPERS = frozenset({"enumerate", "iter", "itertools.islice", "itertools.cycle", "reversed"})


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
    given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
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
        or name in apis.PASS_THROUGH
        or WRAPPING_METHOD.suggests(name.rpartition(".")[2])
        or PROGRESS_BAR.suggests(name.lower())
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
