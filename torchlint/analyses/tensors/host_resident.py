"""What stays on the CPU: what is not moved beside what is, what a data set gives, and what only the host can use."""

from __future__ import annotations

from functools import lru_cache

import libcst as cst

from torchlint.analyses.tensors.host_computed import is_computed_on_host
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.values import PACKED_SIZES
from torchlint.semantics.knowledge.marks import ASKED_PLACE, MAIN_BLOCK, PACKED_SEQUENCE, RANDOM_TRIAL
from torchlint.semantics.names.bindings import Binder, Binding, Names, method_name
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import Tree, descendants

_PACKS = "pack_padded_sequence"
# How many calls away the packing is looked for.
_PAIRS = ("zip", "enumerate", "reversed", "list", "len", "range", "print", "str", "int", "float")


@query(bottom=False)
def stays_on_host(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is `ids`, or an element of it, where `for images, ids in loader` moves the images alone."""
    if _is_tried_out(node, context) or _is_of_a_data_set(node, context) or is_computed_on_host(node, context):
        return True
    match node:
        case cst.Subscript(value=owner):
            return stays_on_host(owner, context)
        case cst.Name():
            bindings = context.reaching(node)
            is_left = bool(bindings) and all(_is_left(binding, context) for binding in bindings)
            return is_left or _is_on_host(node, context) or _is_asked_to_be_there(node, context)
        case cst.Call(func=cst.Attribute(value=owner)) if _is_of_the_branch(owner, node, context):
            return True
        case cst.Call() | cst.BinaryOperation() | cst.UnaryOperation() if _tells(context):
            names = [part for part in descendants(node) if isinstance(part, cst.Name)]
            arrays = [name for name in names if _is_on_host(name, context)]
            return bool(arrays) and all(name in arrays or context.kind(name) is not Kind.TENSOR for name in names)
    return False


def _tells(context: Context) -> bool:
    return ".numpy()" in context.source.text or _PACKS in context.source.text


def _is_on_host(name: cst.Name, context: Context) -> bool:
    return _is_seen_as_array(name, context) or _is_length(name, context) or _is_of_packed(name, context)


def _is_asked_to_be_there(name: cst.Name, context: Context) -> bool:
    """Whether this is for tensors on the CPU: `if x.is_cuda: … else: f(x)`, `if x.device.type != "cpu": raise …`."""
    if not ASKED_PLACE.is_in(context.source.text):
        return False
    return any(_tells_where(test, name, context) is holds for test, holds in context.kinds.tested(name))


def _is_of_the_branch(owner: cst.BaseExpression, call: cst.Call, context: Context) -> bool:
    """Whether a method computes with what is asked to be there: `x.reshape(-1)` in the branch for those on the CPU."""
    if method_name(call.func) in ("to", "cuda", "type"):
        return False
    match owner:
        case cst.Call(func=cst.Attribute(value=inner)):
            return _is_of_the_branch(inner, owner, context)
        case cst.Subscript(value=inner):
            return _is_of_the_branch(inner, call, context)
        case cst.BinaryOperation(left=left, right=right):
            # One value on the CPU times a tensor of the device is on the device.
            tensors = [side for side in (left, right) if context.kind(side) is not Kind.NUMBER]
            return bool(tensors) and all(_is_of_the_branch(side, call, context) for side in tensors)
        case cst.Name():
            return _is_asked_to_be_there(owner, context)
    return False


def _tells_where(test: cst.BaseExpression, name: cst.Name, context: Context) -> bool | None:
    """What the test says of a tensor that is on the CPU; None if it asks for something else."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            told = _tells_where(inner, name, context)
            return None if told is None else not told
        case cst.Attribute(value=cst.Name(value=asked) as use, attr=cst.Name(value=where)) if where in _WHERE:
            return _WHERE[where] if asked == name.value and context.holds_the_same(use, name) else None
        case cst.Comparison(
            left=cst.Attribute(
                value=cst.Attribute(value=cst.Name(value=asked) as use, attr=cst.Name(value="device")),
                attr=cst.Name(value="type"),
            ),
            comparisons=[cst.ComparisonTarget(operator=operator, comparator=cst.SimpleString(evaluated_value=kind))],
        ) if isinstance(operator, (cst.Equal, cst.NotEqual)) and kind in ("cpu", "cuda"):
            is_there = (kind == "cpu") is isinstance(operator, cst.Equal)
            return is_there if asked == name.value and context.holds_the_same(use, name) else None
    return None


# What a tensor is asked for, and what it answers on the CPU.
_WHERE = {"is_cuda": False, "is_cpu": True}


def _is_of_packed(name: cst.Name, context: Context) -> bool:
    """Whether these are the `batch_sizes` of a `PackedSequence`, which are on the CPU always."""
    return PACKED_SIZES.suggests(name.value) and PACKED_SEQUENCE.is_in(context.program.code)


def _is_of_a_data_set(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in `__getitem__` of something that is no network: samples are made on the CPU."""
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or function.name.value != "__getitem__":
        return False
    owner = context.classes.owner(function)
    return owner is not None and not context.classes.is_module(owner)


@query(bottom=False)
def _is_length(name: cst.Name, context: Context) -> bool:
    """Whether sequences are packed by the same value of the name: `pack_padded_sequence` raises unless it is here."""
    if _PACKS not in context.source.text or context.kind(name) is not Kind.TENSOR:
        return False
    here = context.function(name)
    if any(
        context.function(given) is here and context.holds_the_same(given, name)
        for given in _lengths(context.tree, context.names)
        if given.value == name.value
    ):
        return True
    if not isinstance(here, cst.FunctionDef):
        return False
    given = [
        context.calls.argument_for(call, here, binder)
        for binder in context.binders(name)
        if isinstance(binder, cst.Param)
        for call in context.calls.callers(here)
    ]
    return any(isinstance(argument, cst.Name) and _is_length(argument, context) for argument in given)


@lru_cache(maxsize=4)
def _lengths(tree: Tree, names: Names) -> list[cst.Name]:
    """The `lengths` of `pack_padded_sequence(x, lengths)`."""
    calls = [call for call in tree.of(cst.Call) if (names.qualified(call.func) or "").endswith(_PACKS)]
    given = [
        argument.value
        for call in calls
        for place, argument in enumerate(call.args)
        if (place == 1 if argument.keyword is None else argument.keyword.value == "lengths")
    ]
    return [length for length in given if isinstance(length, cst.Name)]


def _is_tried_out(node: cst.CSTNode, context: Context) -> bool:
    """Whether the main block of a file of modules tries them out on random numbers, and moves nothing anywhere."""
    if not MAIN_BLOCK.is_in(context.program.code) or not RANDOM_TRIAL.is_in(context.program.code):
        return False
    for above in context.around(node, cst.If):
        if "__name__" in context.uncommented(above.test):
            text = context.uncommented(above.body)
            is_moving = any(
                isinstance(part, cst.Call) and method_name(part.func) in ("cuda", "to")
                for part in descendants(above.body)
            )
            return (
                RANDOM_TRIAL.is_in(text)
                and not is_moving
                and any(map(context.classes.is_module, context.tree.of(cst.ClassDef)))
            )
    return False


def _is_seen_as_array(name: cst.Name, context: Context) -> bool:
    """Whether `x.numpy()` is called on the same value of the name: that raises unless it is on the CPU."""
    if ".numpy()" not in context.source.text:
        return False
    here = context.function(name)
    return any(
        seen is not name and context.function(seen) is here and context.holds_the_same(seen, name)
        for seen in _seen_as_arrays(context.tree).get(name.value, ())
    )


@lru_cache(maxsize=4)
def _seen_as_arrays(tree: Tree) -> dict[str, list[cst.Name]]:
    """The `x` of `x.numpy()` and of `x[::2].detach().numpy()`, by name."""
    found: dict[str, list[cst.Name]] = {}
    for call in tree.of(cst.Call):
        match call:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="numpy")), args=[]):
                while True:
                    match owner:
                        case cst.Subscript(value=inner) | cst.Attribute(value=inner, attr=cst.Name(value="data")):
                            owner = inner
                        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="detach" | "clone"))):
                            owner = inner
                        case _:
                            break
                if isinstance(owner, cst.Name):
                    found.setdefault(owner.value, []).append(owner)
    return found


def _is_left(binding: Binding, context: Context) -> bool:
    loop = binding.node
    if binding.binder is not Binder.LOOP:
        return False
    paired = _paired(binding)
    if paired is not None:
        return isinstance(paired, cst.Name) and stays_on_host(paired, context)
    if not isinstance(loop, cst.For) or not isinstance(loop.target, (cst.Tuple, cst.List)):
        return False
    siblings = {part.value for part in descendants(loop.target) if isinstance(part, cst.Name)} - {binding.name}
    is_moved = any(
        isinstance(call, cst.Call) and _moved(call) in siblings and isinstance(context.parent(call), cst.Assign)
        for call in descendants(loop.body)
    )
    return is_moved and not any(_may_move(use, context) for use in _named(binding.name, loop))


def _paired(binding: Binding) -> cst.BaseExpression | None:
    """The `ids` of `for id, score in zip(ids, scores)`."""
    match binding.value:
        case cst.Call(func=cst.Name(value="zip"), args=args) if binding.path and 0 <= binding.path[0] < len(args):
            return args[binding.path[0]].value
        case cst.Name() as name if not binding.path:
            return name
    return None


def _moved(call: cst.Call) -> str:
    match call.func:
        case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="to" | "cuda")):
            return name
    return ""


def _named(name: str, loop: cst.For) -> list[cst.Name]:
    return [node for node in descendants(loop.body) if isinstance(node, cst.Name) and node.value == name]


def _may_move(use: cst.Name, context: Context) -> bool:
    """Whether the name is bound again, given to something that may move it, or moved itself."""
    for above in context.ancestors(use):
        match above:
            case cst.Attribute() if above.attr is use:
                return False
            case cst.Attribute(attr=cst.Name(value=name)) if isinstance(context.parent(above), cst.Call):
                return name in ("to", "cuda")
            case cst.AssignTarget():
                return True
            case cst.Arg():
                call = context.parent(above)
                if isinstance(call, cst.Call) and context.qualified_name(call.func) not in _PAIRS:
                    return True
            case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                return False
    return False
