"""How many bytes an element of a tensor on the CPU takes, as far as the code says."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.values.lattice import Kind

_OF_TYPES = {
    **dict.fromkeys(("bool", "uint8", "int8", "bool_", "byte", "char"), 1),
    **dict.fromkeys(("float16", "half", "bfloat16", "int16", "short", "uint16"), 2),
    **dict.fromkeys(("float32", "float", "int32", "int"), 4),
    **dict.fromkeys(("float64", "double", "int64", "long"), 8),
}
# Methods that cast by their name.
_CASTS = {
    name: _OF_TYPES[name]
    for name in ("bool", "byte", "char", "half", "bfloat16", "short", "int", "float", "long", "double")
}
_COMPARES = frozenset(
    "eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_not logical_xor isin isclose".split()
)
_SHAPES = frozenset(
    "unsqueeze squeeze view reshape flatten permute transpose t contiguous clone detach repeat expand flip".split()
)
_ARRAY_SHAPES = frozenset("transpose reshape copy squeeze swapaxes ravel".split())
_IMAGES = frozenset(
    f"torchvision.io.{name}" for name in ("read_image", "decode_image", "decode_jpeg", "decode_png", "image.read_image")
)
_FROM_ARRAYS = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor", "numpy.ascontiguousarray"})
_FROM_IMAGES = frozenset({"numpy.array", "numpy.asarray"})


def type_width(node: cst.BaseExpression, context: Context) -> int | None:
    """The bytes of `torch.float32`, `np.uint8` or `"uint8"`."""
    if isinstance(node, cst.SimpleString):
        return _OF_TYPES.get(str(node.evaluated_value))
    package, _, last = (context.qualified_name(node) or "").rpartition(".")
    if package == "numpy" and last in ("float", "int", "long"):
        return 8
    return _OF_TYPES.get(last) if package in ("torch", "numpy") else None


def cast_width(call: cst.Call, context: Context) -> int | None:
    """The bytes that an element takes behind a cast: `x.float()`, `x.to(torch.float32)`, `x.type(torch.float32)`."""
    if not isinstance(call.func, cst.Attribute):
        return None
    name = call.func.attr.value
    if name in _CASTS and not call.args:
        return _CASTS[name]
    if name in ("to", "type") and len(call.args) == 1:
        return type_width(call.args[0].value, context) if context.kind(call.args[0].value) is Kind.DTYPE else None
    return None


@query(bottom=None)
def width(node: cst.BaseExpression, context: Context) -> int | None:
    """The bytes of one element; None where nothing says so."""
    match node:
        case cst.Comparison(left=left):
            is_tensor = context.kind(node) is Kind.TENSOR or width(left, context) is not None
            return 1 if is_tensor else None
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return width(inner, context)
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr(), right=right):
            both = {width(left, context), width(right, context)}
            return 1 if both == {1} else None
        case cst.Subscript(value=owner):
            return width(owner, context)
        case cst.Name():
            origins = context.origins(node)
            found = {width(value, context) for value in origins.nodes} if origins.is_whole else set()
            return found.pop() if len(found) == 1 else None
        case cst.Call():
            return _of_call(node, context)
    return None


@query(bottom=False)
def is_mask(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is what a comparison gives of tensors of which nothing is in sight, neither device nor type."""
    match node:
        case cst.Comparison(left=left):
            return width(left, context) is None
        case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
            return is_mask(inner, context)
        case cst.BinaryOperation(left=left, right=right):
            return is_mask(left, context) or is_mask(right, context)
        case cst.Name():
            return context.origins(node).some(lambda value: is_mask(value, context))
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=args):
            if name in _COMPARES:
                compared = args[0].value if context.qualified_name(node.func) and args else owner
                return width(compared, context) is None
            return name in _SHAPES and is_mask(owner, context)
    return False


def _of_call(call: cst.Call, context: Context) -> int | None:
    name = context.qualified_name(call.func) or ""
    if name in _IMAGES or name == "cv2.imread":
        return 1
    given = context.argument(call, "dtype")
    if given is not None:
        return type_width(given, context)
    first = call.args[0].value if call.args else None
    if name in ("torch.ByteTensor", "torch.BoolTensor"):
        return 1
    if name == "cv2.cvtColor" or (name in _FROM_ARRAYS and len(call.args) == 1):
        return width(first, context) if first is not None and not _is_literal(first) else None
    if name in _FROM_IMAGES and len(call.args) == 1 and first is not None:
        return 1 if _is_image(first, context) else width(first, context)
    if name.startswith("torch.") and name[6:] in _COMPARES:
        return 1
    if not isinstance(call.func, cst.Attribute) or name:
        return None
    method, owner = call.func.attr.value, call.func.value
    known = cast_width(call, context)
    if known is not None:
        return known
    if method == "astype" and first is not None:
        return type_width(first, context) if not _is_small(owner) else None
    if method in _COMPARES and context.kind(owner) is Kind.TENSOR:
        return 1
    return width(owner, context) if method in _SHAPES | _ARRAY_SHAPES else None


def _is_small(array: cst.BaseExpression) -> bool:
    """Whether an array is made from a list: of numbers, so that there are few."""
    return (
        isinstance(array, cst.Call)
        and bool(array.args)
        and isinstance(array.args[0].value, (cst.List, cst.ListComp, cst.Tuple, cst.GeneratorExp))
    )


def _is_literal(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.List, cst.Tuple, cst.BaseNumber, cst.ListComp))


@query(bottom=False)
def _is_image(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is an image of Pillow as it was read: `Image.open(path).convert("RGB")`."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="convert"))):
            return _is_image(owner, context)
        case cst.Call():
            return context.qualified_name(node.func) == "PIL.Image.open"
        case cst.Name():
            return context.origins(node).every(lambda value: _is_image(value, context))
    return False
