"""Tensors that say they are on `cuda:0` while their values are on the host.

To torch's C++ such a tensor is a wrapper on the meta device, so that it tells device from host as it would with CUDA
(transfers, their gradients, indices that are moved), without a CUDA driver. Python sees `cuda:0`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np
import torch

from torchlint.verify.inside.sim import transfers
from torchlint.verify.inside.sim.children import children
from torchlint.verify.inside.sim.memory import memory

CUDA = torch.device("cuda", 0)
META = torch.device("meta", 0)  # an index, which a user's own meta tensors do not have
CPU = torch.device("cpu")

Device = torch.device  # while the device is simulated, torch has another callable under that name
Operator = Callable[..., Any]
Arguments = tuple[Any, ...]
Keywords = dict[str, Any]

_keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
_tensor = torch.tensor
_to_text: Callable[[Any], str] = torch._tensor_str._str
_host = torch._C.TensorBase  # the methods that `SimTensor` and the patches stand before


def others_decide(types: Sequence[type]) -> bool:
    """Whether a class among these, of tensors made of other tensors, says itself what operators do."""
    for kind in types:  # a loop, since this is asked of every operator
        if kind is not SimTensor and kind is not torch.Tensor and "__torch_dispatch__" in kind.__dict__:
            return True
    return False


def names_cuda(device: object) -> bool:
    """Whether this is how a program names the device: a string, a `torch.device` or an index."""
    if isinstance(device, Device):
        return device.type == "cuda"
    if isinstance(device, str):
        return device.startswith("cuda")
    return type(device) is int


class SimTensor(torch.Tensor):
    """A tensor on the simulated device; `_value` is the host tensor that holds its values and its memory."""

    _value: torch.Tensor

    @staticmethod
    def __new__(  # noqa: PYI034 - `Self` is new in Python 3.11
        cls: type[SimTensor],
        value: torch.Tensor,
        requires_grad: bool = False,
    ) -> SimTensor:
        """Give `value`, a host tensor without gradient, to the device."""
        if value.dtype.is_complex and value.is_conj():
            value = value.resolve_conj()  # a wrapper does not say that its values are still to be conjugated
        inferring = value.is_inference()
        if inferring is not torch.is_inference_mode_enabled():
            # A view is an inference tensor if its base is one, in whichever mode it is taken.
            with torch._C._InferenceMode(inferring):  # what `torch.inference_mode` enters
                return SimTensor(value, requires_grad)
        if value.layout is not torch.strided or value.is_nested:
            return _of_other_layout(cls, value, requires_grad=requires_grad)
        self = _wrap(
            cls,
            value.size(),
            strides=value.stride(),
            storage_offset=value.storage_offset(),
            dtype=value.dtype,
            layout=value.layout,
            device=META,
            requires_grad=requires_grad,
            _extra_dispatch_keys=_keys,
        )
        self._value = value
        memory.hold(value.untyped_storage())
        return self

    __torch_function__ = torch._C._disabled_torch_function_impl  # torch's own way to do without

    @classmethod
    def __torch_dispatch__(
        cls, operator: Operator, types: Sequence[type], args: Arguments = (), kwargs: Keywords | None = None
    ) -> object:
        # The operators need this class; they come here only where no mode sees them first.
        from torchlint.verify.inside.sim.operators import dispatch

        return NotImplemented if others_decide(types) else dispatch(operator, args, kwargs or {})

    device = property(lambda _: CUDA)
    is_cuda = property(lambda _: True)
    is_cpu = property(lambda _: False)
    is_meta = property(lambda _: False)

    @property
    def data(self) -> torch.Tensor:
        """As `Tensor.data`."""
        return self.detach()

    @data.setter
    def data(self, other: torch.Tensor) -> None:
        if type(other) is not SimTensor:
            become(self, other)
            return
        replace_data(self, other)
        self._value = other._value  # a tensor of this class

    def requires_grad_(self, requires_grad: bool = True) -> torch.Tensor:
        """As `Tensor.requires_grad_`."""
        if requires_grad and self.is_nested:
            raise NotImplementedError(
                "the simulated device has no gradients of nested tensors with layout=torch.strided"
            )
        return _host.requires_grad_(self, requires_grad)

    def get_device(self) -> int:
        """The index of the only device."""
        return 0

    def type(self, dtype: torch.dtype | str | None = None, non_blocking: bool = False, **_: object) -> object:
        """As `Tensor.type`; without an argument the name of a CUDA type."""
        if dtype is None:
            return _host.type(self._value).replace("torch.", "torch.cuda.", 1)
        if isinstance(dtype, torch.dtype):
            return self.to(dtype, non_blocking=non_blocking)
        name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
        place = CUDA if name.startswith("torch.cuda.") else CPU
        return self.to(place, getattr(torch, name.rpartition(".")[2]).dtype, non_blocking=non_blocking)

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """As with CUDA, an error unless a copy is asked for."""
        if force:
            return self.detach().cpu().numpy(force=True)
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def tolist(self) -> object:
        """As `Tensor.tolist`, which copies to the host."""
        return self.cpu().tolist()

    def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
        return self.numpy()

    def __repr__(self, *_: object, **__: object) -> str:
        # torch prints with operators, of which many read from the device.
        text = _to_text(self)
        if not getattr(self, "_is_param", False):
            return text.replace("Tensor(", "tensor(", 1)
        plain = text.removeprefix("Parameter(").removesuffix(")" * text.startswith("Parameter("))
        return "Parameter containing:\n" + plain.replace("Tensor(", "tensor(", 1)

    def __format__(self, specification: str) -> str:
        if self.dim() == 0:
            return format(self.item(), specification)
        return object.__format__(self, specification)

    def __getitem__(self, index: object) -> torch.Tensor:
        return _host.__getitem__(self, _host_index(index))

    def __setitem__(self, index: object, value: torch.Tensor) -> None:
        # A Python number becomes a tensor on the host where `self` is on CUDA (`THPVariable_setitem`,
        # torch/csrc/autograd/python_variable_indexing.cpp).
        if isinstance(value, (int, float, complex)):
            value = _tensor(value, dtype=self.dtype, device=CPU)
        _host.__setitem__(self, _host_index(index), value)

    def __deepcopy__(self, memo: dict[int, object]) -> object:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user support the deepcopy protocol at the moment"
            )
        with torch.no_grad():
            copy = self.detach().clone()
        copy.requires_grad_(self.requires_grad)
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        if getattr(self, "_is_param", False):
            copy._is_param = True  # how torch marks a parameter of a subclass
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        # A checkpoint holds the values, and reading them for it is a copy to the host.
        transfers.to_host(self._value, self._value.dtype, non_blocking=False, into_pinned=False)
        del protocol
        is_parameter = bool(getattr(self, "_is_param", False))
        return restore, (self._value.detach(), is_parameter, self.requires_grad and self.is_leaf)

    def data_ptr(self) -> int:
        """The address of the first element, on the host."""
        return int(self._value.data_ptr())

    def untyped_storage(self) -> torch.UntypedStorage:
        """The storage that stands for device memory."""
        return self._value.untyped_storage()

    def new(self, *args: object, **kwargs: object) -> torch.Tensor:
        """As `Tensor.new`, which takes sizes or numbers, a tensor, or the parts of a sparse one."""
        values = [part._value if type(part) is SimTensor else part for part in args]
        value = self._value.new(*values, **kwargs)
        if args and isinstance(args[0], (list, tuple)) and not isinstance(args[0], torch.Size):
            transfers.to_device(value, value.dtype, non_blocking=False)
        return SimTensor(value)

    def new_tensor(
        self, data: object, *, dtype: torch.dtype | None = None, device: object = None, requires_grad: bool = False
    ) -> torch.Tensor:
        """As `Tensor.new_tensor`."""
        dtype = self.dtype if dtype is None else dtype
        return torch.tensor(data, dtype=dtype, device=CUDA if device is None else device, requires_grad=requires_grad)

    def record_stream(self, stream: object) -> None:
        """Nothing: memory here is never used again before its last reader is done."""


# What a program prints of the type is what it prints on CUDA.
SimTensor.__name__ = SimTensor.__qualname__ = "Tensor"
SimTensor.__module__ = "torch"

_wrap: Callable[..., Any] = torch.Tensor._make_wrapper_subclass
_subclass: Callable[..., Any] = torch.Tensor._make_subclass


def _of_other_layout(cls: type[SimTensor], value: torch.Tensor, *, requires_grad: bool) -> SimTensor:
    """A wrapper of a sparse or nested tensor: one of this class over a tensor of that layout without values."""
    parts = transfers.members(value)
    with torch._C._DisableTorchDispatch():  # below all modes: it is no one's
        # On the meta device there are no nested ones, and sparse ones forget the index: they ask Python where they are.
        like = value.detach() if value.is_nested else _hollow(value, parts)
        self: SimTensor = _subclass(cls, like, requires_grad, dispatch_device=True)
    self._value = value
    for part in parts:
        memory.hold(part.untyped_storage())
    return self


def _hollow(value: torch.Tensor, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """A tensor on the meta device of the layout and shape of a sparse one, which consists of `parts`."""
    empty = [torch.empty_strided(part.shape, part.stride(), dtype=part.dtype, device=META) for part in parts]
    if value.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(*empty, value.shape, check_invariants=False)
    return torch.sparse_compressed_tensor(*empty, value.shape, layout=value.layout, check_invariants=False)


class _Loading(threading.local):
    on_host = False


loading = _Loading()
"""Whether `torch.load` is told, in this thread, to leave on the host what was on the device."""


def restore(value: torch.Tensor, is_parameter: bool, requires_grad: bool) -> torch.Tensor:  # pickled
    """A tensor of a checkpoint, or of the process that started this one, on the device that it was on."""
    children.use()
    if not loading.on_host:
        transfers.to_device(value, value.dtype, non_blocking=False)
        value = SimTensor(value)
    return torch.nn.Parameter(value, requires_grad) if is_parameter else value.requires_grad_(requires_grad)


def replace_data(tensor: SimTensor, other: torch.Tensor) -> None:
    """Give the wrapper the shape and type of another, as `tensor.data = other` does."""
    _host.data.__set__(tensor, other)


def become(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Make a tensor on one side what another on the other side is, as `tensor.data = other` does."""
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    exchange(tensor, torch.nn.Parameter(other, tensor.requires_grad) if is_parameter else other.detach())


def exchange(left: torch.Tensor, right: torch.Tensor) -> None:
    """As `torch.utils.swap_tensors`, also where a graph refers to the tensors, as a module may move then on CUDA."""
    left.__class__, right.__class__ = right.__class__, left.__class__
    left.__dict__, right.__dict__ = right.__dict__, left.__dict__
    torch._C._swap_tensor_impl(left, right)


def _host_index(index: object) -> object:
    """Lists of numbers become host tensors here, which indexing then moves to the device, as with CUDA."""
    if isinstance(index, list) and not all(isinstance(part, (bool, int)) for part in index):
        index = tuple(index)  # `treatSequenceAsTuple`, torch/csrc/autograd/python_variable_indexing.cpp
    if isinstance(index, tuple):
        return tuple(_host_numbers(part) for part in index)
    return _host_numbers(index)


def _host_numbers(part: object) -> object:
    if not isinstance(part, list):
        return part
    return torch.tensor(part, dtype=None if part else torch.long, device=CPU)
