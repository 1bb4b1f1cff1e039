"""What a loader loads and whom it feeds: the work that a dataset does, who does it, the loops that read a loader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import libcst as cst

from torchlint.analyses.data.idle_loops import computes_nothing, generates, takes_few
from torchlint.analyses.data.single_process import in_one_process
from torchlint.analyses.execution.occasions import is_guarded
from torchlint.analyses.provenance.constants import constant, keywords
from torchlint.semantics.context import Context
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import FACTORIES, LEGACY_TENSORS, LOADER_HOOKS
from torchlint.semantics.knowledge.conventions.functions import DATASET_BASE, PROGRESS_BAR
from torchlint.semantics.knowledge.conventions.packages import PROMPT_READER
from torchlint.semantics.knowledge.marks import WORKER_INFO
from torchlint.semantics.names.bindings import dotted, last_part
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import Loop, descendants, descendants_in_scope


class Work(IntEnum):
    """What making one sample takes; of several datasets in one, the greatest counts.

    INDEXES: it is picked from memory. ON_DEVICE: it is made on an accelerator. STREAMS: it is the next of a stream
    that is not shared out among workers, or comes out of what only one process may read. LOADS: it is read, decoded
    or transformed.
    """

    INDEXES = 0
    UNKNOWN = 1
    LOADS = 2
    STREAMS = 3
    ON_DEVICE = 4


# Datasets of torch that wrap the one given first.
_WRAPPERS = frozenset(
    f"torch.utils.data.{name}" for name in ("Subset", "random_split", "ConcatDataset", "StackDataset", "dataset.Subset")
)
_IN_MEMORY = frozenset({"range", "list", "tuple", "zip", "sorted", "torch.utils.data.TensorDataset"})
_DATASETS = ("torchvision.datasets.", "torchaudio.datasets.")
# What `__getitem__` may call and still do no more than pick a sample from memory.
_LIGHT_TORCH = (*FACTORIES, *LEGACY_TENSORS, "from_numpy", "stack", "cat", "manual_seed")
_LIGHT_NUMPY = ("array", "asarray", "int64", "float32", "stack", "concatenate", "zeros", "ones")
_LIGHT_BUILTINS = (
    "len",
    "int",
    "float",
    "bool",
    "str",
    "range",
    "list",
    "dict",
    "tuple",
    "set",
    "zip",
    "enumerate",
    "min",
    "max",
    "abs",
    "round",
    "isinstance",
    "slice",
    "hash",
    "print",
    "sum",
    "super",
    "type",
    "hasattr",
    "getattr",
    "IndexError",
    "ValueError",
    "KeyError",
    "StopIteration",
    "NotImplementedError",
)
# Objects that hold what they are given.
_PARCELS = (
    "sentence_transformers.InputExample",
    "sentence_transformers.readers.InputExample",
    "torch_geometric.data.Data",
    "torch_geometric.data.HeteroData",
)
_LIGHT_CALLS = frozenset(
    (
        *(f"torch.{name}" for name in _LIGHT_TORCH),
        *(f"numpy.{name}" for name in _LIGHT_NUMPY),
        "torch.nn.utils.rnn.pad_sequence",
        "torch.nn.functional.pad",
        *_LIGHT_BUILTINS,
        *_PARCELS,
    )
)
_LIGHT_ROOTS = ("random.", "numpy.random.", "math.")
_LIGHT_METHODS = frozenset(
    {
        "float",
        "long",
        "int",
        "bool",
        "double",
        "half",
        "item",
        "clone",
        "view",
        "reshape",
        "unsqueeze",
        "squeeze",
        "type",
        "astype",
        "copy",
        "get",
        "append",
        "extend",
        "insert",
        "pop",
        "to",
        "numpy",
        "size",
        "permute",
        "transpose",
        "tolist",
        "contiguous",
        "keys",
        "values",
        "items",
        "index",
        "iloc",
        "detach",
        "flatten",
        "format",
        "__len__",
    }
)


@query(bottom=Work.UNKNOWN)
def work(dataset: cst.CSTNode, context: Context) -> Work:
    """What making one sample of the dataset takes."""
    if isinstance(dataset, (cst.List, cst.Tuple, cst.ListComp)):
        return Work.INDEXES
    if isinstance(dataset, cst.Call):
        return _constructed(dataset, context)
    if _is_formatted(dataset, context) or _is_arithmetic(dataset):
        return Work.INDEXES
    held = list(sources(dataset, context))
    if held:
        # What was stored once is what is made where nothing is.
        made = [source for source in held if not _is_stored(source, context)] or held
        return max(work(source, context) for source in made)
    value = context.value(dataset)
    if value.kind in (Kind.TENSOR, Kind.NDARRAY, Kind.SEQUENCE) and value.proven and not value.batch:
        return Work.INDEXES
    return Work.UNKNOWN


def _is_stored(source: cst.CSTNode, context: Context) -> bool:
    return isinstance(source, cst.Call) and context.qualified_name(source.func) in ("torch.load", "pickle.load")


def _is_arithmetic(dataset: cst.CSTNode) -> bool:
    """Whether this is a tensor or an array, since it is computed; datasets can only be added."""
    return isinstance(dataset, cst.BinaryOperation) and not isinstance(dataset.operator, cst.Add)


def _is_formatted(dataset: cst.CSTNode, context: Context) -> bool:
    """Whether a dataset of Hugging Face gives tensors that were made before: `data.set_format("torch")`."""
    owner = dataset.value if isinstance(dataset, cst.Subscript) else dataset
    return isinstance(owner, cst.Name) and any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "set_format"
        and isinstance(call.func.value, cst.Name)
        and call.func.value.value == owner.value
        for call in context.tree.of(cst.Call)
    )


def sources(node: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """The expressions whose value a name, attribute or entry may hold; none where any of them is out of sight."""
    match node:
        case cst.Name():
            origins = context.bound_to(node, Through.PARTS)
            parameter = context.parameter(node)
            if origins.is_complete:
                for value, path in origins.found:
                    yield from _unpacked(value, path, context)
            elif parameter is not None:
                yield from _passed(parameter, context)
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
            class_ = context.classes.self_class(owner)
            sets = context.classes.attribute_sets(class_, name) if class_ is not None else []
            given = [entry.value for entry in sets if entry.value is not None and not _is_none(entry.value)]
            yield from given
        case cst.Subscript(value=owner):
            for source in sources(owner, context):
                match source:
                    case cst.DictComp(value=value):
                        yield value
                    case cst.Dict(elements=elements):
                        yield from (element.value for element in elements)
                    case cst.Call():
                        yield source
        case cst.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)


def _unpacked(value: cst.BaseExpression, path: tuple[int, ...], context: Context) -> Iterator[cst.BaseExpression]:
    """What a name is bound to: of `data, model = load()`, the first of the tuples that a function in sight returns."""
    function = context.calls.target(value) if len(path) == 1 and isinstance(value, cst.Call) else None
    if function is None:
        yield value
        return
    for node in descendants_in_scope(function.body):
        if isinstance(node, cst.Return) and node.value is not None:
            parts = node.value.elements if isinstance(node.value, cst.Tuple) else ()
            yield parts[path[0]].value if len(parts) > path[0] >= 0 else value


def _is_none(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _passed(parameter: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """What all callers in this module pass for a parameter; nothing where one of them is not understood."""
    function = context.tree.function_of_parameter(parameter)
    if not isinstance(function, cst.FunctionDef) or not isinstance(parameter, cst.Param):
        return
    calls = context.calls.callers(function)
    passed = [context.calls.argument_for(call, function, parameter) for call in calls]
    if all(argument is not None for argument in passed):
        yield from (argument for argument in passed if argument is not None)


def _constructed(call: cst.Call, context: Context) -> Work:
    name = context.qualified_name(call.func) or ""
    if name in _IN_MEMORY or name.startswith("torch_geometric.datasets."):
        return Work.INDEXES
    if name in _WRAPPERS and call.args:
        first = call.args[0].value
        parts = [first] if not isinstance(first, (cst.List, cst.Tuple)) else [part.value for part in first.elements]
        return max((work(part, context) for part in parts), default=Work.UNKNOWN)
    if name.startswith(_DATASETS):
        return Work.LOADS
    if name.startswith("datasets.load"):
        return Work.UNKNOWN
    if any(_is_generator(argument.value, context) for argument in call.args):
        return Work.STREAMS
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("to", "cuda", "cpu"):
        return Work.INDEXES  # only a tensor is moved
    definition = context.value(call).definition
    if isinstance(definition, cst.ClassDef) and isinstance(call.func, cst.Name):
        return class_work(definition, context)
    described = context.described(call.func)
    if described is not None and described.work is not None:
        return Work(described.work)
    function = context.calls.target(call)
    if function is None or function.name.value in ("__init__", "forward"):
        value = context.value(call)
        known = value.kind in (Kind.TENSOR, Kind.NDARRAY) and value.proven
        return Work.INDEXES if known else Work.UNKNOWN
    return returned_work(function, context)


def returned_work(function: cst.FunctionDef, context: Context) -> Work:
    """What making one sample takes of what a function returns, among other things perhaps."""
    returned = [
        node.value for node in descendants_in_scope(function.body) if isinstance(node, cst.Return) and node.value
    ]
    found = Work.UNKNOWN
    if not any(isinstance(value, cst.Tuple) for value in returned):
        found = max((work(value, context) for value in returned), default=Work.UNKNOWN)
    return Work.INDEXES if found is Work.UNKNOWN and _makes_tensors_only(function, context) else found


def _makes_tensors_only(function: cst.FunctionDef, context: Context) -> bool:
    """Whether all the datasets that a function makes are of tensors in memory, and it makes some."""
    names = [
        context.qualified_name(node.func) or last_part(node.func)
        for node in descendants(function.body)
        if isinstance(node, cst.Call)
    ]
    made = {name for name in names if DATASET_BASE.suggests(name) or name.startswith(_DATASETS)}
    return made == {"torch.utils.data.TensorDataset"}


def _is_generator(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is a function that yields: a dataset given it yields the same in each worker."""
    function: cst.CSTNode | None = None
    match node:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
            class_ = context.classes.self_class(owner)
            function = context.classes.method(class_, name) if class_ is not None else None
        case cst.Name():
            function = context.value(node).definition
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(part, cst.Yield) for part in descendants_in_scope(function.body)
    )


def class_work(class_: cst.ClassDef, context: Context) -> Work:
    """What making one sample takes, of a dataset that the module defines."""
    bases = [base for base in context.classes.lineage(class_) if isinstance(base, str)]
    code = context.uncommented(class_)
    if any(base.rpartition(".")[2] == "IterableDataset" for base in bases):
        return Work.UNKNOWN if WORKER_INFO.is_in(code) else Work.STREAMS
    if any(is_put_on_device(node, context) for node in descendants(class_.body)):
        return Work.ON_DEVICE
    getter = context.classes.method(class_, "__getitem__") or context.classes.method(class_, "__getitems__")
    if getter is None:
        return Work.LOADS if any(base.startswith(_DATASETS) for base in bases) else Work.UNKNOWN
    if in_one_process(class_, getter, context):
        return Work.STREAMS
    return Work.INDEXES if is_light(getter, context) else Work.LOADS


def is_put_on_device(node: cst.CSTNode, context: Context) -> bool:
    """Whether a call puts something on an accelerator."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    if node.func.attr.value == "cuda":
        return True
    given = [argument.value for argument in node.args if argument.keyword is None or argument.keyword.value == "device"]
    moves = node.func.attr.value == "to" or any(
        argument.keyword and argument.keyword.value == "device" for argument in node.args
    )
    return moves and any(
        value.kind in (Kind.DEVICE, Kind.STRING) and value.device in (Device.ACCELERATOR, Device.MAYBE)
        for value in map(context.value, given)
    )


@query(bottom=False)
def uses_device(code: cst.CSTNode, context: Context) -> bool:
    """Whether code puts something on an accelerator, or calls a function that does, of another file for a function."""
    calls = [node for node in descendants(code) if isinstance(node, cst.Call)]
    if any(is_put_on_device(call, context) for call in calls):
        return True
    targets = map(context.calls.target, calls)
    if any(target is not None and uses_device(target, context) for target in targets):
        return True
    return isinstance(code, cst.FunctionDef) and any(_uses_device_elsewhere(call.func, context) for call in calls)


def _uses_device_elsewhere(function: cst.BaseExpression, context: Context) -> bool:
    described = context.described(function)
    return described is not None and described.uses_device


@query(bottom=False)
def is_light(function: cst.FunctionDef, context: Context) -> bool:
    """Whether a function only picks, converts and returns."""
    return all(_is_light_call(node, context) for node in descendants(function.body) if isinstance(node, cst.Call))


def _is_light_call(call: cst.Call, context: Context) -> bool:
    name = context.qualified_name(call.func) or ""
    if name in _LIGHT_CALLS or name.startswith(_LIGHT_ROOTS):
        return True
    target = context.calls.target(call)
    if target is not None:
        return is_light(target, context)
    return not name and isinstance(call.func, cst.Attribute) and call.func.attr.value in _LIGHT_METHODS


class Reader(IntEnum):
    """Who reads a loader: nobody, nobody in sight, something that takes one batch of it, or a loop over its batches.

    SHOW is a loop that computes nothing with them. SLOW is one that generates text for each, or what does so out of
    sight, beside which it costs nothing to pick tokens from memory.
    """

    NOBODY = 0
    UNSEEN = 1
    PEEK = 2
    SHOW = 3
    SLOW = 4
    LOOP = 5


# What asks for no batch.
_PROPERTIES = frozenset(
    ("dataset", "batch_size", "sampler", "batch_sampler", "num_workers", "drop_last", "state_dict", "load_state_dict")
)
_LOOKS = ("len", "print", "isinstance", "type", "id")


def reader(loader: cst.CSTNode, context: Context) -> Reader:
    """The busiest reader of a loader, or of a container that holds it."""
    return _Readers(context).of(loader)


class _Readers:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._seen: set[int] = set()
        self._root: cst.CSTNode | None = None

    def of(self, node: cst.CSTNode) -> Reader:
        """The busiest reader of what an expression holds."""
        self._root = self._root or node
        if id(node) in self._seen:
            return Reader.NOBODY
        self._seen.add(id(node))
        parent = self.context.parent(node)
        match parent:
            case cst.For(iter=iterated) if iterated is node:
                if self._takes_one(parent) or takes_few(parent, self.context):
                    return Reader.PEEK
                if computes_nothing(parent, self.context):
                    return Reader.SHOW
                return Reader.SLOW if generates(parent, self.context) else Reader.LOOP
            case cst.CompFor(iter=iterated) if iterated is node:
                return Reader.LOOP
            case cst.Arg():
                return self._argument(parent)
            case cst.Assign(targets=targets):
                return max(self._target(target.target, parent) for target in targets)
            case cst.AnnAssign(target=target):
                return self._target(target, parent)
            case cst.Return() | cst.Yield():
                return self._returned(parent)
            case cst.Element() if (returned := self._is_one_of_those_returned(parent)) is not None:
                return self._returned(*returned)
            case cst.Attribute(attr=cst.Name(value="__iter__" | "__next__")):
                return self._begun(parent)
            case cst.Attribute():
                return Reader.NOBODY if self._is_only_asked(parent) else self.of(parent)
            case (
                cst.Element() | cst.DictElement() | cst.IfExp() | cst.Subscript() | cst.Index() | cst.SubscriptElement()
            ):
                return self.of(parent)
            case cst.List() | cst.Tuple() | cst.Dict() | cst.DictComp() | cst.ListComp() | cst.Call():
                return self.of(parent)
        return Reader.UNSEEN

    @staticmethod
    def _is_only_asked(attribute: cst.Attribute) -> bool:
        return attribute.attr.value in _PROPERTIES

    def _takes_one(self, loop: cst.For) -> bool:
        """Whether the first iteration of the loop ends it, and nothing begins it again."""
        if self.context.loop(loop) is not None:
            return False
        own = [node for node in descendants_in_scope(loop.body) if self.context.loop(node) is loop]
        lines = [line for line in loop.body.body if isinstance(line, cst.SimpleStatementLine)]
        last = [part for line in lines for part in line.body] if lines else list(loop.body.body)
        return any(isinstance(part, (cst.Break, cst.Return)) for part in last) and not any(
            isinstance(node, cst.Continue) for node in own
        )

    def _argument(self, argument: cst.Arg) -> Reader:
        call = self.context.parent(argument)
        if not isinstance(call, cst.Call):
            return Reader.UNSEEN
        name = self.context.qualified_name(call.func) or dotted(call.func) or ""
        if name in _LOOKS or (name == "list" and isinstance(self.context.parent(call), cst.Expr)):
            return Reader.NOBODY  # the second goes through it once, to leave it where it ends
        if PROMPT_READER.suggests(name):
            return Reader.SLOW
        if name in ("iter", "next"):
            return self._begun(call)
        target = self.context.calls.target(call)
        if target is not None and self._is_left_alone(call, target):
            return Reader.NOBODY
        if name in (
            "enumerate",
            "zip",
            "list",
            "tuple",
            "dict",
            "sorted",
            "reversed",
            "map",
            "cycle",
        ) or PROGRESS_BAR.suggests(name):
            return max(self.of(call), Reader.LOOP if name in ("list", "tuple", "map") else Reader.UNSEEN)
        if target is None:
            return Reader.LOOP  # something elsewhere takes it, to fit or to evaluate with it
        for parameter in (*target.params.posonly_params, *target.params.params, *target.params.kwonly_params):
            passed = self.context.calls.argument_for(call, target, parameter)
            if passed is argument.value:
                return self._named(parameter.name.value, parameter)
        return Reader.LOOP if argument.star else Reader.UNSEEN

    def _is_left_alone(self, call: cst.Call, generator: cst.FunctionDef) -> bool:
        """Whether nothing ever starts this generator, but others of the kind, beside it: `self.spare = cycle(…)`."""
        if not any(isinstance(part, cst.Yield) for part in descendants_in_scope(generator.body)):
            return False
        return self._is_read(call) is False and any(map(self._is_read, self.context.calls.callers(generator)))

    def _is_read(self, call: cst.Call) -> bool | None:
        """Whether the file reads the attribute that a call is assigned to; None where there is none."""
        match self.context.parent(call):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value=name)))]):
                return not all(map(self.context.uses.is_target, self.context.uses.attributes(name)))
        return None

    def _begun(self, node: cst.Call | cst.Attribute) -> Reader:
        """Who reads an iterator: of `iter(loader)` or `loader.__iter__` only the first batch, or more."""
        call = self.context.parent(node) if isinstance(node, cst.Attribute) else node
        above = self.context.parent(call) if isinstance(call, cst.Call) else None
        if isinstance(above, cst.Attribute) and above.attr.value in ("__next__", "next"):
            outer = self.context.parent(above)
        else:
            outer = self.context.parent(above) if isinstance(above, cst.Arg) else None
            if not isinstance(outer, cst.Call) or self.context.qualified_name(outer.func) != "next":
                return self.of(call) if isinstance(call, cst.Call) else Reader.UNSEEN
        if outer is None:
            return Reader.UNSEEN
        loop = self.context.frequencies.loop(outer)
        is_one = loop is None or (self._root is not None and self.context.tree.within(self._root, loop))
        return Reader.PEEK if is_one else Reader.LOOP

    def _target(self, target: cst.CSTNode, statement: cst.CSTNode) -> Reader:
        match target:
            case cst.Name(value=name):
                return max(self._named(name, statement), self._elsewhere(target))
            case cst.Tuple(elements=elements):
                return max(self._target(element.value, statement) for element in elements)
            case cst.Attribute(attr=cst.Name(value=name)):
                uses = [node for node in self.context.uses.attributes(name) if not self.context.uses.is_target(node)]
                return max((self.of(use) for use in uses), default=Reader.UNSEEN)
            case cst.Subscript(value=cst.Name(value=name) as owner):
                for binder in self.context.binders(owner):
                    return self._named(name, binder)
        return Reader.UNSEEN

    def _named(self, name: str, node: cst.CSTNode) -> Reader:
        return max((self.of(use) for use in self.context.uses.of(name, node)), default=Reader.NOBODY)

    def _elsewhere(self, name: cst.Name) -> Reader:
        """What else may read a name: of a module that others import, but of a script nothing."""
        scope, _ = self.context.names.lookup(name)
        if scope is None or scope.is_class:
            return Reader.UNSEEN
        is_local = isinstance(scope.node, (cst.FunctionDef, cst.Lambda))
        return Reader.NOBODY if is_local or is_guarded(name, self.context) or self._is_script else Reader.UNSEEN

    @cached_property
    def _is_script(self) -> bool:
        """Whether the module goes over batches or epochs, or has that done, when it is run or imported."""
        return any(
            self._reads_batches(node) and not is_guarded(node, self.context)
            for node in descendants_in_scope(self.context.tree.module)
            if isinstance(node, (*Loop, cst.Call))
        )

    def _reads_batches(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call):
            is_look = self.context.qualified_name(node.func) in _LOOKS
            return not is_look and any(self.context.kinds.is_loader_like(argument.value) for argument in node.args)
        return self.context.frequencies.loop_kind(node) is not LoopKind.OTHER

    def _is_one_of_those_returned(self, element: cst.Element) -> tuple[cst.Return, int] | None:
        """The `return` of several values of which this is one, and its place among them."""
        values = self.context.parent(element)
        above = self.context.parent(values) if isinstance(values, cst.Tuple) else None
        if not isinstance(values, cst.Tuple) or not isinstance(above, cst.Return):
            return None
        return above, next(place for place, value in enumerate(values.elements) if value is element)

    def _unpacked(self, call: cst.Call, place: int | None) -> Reader:
        """Who reads what a call returns, or the one of the values that has this place."""
        match self.context.parent(call):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))]) as statement if (
                place is not None and len(elements) > place
            ):
                if not any(isinstance(element, cst.StarredElement) for element in elements):
                    return self._target(elements[place].value, statement)
        return self.of(call)

    def _returned(self, node: cst.CSTNode, place: int | None = None) -> Reader:
        function = self.context.function(node)
        if not isinstance(function, cst.FunctionDef):
            return Reader.UNSEEN
        if function.name.value in LOADER_HOOKS and self.context.classes.owner(function) is not None:
            return Reader.LOOP
        calls = self.context.calls.callers(function)
        found = max((self._unpacked(call, place) for call in calls), default=Reader.UNSEEN)
        if found < Reader.UNSEEN and self.context.elsewhere.callers(function):
            return Reader.UNSEEN  # this file only tries it out
        return found


# Options that only make sense with workers: the constructor refuses them without.
NEED_WORKERS = ("persistent_workers", "prefetch_factor", "multiprocessing_context")


@dataclass(frozen=True, slots=True)
class NoWorkers:
    """What leaves a loader without workers: `given` as written, which stands for `zero`; None where nothing does.

    An option of the command line `is_option`, and 0 unless somebody says otherwise.
    """

    given: cst.BaseExpression | None = None
    zero: cst.Integer | None = None
    is_option: bool = False

    @property
    def is_named(self) -> bool:
        """Whether a name stands for the 0."""
        return self.given is not self.zero


def no_workers(loader: cst.Call, context: Context) -> NoWorkers | None:
    """What leaves a loader without workers; None if it may have some."""
    positional = None if (context.qualified_name(loader.func) or "").startswith("torch_geometric.") else 5
    given = context.argument(loader, "num_workers", positional)
    if given is not None:
        return _zero(given, context)
    for argument in loader.args:
        if argument.star:
            unpacked = keywords(argument.value, context) if argument.star == "**" else None
            if unpacked is None or not unpacked.keys().isdisjoint(NEED_WORKERS):
                return None
            if "num_workers" in unpacked:
                return _zero(unpacked["num_workers"], context)
    return NoWorkers()


def _zero(given: cst.BaseExpression, context: Context) -> NoWorkers | None:
    found = constant(given, context)
    return NoWorkers(given, found) if isinstance(found, cst.Integer) and found.value == "0" else None


def is_self_check(loader: cst.Call, context: Context) -> bool:
    """Whether `if __name__ == "__main__"` loops over the loader only to show what the file's dataset gives."""
    block = context.enclosing(loader, cst.FunctionDef, cst.If)
    assign = context.parent(loader)
    if (
        not isinstance(block, cst.If)
        or "__name__" not in context.code(block.test)
        or not isinstance(assign, cst.Assign)
    ):
        return False
    if any(isinstance(node, cst.Call) and context.kind(node.func) is Kind.MODULE for node in descendants(block.body)):
        return False
    target = assign.targets[0].target
    return isinstance(target, cst.Name) and all(
        isinstance(_reading(use, context), cst.For) for use in context.uses.of(target.value, assign)
    )


def _reading(use: cst.CSTNode, context: Context) -> cst.CSTNode | None:
    """What reads a name, through `enumerate(…)` and the like."""
    parent = context.parent(use)
    call = context.parent(parent) if isinstance(parent, cst.Arg) else None
    return context.parent(call) if call is not None else parent
