"""Activations written by hand: which one a formula is, told by its values at a few points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import dotted


class Activation(NamedTuple):
    """A formula, the layer of torch that computes it, its function with what that takes besides, and the operations."""

    formula: cst.BaseExpression
    variable: cst.BaseExpression
    layer: str
    function: str
    arguments: str
    operations: int
    is_in_one_piece: bool


class _Known(NamedTuple):
    layer: str
    function: str
    arguments: str
    compute: Callable[[float], float]


_ROOT = math.sqrt(2 / math.pi)
_KNOWN = (
    _Known("SiLU", "silu", "", lambda x: x * _sigmoid(x)),
    _Known("GELU", "gelu", "", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    _Known("GELU", "gelu", ', approximate="tanh"', lambda x: x * (1 + math.tanh(_ROOT * (x + 0.044715 * x**3))) / 2),
    _Known("Mish", "mish", "", lambda x: x * math.tanh(_softplus(x))),
    _Known("Hardswish", "hardswish", "", lambda x: x * _relu6(x + 3) / 6),
)
# Where all of them differ.
_POINTS = (-3.6, -2.3, -1.1, -0.4, 0.3, 0.9, 2.2, 3.7)
_NEAR = 2e-6
# No activation is computed under more names.
_MOST_NAMES = 40


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def _relu6(x: float) -> float:
    return min(max(x, 0.0), 6.0)


_OF_ONE: dict[str, Callable[[float], float]] = {
    "sigmoid": _sigmoid, "tanh": math.tanh, "erf": math.erf, "exp": math.exp, "sqrt": math.sqrt,
    "softplus": _softplus, "relu6": _relu6, "square": lambda x: x * x, "neg": lambda x: -x,
}  # fmt: skip
_OF_TWO: dict[str, Callable[[float, float], float]] = {
    "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "pow": lambda a, b: a**b,
}  # fmt: skip
_MODULES = ("torch.", "torch.nn.functional.", "math.", "numpy.")
_OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.Multiply: "mul", cst.Divide: "div", cst.Add: "add", cst.Subtract: "sub", cst.Power: "pow",
}  # fmt: skip


class _UnknownError(Exception):
    """The formula holds something else."""


@dataclass(slots=True)
class _Values:
    """What a formula is computed with: its one variable, and what stands for it at the moment."""

    at: float
    context: Context
    variables: dict[str, cst.BaseExpression] = field(default_factory=dict)
    operations: int = 0
    is_in_one_piece: bool = True
    # What constants and formulas with a name of their own give, None for what is neither; and which are being computed.
    named: dict[int, _Named | None] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)


class _Named(NamedTuple):
    """The value of a formula that has a name, and the variables in it."""

    value: float
    variables: dict[str, cst.BaseExpression]


def activation(inner: cst.Call, context: Context) -> Activation | None:
    """The activation of which a call of `sigmoid`, `tanh`, `erf` or `relu6` is a part, the widest there is."""
    for formula in reversed(list(_around(inner, context))):
        found = _identified(formula, context)
        if found is not None:
            return found
    return None


def _around(inner: cst.BaseExpression, context: Context) -> Iterator[cst.BaseExpression]:
    """The expression and the formulas around it, also behind a name that only the next takes."""
    current: cst.CSTNode | None = inner
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, cst.BaseExpression) and _operation(current, context) is not None:
            yield current
            current = context.parent(current)
        elif isinstance(current, (cst.Arg, cst.Attribute)):
            current = context.parent(current)
        elif isinstance(current, cst.Assign):
            match current.targets:
                case [cst.AssignTarget(target=cst.Name(value=name))]:
                    uses = context.uses.of(name, current)
                    current = context.parent(uses[0]) if len(uses) == 1 else None
                case _:
                    return
        else:
            return


def _identified(formula: cst.BaseExpression, context: Context) -> Activation | None:
    if not isinstance(formula, (cst.BinaryOperation, cst.Call)):
        return None
    candidates: tuple[_Known, ...] = _KNOWN
    values = _Values(0.0, context)
    for point in _POINTS:
        values = _Values(point, context)
        try:
            value, _ = _compute(formula, values)
        except (_UnknownError, ArithmeticError, ValueError):
            return None
        candidates = tuple(known for known in candidates if abs(known.compute(point) - value) < _NEAR)
        if not candidates or len(values.variables) != 1:
            return None
    (variable,) = values.variables.values()
    known = candidates[0]
    return Activation(
        formula, variable, known.layer, known.function, known.arguments, values.operations, values.is_in_one_piece
    )


def _compute(node: cst.BaseExpression, values: _Values) -> tuple[float, bool]:
    """The value of a formula, and whether the variable is in it: then torch computes it, and otherwise Python."""
    match node:
        case cst.Integer() | cst.Float():
            return float(node.evaluated_value), False
        case cst.Name() | cst.Attribute() if values.context.qualified_name(node) in ("math.pi", "numpy.pi"):
            return math.pi, False
        case cst.Name() | cst.Attribute():
            return _variable(node, values)
    operation = _operation(node, values.context)
    if operation is None:
        raise _UnknownError
    name, operands = operation
    computed = [_compute(operand, values) for operand in operands]
    is_tensor = any(has_variable for _, has_variable in computed)
    values.operations += is_tensor
    first, *rest = (number for number, _ in computed)
    value = _OF_TWO[name](first, rest[0]) if rest else _OF_ONE[name](first)
    if isinstance(value, complex):  # the root of a negative number, which no activation takes
        raise _UnknownError
    return value, is_tensor


def _operation(node: cst.CSTNode, context: Context) -> tuple[str, list[cst.BaseExpression]] | None:
    """The name of what a node computes and what from: `a * b`, `torch.mul(a, b)`, `a.mul(b)`, `torch.tanh(a)`."""
    match node:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            name = _OPERATORS.get(type(operator), "")
            return (name, [left, right]) if name else None
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return "neg", [inner]
        case cst.Call(func=func, args=args) if not any(argument.keyword or argument.star for argument in args):
            operands = [argument.value for argument in args]
            qualified = context.qualified_name(func)
            if qualified is None and isinstance(func, cst.Attribute):
                name, operands = func.attr.value, [func.value, *operands]
            elif qualified is not None and qualified.startswith(_MODULES):
                name = qualified.rpartition(".")[2]
            else:
                return None
            return (name, operands) if name in (_OF_ONE, _OF_TWO)[len(operands) != 1] and len(operands) < 3 else None
    return None


def _variable(node: cst.Name | cst.Attribute, values: _Values) -> tuple[float, bool]:
    """The value of a name: of a constant, of a formula bound to it, or that of the variable."""
    key = dotted(node) or ""
    if isinstance(node, cst.Name):
        value = values.context.stands_for(node)
        named = _named(value, values) if value is not None else None
        if named is not None:
            values.variables |= named.variables
            return named.value, bool(named.variables)
        key = f"{key} {[id(binder) for binder in values.context.binders(node)]}"
    if not key:
        raise _UnknownError
    values.variables[key] = node
    return values.at, True


def _named(value: cst.BaseExpression, values: _Values) -> _Named | None:
    """What a name is bound to, if that is a constant or a formula, which is computed once for all its uses.

    Raises `_UnknownError` for a formula that holds something else, or itself.
    """
    if id(value) in values.named:
        return values.named[id(value)]
    if id(value) in values.begun or len(values.begun) == _MOST_NAMES:
        raise _UnknownError
    values.begun.add(id(value))
    is_formula = _is_formula(value, values.context)
    inside = _Values(values.at, values.context, named=values.named, begun=values.begun)
    found: _Named | None = None
    try:
        number, has_variable = _compute(value, inside)
    except _UnknownError:
        if is_formula:
            raise
    else:
        if is_formula or not has_variable:  # else it is the variable, under another name
            found = _Named(number, inside.variables)
            values.operations += inside.operations
            values.is_in_one_piece = values.is_in_one_piece and not has_variable
    values.named[id(value)] = found
    return found


def _is_formula(node: cst.BaseExpression, context: Context) -> bool:
    """Whether an expression is computed by one of the functions that activations are made of."""
    operation = _operation(node, context)
    if operation is None:
        return False
    return operation[0] in _OF_ONE or any(_is_formula(operand, context) for operand in operation[1])
