"""Loaders for which workers would do nothing, or could not: what they give costs nothing, or is on the device."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.data.datasets import Work, is_light, no_workers, sources, uses_device, work
from torchlint.analyses.provenance.constants import constant
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Origin, Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import IDENTITY_COLLATE
from torchlint.semantics.knowledge.conventions.texts import ACCELERATED_TRAINING
from torchlint.semantics.knowledge.conventions.values import INDEX_LIST, MADE_UP_DATA, REPLAY_BUFFER
from torchlint.semantics.knowledge.marks import DEFAULT_DEVICE_SETTER, GRADIENT_TAKEN, MODULE_DEFINED
from torchlint.semantics.names.bindings import dotted, last_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# What a name holds may be a part or an element of what it was taken from.
_IN_ONE_OF = Through.PARTS | Through.ELEMENTS | Through.CONTEXTS


def is_on_the_cpu(context: Context) -> bool:
    """Whether the file defines a model and trains it, without a word of an accelerator."""
    text = context.program.code
    return MODULE_DEFINED.is_in(text) and GRADIENT_TAKEN.is_in(text) and not ACCELERATED_TRAINING.suggests(text)


def is_made_up(loader: cst.Call, dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether the samples are made up, as the name of the dataset, its class or the function around says."""
    function = context.function(loader)
    if isinstance(function, cst.FunctionDef) and MADE_UP_DATA.suggests(function.name.value):
        return True
    name = dataset.value if isinstance(dataset, cst.Subscript) else dataset
    if context.parameter(name) is not None:
        return False
    origins = context.origins(name, _IN_ONE_OF)
    return all(_names_made_up(origin.node) for origin in (*origins.found, *origins.lost))


def _names_made_up(value: cst.BaseExpression) -> bool:
    """`MockDataset(8)`, `Builder(MockDataset, sizes).build()`."""
    return any(isinstance(part, cst.Name) and MADE_UP_DATA.suggests(part.value) for part in descendants(value))


def is_one_batch(loader: cst.Call, context: Context) -> bool:
    """Whether the whole dataset is one batch, so that workers could load nothing ahead."""
    size = context.argument(loader, "batch_size", 1)
    return isinstance(size, cst.Call) and context.qualified_name(size.func) == "len"


def is_to_look_at(loader: cst.Call, dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether single samples come from here, and the batches of the same dataset from a loader that has workers."""
    if not isinstance(dataset, cst.Name) or not is_one_by_one(loader, context):
        return False
    if context.argument(loader, "sampler", 3) is not None:
        return False  # it is another part of the dataset
    name = context.qualified_name(loader.func)
    return any(
        other is not loader
        and context.qualified_name(other.func) == name
        and isinstance(data := context.argument(other, "dataset", 0), cst.Name)
        and data.value == dataset.value
        and context.holds_the_same(data, dataset)
        and no_workers(other, context) is None
        for other in context.tree.of(cst.Call)
    )


def is_one_by_one(loader: cst.Call, context: Context) -> bool:
    """Whether each batch is written to be a single sample: the model may have far more to do with it."""
    size = context.argument(loader, "batch_size", 1)
    number = constant(size, context) if size is not None else None
    return isinstance(number, cst.Integer) and number.value == "1"


def is_collated_on_device(loader: cst.Call, context: Context) -> bool:
    """Whether `collate_fn` puts the batch on an accelerator, which forked workers cannot: `batcher(device)`."""
    collate = context.argument(loader, "collate_fn", 6)
    if collate is None:
        return False
    if isinstance(collate, cst.Call) and any(_is_device(argument.value, context) for argument in collate.args):
        return True
    return any(_collates_on_device(function, context) for function in _collators(collate, context))


def _collators(collate: cst.BaseExpression, context: Context) -> Iterator[cst.BaseExpression]:
    """The functions that a `collate_fn` may be: either of two, what a `partial` is of, what a name is bound to."""
    match collate:
        case cst.IfExp(body=body, orelse=orelse):
            yield from _collators(body, context)
            yield from _collators(orelse, context)
        case cst.Call(func=func, args=[cst.Arg(value=first), *_]) if (
            context.qualified_name(func) == "functools.partial"
        ):
            yield from _collators(first, context)
        case _:
            yield collate


def _collates_on_device(function: cst.BaseExpression, context: Context) -> bool:
    definition = function if isinstance(function, cst.Lambda) else context.value(function).definition
    if definition is not None:
        return uses_device(definition, context)
    described = context.described(function) if isinstance(function, (cst.Name, cst.Attribute)) else None
    return described is not None and described.uses_device


def is_in_a_process(call: cst.Call, context: Context) -> bool:
    """Whether the function is one of several processes that the file starts: `Process(target=self.run)`."""
    function = context.function(call)
    return isinstance(function, cst.FunctionDef) and any(
        (context.qualified_name(started.func) or last_part(started.func)).rpartition(".")[2] == "Process"
        and (target := context.argument(started, "target", 1)) is not None
        and last_part(target) == function.name.value
        for started in context.tree.of(cst.Call)
    )


def is_drawn_on_device(loader: cst.Call, context: Context) -> bool:
    """Whether the numbers of the samples are drawn on an accelerator: then so are all tensors, the dataset's too.

    Or the file has all tensors made there: `torch.set_default_device("cuda")`.
    """
    if DEFAULT_DEVICE_SETTER.is_in(context.program.code) and any(
        _sets_default(call, context) for call in context.tree.of(cst.Call)
    ):
        return True
    given = context.argument(loader, "generator", 12)
    return given is not None and context.origins(given).some(
        lambda made: isinstance(made, cst.Call) and any(_is_device(argument.value, context) for argument in made.args)
    )


def _sets_default(call: cst.Call, context: Context) -> bool:
    """Whether from here on tensors are made on an accelerator, which a forked worker cannot."""
    name = context.qualified_name(call.func) or ""
    if name.rpartition(".")[2] not in ("set_default_device", "set_default_tensor_type") or not call.args:
        return False
    given = call.args[0].value
    named = context.qualified_name(given) or context.code(given).strip("\"'")
    return named.startswith("torch.cuda.") or _is_device(given, context)


def _is_device(node: cst.BaseExpression, context: Context) -> bool:
    value = context.value(node)
    return value.kind in (Kind.DEVICE, Kind.STRING) and value.device in (Device.ACCELERATOR, Device.MAYBE)


def may_cost_nothing(loader: cst.Call, dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether a dataset that is out of sight may as well pick samples from memory: it gives whole batches."""
    size, collate = context.argument(loader, "batch_size", 1), context.argument(loader, "collate_fn", 6)
    if isinstance(size, cst.Name) and size.value == "None":
        return True
    if _is_entry(dataset, context) or _is_one_of_many_in_memory(dataset, context):
        return True
    return collate is not None and _gives_back(collate, context)


def is_named_in_memory(loader: cst.Call, dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether a dataset is named like a list of numbers or a buffer, or nobody collates its samples, by a name."""
    collate, name = context.argument(loader, "collate_fn", 6), dotted(dataset) or ""
    if REPLAY_BUFFER.suggests(name) or (collate is None and INDEX_LIST.suggests(name)):
        return True
    return collate is not None and IDENTITY_COLLATE.suggests((dotted(collate) or "").rpartition(".")[2])


def is_given_elsewhere(dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether nothing here tells of the dataset: its class is found by a text, or it is what callers elsewhere pass."""
    return _is_found_by_text(dataset, context) or _is_from_elsewhere(dataset, context)


def is_collated_here(loader: cst.Call, context: Context) -> bool:
    """Whether `collate_fn` is a function of this file that does more than to pick, convert and join."""
    collate = context.argument(loader, "collate_fn", 6)
    if collate is None:
        return False
    return any(
        isinstance(definition := context.value(function).definition, cst.FunctionDef)
        and not is_light(definition, context)
        for function in _collators(collate, context)
    )


def _is_found_by_text(dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether the class is the result of a call: `find_class(config["dataset"])(path)`."""
    made = [dataset, *sources(dataset, context)]
    return any(isinstance(call, cst.Call) and isinstance(call.func, cst.Call) for call in made)


def _is_one_of_many_in_memory(dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether this is one of the things that a call gives, of which all pick samples from memory."""
    made = _makers(dataset, context)
    return bool(made) and all(work(call, context) is Work.INDEXES for call in made)


@query(bottom=frozenset())
def _makers(node: cst.BaseExpression, context: Context) -> frozenset[cst.Call]:
    """The calls that give what this is one of: the function of `parts = [pair[1] for pair in function().values()]`."""
    match node:
        case cst.Subscript(value=owner) | cst.ListComp(elt=owner):
            return _makers(owner, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="items" | "values"))):
            return _makers(owner, context)
        case cst.Call(func=func):
            is_passed_on = context.qualified_name(func) in ("zip", "enumerate", "list")
            return frozenset() if is_passed_on else frozenset({node})
        case cst.Name():
            parts = map(_taken_from, context.origins(node, _IN_ONE_OF).found)
            return frozenset().union(*(_makers(part, context) for part in parts))
    return frozenset()


def _taken_from(origin: Origin) -> cst.BaseExpression:
    """What a value is an element of: of `for a, b in zip(x, y)` that is `y` for `b`."""
    match origin.node, [step for step in origin.path if step >= 0]:
        case cst.Call(func=cst.Name(value="zip"), args=given), [place, *_] if len(given) > place:
            return given[place].value
    return origin.node


def _is_entry(dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether tensors are put where this is taken from: `data[split] = TensorDataset(x, y)`."""
    if not isinstance(dataset, cst.Subscript) or not isinstance(dataset.value, cst.Name):
        return False
    owner = dataset.value.value
    for assign in context.tree.of(cst.Assign):
        match assign:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name)))],
                value=cst.Call(func=func),
            ) if name == owner and context.qualified_name(func) == "torch.utils.data.TensorDataset":
                return True
    return False


def _gives_back(collate: cst.BaseExpression, context: Context) -> bool:
    """`list`, `lambda samples: samples`, or a function that only returns what it gets."""
    definition = context.value(collate).definition
    match definition if isinstance(definition, cst.FunctionDef) else collate:
        case cst.Lambda(
            params=cst.Parameters(params=[cst.Param(name=cst.Name(value=name))]), body=cst.Name(value=body)
        ):
            return name == body
        case cst.FunctionDef(
            params=cst.Parameters(params=[cst.Param(name=cst.Name(value=name))]),
            body=cst.IndentedBlock(
                body=[*_, cst.SimpleStatementLine(body=[cst.Return(value=cst.Name(value=body))])] as lines
            ),
        ):
            return name == body and all(_is_text(line) for line in lines[:-1])
    return (context.qualified_name(collate) or dotted(collate)) == "list"


def _is_text(line: cst.CSTNode) -> bool:
    """Whether a line is a docstring."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())]):
            return True
    return False


def _is_from_elsewhere(dataset: cst.BaseExpression, context: Context) -> bool:
    """Whether this is a parameter of a function that nothing in the file calls, and that does not train with it."""
    parameter = context.parameter(dataset)
    if parameter is None:
        return False
    function = context.tree.function_of_parameter(parameter)
    return (
        isinstance(function, cst.FunctionDef)
        and context.classes.owner(function) is None
        and not list(context.calls.callers(function))
        and not GRADIENT_TAKEN.is_in(context.uncommented(function))
    )
