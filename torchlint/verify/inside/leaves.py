"""Finds the data in whatever a program holds or returns, and the way to each piece."""

from __future__ import annotations

import dataclasses
import enum
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

_DEEPEST = 64
_LONG = 64
# How an optimizer computes, not what: these are what a fix of it changes. The parameters have their own entries.
_IMPLEMENTATION = frozenset({"fused", "foreach", "capturable", "differentiable", "params"})
_NUMBERS = {bool: torch.int64, int: torch.int64, float: torch.float64, complex: torch.complex128}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value as it was met: nothing is copied.

    `kind` is the type that Python shows. `role` is `value`, `module` or `optimizer` for what comes from a `state_dict`,
    or `container`; a container's value is None.
    """

    path: str
    value: Any
    kind: str
    role: str


def leaves(value: object, path: str = "out") -> Iterator[Leaf]:
    """What `value` holds, depth first; optimizers last, when the names of the parameters are known."""
    return Walk().leaves(value, path)


def number_type(number: object) -> torch.dtype | None:
    """The type of the 0-d tensor that a Python number is compared as; None for what is no number."""
    return next((dtype for kind, dtype in _NUMBERS.items() if isinstance(number, kind)), None)


def array_module() -> Any:  # it may not be installed
    """Numpy where the measured code has loaded it, None elsewhere."""
    return sys.modules.get("numpy")


def is_array(value: object) -> bool:
    """Whether it is a numpy array or scalar."""
    numpy = array_module()
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


@dataclass(slots=True)
class Walk:
    """A way through several values, which remembers what it skipped, the modules and the names of their parameters."""

    skipped: list[str] = field(default_factory=list)
    modules: list[tuple[str, Any]] = field(default_factory=list)
    _names: dict[int, str] = field(default_factory=dict)
    _within: set[int] = field(default_factory=set)
    _optimizers: list[tuple[str, Any]] = field(default_factory=list)

    def leaves(self, value: object, path: str) -> Iterator[Leaf]:
        """As the function of this name."""
        yield from self._walk(value, path, "value")
        while self._optimizers:
            where, optimizer = self._optimizers.pop(0)
            yield Leaf(where, None, "optimizer", "container")
            yield from self._optimizer(optimizer, where)

    def _walk(self, value: object, path: str, role: str) -> Iterator[Leaf]:
        kind = _kind(value)
        if _is_data(value):
            yield Leaf(path, value, kind, role)
        elif isinstance(value, torch.optim.Optimizer):
            self._optimizers.append((path, value))
        elif id(value) in self._within:
            self.skipped.append(f"{path}: {kind} that holds itself")
        elif len(self._within) > _DEEPEST:
            self.skipped.append(f"{path}: {kind}, too deep")
        else:
            self._within.add(id(value))
            yield from self._inside(value, path, kind, role)
            self._within.discard(id(value))

    def _inside(self, value: object, path: str, kind: str, role: str) -> Iterator[Leaf]:
        items: Iterator[tuple[str, object]]
        if isinstance(value, torch.nn.Module):
            yield from self._module(value, path)
            return
        if isinstance(value, Mapping):
            # The text of a key of any other type may hold an address.
            plain = (str, int, float, tuple, type(None))
            named = enumerate(value.items())
            items = ((f"[{key!r}]" if isinstance(key, plain) else f"[#{i}]", item) for i, (key, item) in named)
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            items = ((f".{name}", getattr(value, name)) for name in value._fields)
        elif isinstance(value, (list, tuple, deque, set, frozenset)):
            sequence = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            packed = _packed(sequence)
            if packed is not None:
                yield Leaf(path, packed, f"{kind} of {_kind(sequence[0])}", role)
                return
            items = ((f"[{index}]", item) for index, item in enumerate(sequence))
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [each.name for each in dataclasses.fields(value) if hasattr(value, each.name)]
            items = ((f".{name}", getattr(value, name)) for name in names)
        else:
            state_dict = None if isinstance(value, type) else getattr(value, "state_dict", None)
            if not callable(state_dict):
                self.skipped.append(f"{path}: {kind}")
            else:
                state = self._state(state_dict, path)
                if state is not None:
                    yield from self._walk(state, path, role)
            return
        yield Leaf(path, None, kind, "container")
        for step, item in items:
            yield from self._walk(item, path + step, role)

    def _module(self, module: Any, path: str) -> Iterator[Leaf]:
        self.modules.append((path, module))
        for name, parameter in module.named_parameters():
            self._names.setdefault(id(parameter), name)
        state = self._state(module.state_dict, path, keep_vars=True)
        if state is not None:
            yield Leaf(path, "training" if module.training else "evaluation", "module", "module")
            for key, item in state.items():
                yield from self._walk(item, f"{path}.{key}", "module")

    def _optimizer(self, optimizer: Any, path: str) -> Iterator[Leaf]:
        state = self._state(optimizer.state_dict, path)
        if state is None:
            return
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        names = {index: self._names.get(id(parameter), str(index)) for index, parameter in enumerate(parameters)}
        for key, item in state.get("state", {}).items():
            yield from self._walk(item, f"{path}.state[{names.get(key, key)}]", "optimizer")
        for index, group in enumerate(state.get("param_groups", ())):
            options = {key: item for key, item in group.items() if key not in _IMPLEMENTATION}
            yield from self._walk(options, f"{path}.param_groups[{index}]", "optimizer")

    def _state(self, state_dict: Callable[..., object], path: str, **options: bool) -> Mapping[Any, Any] | None:
        try:
            state = state_dict(**options)
        except Exception as error:  # noqa: BLE001 - the program's own code may run in it
            self.skipped.append(f"{path}: state_dict() raises {type(error).__name__}")
            return None
        if isinstance(state, Mapping):
            return state
        self.skipped.append(f"{path}: state_dict() gives no dict")
        return None


def _is_data(value: object) -> bool:
    plain = (int, float, complex, str, bytes, os.PathLike, enum.Enum, range, slice, type(None))
    named = (torch.Tensor, torch.dtype, torch.device, torch.Size)
    return isinstance(value, (*named, *plain)) or is_array(value)


def _kind(value: object) -> str:
    """The type as Python shows it; a tensor is a tensor or a parameter, whatever class stands in for a device's."""
    if isinstance(value, torch.Tensor):
        return "parameter" if isinstance(value, torch.nn.Parameter) else "tensor"
    if value is None:
        return "None"
    return f"numpy.{type(value).__name__}" if is_array(value) else type(value).__qualname__


def _packed(sequence: Sequence[Any] | deque[Any]) -> torch.Tensor | None:
    """A long list of Python numbers of one type as one tensor: a history of losses has thousands.

    Lists of as many numbers each are rows.
    """
    rows: list[Any] = list(sequence)
    shape: tuple[int, ...] = (len(rows),)
    if rows and isinstance(rows[0], (list, tuple)) and rows[0]:
        first = rows[0]
        if any(type(row) is not type(first) or len(row) != len(first) for row in rows):
            return None
        shape = (len(rows), len(first))
        rows = [item for row in rows for item in row]
    kind = type(rows[0]) if len(rows) >= _LONG else None
    if kind not in _NUMBERS or any(type(item) is not kind for item in rows):
        return None
    try:
        return torch.tensor(rows, dtype=_NUMBERS[kind]).reshape(shape)
    except (OverflowError, RuntimeError):  # an integer of more than 64 bits
        return None
