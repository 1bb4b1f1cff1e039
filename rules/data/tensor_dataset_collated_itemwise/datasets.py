"""Datasets that only pick samples out of tensors, which one index of the tensors could do for a whole batch."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from torchlint.analyses.data.datasets import sources
from torchlint.edits.imports import spelling
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants_in_scope

_MADE_OF_TENSORS = "torch.utils.data.TensorDataset"
# Its parts take a list of numbers as it does. A `Subset` may hold tensors of one number, and a list of those may be
# taken for one index for each of the axes.
_SPLIT = "torch.utils.data.random_split"
# These give plain numbers; a `SubsetRandomSampler` may give such tensors.
_SAMPLERS = frozenset(
    f"torch.utils.data.{name}"
    for name in (
        "RandomSampler",
        "SequentialSampler",
        "WeightedRandomSampler",
        "DistributedSampler",
        "distributed.DistributedSampler",
    )
)
# The constructor's first parameters.
_PLACES = ("dataset", "batch_size", "shuffle", "sampler")
# Arguments that mean the same, whoever makes up the batches.
_UNCONCERNED = frozenset(
    {"num_workers", "pin_memory", "timeout", "worker_init_fn", "prefetch_factor", "persistent_workers"}
)
# What is another, or None, of a loader whose sampler gives batches.
_CHANGED = frozenset({"batch_size", "sampler", "batch_sampler", "drop_last"})


@query(bottom=False)
def picks(dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether a dataset is sure to pick its samples from tensors, so that it takes a list of numbers as well as one."""
    if isinstance(dataset, cst.Name) and not context.origins(dataset, Through.PARTS).is_complete:
        return False  # whoever calls may pass another
    if not isinstance(dataset, cst.Call):
        return _all(sources(dataset, context), context)
    name = context.qualified_name(dataset.func)
    if name == _MADE_OF_TENSORS:
        return True
    if name == _SPLIT:
        first = context.argument(dataset, "dataset", 0)
        return first is not None and picks(first, context)
    class_ = context.value(dataset).definition
    if isinstance(class_, cst.ClassDef):
        return isinstance(dataset.func, cst.Name) and _is_plain(class_, context)
    function = context.calls.target(dataset)
    if function is None or function.asynchronous is not None:
        return False
    parts = list(descendants_in_scope(function.body))
    if any(isinstance(part, cst.Yield) for part in parts):
        return False
    returned = [part.value for part in parts if isinstance(part, cst.Return)]
    return None not in returned and _all((value for value in returned if value is not None), context)


def _all(nodes: Iterable[cst.BaseExpression], context: Context) -> bool:
    found = [picks(node, context) for node in nodes]
    return bool(found) and all(found)


def _is_plain(class_: cst.ClassDef, context: Context) -> bool:
    """Whether `__getitem__` of a dataset is nothing but `return self.x[index], self.y[index]` of tensors."""
    getter = context.classes.method(class_, "__getitem__")
    if getter is None or getter.decorators or not context.classes.is_dataset(class_):
        return False
    if context.classes.method(class_, "__getitems__") is not None:
        return False
    names = [parameter.name.value for parameter in getter.params.params]
    match getter.body.body:
        case [cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as given)])]:
            pass
        case [
            cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())]),
            cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as given)]),
        ]:
            pass
        case _:
            return False
    match given:
        case cst.Tuple(elements=elements):
            parts = [element.value for element in elements]
        case cst.Dict(elements=entries):
            parts = [entry.value for entry in entries]
        case _:
            parts = [given]
    return len(names) == 2 and all(_is_of_a_tensor(part, names[1], context) for part in parts)


def _is_of_a_tensor(part: cst.BaseExpression, index: str, context: Context) -> bool:
    match part:
        case cst.Subscript(
            value=cst.Attribute(value=cst.Name()) as owner,
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=name), star=None))],
        ) if name == index:
            value = context.value(owner)
            return value.kind is Kind.TENSOR and value.proven
    return False


@query(bottom=False)
def gives_numbers(sampler: cst.BaseExpression, context: Context) -> bool:
    """Whether there is a sampler for certain, and one that gives plain numbers."""
    match sampler:
        case cst.Call(func=func):
            return context.qualified_name(func) in _SAMPLERS
        case cst.IfExp(body=body, orelse=orelse):
            return gives_numbers(body, context) and gives_numbers(orelse, context)
        case cst.Name():
            return context.origins(sampler).every(lambda value: gives_numbers(value, context))
    return False


def batched(loader: cst.Call, context: Context) -> str | None:
    """The code of the same loader with a sampler that gives batches; None where it is not plain which it has."""
    unnamed = [argument for argument in loader.args if argument.keyword is None]
    given = dict(zip(_PLACES, unnamed, strict=False))
    given |= {argument.keyword.value: argument for argument in loader.args if argument.keyword is not None}
    if len(given) != len(loader.args) or not given.keys() <= {*_PLACES, "drop_last", *_UNCONCERNED}:
        return None
    size, dataset, sampler = given["batch_size"], given["dataset"].value, given.get("sampler")
    shuffle, drop = (_truth(given.get(name)) for name in ("shuffle", "drop_last"))
    if shuffle is None or drop is None or "#" in context.code(loader) or _is_looked_into(context):
        return None
    batches = spelling("torch.utils.data.BatchSampler", loader, context)
    if sampler is None:
        kind = spelling(f"torch.utils.data.{'Random' if shuffle else 'Sequential'}Sampler", loader, context)
        order = f"{kind}({context.code(dataset)})" if kind and dotted(dataset) is not None else ""
    else:
        order = context.code(sampler.value) if not shuffle else ""
    if not batches or not order:
        return None
    made = cst.parse_expression(
        f"f(batch_size=None, sampler={batches}({order}, {context.code(size.value)}, drop_last={drop}))"
    )
    assert isinstance(made, cst.Call)
    gone = [given[name] for name in ("shuffle", "drop_last", "sampler") if name in given]
    args = []
    for argument in loader.args:
        if argument is size:
            # As far apart as the others are: a call over several lines gets one more.
            args += [made.args[0].with_changes(comma=loader.args[0].comma), made.args[1].with_changes(comma=size.comma)]
        elif argument not in gone:
            args.append(argument)
    last = loader.args[-1]
    args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return context.code_at(loader.with_changes(args=args), loader)


def _truth(given: cst.Arg | None) -> bool | None:
    """What is said; None if it takes running the code."""
    match given:
        case None | cst.Arg(value=cst.Name(value="False")):
            return False
        case cst.Arg(value=cst.Name(value="True")):
            return True
    return None


def _is_looked_into(context: Context) -> bool:
    """Whether the module asks a loader for what its sampler changes, as in `loader.sampler.set_epoch(epoch)`."""
    return any(
        attribute.attr.value in _CHANGED and context.kinds.is_loader_like(attribute.value)
        for attribute in context.tree.of(cst.Attribute)
    )
