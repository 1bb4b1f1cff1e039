"""Which tensors are plain vectors for certain: one axis, dense, holding numbers of a known type."""

from __future__ import annotations

from enum import Enum

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.values.lattice import Kind


class Numbers(Enum):
    """The type that Python gives the elements of a dense tensor. ANY: one of them, or complex."""

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"
    ANY = "any"


_CASTS = {
    **dict.fromkeys("float double half bfloat16".split(), Numbers.FLOAT),
    **dict.fromkeys("long int short char byte".split(), Numbers.INT),
    "bool": Numbers.BOOL,
}
_DTYPES = {
    **dict.fromkeys("float32 float float64 double float16 half bfloat16".split(), Numbers.FLOAT),
    **dict.fromkeys("int64 long int32 int int16 short int8 uint8".split(), Numbers.INT),
    "bool": Numbers.BOOL,
}
# What factories make unless told which type.
_FACTORIES = {
    **dict.fromkeys("rand randn zeros ones empty".split(), Numbers.FLOAT),
    **dict.fromkeys("linspace logspace arange".split(), Numbers.ANY),
    "randperm": Numbers.INT,
}
# Of these the arguments are a size, and only a single number makes it a vector.
_SIZED = frozenset("rand randn zeros ones empty".split())
_PLAIN_OPTIONS = frozenset("dtype device requires_grad generator pin_memory start end step steps base".split())
# What keeps axes and type.
_SAME = frozenset("cpu cuda detach clone contiguous".split())
# Methods that change nothing about the tensor they are called on.
_LOOKS = frozenset("item tolist numpy size dim numel sum mean max min".split())


def vector(node: cst.BaseExpression, context: Context) -> Numbers | None:
    """What numbers a tensor with one axis holds; None where its axes, its layout or its type are not certain."""
    match node:
        case cst.Name():
            return _held(node, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="view" | "reshape")), args=[only]):
            return numbers_of(owner, context) if _is_flat(owner, only, context) else None
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=[]) if name in _CASTS:
            return _CASTS[name] if has_one_axis(owner, context) else None
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=[]) if name in _SAME:
            return vector(owner, context)
        case cst.Call():
            return _made(node, context)
    return None


def has_one_axis(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor has one axis for certain, whatever it holds."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="view" | "reshape")), args=[only]):
            return _is_flat(owner, only, context)
    return vector(node, context) is not None


def numbers_of(node: cst.BaseExpression, context: Context) -> Numbers | None:
    """The type of the numbers of a tensor that has any number of axes."""
    match node:
        case cst.Comparison():
            return Numbers.BOOL
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=args):
            if name in _CASTS and not args:
                return _CASTS[name]
            if name in ("argmax", "argmin", "argsort"):
                return Numbers.INT
            if name in _SAME:
                return numbers_of(owner, context)
    return None


def _is_flat(owner: cst.BaseExpression, shape: cst.Arg, context: Context) -> bool:
    """Whether it is the shape of `view(-1)` or `reshape(-1)`, which no sparse tensor has, as it has `flatten()`."""
    return shape.keyword is None and context.code(shape.value) == "-1" and context.kind(owner) is Kind.TENSOR


def _held(name: cst.Name, context: Context) -> Numbers | None:
    """What a local name holds that is bound once, and only looked at since."""
    function, value = context.function(name), context.stands_for(name)
    if function is None or value is None:
        return None
    scope, _ = context.names.lookup(name)
    if scope is None or scope.node is not function:
        return None
    [binder] = context.binders(name)
    uses = context.uses.of(name.value, binder)
    return vector(value, context) if all(_only_looks(use, context) for use in uses) else None


def _only_looks(use: cst.Name, context: Context) -> bool:
    """Whether this use leaves the axes of the tensor as they are: it loops over it, takes a part, asks for a number."""
    match context.parent(use):
        case cst.CompFor() | cst.For():
            return True
        case cst.Subscript(value=owner):
            return owner is use
        case cst.Attribute(attr=cst.Name(value=name)):
            return name in _LOOKS or name in ("shape", "dtype", "device")
        case cst.Arg() as argument:
            call = context.parent(argument)
            called = context.qualified_name(call.func) if isinstance(call, cst.Call) else None
            return called in ("len", "print", "map", "sum", "max", "min")
    return False


def _made(call: cst.Call, context: Context) -> Numbers | None:
    root, _, name = (context.qualified_name(call.func) or "").rpartition(".")
    if root != "torch" or name not in _FACTORIES or context.has_unpacking(call):
        return None
    if any(argument.keyword is not None and argument.keyword.value not in _PLAIN_OPTIONS for argument in call.args):
        return None
    if name in _SIZED:
        sizes = [argument.value for argument in call.args if argument.keyword is None]
        if len(sizes) != 1 or context.kind(sizes[0]) is not Kind.NUMBER or not context.value(sizes[0]).proven:
            return None
    dtype = context.argument(call, "dtype")
    if dtype is not None:
        root, _, last = (context.qualified_name(dtype) or "").rpartition(".")
        return _DTYPES.get(last) if root == "torch" else None
    if name == "arange" and all(isinstance(argument.value, cst.Integer) for argument in call.args):
        return Numbers.INT
    return _FACTORIES[name]
