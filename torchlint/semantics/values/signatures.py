"""What the arguments of a call and the tables of torch say of its result: its kind, and the device it lives on."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.semantics.values.lattice import (
    DTYPE,
    NONE,
    NUMBER,
    UNKNOWN,
    Device,
    Kind,
    Value,
    computed_on,
    sequence,
    sequence_of,
    tensor,
)

# What gives one element where it is given nothing but a tensor, and what gives as many as it is given.
REDUCTIONS = frozenset(
    "sum mean max min median prod all any norm std var argmax argmin amax amin count_nonzero nansum nanmean "
    "nanmedian".split()
)
ELEMENTWISE = frozenset(
    "abs sqrt rsqrt exp log neg square sigmoid tanh relu reciprocal logical_not isnan isinf isfinite".split()
)


class Operands:
    """The results of calls, by the values of what is passed."""

    def __init__(self, value: Callable[[cst.CSTNode], Value]) -> None:
        self.value = value

    def first(self, node: cst.Call) -> Value:
        """What the first argument holds."""
        return self.value(node.args[0].value) if node.args and not node.args[0].star else UNKNOWN

    def device(self, node: cst.CSTNode) -> Device:
        """The device that an expression names."""
        value = self.value(node)
        if value.kind in (Kind.DEVICE, Kind.STRING):
            if value.device is Device.UNKNOWN:
                return Device.MAYBE
            return value.devices
        if value.kind is Kind.NUMBER:
            return Device.ACCELERATOR
        if value.kind is Kind.NONE:
            return Device.CPU
        return Device.UNKNOWN

    def coded(self, code: str, owner: Value, node: cst.Call | None = None, *, scalar: bool = False) -> Value:
        """The value that a code of torch_table stands for; the device is that of the tensors it is made from."""
        if code == "n":
            return NUMBER
        if code == "z":
            return sequence_of(NUMBER)
        if code == "d":
            return Value(Kind.DEVICE, owner.devices)
        if code == "y":
            return DTYPE
        if code == "-":
            return NONE
        device = owner.devices if owner.kind is Kind.TENSOR else self._operands_device(node)
        if code == "T/2":
            code = "2" if node is not None and self._reduces_dim(node, method=owner.kind is Kind.TENSOR) else "T"
        if code == "T":
            return tensor(device, scalar=scalar)
        if code == "S":
            return sequence_of(tensor(device))
        if code.isdigit():
            return sequence(*(tensor(device) for _ in range(int(code))))
        return UNKNOWN

    def gives_one_element(self, node: cst.Call, name: str) -> bool:
        """Whether a function of torch is given a tensor alone, and gives one element of it or computes with one."""
        if len(node.args) != 1 or node.args[0].keyword is not None or node.args[0].star:
            return False
        return name in REDUCTIONS or (name in ELEMENTWISE and self.first(node).scalar)

    def _reduces_dim(self, node: cst.Call, *, method: bool) -> bool:
        if any(argument.keyword is not None and argument.keyword.value in ("dim", "axis") for argument in node.args):
            return True
        positional = [argument.value for argument in node.args if argument.keyword is None]
        place = 0 if method else 1
        if len(positional) <= place:
            return False
        return self.value(positional[place]).kind is Kind.NUMBER

    def _operands_device(self, node: cst.Call | None) -> Device:
        if node is None:
            return Device.UNKNOWN
        devices = []
        for place, argument in enumerate(node.args):
            value = self.value(argument.value)
            if value.kind is Kind.SEQUENCE:
                # `cat([a, b])`; a sequence further behind is one of sizes.
                value = value.item if value.item is not None and place == 0 else NUMBER
            if value.kind is Kind.TENSOR:
                devices.append(value.devices)
            elif not value:
                devices.append(Device.UNKNOWN)
        return computed_on(devices)


def reduces(loss: cst.Call) -> bool:
    """Whether a loss that is computed or made like this gives one number: not with `reduction="none"`."""
    match argument(loss, "reduction"):
        case None:
            legacy = argument(loss, "reduce")
            return not (isinstance(legacy, cst.Name) and legacy.value == "False")
        case cst.SimpleString(raw_value="mean" | "sum" | "batchmean"):
            return True
    return False


def argument(node: cst.Call, keyword: str) -> cst.BaseExpression | None:
    """The argument passed by keyword; None if there is none."""
    for given in node.args:
        if given.keyword is not None and given.keyword.value == keyword:
            return given.value
    return None
