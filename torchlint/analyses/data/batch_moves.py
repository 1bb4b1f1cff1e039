"""Where the batches of loaders are moved to a device, and whether their memory is pinned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import libcst as cst

from torchlint.analyses.data.loaders import Made, is_loader, made, option, wrapped
from torchlint.analyses.iteration.targets import names_in
from torchlint.analyses.provenance.constants import constant
from torchlint.analyses.tensors.aliasing import reflects
from torchlint.analyses.transfer.moves import is_cuda_type
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import ELEMENT, Origin, Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.convention import remembered
from torchlint.semantics.knowledge.conventions.texts import APPLE_DEVICE, MOVED_BY_FRAMEWORK, OTHER_DEVICE
from torchlint.semantics.knowledge.conventions.values import DTYPE_NAME, SETTINGS
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import Binder, Binding, dotted
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

# What is done with a tensor on the host that neither changes it nor gives it to others.
_LOOKS = frozenset({"size", "shape", "dim", "ndim", "dtype", "numel", "device", "is_cuda"})
# What keeps the batches that it is given.
_KEEPING = frozenset({"list", "tuple", "sorted", "itertools.cycle", "copy.copy"})


class Pinned(Enum):
    """Whether the memory of batches is pinned."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BatchMove:
    """A call that moves a part of a batch; `loader` is what the batch was taken from.

    `is_part` says that it is taken out of the batch: as one of its targets, or by a key.
    """

    call: cst.Call
    receiver: cst.BaseExpression
    loader: cst.BaseExpression
    is_part: bool

    @property
    def method(self) -> str:
        """`to` or `cuda`."""
        assert isinstance(self.call.func, cst.Attribute)
        return self.call.func.attr.value


@remembered(4)
def is_left_to_others(text: str) -> bool:
    """Whether a file leaves moving to a framework, copies on streams of its own, or speaks of Apple's devices."""
    if MOVED_BY_FRAMEWORK.suggests(text):
        return True
    return "mps" in text and APPLE_DEVICE.suggests(text)


@remembered(4)
def _speaks_of_others(text: str) -> bool:
    """Whether a file speaks of devices that may be of another kind than CUDA's."""
    return OTHER_DEVICE.suggests(text)


def batch_moves(context: Context) -> list[BatchMove]:
    """The moves to a device of what loaders give, in loops over them."""
    return [
        move
        for call in context.tree.of(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("to", "cuda", "type")
        if (move := batch_move(call, context)) is not None
    ]


def batch_move(call: cst.Call, context: Context) -> BatchMove | None:
    """What a call moves, if that comes out of a loader and goes to an accelerator, per batch."""
    if not isinstance(call.func, cst.Attribute) or is_left_to_others(context.program.code):
        return None
    origin = _origin(call.func.value, context)
    if origin is None or not is_to_accelerator(call, context) or context.frequency(call) < Frequency.BATCH:
        return None
    return BatchMove(call, call.func.value, *origin)


def loop_of(node: cst.CSTNode, context: Context) -> cst.For | None:
    """The statement that loops around this, nearest first: a comprehension over the parts of a batch is none."""
    return context.enclosing(node, cst.For)


def is_made_anew(loop: cst.For, context: Context) -> bool:
    """Whether a part of the batch is computed on the host first, so that what is moved then is no memory of a loader.

    `points = torch.Tensor(points); points = points.cuda()`, `images = (images - 0.5) * 2`.
    """
    given = names_in(loop.target)
    for call in descendants(loop.body):
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            continue
        if call.func.attr.value not in ("to", "cuda") or not is_to_accelerator(call, context):
            continue
        moved = _first_name(call.func.value)
        if moved is not None and moved.value in given and _is_computed(moved, context):
            return True
    return False


@query(bottom=False)
def _is_computed(name: cst.Name, context: Context) -> bool:
    """Whether a name holds the result of arithmetic, or of a function of torch or NumPy, or a view of one."""
    for value, path in context.bound_to(name, Through.PARTS).found:
        function = context.qualified_name(value.func) if isinstance(value, cst.Call) else None
        if isinstance(value, cst.BinaryOperation) or (
            function is not None and function.startswith(("torch.", "numpy.")) and not function.endswith(".Variable")
        ):
            return True
        inner = _first_name(value) if function is None and not path else None
        if inner is not None and _is_computed(inner, context):
            return True
    return False


def _first_name(node: cst.BaseExpression) -> cst.Name | None:
    """`x` of `x.view(-1)[0]`."""
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node if isinstance(node, cst.Name) else None


def is_to_accelerator(call: cst.Call, context: Context) -> bool:
    """Whether a call of `to`, `cuda` or `type` moves to what may be an accelerator."""
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value == "cuda":
        return True
    if call.func.attr.value == "type":
        type_ = context.argument(call, "dtype", 0)
        return type_ is not None and is_cuda_type(type_, context)
    given = context.argument(call, "device", 0)
    if given is None:
        return False
    value = context.value(given)
    if value.kind in (Kind.DEVICE, Kind.STRING, Kind.NUMBER):
        is_known = value.proven and value.device is not Device.UNKNOWN
        return value.device is not Device.CPU and (is_known or not _is_of_data(given, context))
    name = dotted(given)
    return value.kind is Kind.UNKNOWN and name is not None and not DTYPE_NAME.suggests(name.rpartition(".")[2])


def _is_of_data(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is the device of a tensor that may as well be on the CPU: `labels.device`, not `args.device`."""
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="device")) if context.qualified_name(owner) is None:
            root = (dotted(owner) or "").partition(".")[0]
            return context.kind(owner) in (Kind.TENSOR, Kind.UNKNOWN) and not SETTINGS.suggests(root)
    return False


_Taken: TypeAlias = "tuple[cst.BaseExpression, bool]"


@query(bottom=None)
def _origin(node: cst.BaseExpression, context: Context) -> _Taken | None:
    """The loader of which this is a batch, or a part of one, as it was given; and whether it is a part."""
    match node:
        case cst.Subscript(value=owner):
            return _part_of(_origin(owner, context))
        case cst.Attribute(value=cst.Name() as owner) if context.qualified_name(owner) is None:
            return _part_of(_origin(owner, context))  # `batch.x`
        case cst.Call(func=func, args=[cst.Arg(value=first), *_]) if context.qualified_name(func) in (
            "torch.autograd.Variable",
            "enumerate",
            "reversed",
        ):
            return _origin(first, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="items" | "values")), args=[]):
            return _part_of(_origin(owner, context))
        case cst.Call(func=cst.Name(value="next"), args=[cst.Arg(value=first)]):
            return (first, False) if _is_loader(first, context) else None
        case cst.Call(func=cst.Attribute(value=first, attr=cst.Name(value="next")), args=[]) if (
            context.calls.target(node) is None
        ):
            return (first, False) if _is_loader(first, context) else None
        case cst.Call():
            return _returned(node, context)
        case cst.Name():
            origins = context.bound_to(node, Through.PARTS | Through.ELEMENTS | Through.PARAMETERS)
            found = {
                _taken(origin, context) for origin in origins.found if not _is_own_call(origin.node, node, context)
            }
            return _either(found, context) if origins.is_complete else None
    return None


def _returned(call: cst.Call, context: Context) -> _Taken | None:
    """What a function of the project gives that only takes it out of a loader: `return next(self.batches)`."""
    function = context.calls.target(call)
    if function is None:
        return None
    returns = [node for node in descendants_in_scope(function.body) if isinstance(node, cst.Return)]
    found = {_origin(node.value, context) if node.value is not None else None for node in returns}
    return _either(found, context)


def _is_own_call(passed: cst.BaseExpression, name: cst.Name, context: Context) -> bool:
    """Whether what a function passes to itself is one of the values of its parameter: a part of what others pass."""
    parameter = context.parameter(name)
    function = context.tree.function_of_parameter(parameter) if parameter is not None else None
    is_passed = function is not None and isinstance(context.parent(passed), cst.Arg)
    return is_passed and function is not None and context.tree.within(passed, function.body)


def _either(found: set[_Taken | None], context: Context) -> _Taken | None:
    """What all of these are: one loader, a progress bar around it or not, or the first of several of torch's.

    What else hands out batches may use their memory again.
    """
    if len(found) <= 1:
        return next(iter(found), None)
    taken = [one for one in found if one is not None]
    cores = [core for loader, _ in taken if (core := _core(loader, context)) is not None]
    if len(cores) < len(found) or len({is_part for _, is_part in taken}) > 1:
        return None
    if not _are_one(cores, context) and not all(made(core, context).calls for core in cores):
        return None
    return min(taken, key=lambda one: context.tree.place(one[0]))


@query(bottom=None)
def _core(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """`loader` of `tqdm(enumerate(loader))`, and of `batches` where that is `iter(loader)`, begun again or not."""
    inner = wrapped(node, context) if isinstance(node, cst.Call) else None
    if inner is not None:
        return _core(inner, context)
    if not isinstance(node, cst.Name):
        return node
    origins = context.bound_to(node)
    begun = [origin.node for origin in origins.found]
    if not origins.is_complete or not begun or not all(_is_iterator(each, context) for each in begun):
        return node
    cores = [core for each in begun if (core := _core(each, context)) is not None]
    return cores[0] if _are_one(cores, context) else node


def _is_iterator(node: cst.BaseExpression, context: Context) -> bool:
    return isinstance(node, cst.Call) and context.qualified_name(node.func) == "iter" and len(node.args) == 1


def _are_one(cores: list[cst.BaseExpression], context: Context) -> bool:
    """Whether all of these are names of the same, or one attribute of the object itself."""
    match cores[0] if cores else None:
        case cst.Name(value=name) as first:
            return all(
                isinstance(core, cst.Name) and core.value == name and context.holds_the_same(core, first)
                for core in cores[1:]
            )
        case cst.Attribute(value=cst.Name() as owner) as first if context.classes.self_class(owner) is not None:
            function = context.function(first)
            code = context.code(first)
            return all(context.code(core) == code and context.function(core) is function for core in cores[1:])
    return False


def _part_of(taken: _Taken | None) -> _Taken | None:
    return None if taken is None else (taken[0], True)


def _taken(origin: Origin, context: Context) -> _Taken | None:
    value, path = origin
    if path[:1] != (ELEMENT,):
        found = _origin(value, context)
        return _part_of(found) if path else found
    if isinstance(context.parent(value), cst.For) and _is_loader(value, context):
        return value, len(path) > (2 if _is_numbered(value, context) else 1)
    return _part_of(_origin(value, context))


def _is_numbered(node: cst.BaseExpression, context: Context) -> bool:
    return any(
        isinstance(part, cst.Call) and context.qualified_name(part.func) in ("enumerate", "zip")
        for part in descendants(node)
    )


def _is_loader(node: cst.BaseExpression, context: Context) -> bool:
    """Whether going over this gives the batches of a loader."""
    inner: cst.BaseExpression | None = node
    while isinstance(inner, cst.Call):
        if context.kinds.is_loader_like(inner):
            return True
        inner = wrapped(inner, context)
    return inner is not None and (context.kinds.is_loader_like(inner) or bool(made(node, context).calls))


# What is known of their memory


def pinned(loader: cst.Call, context: Context) -> Pinned:
    """Whether a loader pins the memory of its batches."""
    found = option(loader, "pin_memory", 7, context)
    if not found.known:
        return Pinned.UNKNOWN
    if found.given is None:
        return Pinned.NO
    if device_compared_with_text(found.given, context) is not None:
        return Pinned.NO
    given = constant(found.given, context)
    word = given.value if isinstance(given, cst.Name) else ""
    return {"True": Pinned.YES, "False": Pinned.NO}.get(word, Pinned.UNKNOWN)


@query(bottom=None)
def device_compared_with_text(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """The `torch.device` of `device == "cuda"`: never equal to a text, so that this never holds."""
    match node:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.SimpleString())]
        ):
            return left if context.origins(left).every(lambda value: _is_a_device(value, context)) else None
        case cst.Name():
            value = context.stands_for(node)
            return None if value is None or value is node else device_compared_with_text(value, context)
    return None


def _is_a_device(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this makes a `torch.device`, on either way."""
    match node:
        case cst.IfExp(body=body, orelse=orelse):
            return _is_a_device(body, context) and _is_a_device(orelse, context)
        case cst.Call(func=func):
            return context.qualified_name(func) == "torch.device"
    return False


def pinned_of(sources: Made, context: Context) -> Pinned:
    """Whether batches are pinned that come from one of these; NO where one is known that does not pin them.

    Where none is in sight, those that the file makes for others speak for it, if none of them pins; and where it makes
    none, the files that work with it do, if none of them speaks of pinning.
    """
    states = {pinned(call, context) for call in sources.calls}
    if not states:
        others = {pinned(call, context) for call in context.tree.of(cst.Call) if is_loader(call, context)}
        is_known = others == {Pinned.NO} or (not others and context.elsewhere.never_pins)
        return Pinned.NO if is_known else Pinned.UNKNOWN
    if Pinned.NO in states:
        return Pinned.NO
    return Pinned.YES if states == {Pinned.YES} and sources.complete else Pinned.UNKNOWN


def is_collated_by_torch(sources: Made, context: Context) -> bool:
    """Whether torch's own function makes the batches: new tensors, and nothing else that has `to` or `cuda`."""
    collated = [option(call, "collate_fn", 6, context) for call in sources.calls]
    sized = [option(call, "batch_size", 1, context) for call in sources.calls]
    return (
        sources.complete
        and bool(sources.calls)
        and all(found.known and found.given is None for found in collated)
        and all(found.known and (found.given is None or not _may_be_none(found.given, context)) for found in sized)
        and all((context.qualified_name(call.func) or "").startswith("torch.") for call in sources.calls)
    )


def may_be_a_tensor(move: BatchMove, context: Context) -> bool:
    """Whether nothing shows that a class of somebody's own is moved, which pins nothing of what it holds.

    `graphs.ndata` shows it, and so does `edges, size = adjacency.to(device)`.
    """
    uses: list[cst.Name] = []
    if isinstance(move.receiver, cst.Name) and context.kinds.is_checked_to_be_a_tensor(move.receiver):
        return True
    match context.parent(move.call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() | cst.List())]):
            return False
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            uses += context.uses.of(name, statement)
    if isinstance(move.receiver, cst.Name):
        uses += context.readers(move.receiver)
    attributes = (context.parent(use) for use in uses)
    return all(
        attribute.attr.value in METHODS or attribute.attr.value in apis.TENSOR_ATTRIBUTES
        for attribute in attributes
        if isinstance(attribute, cst.Attribute)
    )


def _may_be_none(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is `None`, or a name that is given that somewhere, by default too."""

    def is_none(value: cst.BaseExpression | None) -> bool:
        return isinstance(value, cst.Name) and value.value == "None"

    return isinstance(node, cst.Name) and (
        context.origins(node).some(is_none)
        or any(isinstance(binder, cst.Param) and is_none(binder.default) for binder in context.binders(node))
    )


def is_left_alone(move: BatchMove, context: Context) -> bool:
    """Whether nothing may write to what is moved while the copy is under way: it is only moved and measured.

    So is all that shares its memory: the batch that it is a part of, and the other names for parts of that.
    """
    function = context.function(move.call)
    inside = descendants(function.body if function is not None else context.tree.module)
    if any(isinstance(node, (cst.Global, cst.Nonlocal)) or reflects(node) for node in inside):
        return False
    waiting = _bindings_of(move.receiver, context)
    seen: list[Binding] = []
    while waiting:
        binding = waiting.pop()
        if binding in seen or binding.binder not in (Binder.LOOP, Binder.ASSIGN) or binding.value is None:
            continue
        seen.append(binding)
        if _is_key(binding):
            continue
        above = _bindings_of(binding.value, context)
        if any(origin.binder is Binder.LOOP for origin in above) or not _gives_batches(binding, context):
            waiting += above
        elif _keeps_batches(binding.value, context):
            return False
        for use in context.names.uses(binding):
            given = _given_to(use, context)
            if given is None:
                return False
            waiting += given
    return True


def _bindings_of(node: cst.BaseExpression, context: Context) -> list[Binding]:
    return [
        binding
        for part in (node, *descendants(node))
        if isinstance(part, cst.Name) and context.names.is_read(part)
        for binding in context.reaching(part)
    ]


def _is_key(binding: Binding) -> bool:
    """Whether it is the `k` of `batch.items()`, or the number of `enumerate(loader)`."""
    call = binding.value
    return (
        isinstance(call, cst.Call)
        and binding.path[:1] == (0,)
        and (dotted(call.func) or "").rpartition(".")[2] in ("items", "enumerate")
    )


def _gives_batches(binding: Binding, context: Context) -> bool:
    """Whether it is `for batch in loader`, or `batch = next(iterator)`."""
    value = binding.value
    assert value is not None
    is_next = isinstance(value, cst.Call) and dotted(value.func) == "next"
    return is_next or (binding.binder is Binder.LOOP and _is_loader(value, context))


@query(bottom=False)
def _keeps_batches(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the batches outlive their turn, as those of `list(loader)` do: others may write to them at any time."""
    match node:
        case cst.Call(func=func) if context.qualified_name(func) in _KEEPING:
            return True
        case cst.Call() if context.kinds.is_loader_like(node):
            return False
        case cst.Name():
            return any(_keeps_batches(origin.node, context) for origin in context.origins(node, Through.PARTS).found)
        case cst.Call(args=args):
            return any(_keeps_batches(argument.value, context) for argument in args)
    return isinstance(node, (cst.List, cst.Tuple, cst.ListComp, cst.Dict))


def _given_to(use: cst.BaseExpression, context: Context) -> list[Binding] | None:
    """The names that a use gives the batch or parts of it to; None for one that may write to it, or hand it on."""
    node: cst.CSTNode = use
    while True:
        parent = context.parent(node)
        match parent:
            case cst.Attribute(attr=cst.Name(value=name)):
                call = context.parent(parent)
                if name in _LOOKS:
                    return []
                if not isinstance(call, cst.Call) or call.func is not parent:
                    return None
                if name in ("to", "cuda"):  # a move to the CPU, or a cast, may give the very tensor
                    return [] if is_to_accelerator(call, context) else None
                if name not in ("items", "values", "keys"):
                    return None
                node = call
            case cst.Subscript() if parent.value is node:
                node = parent
            case cst.Index() | cst.Expr():
                return []
            case cst.Arg():
                call = context.parent(parent)
                called = dotted(call.func) if isinstance(call, cst.Call) else None
                if called == "len":
                    return []
                if called not in ("enumerate", "reversed", "zip") or call is None:
                    return None
                node = call
            case cst.Element():
                above = context.parent(parent)
                if not isinstance(above, (cst.Tuple, cst.List)):
                    return None
                node = above
            case cst.Assign() if parent.value is node:
                return _bound_by(parent, [target.target for target in parent.targets], context)
            case cst.For() | cst.CompFor() if parent.iter is node:
                return _bound_by(parent, [parent.target], context)
            case _:
                return None


def _bound_by(
    statement: cst.CSTNode, targets: list[cst.BaseAssignTargetExpression], context: Context
) -> list[Binding] | None:
    found: list[Binding] = []
    for target in targets:
        for part in (target, *descendants(target)):
            if isinstance(part, (cst.Attribute, cst.Subscript)):
                return None
            if isinstance(part, cst.Name):
                found += [binding for binding in context.names.lookup(part)[1] if binding.node is statement]
    return found


def is_for_cuda(call: cst.Call, context: Context) -> bool | None:
    """Whether a call moves to CUDA or leaves it on the CPU: None where nothing says so, False where it may not."""
    if _speaks_of_others(context.program.code):
        return False
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value == "cuda":
        return True
    given = context.argument(call, "device", 0)
    value = context.value(given) if given is not None else None
    known = value is not None and value.kind in (Kind.DEVICE, Kind.STRING) and value.proven
    is_cuda = known and value is not None and value.device in (Device.ACCELERATOR, Device.MAYBE)
    return True if is_cuda and given is not None and _says_cuda(given, context) else None


@query(bottom=False)
def _says_cuda(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the text `"cuda…"` stands behind a device, everywhere where it may come from."""
    match node:
        case cst.SimpleString():
            return str(node.evaluated_value).startswith(("cuda", "cpu"))
        case cst.FormattedString():
            return context.code(node).strip("rfRF\"'").startswith("cuda")
        case cst.IfExp(body=body, orelse=orelse):
            return _says_cuda(body, context) and _says_cuda(orelse, context)
        case cst.Call(args=[cst.Arg(value=first), *_]) if context.qualified_name(node.func) == "torch.device":
            return _says_cuda(first, context)
        case cst.Name():
            return context.origins(node).every(lambda value: _says_cuda(value, context))
    return False
