"""How many workers a loader has, when they are started again, and what they would not see if they were not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.data.loaders import made, option
from torchlint.analyses.data.passes import Passes
from torchlint.analyses.execution.occasions import is_guarded
from torchlint.analyses.provenance.constants import constant, parsed_default
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import (
    CHANGING_DATASET,
)
from torchlint.semantics.knowledge.conventions.texts import EPOCH_TEXT
from torchlint.semantics.knowledge.conventions.values import OPTIONS
from torchlint.semantics.names.bindings import dotted, method_name
from torchlint.syntax.tree import descendants_in_scope

_CORES = frozenset({"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count"})


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers there are, in words; `condition` is code that is true where there are any, None if there are."""

    words: str
    condition: str | None = None


def workers(loader: cst.Call, context: Context) -> Workers | None:
    """The workers of a loader; None where it has none, or nobody knows."""
    found = option(loader, "num_workers", 5, context)
    if found.given is None:
        return None
    given = constant(found.given, context)
    if isinstance(given, cst.Integer):
        number = int(given.value.replace("_", ""), 0)
        return Workers("1 worker is" if number == 1 else f"{number} workers are") if number else None
    sure = _is_positive(given, context)
    if sure is None:
        return None
    code = context.code(found.given)
    if sure:
        return Workers(f"the workers (`{context.shown(found.given)}`) are")
    plain = isinstance(found.given, (cst.Name, cst.Attribute, cst.Call)) or found.given.lpar
    return Workers(f"the workers (`{context.shown(found.given)}`) are", f"{code} > 0" if plain else f"({code}) > 0")


def configured_workers(loader: cst.Call, context: Context) -> Workers | None:
    """The workers of a loader whose number is a setting that is not in sight: `config.num_workers`."""
    given = option(loader, "num_workers", 5, context).given
    match given:
        case cst.Attribute() | cst.Subscript():
            is_setting = not context.kinds.is_tensor(given) and not is_zero_by_default(given, context)
        case cst.Name():
            found = context.origins(given).nodes
            is_setting = context.parameter(given) is not None or (
                bool(found) and all(isinstance(node, (cst.Attribute, cst.Subscript)) for node in found)
            )
        case _:
            return None
    if not is_setting or _is_positive(given, context) is not None:
        return None
    return Workers(f"the workers (`{context.shown(given)}`) are", f"{context.code(given)} > 0")


@query(bottom=None)
def _is_positive(node: cst.BaseExpression, context: Context) -> bool | None:
    """Whether a number is above 0: True where it is, False where it is by default, None where that is unknown."""
    match node:
        case cst.Integer(value=number):
            return True if number != "0" else None
        case cst.Call(func=cst.Name(value="max"), args=args):
            return True if any(_is_positive(argument.value, context) for argument in args) else None
        case cst.Call(func=cst.Name(value="min"), args=args):
            return _all([_is_positive(argument.value, context) for argument in args])
        case cst.Call(func=cst.Name(value="int"), args=[cst.Arg(value=inner)]):
            return _is_positive(inner, context)
        case cst.Call(func=func):
            return True if context.qualified_name(func) in _CORES else None
        case cst.IfExp(body=body, orelse=orelse):
            parts = [_is_positive(part, context) for part in (body, orelse)]
            return _all(parts) if None not in parts else False if any(part is not None for part in parts) else None
        case cst.Name():
            origins = context.origins(node)
            found = [None if origin.path else _is_positive(origin.node, context) for origin in origins.found]
            for lost in origins.lost:
                parameter = context.parameter(lost.node)
                default = parameter.default if parameter is not None else None
                is_known = default is not None and _is_positive(default, context) is not None
                found.append(False if is_known else None)
            return _all(found)
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
            class_ = context.classes.self_class(owner)
            if class_ is not None:
                values = [entry.value for entry in context.classes.attribute_sets(class_, name)]
                parts = [_is_positive(value, context) for value in values if value is not None]
                return _all(parts) if parts and len(parts) == len(values) else None
            return _is_positive_by_default(owner, name, context)
    return None


def _all(parts: list[bool | None]) -> bool | None:
    return None if None in parts else all(parts)


def _is_positive_by_default(owner: cst.Name, name: str, context: Context) -> bool | None:
    """As `_is_positive`, for an option of the command line: `args.workers` where `--workers` has a default."""
    if not any(
        isinstance(origin.node, cst.Call) and method_name(origin.node.func) in ("parse_args", "parse_known_args")
        for origin in context.origins(owner, Through.PARTS).found
    ) and not OPTIONS.suggests(owner.value):
        return None
    given = parsed_default(name, context)
    return False if isinstance(given, cst.Integer) and given.value != "0" else None


def is_zero_by_default(number: cst.BaseExpression, context: Context) -> bool:
    """Whether a number is an option of the command line that is 0 unless somebody asks for more: `args.workers`."""
    return zero_by_default(number, context) is not None


def zero_by_default(number: cst.BaseExpression, context: Context) -> cst.Integer | None:
    """The 0 that an option of the command line is unless somebody asks for more; None where it is another number."""
    match number:
        case cst.Attribute(value=cst.Name(), attr=cst.Name(value=name)):
            given = parsed_default(name, context)
            return given if isinstance(given, cst.Integer) and given.value == "0" else None
    return None


# When they are started again


EVERY_EPOCH = "every epoch"


def starts_again(loader: cst.Call, context: Context) -> str | None:
    """How often the workers are started for one construction of the loader, in words; None if once, as far as seen."""
    again = context[Passes].repeated(loader)
    if again is not None:
        frequency = context.frequency(again)
        return EVERY_EPOCH if frequency is Frequency.EPOCH else "for every pass over the loader"
    return EVERY_EPOCH if _is_lightnings(loader, context) else None


def _is_lightnings(loader: cst.Call, context: Context) -> bool:
    """Whether Lightning goes over the loader in each epoch."""
    function = context.function(loader)
    if not isinstance(function, cst.FunctionDef) or function.name.value not in ("train_dataloader", "val_dataloader"):
        return False
    owner = context.classes.owner(function)
    if owner is None or not any(
        isinstance(base, str) and base.rpartition(".")[2] in ("LightningModule", "LightningDataModule")
        for base in context.classes.lineage(owner)
    ):
        return False
    return any(
        loader in made(node.value, context).calls
        for node in descendants_in_scope(function.body)
        if isinstance(node, cst.Return) and node.value is not None
    )


# What they would not see


def needs_new_workers(loader: cst.Call, context: Context) -> bool:
    """Whether a pass may need its workers again: they would not see what the main process changes in the dataset."""
    dataset = context.argument(loader, "dataset", 0)
    collate = option(loader, "collate_fn", 6, context).given
    if dataset is None or context[Passes].overlap(loader):
        return True
    held = {*_variables(dataset, context), *(_variables(collate, context) if collate is not None else ())}
    return any(
        (_touches(changed, held) or ".dataset" in (dotted(changed) or ""))
        and _is_same_scope(changed, loader, context)
        and _is_later(changed, loader, context)
        for changed in _changes(context)
    )


def is_named_for_epochs(loader: cst.Call, context: Context) -> bool:
    """Whether names say that workers are set up for an epoch, or that the dataset is told of it: `set_epoch`."""
    dataset = context.argument(loader, "dataset", 0)
    start = option(loader, "worker_init_fn", 10, context).given
    return (dataset is not None and _is_told(dataset, context)) or (
        start is not None and _speaks_of_epochs(start, context)
    )


def _speaks_of_epochs(function: cst.BaseExpression, context: Context) -> bool:
    """Whether each worker is set up for an epoch as it starts."""
    definition = context.value(function).definition
    return EPOCH_TEXT.suggests(context.uncommented(definition if isinstance(definition, cst.FunctionDef) else function))


def _is_told(dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether the dataset's class has a method that tells it of the next epoch."""
    class_ = context.value(dataset).definition
    return isinstance(class_, cst.ClassDef) and any(map(CHANGING_DATASET.suggests, context.classes.methods(class_)))


def _variables(node: cst.BaseExpression, context: Context) -> set[str]:
    """The variables that hold the object, or what it was made of."""
    found: set[str] = set()
    name = dotted(node)
    if name is not None:
        found.add(name)
    for origin in context.origins(node, Through.PARTS | Through.ELEMENTS | Through.CONTEXTS).found:
        if isinstance(origin.node, cst.Call):
            call = origin.node
            given = (dotted(argument.value) for argument in call.args)
            found |= {word for word in given if word is not None}
    return found - {"True", "False", "None"}


def _changes(context: Context) -> Iterator[cst.BaseExpression]:
    """What is changed: what is assigned to, of which a method is called for what that does, and what is shuffled."""
    targets = [target.target for assign in context.tree.of(cst.Assign) for target in assign.targets]
    targets += [augmented.target for augmented in context.tree.of(cst.AugAssign)]
    for target in targets:
        if isinstance(target, (cst.Attribute, cst.Subscript)):
            yield target.value
    for call in context.tree.of(cst.Call):
        if not isinstance(call.func, cst.Attribute):
            continue
        if isinstance(context.parent(call), cst.Expr):
            yield call.func.value
        if call.args and context.qualified_name(call.func) in ("random.shuffle", "numpy.random.shuffle"):
            yield call.args[0].value


def _touches(changed: cst.BaseExpression, held: set[str]) -> bool:
    inner = changed
    while True:
        if dotted(inner) in held:
            return True
        if not isinstance(inner, (cst.Attribute, cst.Subscript)):
            return False
        inner = inner.value


def _is_same_scope(changed: cst.BaseExpression, loader: cst.Call, context: Context) -> bool:
    """Whether a plain name here may be the one of that spelling where the loader is made."""
    while isinstance(changed, (cst.Attribute, cst.Subscript)):
        changed = changed.value
    if not isinstance(changed, cst.Name) or context.classes.self_class(changed) is not None:
        return True
    function = context.function(changed)
    scope, _ = context.names.lookup(changed)
    return scope is None or scope is context.names.module or function is context.function(loader)


def _is_later(node: cst.CSTNode, loader: cst.Call, context: Context) -> bool:
    """Whether this may run between two passes over the loader."""
    loop = context.loop(node)
    while loop is not None:
        if context.frequencies.loop_kind(loop) is not LoopKind.OTHER:
            return True
        loop = context.loop(loop)
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or function is context.function(loader):
        return False
    return context.frequency(node) is not Frequency.ONCE


@query(bottom=False)
def runs_on_import(node: cst.CSTNode, context: Context) -> bool:
    """Whether importing the module runs the node, unless a branch or a loop around it does not: no guard keeps it."""
    if is_guarded(node, context):
        return False
    function = context.enclosing(node, cst.FunctionDef, cst.Lambda)
    if function is None:
        return True
    if not isinstance(function, cst.FunctionDef):
        return False
    if function.decorators:
        return False  # `@click.command()` and the like: whatever they make of it
    return any(runs_on_import(call, context) for call in context.calls.callers(function))
