"""What operators and literals give."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.semantics.values.lattice import (
    NDARRAY,
    NUMBER,
    STRING,
    UNKNOWN,
    Device,
    Kind,
    Value,
    arithmetic,
    as_far_as_told,
    item_of,
    join,
    mapping_of,
    sequence,
    sequence_of,
    tensor,
)
from torchlint.syntax.literals import integer


class Operators:
    """The values of expressions with operators and of literals, by those of their operands."""

    def __init__(self, value: Callable[[cst.CSTNode], Value]) -> None:
        self.value = value
        self.handlers: dict[type[cst.CSTNode], Callable[..., Value]] = {
            cst.Subscript: self._subscript,
            cst.BinaryOperation: self._binary,
            cst.UnaryOperation: self._unary,
            cst.Comparison: self._comparison,
            cst.BooleanOperation: self._boolean,
            cst.IfExp: self._conditional,
            cst.NamedExpr: lambda node: self.value(node.value),
            cst.Await: lambda node: self.value(node.expression),
            cst.SimpleString: self._string,
            cst.ConcatenatedString: lambda _node: STRING,
            cst.FormattedString: self._formatted,
            cst.Integer: lambda _node: NUMBER,
            cst.Float: lambda _node: NUMBER,
            cst.Tuple: self._tuple,
            cst.List: self._tuple,
            cst.Dict: self._dict,
            cst.ListComp: self._comprehension,
            cst.SetComp: self._comprehension,
            cst.GeneratorExp: self._comprehension,
            cst.DictComp: self._dict_comprehension,
        }

    def _binary(self, node: cst.BinaryOperation) -> Value:
        return arithmetic(self.value(node.left), self.value(node.right))

    def _unary(self, node: cst.UnaryOperation) -> Value:
        return NUMBER if isinstance(node.operator, cst.Not) else self.value(node.expression)

    def _comparison(self, node: cst.Comparison) -> Value:
        if len(node.comparisons) != 1:
            return UNKNOWN
        target = node.comparisons[0]
        if isinstance(target.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)):
            return NUMBER
        left, right = self.value(node.left), self.value(target.comparator)
        if Kind.STRING in (left.kind, right.kind):
            return NUMBER
        return arithmetic(left, right)

    def _boolean(self, node: cst.BooleanOperation) -> Value:
        return join([self.value(node.left), self.value(node.right)])

    def _conditional(self, node: cst.IfExp) -> Value:
        return join([self.value(node.body), self.value(node.orelse)])

    def _subscript(self, node: cst.Subscript) -> Value:
        if _is_hyperparameter(node):
            return NUMBER
        owner = self.value(node.value)
        index = node.slice[0].slice if len(node.slice) == 1 else None
        match owner.kind:
            case Kind.TENSOR:
                if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
                    return owner.likely()
                return as_far_as_told(owner, tensor(owner.devices, rank=owner.rank))
            case Kind.SEQUENCE:
                if isinstance(index, cst.Slice):
                    return sequence_of(item_of(owner))
                place = integer(index.value) if isinstance(index, cst.Index) else None
                if place is not None and owner.items and -len(owner.items) <= place < len(owner.items):
                    return owner.items[place]
                return item_of(owner)
            case Kind.MAPPING | Kind.MODULE:
                return item_of(owner)
            case Kind.NDARRAY:
                return NDARRAY
            case Kind.STRING:
                return STRING
        return UNKNOWN

    def _string(self, node: cst.SimpleString) -> Value:
        text = node.evaluated_value
        if isinstance(text, str):
            if text.startswith(("cuda", "mps", "xpu", "hpu", "npu", "torch.cuda.")):
                return Value(Kind.STRING, Device.ACCELERATOR)
            if text == "cpu":
                return Value(Kind.STRING, Device.CPU)
        return STRING

    def _formatted(self, node: cst.FormattedString) -> Value:
        first = node.parts[0] if node.parts else None
        if isinstance(first, cst.FormattedStringText) and first.value.startswith("cuda"):
            return Value(Kind.STRING, Device.ACCELERATOR)
        return STRING

    def _tuple(self, node: cst.Tuple | cst.List) -> Value:
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            return sequence_of(UNKNOWN)
        return sequence(*(self.value(element.value) for element in node.elements))

    def _dict(self, node: cst.Dict) -> Value:
        values = [self.value(element.value) for element in node.elements if isinstance(element, cst.DictElement)]
        return mapping_of(join(values) if values else UNKNOWN)

    def _comprehension(self, node: cst.ListComp | cst.GeneratorExp | cst.SetComp) -> Value:
        return sequence_of(self.value(node.elt))

    def _dict_comprehension(self, node: cst.DictComp) -> Value:
        return mapping_of(self.value(node.value))


def _is_hyperparameter(node: cst.Subscript) -> bool:
    """`optimizer.param_groups[0]["lr"]`."""
    match node:
        case cst.Subscript(
            value=cst.Subscript(value=cst.Attribute(attr=cst.Name(value="param_groups"))),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))],
        ):
            return key.evaluated_value in ("lr", "weight_decay", "momentum", "eps", "initial_lr", "dampening")
    return False
