"""Chains of torchvision's transforms: their steps, how large they make an image, and whether a dataset takes them."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.provenance.constants import constant
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.values.lattice import Kind

_PREFIXES = ("torchvision.transforms.v2.", "torchvision.transforms.")
_SIZING = frozenset({"Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop", "RandomSizedCrop", "Scale"})
_KEYWORDS = frozenset({"transform", "transforms"})


def cast_image(made: cst.Call, context: Context) -> cst.Call | None:
    """The cast to float32, in what a tensor is made of, of an image: of an array that is turned to channels first.

    `torch.as_tensor(image.transpose(2, 0, 1).astype("float32") / 255)`.
    """
    node = made.args[0].value if made.args else None
    cast: cst.Call | None = None
    turned = False
    while node is not None:
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Divide(), right=cst.Integer() | cst.Float()):
                node = left
            case cst.Call(
                func=cst.Attribute(value=owner, attr=cst.Name(value="astype")), args=[cst.Arg(value=kind), *_]
            ):
                cast = node if _is_float32(kind, context) else cast
                node = owner
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="transpose")), args=axes) if (
                context.qualified_name(node.func) is None
            ):
                turned = turned or _is_channels_first([axis.value for axis in axes])
                node = owner
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="copy")), args=[]):
                node = owner
            case cst.Call(func=func, args=[cst.Arg(value=first), *others]):
                name = context.qualified_name(func)
                turned = turned or (name == "numpy.transpose" and _is_channels_first([each.value for each in others]))
                node = first if name in ("numpy.transpose", "numpy.ascontiguousarray") else None
            case _:
                node = None
    return cast if turned else None


def _is_float32(kind: cst.BaseExpression, context: Context) -> bool:
    is_named = isinstance(kind, cst.SimpleString) and kind.evaluated_value == "float32"
    return is_named or context.qualified_name(kind) == "numpy.float32"


def _is_channels_first(axes: list[cst.BaseExpression]) -> bool:
    """`2, 0, 1`, as they are or in a tuple: from rows, columns and channels."""
    match axes:
        case [cst.Tuple(elements=elements) | cst.List(elements=elements)]:
            axes = [element.value for element in elements]
    return [axis.value if isinstance(axis, cst.Integer) else "" for axis in axes] == ["2", "0", "1"]


def steps(chain: cst.Call, context: Context) -> list[tuple[str, cst.Call]]:
    """The transforms of `Compose([…])` in order, by their names; nothing where one of them is none of torchvision's."""
    match chain.args:
        case [cst.Arg(value=cst.List(elements=elements))]:
            found = []
            for element in elements:
                value = _made(element.value, context)
                name = context.qualified_name(value.func) or "" if isinstance(value, cst.Call) else ""
                prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
                if prefix is None or not isinstance(value, cst.Call):
                    return []
                found.append((name.removeprefix(prefix), value))
            return found
    return []


def _made(node: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """The call that made what a name bound once holds: `normalize = transforms.Normalize(…)`."""
    return context.stands_for(node) or node


def side(name: str, step: cst.Call, context: Context) -> int | None:
    """How many pixels a step makes the shorter side of an image, 0 if that is not known; None if it does nothing."""
    if name not in _SIZING or not step.args:
        return None
    size = step.args[0].value
    parts = [element.value for element in size.elements] if isinstance(size, (cst.Tuple, cst.List)) else [size]
    numbers = [found for part in parts if isinstance(found := constant(part, context), cst.Integer)]
    return min((int(number.value) for number in numbers), default=0)


def feeds_a_dataset(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a dataset is given the transform: itself, by a name, or out of a dictionary."""
    destinations = context.destinations(
        node,
        Through.PARTS | Through.BRANCHES,
        handed_on=lambda held, taker: taker if isinstance(taker, cst.Subscript) and taker.value is held else None,
    )
    return any(
        isinstance(argument := context.parent(given), cst.Arg)
        and isinstance(call := context.parent(argument), cst.Call)
        and _is_dataset(call, argument, context)
        for given in destinations.nodes
    )


def _is_dataset(call: cst.Call, argument: cst.Arg, context: Context) -> bool:
    name = context.qualified_name(call.func) or context.code(call.func)
    if name.startswith("torchvision.datasets."):
        return True
    is_named = argument.keyword is not None and argument.keyword.value in _KEYWORDS
    return is_named or context.kind(call) is Kind.DATASET
