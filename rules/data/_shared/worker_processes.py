"""Loaders that have workers: who gave them some, how their processes start, and what has to be sent to them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.data.loaders import option
from torchlint.analyses.provenance.constants import constant
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import last_part
from torchlint.semantics.values.lattice import Kind

from .workers import is_zero_by_default

_TRANSFORMS = ("torchvision.transforms.", "torchvision.transforms.v2.")
_HOLDERS = frozenset({"transform", "target_transform", "transforms"})


def number_of_workers(loader: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The number of workers as it is written; None where there are none, or none that are sure to be wanted."""
    given = option(loader, "num_workers", 5, context).given
    if given is None or _is_zero(constant(given, context)):
        return None
    if isinstance(given, cst.Name):
        if any(isinstance(binder, cst.Param) and _is_zero(binder.default) for binder in context.binders(given)):
            return None
        if context.origins(given).some(_is_zero):
            return None
    return None if is_zero_by_default(given, context) else given


def _is_zero(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Integer) and node.value == "0"


def is_forked(loader: cst.Call, context: Context) -> bool:
    """Whether the code itself has the processes of the loader forked, or started as it says elsewhere."""
    given = option(loader, "multiprocessing_context", None, context).given
    if given is not None:
        return not isinstance(given, cst.SimpleString) or given.raw_value == "fork"
    return any(
        last_part(call.func) in ("set_start_method", "get_context")
        and any(
            isinstance(argument.value, cst.SimpleString) and argument.value.raw_value == "fork"
            for argument in call.args
        )
        for call in context.tree.of(cst.Call)
    )


def unpicklable(loader: cst.Call, context: Context) -> Iterator[tuple[str, cst.BaseExpression]]:
    """What a loader would send to its workers and cannot: the argument it is in, and the expression."""
    for name, place in (("collate_fn", 6), ("worker_init_fn", 10)):
        given = option(loader, name, place, context).given
        found = _local(given, context) if given is not None else None
        if found is not None:
            yield name, found
    dataset = option(loader, "dataset", 0, context).given
    if dataset is not None:
        for made in _constructions(dataset, context):
            yield from (("dataset", found) for found in _inside(made, context))


def _local(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """The expression, if it holds a lambda, or a function that is defined beside it in a function."""
    if isinstance(node, cst.Lambda):
        return node
    match node:
        case cst.Call(args=[cst.Arg(value=first), *_]) if context.qualified_name(node.func) == "functools.partial":
            return _local(first, context)
        case cst.Name() if isinstance(context.stands_for(node), cst.Lambda):
            return node
    value = context.value(node)
    if value.kind is not Kind.FUNCTION or not isinstance(value.definition, cst.FunctionDef):
        return None
    return node if _is_beside(value.definition, node, context) else None


def _is_beside(definition: cst.CSTNode, use: cst.CSTNode, context: Context) -> bool:
    """Whether a function holds both the definition and its use: then no module has the name."""
    around = context.function(definition)
    return around is not None and around is context.function(use)


def _constructions(node: cst.BaseExpression, context: Context) -> Iterator[cst.Call]:
    """The calls that may have made what a name holds, or of which it is a part."""
    for origin in context.origins(node, Through.PARTS).found:
        if isinstance(origin.node, cst.Call):
            yield origin.node


@query(bottom=())
def _inside(made: cst.Call, context: Context) -> tuple[cst.BaseExpression, ...]:
    """What of a dataset cannot be pickled: its class, or a transform it is given."""
    found: list[cst.BaseExpression] = []
    value = context.value(made)
    name = context.qualified_name(made.func) or ""
    class_ = value.definition
    if isinstance(class_, cst.ClassDef) and _is_beside(class_, made, context):
        found.append(made.func)
    for argument in made.args:
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if keyword in _HOLDERS and name.startswith("torchvision.datasets."):
            local = _local(argument.value, context)
            found += [local] if local is not None else []
        for transform in _constructions(argument.value, context):
            found += _lambdas(transform, context)
        if name.startswith("torch.utils.data."):
            # `Subset(dataset, …)`, `random_split(dataset, …)`
            for inner in _constructions(argument.value, context):
                found += _inside(inner, context)
    return tuple(found)


@query(bottom=())
def _lambdas(transform: cst.Call, context: Context) -> tuple[cst.BaseExpression, ...]:
    """The local functions of `transforms.Lambda(…)`, in `transforms.Compose([…])` too."""
    name = context.qualified_name(transform.func) or ""
    if not name.startswith(_TRANSFORMS) or not transform.args:
        return ()
    first = transform.args[0].value
    if name.rpartition(".")[2] == "Lambda":
        local = _local(first, context)
        return (local,) if local is not None else ()
    if not isinstance(first, (cst.List, cst.Tuple)):
        return ()
    steps = [inner for element in first.elements for inner in _constructions(element.value, context)]
    return tuple(found for step in steps for found in _lambdas(step, context))
