"""Calls that make a tensor out of nothing on the CPU, and how alike a tensor is that another device makes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values.lattice import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.context import Context


class Sameness(IntEnum):
    """What becomes of a tensor when another device makes it, worst first.

    RANDOM: other numbers, and the CPU's generator stays where it is. ROUNDED: the last digits or the strides may
    differ. EXACT: the same bits. INTEGRAL: the same bits in whatever dtype it is cast to.
    """

    RANDOM = 0
    ROUNDED = 1
    EXACT = 2
    INTEGRAL = 3


@dataclass(frozen=True, slots=True)
class Factory:
    """A call that makes a tensor on the CPU; `name` is its own in the torch namespace.

    `dtype` is that of a legacy constructor, `sizes` says that its arguments are sizes, not data. `repeated` holds the
    value and the count of `[value] * count`.
    """

    call: cst.Call
    name: str
    sameness: Sameness
    legacy: bool = False
    dtype: str = ""
    repeated: tuple[cst.BaseExpression, cst.BaseExpression] | None = None

    @property
    def successor(self) -> str:
        """The function of torch that makes the same and takes a device: its own, but for a legacy constructor."""
        return self.name if not self.legacy else "empty" if self.repeated is None else "full"

    @property
    def takes_any_dtype(self) -> bool:
        """Whether `dtype=` gives the same bits as a cast of what it makes otherwise."""
        return self.sameness is Sameness.INTEGRAL and self.name not in ("arange", "tril_indices", "triu_indices")


_SAMENESS = {
    **dict.fromkeys(
        "zeros ones empty eye full arange tril_indices triu_indices zeros_like ones_like empty_like full_like".split(),
        Sameness.INTEGRAL,
    ),
    **dict.fromkeys(
        "linspace logspace bartlett_window blackman_window hamming_window hann_window kaiser_window".split(),
        Sameness.ROUNDED,
    ),
    **dict.fromkeys("rand randn randint randperm normal rand_like randn_like randint_like".split(), Sameness.RANDOM),
}
_LEGACY = {
    "Tensor": "",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}
# The qualified names of all of them.
NAMES = tuple(f"torch.{name}" for name in (*_SAMENESS, *_LEGACY, "tensor"))
# With these the tensor is made elsewhere, into something that exists, or the move changes what it is.
_OTHERWISE = frozenset({"generator", "out", "pin_memory", "requires_grad"})


def factory(call: cst.Call, context: Context) -> Factory | None:
    """The factory that the call is, if it makes a tensor of its own on the CPU."""
    qualified = context.qualified_name(call.func)
    if qualified not in NAMES or context.program.changes_default_device or _is_placed(call, context):
        return None
    name = qualified.removeprefix("torch.")
    if name in _LEGACY or name == "tensor":
        return _legacy(call, name, context)
    if name.endswith("_like") and not _is_on_cpu(call, context):
        return None
    if name == "normal" and context.argument(call, "size", 2) is None:
        return None
    return Factory(call, name, _sameness(call, name, context))


def _is_placed(call: cst.Call, context: Context) -> bool:
    for argument in call.args:
        if argument.star == "**":
            return True
        name = argument.keyword.value if argument.keyword is not None else ""
        if name == "generator" and _is_optional(argument.value, context):
            continue
        if name == "device" or (name in _OTHERWISE and not _is_false(argument.value)):
            return True
    return False


def _is_optional(generator: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a parameter that is None unless somebody gives one."""
    parameter = context.parameter(generator)
    return parameter is not None and parameter.default is not None and _is_false(parameter.default)


def _is_false(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value in ("False", "None")


def _is_on_cpu(call: cst.Call, context: Context) -> bool:
    template = context.argument(call, "input", 0)
    if template is None:
        return False
    value = context.value(template)
    return value.kind is Kind.TENSOR and value.device is Device.CPU and (value.proven or value.batch)


def _sameness(call: cst.Call, name: str, context: Context) -> Sameness:
    if name in ("full", "full_like"):
        return filled_with(context.argument(call, "fill_value", 1), context)
    if name == "arange":
        return _arange(call, context)
    return _SAMENESS[name]


def filled_with(fill: cst.BaseExpression | None, context: Context) -> Sameness:
    """How alike tensors are that hold this value throughout."""
    if fill is None:
        return Sameness.ROUNDED
    if _integer(fill):
        return Sameness.INTEGRAL
    value = context.value(fill)
    return Sameness.EXACT if value.kind is Kind.NUMBER and value.proven else Sameness.ROUNDED


def _arange(call: cst.Call, context: Context) -> Sameness:
    """Whole numbers, whatever their dtype, come out alike; steps of 0.1 add up differently."""
    positional = [argument for argument in call.args if argument.keyword is None]
    if any(argument.star for argument in positional):
        return Sameness.ROUNDED
    start = context.argument(call, "start", 0 if len(positional) > 1 else None)
    step = context.argument(call, "step", 2)
    whole = all(part is None or is_whole(part, context) for part in (start, step))
    return Sameness.INTEGRAL if whole else Sameness.ROUNDED


def is_whole(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression can only be an `int`."""
    match node:
        case cst.Call(func=cst.Name(value="len" | "int")):
            return context.qualified_name(node.func) in ("len", "int")
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size" | "dim" | "numel"))):
            return context.value(node).kind is Kind.NUMBER
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name(value="shape")), slice=[cst.SubscriptElement(slice=cst.Index())]
        ):
            return True
        case cst.BinaryOperation(
            left=left, right=right, operator=cst.Add() | cst.Subtract() | cst.Multiply() | cst.FloorDivide()
        ):
            return is_whole(left, context) and is_whole(right, context)
        case cst.Name():
            return context.kinds.settled(("whole", node), False, lambda name: _is_bound_to_whole(name, context), node)  # noqa: FBT003
    return _integer(node)


def _is_bound_to_whole(name: cst.Name, context: Context) -> bool:
    value = context.stands_for(name)
    return value is not None and is_whole(value, context)


def _integer(node: cst.BaseExpression) -> bool:
    match node:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return _integer(inner)
    return isinstance(node, cst.Integer)


def _legacy(call: cst.Call, name: str, context: Context) -> Factory | None:
    """`torch.FloatTensor(2, 3)`, which takes sizes, and `torch.tensor([0] * n)`, which repeats one value.

    What is made from other data holds values of the host, and has to be copied.
    """
    dtype = _LEGACY.get(name, "")
    match call.args:
        case [cst.Arg(value=value, keyword=None, star=""), *_] if (repeated := _repeated(value)) is not None:
            if _holds_tensors(repeated[0], context) or (len(call.args) > 1 and name != "tensor"):
                return None
            return Factory(call, name, Sameness.ROUNDED, legacy=True, dtype=dtype, repeated=repeated)
        case _ if name == "tensor":
            return Factory(call, name, Sameness.EXACT) if _is_one_number(call, context) else None
        case [cst.Arg(value=value, keyword=None, star="")]:
            sameness = _size(value, context)
        case [cst.Arg(keyword=cst.Name(value="size"))]:
            sameness = Sameness.INTEGRAL
        case [cst.Arg(star="*")]:
            sameness = Sameness.ROUNDED  # a lone list in it would be data
        case [_, _, *_] if all(argument.keyword is None for argument in call.args):
            sameness = Sameness.INTEGRAL
        case _:
            return None
    return None if sameness is None else Factory(call, name, sameness, legacy=True, dtype=dtype)


def _is_one_number(call: cst.Call, context: Context) -> bool:
    """`torch.tensor(step).repeat(n)`: one number of the host, of which the device could make all that are moved."""
    above = context.parent(call)
    repeat = context.parent(above) if isinstance(above, cst.Attribute) and above.value is call else None
    if not isinstance(repeat, cst.Call) or not isinstance(above, cst.Attribute) or repeat.func is not above:
        return False
    if above.attr.value not in ("repeat", "expand"):
        return False
    data = context.argument(call, "data", 0)
    if isinstance(data, cst.List) and len(data.elements) == 1:
        data = data.elements[0].value
    return data is not None and context.value(data).kind is Kind.NUMBER


def _repeated(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    match node:
        case (
            cst.BinaryOperation(
                left=cst.List(elements=[cst.Element(value=value)]), operator=cst.Multiply(), right=count
            )
            | cst.BinaryOperation(
                left=count, operator=cst.Multiply(), right=cst.List(elements=[cst.Element(value=value)])
            )
        ):
            return value, count
    return None


def _holds_tensors(node: cst.BaseExpression, context: Context) -> bool:
    kind = context.kind(node)
    return kind not in (Kind.NUMBER, Kind.UNKNOWN) or not isinstance(
        node, (cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.UnaryOperation, cst.Subscript, cst.BinaryOperation)
    )


def _size(node: cst.BaseExpression, context: Context) -> Sameness | None:
    """How sure it is that one argument is a size; None for data, of which a legacy constructor takes the values.

    A `torch.Size` is a size, but the shape of an array is a tuple, and so data: only a tensor's own shape will do.
    """
    match node:
        case (
            cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="size")), args=[])
            | cst.Attribute(value=owner, attr=cst.Name(value="shape"))
        ):
            value = context.value(owner)
            if value.kind is not Kind.TENSOR:
                return Sameness.ROUNDED if isinstance(node, cst.Call) else None
        case cst.Call(func=func) if context.qualified_name(func) == "torch.Size":
            return Sameness.INTEGRAL
        case _:
            value = context.value(node)
            if value.kind is not Kind.NUMBER:
                return None
    return Sameness.INTEGRAL if value.proven else Sameness.ROUNDED


def is_made_on_a_gpu_by_default(context: Context) -> bool:
    """Whether a program that the file is part of has factories make tensors there: `torch.set_default_device("cuda")`.

    Asked last, since other files have to say so.
    """
    calls = (call for name in _DEFAULTS for call in context.elsewhere.program_calls(name))
    return any(
        argument.place == 0 and Device[argument.device] not in (Device.CPU, Device.UNKNOWN)
        for call in calls
        for argument in call.arguments or ()
    )


_DEFAULTS = ("torch.set_default_device", "torch.set_default_tensor_type")
