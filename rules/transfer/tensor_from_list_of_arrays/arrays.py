"""Which expressions hold arrays of NumPy with so many axes for certain, and lists of such arrays."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import Binder
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants_in_scope

# What gives so many axes or more, whatever it is given.
_AXES = {
    **dict.fromkeys("arange linspace logspace argsort sort cumsum cumprod diff tile repeat bincount".split(), 1),
    **dict.fromkeys("stack concatenate hstack atleast_1d append load fromiter frombuffer".split(), 1),
    **dict.fromkeys("ravel random.permutation ascontiguousarray pad fft.fft fft.rfft".split(), 1),
    **dict.fromkeys("eye identity diag outer vstack column_stack row_stack atleast_2d tril triu".split(), 2),
    "dstack": 3,
    "atleast_3d": 3,
}
_OF_SHAPE = frozenset("zeros ones full empty".split())
_CONVERSIONS = frozenset("array asarray asanyarray".split())
# Element by element, so that an array comes out with the axes that went in; and what moves axes only.
_ALIKE = frozenset(
    "abs absolute exp log log2 log10 log1p expm1 sqrt square sin cos tan tanh clip round around rint floor ceil sign "
    "maximum minimum add subtract multiply divide power float16 float32 float64 int8 int16 int32 int64 uint8 where "
    "transpose flip fliplr flipud roll rot90 nan_to_num copy zeros_like ones_like full_like empty_like swapaxes "
    "moveaxis rollaxis isnan logical_and logical_or logical_not".split()
)
_ALIKE_METHODS = frozenset("astype copy transpose clip round swapaxes view".split())
_FLAT = frozenset({"flatten", "ravel"})
# With this argument, which may stand at this place, a draw is an array.
_SIZED_DRAWS = {
    "normal": 2,
    "uniform": 2,
    "randint": 2,
    "choice": 1,
    "random": 0,
    "random_sample": 0,
    "standard_normal": 0,
    "poisson": 1,
    "beta": 2,
    "gamma": 2,
    "binomial": 2,
    "exponential": 1,
}
_IMAGES = frozenset(
    f"cv2.{name}"
    for name in "imread imdecode resize cvtColor GaussianBlur medianBlur blur warpAffine warpPerspective remap flip "
    "rotate copyMakeBorder normalize addWeighted dilate erode".split()
)
# Of so many words or numbers nobody could tell how they become a tensor.
_FEW = 100


@query(bottom=0)
def axes(node: cst.BaseExpression, context: Context) -> int:
    """How many axes an array has at least; 0 where it may be a number, or no array at all."""
    match node:
        case cst.Call():
            return _of_call(node, context)
        case cst.BinaryOperation(left=left, right=right):
            found = max(axes(left, context), axes(right, context))
            is_product = isinstance(node.operator, cst.MatrixMultiply)
            return 0 if is_product or context.kind(node) is not Kind.NDARRAY else found
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            if isinstance(operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot)):
                return 0
            return max(axes(left, context), axes(right, context))
        case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert() | cst.Plus(), expression=inner):
            return axes(inner, context)
        case cst.Attribute(value=value, attr=cst.Name(value="T")):
            return axes(value, context)
        case cst.Subscript(value=value):
            return _of_part(node, axes(value, context), context)
        case cst.Name() if context.kind(node) is Kind.NDARRAY:
            origins = context.origins(node, Through.UPDATES)  # `x /= 255` leaves the axes that `x` had before
            return min(axes(value, context) for value in origins.nodes) if origins.is_whole else 0
    return 0


def is_list_of_arrays(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression holds a list, maybe of lists, of arrays that have axes of their own."""
    elements = list(_elements(node, context))
    return bool(elements) and all(
        element is not None and (axes(element, context) > 0 or _is_sequence_of_arrays(element, context))
        for element in elements
    )


def is_of_examples(node: cst.BaseExpression, context: Context) -> bool:
    """Whether each array is made in a loop over a few literal words or numbers in the file."""
    elements = list(_elements(node, context))
    return bool(elements) and all(element is not None and _is_of_an_example(element, context) for element in elements)


def _is_of_an_example(element: cst.BaseExpression, context: Context) -> bool:
    match context.enclosing(element, cst.FunctionDef, cst.For, cst.ListComp):
        case cst.For(iter=iterated) | cst.ListComp(for_in=cst.CompFor(iter=iterated)):
            return all(map(_is_written_out, _held(iterated, context)))
    return False


def _held(iterated: cst.BaseExpression, context: Context) -> list[cst.BaseExpression | None]:
    if not isinstance(iterated, cst.Name):
        return [iterated]
    bindings = context.names.lookup(iterated)[1]
    return [binding.value if not binding.path else None for binding in bindings] or [None]


def _is_written_out(node: cst.BaseExpression | None) -> bool:
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return 0 < len(elements) < _FEW and all(_is_written_out(element.value) for element in elements)
    return isinstance(node, (cst.BaseString, cst.BaseNumber))


def name_of(module: str, place: cst.CSTNode, context: Context) -> str | None:
    """The name of an imported module at a place: `np` for `numpy`; None if it has none there."""
    top = context.names.module
    for name, bindings in top.bindings.items():
        if len(bindings) == 1 and bindings[0].binder is Binder.IMPORT and bindings[0].target == module:
            scope = context.names.scope_of(place)
            while scope is not top and scope.parent is not None and name not in scope.bindings:
                scope = scope.parent
            if scope is top:
                return name
    return None


# Calls


def _of_call(call: cst.Call, context: Context) -> int:
    qualified = context.qualified_name(call.func) or ""
    if qualified in _IMAGES:
        return 2
    if qualified.startswith("numpy."):
        return _of_function(call, qualified.removeprefix("numpy."), context)
    if isinstance(call.func, cst.Attribute):
        return _of_method(call, call.func.value, call.func.attr.value, context)
    target = context.calls.target(call)
    if isinstance(target, cst.FunctionDef) and context.kind(call) is Kind.NDARRAY:
        returned = [node.value for node in descendants_in_scope(target.body) if isinstance(node, cst.Return)]
        return min((axes(value, context) if value is not None else 0 for value in returned), default=0)
    return 0


def _of_function(call: cst.Call, name: str, context: Context) -> int:
    given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
    if name in _AXES:
        return _AXES[name]
    if name in _OF_SHAPE:
        shape = context.argument(call, "shape", 0)
        return len(shape.elements) if isinstance(shape, (cst.Tuple, cst.List)) else 1 if shape is not None else 0
    if name in _CONVERSIONS and given:
        return _of_data(given[0], context)
    if name == "expand_dims" and given:
        return axes(given[0], context) + 1
    if name in _ALIKE:
        return max((axes(value, context) for value in given), default=0)
    if name in ("random.randn", "random.rand"):
        return len(given)
    family, _, last = name.rpartition(".")
    if family == "random" and last in _SIZED_DRAWS:
        size = context.argument(call, "size", _SIZED_DRAWS[last])
        is_none = size is None or (isinstance(size, cst.Name) and size.value == "None")
        return 0 if is_none else 1
    return 0


def _of_data(data: cst.BaseExpression, context: Context) -> int:
    """The axes of `np.array(data)`."""
    match data:
        case cst.List(elements=[first, *_]) | cst.Tuple(elements=[first, *_]):
            return 1 + _of_data(first.value, context)
        case cst.ListComp(elt=element):
            return 1 + _of_data(element, context)
    if context.kind(data) is Kind.SEQUENCE:
        return 1
    return axes(data, context)


def _of_method(call: cst.Call, owner: cst.BaseExpression, name: str, context: Context) -> int:
    if context.kind(call) is not Kind.NDARRAY:
        return 0
    if name in _ALIKE_METHODS:
        return axes(owner, context)
    if name in _FLAT:
        return 1
    if name == "reshape" and call.args and not context.has_unpacking(call):
        shape = call.args[0].value
        return len(shape.elements) if isinstance(shape, (cst.Tuple, cst.List)) else len(call.args)
    return 0


def _of_part(node: cst.Subscript, whole: int, context: Context) -> int:
    """The axes of `x[i, 2:]`: one less for each number, one more for each `None`."""
    if whole == 0:
        # Nothing is known of the array, but it has the axes that are sliced.
        slices = sum(isinstance(element.slice, cst.Slice) for element in node.slice)
        return slices if context.kind(node.value) is Kind.NDARRAY else 0
    for element in node.slice:
        match element.slice:
            case cst.Slice() | cst.Index(value=cst.Ellipsis() | cst.List() | cst.ListComp()):
                continue
            case cst.Index(value=cst.Name(value="None")):
                whole += 1
            case cst.Index(value=value) if context.qualified_name(value) == "numpy.newaxis":
                whole += 1
            case cst.Index(value=value) if axes(value, context) > 0:
                whole = max(whole, 1) if len(node.slice) == 1 else whole - 1
            case _:
                whole -= 1
    return max(whole, 0)


# Lists


def _is_sequence_of_arrays(node: cst.BaseExpression, context: Context) -> bool:
    return isinstance(node, (cst.List, cst.ListComp)) and is_list_of_arrays(node, context)


def _elements(node: cst.BaseExpression, context: Context) -> Iterator[cst.BaseExpression | None]:
    """What goes into a list, which a function of this module may return; None for what is not known."""
    origins = context.origins(node, Through.PARTS | Through.CALLS)
    if not origins.is_whole:
        yield None
    for made, _ in origins.found:
        match made:
            case cst.ListComp(elt=element):
                yield element
            case cst.List(elements=elements):
                yield from (element.value if isinstance(element, cst.Element) else None for element in elements)
            case _:
                yield None
        yield from _added(made, node, context)


def _added(made: cst.BaseExpression, use: cst.BaseExpression, context: Context) -> Iterator[cst.BaseExpression | None]:
    """What is appended to a list before its use; anything else that may fill it is not known."""
    for name, path, _ in context.destinations(made, Through.PARTS).found:
        if path:
            continue
        if context.function(name) is context.function(use) and context.tree.place(name) >= context.tree.place(use):
            continue
        attribute = context.parent(name)
        call = context.parent(attribute) if isinstance(attribute, cst.Attribute) else None
        if isinstance(attribute, cst.Attribute) and isinstance(call, cst.Call) and call.func is attribute and call.args:
            yield call.args[0].value if attribute.attr.value == "append" else None
        elif isinstance(attribute, cst.AugAssign):
            yield None
