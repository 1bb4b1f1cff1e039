"""What annotations promise, and what a test for a type shows of the name that it tests."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge.torch_signatures import MODULES
from torchlint.semantics.names.bindings import dotted, last_part
from torchlint.semantics.names.narrowing import Narrowing
from torchlint.semantics.values.lattice import (
    DTYPE,
    NDARRAY,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Device,
    Kind,
    Value,
    mapping_of,
    sequence,
    sequence_of,
)
from torchlint.semantics.values.usage import LISTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.semantics.values.evaluator import Kinds
    from torchlint.syntax.control_flow import Condition

_ANNOTATIONS: dict[str, Value] = {
    "torch.Tensor": TENSOR,
    "torch.nn.Parameter": TENSOR,
    "torch.LongTensor": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.BoolTensor": TENSOR,
    "torch.IntTensor": TENSOR,
    "torch.nn.Module": Value(Kind.MODULE, qualified="torch.nn.Module"),
    "torch.device": Value(Kind.DEVICE, Device.MAYBE),
    "torch.dtype": DTYPE,
    "torch.optim.Optimizer": Value(Kind.OPTIMIZER),
    "torch.utils.data.DataLoader": Value(Kind.LOADER),
    "torch.utils.data.Dataset": Value(Kind.DATASET),
    # What they hold by a name is a tensor, far more often than another such dict.
    "tensordict.TensorDict": mapping_of(TENSOR.likely()),
    "tensordict.TensorDictBase": mapping_of(TENSOR.likely()),
    "tensordict.base.TensorDictBase": mapping_of(TENSOR.likely()),
    "tensordict.tensordict.TensorDictBase": mapping_of(TENSOR.likely()),
    "torchtyping.TensorType": TENSOR,
    "numpy.ndarray": NDARRAY,
    "numpy.array": NDARRAY,
    "int": NUMBER,
    "float": NUMBER,
    "bool": NUMBER,
    "str": STRING,
}
_CONTAINERS = frozenset("List list Sequence Iterable Iterator Collection Set set FrozenSet".split())
_LIST = sequence_of(UNKNOWN)
# Types whose instances are no tensors.
_NO_TENSORS = frozenset("bool bytes complex dict float frozenset int list range set slice str tuple type".split())
_NO_TORCH = ("PIL.", "collections.", "enum.", "numbers.", "numpy.", "pandas.", "pathlib.", "typing.")


class Annotations:
    """What the types written in one module say."""

    def __init__(self, kinds: Kinds) -> None:
        self.tree = kinds.tree
        self.names = kinds.names
        self.kinds = kinds
        self._narrowing = Narrowing(kinds.names)

    def value(self, node: cst.CSTNode) -> Value:
        """What an annotation promises."""
        match node:
            case cst.SimpleString():
                text = node.evaluated_value
                try:
                    parsed = cst.parse_expression(text) if isinstance(text, str) else None
                except cst.ParserSyntaxError:
                    return UNKNOWN
                plain = dotted(parsed)
                return TENSOR if plain in ("torch.Tensor", "Tensor") else UNKNOWN
            case cst.Name(value="Tensor"):
                return TENSOR
            case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
                return self._optional([left, right])
            case cst.Subscript(value=outer, slice=parts):
                inner = [part.slice.value for part in parts if isinstance(part.slice, cst.Index)]
                last = last_part(outer)
                if last in ("Optional", "Union", "Annotated", "Final", "ClassVar"):
                    return self._optional(inner if last == "Union" else inner[:1])
                if last in _CONTAINERS and inner:
                    return sequence_of(self.value(inner[0]))
                if last in ("Tuple", "tuple"):
                    if len(inner) == 2 and isinstance(inner[1], cst.Ellipsis):
                        return sequence_of(self.value(inner[0]))
                    return sequence(*(self.value(part) for part in inner))
                if last in ("Dict", "dict", "Mapping") and len(inner) == 2:
                    return mapping_of(self.value(inner[1]))
                return self._of_a_shape(outer, inner)
        qualified = self.names.qualified(node)
        if qualified in _ANNOTATIONS:
            return _ANNOTATIONS[qualified]
        if qualified and qualified.startswith("torch.nn.") and qualified[9:] in MODULES:
            return Value(Kind.MODULE, qualified=qualified)
        if isinstance(node, cst.Name):
            value = self.kinds.value(node)
            if value.kind is Kind.CLASS and isinstance(value.definition, cst.ClassDef):
                return self.kinds.instance(value.definition)
        return UNKNOWN

    def _of_a_shape(self, outer: cst.BaseExpression, inner: list[cst.BaseExpression]) -> Value:
        """`Float[Tensor, "batch 3"]` of jaxtyping, `TensorType["batch", 3]` of torchtyping."""
        package, _, name = (self.names.qualified(outer) or "").rpartition(".")
        if package == "jaxtyping" and len(inner) == 2:
            return self.value(inner[0])
        return TENSOR if package == "torchtyping" and name == "TensorType" else UNKNOWN

    def _optional(self, parts: list[cst.BaseExpression]) -> Value:
        values = [self.value(part) for part in parts if not (isinstance(part, cst.Name) and part.value == "None")]
        if all(values) and len({value.kind for value in values}) == 1:
            return values[0]
        return UNKNOWN

    def may_be_a_list(self, parameter: cst.CSTNode) -> bool:
        """Whether the parameter is written to be a tensor or a list: `x: Union[Tensor, List[Tensor]]`."""
        annotation = parameter.annotation if isinstance(parameter, cst.Param) else None
        match annotation.annotation if annotation is not None else None:
            case cst.Subscript(value=outer, slice=slices) if self.names.qualified(outer) == "typing.Union":
                parts = [part.slice.value for part in slices if isinstance(part.slice, cst.Index)]
            case cst.BinaryOperation(left=left, right=right):
                parts = [left, right]
            case _:
                return False
        return any(isinstance(part, cst.Subscript) and self.value(part).kind is not Kind.TENSOR for part in parts)

    def narrowed(self, node: cst.Name, value: Value) -> Value:
        """What `isinstance(x, torch.Tensor)` or `torch.is_tensor(x)` says that holds where the name is used."""
        if node.value not in self._tested:
            return value
        for test, holds in self._narrowing.conditions(node):
            shown = self._shown_by(test, node.value)
            if not holds:
                if shown.kind is Kind.TENSOR is value.kind:
                    return UNKNOWN
            elif shown.kind is Kind.TENSOR and self._is_a_keyword_number(node):
                return NUMBER  # the branch is there for other callers
            elif shown:
                return shown if value.kind is not shown.kind else value
        return value

    def tested(self, name: cst.Name) -> Iterator[Condition]:
        """As `Narrowing.conditions`."""
        return self._narrowing.conditions(name)

    def rules_out_a_tensor(self, node: cst.Name) -> bool:
        """Whether a test has said that the name holds no tensor where it is used, whatever is done elsewhere."""
        return node.value in self._tested and any(
            not holds and self._shown_by(test, node.value).kind is Kind.TENSOR
            for test, holds in self._narrowing.conditions(node)
        )

    @cached_property
    def _tested(self) -> frozenset[str]:
        """The names of which any test asks for their type: most names are in no such test."""
        found: set[str] = set()
        of = self.tree.of
        branches: list[cst.If | cst.IfExp | cst.While | cst.Assert | cst.CompIf] = [
            *of(cst.If), *of(cst.IfExp), *of(cst.While), *of(cst.Assert), *of(cst.CompIf)
        ]  # fmt: skip
        tests = [branch.test for branch in branches]
        tests += [part for node in of(cst.BooleanOperation) for part in (node.left, node.right)]
        tests += [case.guard for case in of(cst.MatchCase) if case.guard is not None]
        while tests:
            match tests.pop():
                case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                    tests.append(inner)
                case cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=name)), *_]) as call if name not in found:
                    if self._shows_a_type(func, len(call.args)):
                        found.add(name)
                case cst.Comparison() as comparison if (asked := _asked_of_type(comparison)) is not None:
                    found.add(asked[0].value)
        return frozenset(found)

    def _is_a_keyword_number(self, node: cst.Name) -> bool:
        """Whether this is a value of `**kwargs`, for which all callers pass numbers."""
        for binding in self.names.reaching(node):
            match binding.value:
                case cst.Call(func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value="items" | "values"))):
                    starred = [found.node for found in self.names.reaching(owner)]
                case _:
                    return False
            if len(starred) != 1 or not isinstance(starred[0], cst.Param) or starred[0].star != "**":
                return False
            if self.kinds.parameters.of_keywords(starred[0]).kind is not Kind.NUMBER:
                return False
        return True

    def _one_of(self, kind: cst.BaseExpression) -> Value:
        """What is of one of these types: a list, or something else that is no tensor."""
        kinds = _types(kind)
        if all(isinstance(each, cst.Name) and each.value in LISTS for each in kinds):
            return _LIST
        names = [self.names.qualified(each) or "" for each in kinds]
        return (
            Value(Kind.OBJECT) if all(name in _NO_TENSORS or name.startswith(_NO_TORCH) for name in names) else UNKNOWN
        )

    def _shown_by(self, test: cst.CSTNode, name: str) -> Value:
        match test:
            case cst.Call(
                func=cst.Name(value="isinstance"), args=[cst.Arg(value=cst.Name(value=tested)), cst.Arg(value=kind)]
            ):
                if tested == name:
                    return _ANNOTATIONS.get(self.names.qualified(kind) or "") or self._one_of(kind)
            case cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=tested))]):
                if tested == name and self._shows_a_type(func, 1):
                    return TENSOR
            case cst.Comparison():
                asked = _asked_of_type(test)
                if asked is not None and asked[0].value == name:
                    return _ANNOTATIONS.get(self.names.qualified(asked[1]) or "") or UNKNOWN
        return UNKNOWN

    def _shows_a_type(self, func: cst.BaseExpression, arguments: int) -> bool:
        """Whether a call asks for the type of its first argument."""
        if arguments == 2:
            return isinstance(func, cst.Name) and func.value == "isinstance"
        return arguments == 1 and self.names.qualified(func) == "torch.is_tensor"


def _asked_of_type(test: cst.Comparison) -> tuple[cst.Name, cst.BaseExpression] | None:
    """`x` and the type in `type(x) is torch.Tensor`."""
    match test:
        case cst.Comparison(
            left=cst.Call(func=cst.Name(value="type"), args=[cst.Arg(value=cst.Name() as name)]),
            comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.Is(), comparator=kind)],
        ):
            return name, kind
    return None


def _types(kind: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The types that the second argument of `isinstance` names."""
    return [element.value for element in kind.elements] if isinstance(kind, cst.Tuple) else [kind]
