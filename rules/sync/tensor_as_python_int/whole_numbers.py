"""Where Python needs a whole number: the bounds of a slice or a range, the index of a list, the sizes of a tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.sync.implicit_reads import is_hot_device_tensor, may_be_tensor
from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import last_part
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

# Functions that make a tensor of the sizes given: those that take nothing else, and those that take them first.
SIZED = frozenset("zeros ones empty rand randn arange eye randperm new_zeros new_ones new_empty".split())
SIZED_FIRST = frozenset("full new_full".split())
# What is filled with a number, and takes its sizes from a tensor.
FILLED = frozenset(("full_like",))
# Functions that are given sizes behind a tensor, and what they call them.
SIZED_SECOND = {"affine_grid": "size", "interpolate": "size", "pad": "pad", "one_hot": "num_classes"}
# Methods that are given sizes only.
SHAPED = frozenset("view reshape expand repeat split narrow".split())


def tensors_as_numbers(node: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """The device tensors of which the node needs the value as an int, however often."""
    if isinstance(node, cst.Subscript):
        wanted = _of_subscript(node, context)
    else:
        assert isinstance(node, cst.Call)
        wanted = _of_call(node, context)
    for number in wanted:
        if not may_be_tensor(number, context) or _is_other(node, context):
            continue
        as_number = isinstance(node, cst.Subscript)  # sizes may be a tuple, `view(shape)`
        if is_hot_device_tensor(number, context, anytime=True, as_number=as_number):
            yield number


def _is_other(node: cst.CSTNode, context: Context) -> bool:
    """`torch.split(x, sizes)` is given the tensor itself, and a class may have a `reshape` of its own."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in SHAPED:
            return context.kind(owner) is not Kind.TENSOR
    return False


def _of_subscript(node: cst.Subscript, context: Context) -> Iterator[cst.BaseExpression]:
    for part in node.slice:
        piece = part.slice
        if isinstance(piece, cst.Slice):
            yield from (bound for bound in (piece.lower, piece.upper, piece.step) if bound is not None)
        elif isinstance(piece, cst.Index) and may_be_tensor(piece.value, context):
            is_of_a_list = len(node.slice) == 1 and _is_list(node.value, context)
            if is_of_a_list or (_has_no_axis(piece.value, context) and context.is_tensor(node.value)):
                yield piece.value


def _has_no_axis(index: cst.BaseExpression, context: Context) -> bool:
    """`x.argmax()`, which indexes a tensor as a number does, and is read for it; with an axis it would stay there."""
    made = context.stands_for(index) or index
    match made:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args) if name in _TO_ONE:
            is_function = (context.qualified_name(made.func) or "") == f"torch.{name}"
            return len(args) == is_function and not any(argument.star or argument.keyword for argument in args)
        case cst.Subscript(value=cst.Name() as row, slice=[cst.SubscriptElement(slice=cst.Index(value=place))]):
            return context.kind(place) is Kind.NUMBER and _is_a_row(row, context)
    return False


def _is_a_row(tensor: cst.Name, context: Context) -> bool:
    """Whether it has one axis: by what makes it, or since elsewhere an element of it is a number."""
    match context.stands_for(tensor):
        case cst.Call(func=func, args=args) if (context.qualified_name(func) or "") in _ROWS:
            return all(argument.keyword is None or argument.keyword.value in _OF_ANY for argument in args[1:])
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="view" | "reshape")), args=[cst.Arg(value=size)]):
            return isinstance(size, cst.UnaryOperation)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="flatten" | "ravel")), args=[]):
            return True
    return any(
        isinstance(element := context.parent(use), cst.Subscript)
        and element.value is use
        and isinstance(element.slice[0].slice, cst.Index)
        and context.kind(element.slice[0].slice.value) is Kind.NUMBER
        and len(element.slice) == 1
        and _is_taken_for_a_number(element, context)
        for use in context.readers(tensor)
    )


def _is_taken_for_a_number(element: cst.Subscript, context: Context) -> bool:
    match above := context.parent(element):
        case cst.Slice():
            return True
        case cst.Attribute(attr=cst.Name(value="item")):
            return True
        case cst.Arg():
            call = context.parent(above)
            return isinstance(call, cst.Call) and context.qualified_name(call.func) in ("int", "float", "range")
    return False


_ROWS = frozenset(f"torch.{name}" for name in "arange randperm bincount ravel".split())
_OF_ANY = frozenset({"device", "dtype", "generator", "minlength"})
_TO_ONE = frozenset("argmax argmin max min sum median prod".split())
# What holds layers by their numbers, each of which Python asks for.
_LISTS_OF_LAYERS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ParameterList"})


def _is_list(node: cst.BaseExpression, context: Context) -> bool:
    value = context.value(node)
    if value.qualified in _LISTS_OF_LAYERS:
        return True
    # What is unpacked from a tensor, or is appended to a list that may become one, may be a tensor itself.
    return value.kind in (Kind.SEQUENCE, Kind.STRING) and value.proven


def _of_call(node: cst.Call, context: Context) -> Iterator[cst.BaseExpression]:
    # A method goes by its own name, a function by that of the library: `from torch.nn.functional import pad as fill`.
    name = last_part(node.func) if isinstance(node.func, cst.Attribute) else ""
    name = name or (context.qualified_name(node.func) or "").rpartition(".")[2]
    if name in SIZED_SECOND:
        yield from _sizes(node, SIZED_SECOND[name])
        return
    given = [argument.value for argument in node.args if argument.keyword is None and not argument.star]
    if name in SIZED_FIRST or name in FILLED:
        # The number that they fill with is read, too.
        filling = context.argument(node, "fill_value", 1)
        yield from [filling] if filling is not None else ()
        given = given[: name in SIZED_FIRST]
    for size in given:
        if isinstance(size, (cst.Tuple, cst.List)):
            yield from (part.value for part in size.elements)
        else:
            yield size


def _sizes(call: cst.Call, keyword: str) -> Iterator[cst.BaseExpression]:
    """The sizes among what a function is given, second or by their name."""
    for place, argument in enumerate(call.args):
        if argument.keyword.value == keyword if argument.keyword is not None else place == 1 and not argument.star:
            size = argument.value
            parts = [part.value for part in size.elements] if isinstance(size, (cst.Tuple, cst.List)) else [size]
            yield from parts


def is_needed_before(number: cst.BaseExpression, context: Context) -> bool:
    """Whether Python has needed a number from the same statement earlier in the function: one `tolist()` reads both.

    After `for h, w in shapes:` that is `h` for `w`, and either for a later use of its own.
    """
    place = context.tree.place(number)
    sources = _sources(number, context)
    # Among the names in a statement are those that it binds.
    texts = {node.value for source in sources for node in descendants(source) if isinstance(node, cst.Name)}
    return any(
        context.tree.place(other) < place
        and any(binder in sources for binder in context.binders(other))
        and _is_needed(other, context)
        for text in texts
        for other in context.names.spelt(text)
    )


def needed_again(number: cst.BaseExpression, context: Context) -> tuple[cst.Name, ...]:
    """Further uses of the name for which Python reads the same value once more."""
    if not isinstance(number, cst.Name):
        return ()
    place = context.tree.place(number)
    return tuple(
        other
        for other in context.names.spelt(number.value)
        if context.tree.place(other) > place and context.holds_the_same(other, number) and _is_needed(other, context)
    )


def is_exchanged(number: cst.BaseExpression, context: Context) -> bool:
    """Whether the function hands a name of the expression to other processes: nobody knows the number beforehand."""
    names = {node.value for node in descendants(number) if isinstance(node, cst.Name)}
    function = context.function(number)
    return function is not None and any(
        isinstance(call, cst.Call)
        and last_part(call.func) in _COLLECTIVES
        and any(isinstance(argument.value, cst.Name) and argument.value.value in names for argument in call.args)
        for call in descendants_in_scope(function)
    )


_COLLECTIVES = frozenset("all_gather all_gather_into_tensor all_gather_object all_reduce broadcast gather".split())


def _sources(number: cst.BaseExpression, context: Context) -> set[cst.CSTNode]:
    """The statements that bind the tensors of the expression, but for parameters: each is a tensor of its own."""
    names = [node for node in descendants(number) if isinstance(node, cst.Name) and context.kind(node) is Kind.TENSOR]
    if not names or isinstance(number, (cst.Call, cst.Subscript)):
        return set()
    return {binder for name in names for binder in context.binders(name) if not isinstance(binder, cst.Param)}


def _is_needed(name: cst.Name, context: Context) -> bool:
    for above in context.around(name, cst.Subscript, cst.Call, within=context.tree.statement(name)):
        wanted: Iterator[cst.BaseExpression]
        if isinstance(above, cst.Subscript):
            wanted = _of_subscript(above, context)
        elif isinstance(above, cst.Call) and last_part(above.func) in _NEEDED and not _is_other(above, context):
            wanted = _of_call(above, context)
        else:
            continue
        if any(
            context.tree.within(name, found) for found in wanted if not isinstance(found, (cst.Call, cst.Subscript))
        ):
            return True
    return False


_NEEDED = SIZED | SIZED_FIRST | SHAPED | {"range"}
