"""Loaders that have workers: who gave them some, how their processes start, and what has to be sent to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data.loaders import option
from torchlint.analyses.provenance.constants import constant
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.names.bindings import Binder, last_part
from torchlint.semantics.values.lattice import Kind

from .workers import is_zero_by_default

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.semantics.context import Context

_DEEPEST = 6
_TRANSFORMS = ("torchvision.transforms.", "torchvision.transforms.v2.")
_HOLDERS = frozenset({"transform", "target_transform", "transforms"})


def number_of_workers(loader: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The number of workers as it is written; None where there are none, or none that are sure to be wanted."""
    given = option(loader, "num_workers", 5, context).given
    if given is None or _is_zero(constant(given, context)):
        return None
    if isinstance(given, cst.Name):
        bindings = context.reaching(given)
        if any(binding.binder is Binder.PARAMETER and _is_zero(binding.value) for binding in bindings):
            return None
        if any(_is_zero(binding.value) for binding in bindings):
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


def _local(node: cst.BaseExpression, context: Context, depth: int = 0) -> cst.BaseExpression | None:
    """The expression, if it holds a lambda, or a function that is defined beside it in a function."""
    if isinstance(node, cst.Lambda):
        return node
    if depth > _DEEPEST:
        return None
    match node:
        case cst.Call(args=[cst.Arg(value=first), *_]) if context.qualified_name(node.func) == "functools.partial":
            return _local(first, context, depth + 1)
        case cst.Name():
            bindings = context.reaching(node)
            if len(bindings) == 1 and isinstance(bindings[0].value, cst.Lambda) and bindings[0].binder is Binder.ASSIGN:
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


def _inside(made: cst.Call, context: Context) -> Iterator[cst.BaseExpression]:
    """What of a dataset cannot be pickled: its class, or a transform it is given."""
    value = context.value(made)
    name = context.qualified_name(made.func) or ""
    class_ = value.definition
    if isinstance(class_, cst.ClassDef) and _is_beside(class_, made, context):
        yield made.func
    for argument in made.args:
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if keyword in _HOLDERS and name.startswith("torchvision.datasets."):
            found = _local(argument.value, context)
            if found is not None:
                yield found
        for transform in _constructions(argument.value, context):
            yield from _lambdas(transform, context)
        if name.startswith("torch.utils.data."):
            # `Subset(dataset, …)`, `random_split(dataset, …)`
            for inner in _constructions(argument.value, context):
                yield from _inside(inner, context)


def _lambdas(transform: cst.Call, context: Context, depth: int = 0) -> Iterator[cst.BaseExpression]:
    """The local functions of `transforms.Lambda(…)`, in `transforms.Compose([…])` too."""
    name = context.qualified_name(transform.func) or ""
    if not name.startswith(_TRANSFORMS) or depth > _DEEPEST or not transform.args:
        return
    first = transform.args[0].value
    if name.rpartition(".")[2] == "Lambda":
        found = _local(first, context)
        if found is not None:
            yield found
    elif isinstance(first, (cst.List, cst.Tuple)):
        for element in first.elements:
            for inner in _constructions(element.value, context):
                yield from _lambdas(inner, context, depth + 1)
