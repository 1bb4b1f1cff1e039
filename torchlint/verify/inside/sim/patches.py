"""The names of torch that are replaced while the device is simulated, and put back afterwards."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
import torch._dynamo  # what inspects the names of torch has to see them before they are replaced
from torch.utils._device import DeviceContext, _device_constructors
from torch.utils._pytree import tree_map

from torchlint.verify.inside.sim.autocast import Casts
from torchlint.verify.inside.sim.frontdoor import (
    ACCELERATOR_NAMES,
    CUDA_NAMES,
    NAMES,
    NVTX_NAMES,
    Event,
    Stream,
    nothing,
    typed,
)
from torchlint.verify.inside.sim.groups import patch_groups
from torchlint.verify.inside.sim.memory import pinned
from torchlint.verify.inside.sim.operators import OnDevice
from torchlint.verify.inside.sim.tensor import (
    CPU,
    CUDA,
    META,
    Device,
    SimTensor,
    become,
    exchange,
    loading,
    names_cuda,
    restore,
)

_MISSING = object()
_host = torch._C.TensorBase  # the methods that the patches stand before
_modes = getattr(torch.overrides, "_get_current_function_mode_stack", list)
_simulating = threading.local()


def enter(stack: ExitStack, casts: Casts) -> None:
    """Replace the names until `stack` unwinds."""

    def patch(owner: object, name: str, value: object) -> None:
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        stack.callback(delattr, owner, name) if before is _MISSING else stack.callback(setattr, owner, name, before)

    _patch_names(patch)
    _patch_tensor(patch)
    _patch_jagged(patch)
    _patch_factories(patch)
    _patch_default_type(patch, stack)
    _patch_indices(patch)
    _patch_optimizers(patch, stack)
    _patch_modules(patch, stack)
    patch_groups(patch)
    _patch_autocast(patch, casts)
    _patch_threads(patch)


def _patch_names(patch: Callable[..., None]) -> None:
    for name, value in CUDA_NAMES.items():
        patch(torch.cuda, name, value)
    for name in NAMES:
        patch(torch.cuda, name, typed(name))
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        for name, value in ACCELERATOR_NAMES.items():
            patch(accelerator, name, value)
        memory = getattr(accelerator, "memory", None)
        for name in vars(memory or accelerator).keys() & ACCELERATOR_NAMES.keys():
            patch(memory or accelerator, name, ACCELERATOR_NAMES[name])
    if hasattr(torch._C, "_get_accelerator"):
        patch(torch._C, "_get_accelerator", lambda *_: torch.device("cuda"))
    patch(torch, "Stream", Stream)
    patch(torch, "Event", Event)
    for module in (torch.cuda.random, torch.cuda.memory, torch.cuda.graphs, torch.cuda.streams):
        for name, value in CUDA_NAMES.items():
            if name in vars(module):
                patch(module, name, value)
    for name in NVTX_NAMES:
        if hasattr(torch.cuda.nvtx, name):
            patch(torch.cuda.nvtx, name, nothing)
    capturing = "_cuda_isCurrentStreamCapturing"
    if hasattr(torch._C, capturing):
        patch(torch._C, capturing, lambda: False)


def _patch_tensor(patch: Callable[..., None]) -> None:
    def to(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        args = tuple(META if names_cuda(part) else part for part in args)
        if "device" in kwargs and names_cuda(kwargs["device"]):
            kwargs["device"] = META
        with _here():
            return _host.to(self, *args, **kwargs)

    def cuda(
        self: torch.Tensor,
        device: object = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format | None = None,
    ) -> torch.Tensor:
        del device
        keywords = {} if memory_format is None else {"memory_format": memory_format}
        with _here():
            return _host.to(self, META, non_blocking=non_blocking, **keywords)

    def pin_memory(self: torch.Tensor, device: object = None) -> torch.Tensor:
        del device
        if type(self) is SimTensor:
            raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
        if is_pinned(self):
            return self
        copy = self.detach().clone() if not self.requires_grad else self.clone()
        pinned.pin(copy.untyped_storage())
        return copy

    def is_pinned(self: torch.Tensor, device: object = None) -> bool:
        del device
        return type(self) is not SimTensor and pinned.holds(self.untyped_storage())

    def cast(self: torch.Tensor, dtype: object = None, *args: object, **kwargs: object) -> object:
        name = (
            dtype if isinstance(dtype, str) else f"{getattr(dtype, '__module__', '')}.{getattr(dtype, '__name__', '')}"
        )
        if dtype is None or not name.startswith("torch.cuda.") or not hasattr(torch, name.rpartition(".")[2]):
            return _host.type(self, dtype, *args, **kwargs)
        return _host.type(self, name.replace(".cuda", "")).cuda()

    def new_tensor(self: torch.Tensor, data: object, **kwargs: object) -> torch.Tensor:
        if not names_cuda(kwargs.get("device")):
            return _host.new_tensor(self, data, **kwargs)
        return torch.tensor(data, **{"dtype": self.dtype, **kwargs})

    patch(torch.Tensor, "type", cast)
    for method in (to, cuda, pin_memory, is_pinned, new_tensor):
        patch(torch.Tensor, method.__name__, method)


def _patch_jagged(patch: Callable[..., None]) -> None:
    """Nested tensors with `layout=torch.jagged` are Python's, made of other tensors, and say where these are."""
    from torch.nested._internal.nested_tensor import NestedTensor  # no public name

    make: Callable[..., Any] = torch.Tensor._make_wrapper_subclass

    def wrap(cls: type, *args: object, **kwargs: object) -> object:
        places = [META if isinstance(part, Device) and names_cuda(part) else part for part in args]
        if names_cuda(kwargs.get("device")):
            kwargs["device"] = META
        return make(cls, *places, **kwargs)

    def on_device(self: torch.Tensor) -> bool:
        return bool(self._values.is_cuda)

    patch(torch.Tensor, "_make_wrapper_subclass", staticmethod(wrap))
    patch(NestedTensor, "device", property(lambda self: self._values.device))
    patch(NestedTensor, "is_cuda", property(on_device))
    patch(NestedTensor, "is_meta", property(lambda self: self._values.is_meta))


def _here() -> AbstractContextManager[object]:
    """A thread that the program started does not see operators until it is told to."""
    return nullcontext() if getattr(_simulating, "on", False) else OnDevice()


def _patch_factories(patch: Callable[..., None]) -> None:
    def moved(make: Callable[..., Any]) -> Callable[..., Any]:
        def factory(data: object, *args: object, **kwargs: object) -> object:
            device = kwargs.get("device")
            if device is None:
                device = _default_device()
            if device is None or not names_cuda(device):
                # torch without CUDA has no pinned memory to make it in.
                pins = make.__name__ in ("tensor", "scalar_tensor") and kwargs.pop("pin_memory", False)
                made: Any = _from_numbers(make, data, *args, **kwargs)
                return made.pin_memory() if pins else made
            gradient = kwargs.pop("requires_grad", False)
            kwargs["device"] = META if type(data) is SimTensor else CPU
            result: torch.Tensor = _from_numbers(make, data, *args, **kwargs)
            result = result.to(CUDA)
            return result.requires_grad_() if gradient else result

        factory.__name__ = make.__name__
        return factory

    for name in ("tensor", "as_tensor", "asarray", "scalar_tensor"):
        patch(torch, name, moved(getattr(torch, name)))
    nest = torch.nested.nested_tensor

    def nested_tensor(data: object, *args: object, device: object = None, **kwargs: object) -> torch.Tensor:
        if device is None or not names_cuda(device):
            return nest(data, *args, **{"device": device} if device is not None else {}, **kwargs)
        return nest(data, *args, **kwargs).to(CUDA)

    patch(torch.nested, "nested_tensor", nested_tensor)
    load = torch.load
    torch.serialization.add_safe_globals([restore])

    def load_to(f: object, map_location: object = None, *args: object, **kwargs: object) -> object:
        if names_cuda(map_location):
            return _on_device(load(f, None, *args, **kwargs))
        before, loading.on_host = loading.on_host, _maps_to_host(map_location)
        try:
            return load(f, map_location, *args, **kwargs)
        finally:
            loading.on_host = before

    patch(torch, "load", load_to)
    # Compiled code would not run on these tensors; what it computes is the same.
    patch(torch, "compile", lambda model=None, **_: (lambda inner: inner) if model is None else model)
    patch(torch.jit, "script", lambda obj, *_, **__: obj)
    patch(torch.jit, "trace", lambda obj, *_, **__: obj)
    patch(torch.nn.Module, "compile", lambda *_, **__: None)
    generator = torch.Generator

    class Generator(generator):  # type: ignore[misc, valid-type]
        def __new__(cls, device: object = "cpu") -> torch.Generator:
            del device
            return generator.__new__(cls, "cpu")

    patch(torch, "Generator", Generator)


def _patch_default_type(patch: Callable[..., None], stack: ExitStack) -> None:
    """`torch.set_default_tensor_type("torch.cuda.FloatTensor")`: a default device, of `torch.Tensor(...)` too."""
    set_type: Callable[[Any], None] = torch.set_default_tensor_type
    undo: list[ExitStack] = []

    def on_device(cls: type, *args: object, **kwargs: object) -> torch.Tensor:
        made = _host.__new__(cls, *args, **kwargs)
        if cls is not torch.Tensor or type(made) is SimTensor:
            return made
        return SimTensor(made) if not args or type(args[0]) is int else made.cuda()

    def set_default_tensor_type(kind: Any) -> None:  # a name, or a type
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        while undo:
            undo.pop().close()
        set_type(name.replace("torch.cuda.", "torch.", 1))
        if name.startswith("torch.cuda."):
            own = ExitStack()
            undo.append(own)
            own.callback(torch.set_default_device, None)
            torch.set_default_device(CUDA)
            new = vars(torch.Tensor).get("__new__", _MISSING)
            torch.Tensor.__new__ = staticmethod(on_device)
            own.callback(
                *(delattr, torch.Tensor, "__new__") if new is _MISSING else (setattr, torch.Tensor, "__new__", new)
            )

    def unset() -> None:
        while undo:
            undo.pop().close()

    stack.callback(unset)
    patch(torch, "set_default_tensor_type", set_default_tensor_type)


def _patch_indices(patch: Callable[..., None]) -> None:
    """An index is a device for all that takes one; torch without CUDA refuses it before any operator is seen."""

    def indexed(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def factory(*args: object, **kwargs: object) -> object:
            if type(kwargs.get("device")) is int:
                kwargs["device"] = CUDA
            return make(*args, **kwargs)

        return factory

    _device_constructors()  # it remembers these by themselves, as `with torch.device(...)` sees them
    for name in _FACTORIES:
        patch(torch, name, indexed(getattr(torch, name)))

    class DeviceType(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, Device)

        def __call__(cls, *args: Any, **kwargs: Any) -> torch.device:
            named = args or tuple(kwargs.values())
            return CUDA if named and type(named[0]) is int else Device(*args, **kwargs)

    patch(torch, "device", DeviceType("device", (), {"__module__": "torch"}))


_FACTORIES = (
    "arange bartlett_window blackman_window empty empty_like empty_strided eye full full_like hamming_window "
    "hann_window kaiser_window linspace logspace normal ones ones_like rand rand_like randint randint_like randn "
    "randn_like randperm range sparse_coo_tensor tril_indices triu_indices zeros zeros_like"
).split()


def _maps_to_host(location: object) -> bool:
    """Whether this `map_location` brings to the host what was saved from the device."""
    if isinstance(location, dict):
        found = next((location[name] for name in ("cuda:0", "cuda") if name in location), CUDA)
        return not names_cuda(found)
    # A function is nearly always the idiom `lambda storage, location: storage`, of a storage on the host.
    return location is not None


def _default_device() -> object:
    """The device of the innermost `with torch.device(...)` or `set_default_device`, if there is one."""
    for mode in reversed(_modes()):
        if isinstance(mode, DeviceContext):
            return mode.device
    return None


def _from_numbers(make: Callable[..., Any], data: object, *args: object, **kwargs: object) -> object:
    """Make a tensor of a list that may hold single numbers on the device: each is read, as with CUDA."""
    try:
        return make(data, *args, **kwargs)
    except TypeError:
        if not isinstance(data, (list, tuple)):
            raise
    return make(tree_map(lambda leaf: leaf.item() if type(leaf) is SimTensor else leaf, data), *args, **kwargs)


def _patch_optimizers(patch: Callable[..., None], stack: ExitStack) -> None:
    name = "_group_tensors_by_device_and_dtype"
    native: Callable[..., dict[Any, Any]] = getattr(torch._C, name, None) or dict

    def group(*args: object, **kwargs: object) -> object:
        return {(CUDA if key[0] == META else key[0], key[1]): value for key, value in native(*args, **kwargs).items()}

    if hasattr(torch._C, name):
        patch(torch._C, name, group)
    # `foreach` is the default on CUDA for exact types only, a list that both of these modules may share.
    for module in (sys.modules["torch.optim.optimizer"], sys.modules["torch.utils._foreach_utils"]):
        kinds = getattr(module, "_foreach_supported_types", [])
        if SimTensor not in kinds:
            kinds.append(SimTensor)
            stack.callback(kinds.remove, SimTensor)


def _patch_modules(patch: Callable[..., None], stack: ExitStack) -> None:
    # A module that moves keeps its parameter objects, which optimizers and user code hold.
    future = torch.__future__
    stack.callback(future.set_swap_module_params_on_conversion, future.get_swap_module_params_on_conversion())
    future.set_swap_module_params_on_conversion(True)
    patch(torch.utils, "swap_tensors", exchange)
    parse: Callable[..., Any] = torch._C._nn._parse_to  # how `Module.to` reads its arguments

    def parse_to(*args: object, **kwargs: object) -> object:
        if args and type(args[0]) is int:
            args = (CUDA, *args[1:])
        if type(kwargs.get("device")) is int:
            kwargs["device"] = CUDA
        return parse(*args, **kwargs)

    patch(torch._C._nn, "_parse_to", parse_to)
    data = torch.Tensor.data

    def set_data(self: torch.Tensor, value: torch.Tensor) -> None:
        if type(value) is SimTensor:
            become(self, value)
        else:
            data.__set__(self, value)

    patch(torch.Tensor, "data", property(data.__get__, set_data))

    def scatter(self: object, inputs: object, kwargs: object, device_ids: object) -> object:
        del self, device_ids
        return (_on_device(inputs),), (_on_device(kwargs),)

    patch(torch.nn.DataParallel, "scatter", scatter)
    # It would warn that there is no cuDNN; the weights of recurrent layers need not be one block of memory here.
    patch(torch.backends.cudnn, "is_acceptable", lambda _: False)


def _on_device(structure: object) -> object:
    return tree_map(lambda leaf: leaf.cuda() if isinstance(leaf, (torch.Tensor, torch.nn.Module)) else leaf, structure)


def _patch_threads(patch: Callable[..., None]) -> None:
    """A thread that the program starts sees operators too: modes are a thread's own."""
    name = "_bootstrap_inner"
    start = getattr(threading.Thread, name, None)
    if start is None:
        return

    def run(self: threading.Thread) -> None:
        with OnDevice():
            mark_thread(simulating=True)
            start(self)

    patch(threading.Thread, name, run)


def _patch_autocast(patch: Callable[..., None], casts: Casts) -> None:
    clear = torch.clear_autocast_cache

    def clear_both() -> None:
        clear()
        casts.forget()

    patch(torch, "clear_autocast_cache", clear_both)


def mark_thread(*, simulating: bool) -> None:
    """Note that this thread sees every operator, or no longer does."""
    _simulating.on = simulating
