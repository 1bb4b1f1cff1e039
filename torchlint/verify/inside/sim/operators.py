"""What each operator on the simulated device counts, and how it runs on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchlint.verify.inside.sim import composites, syncs, transfers
from torchlint.verify.inside.sim.memory import memory, pinned
from torchlint.verify.inside.sim.sites import ledger
from torchlint.verify.inside.sim.tensor import (
    CPU,
    META,
    Arguments,
    Device,
    Keywords,
    Operator,
    SimTensor,
    others_decide,
    replace_data,
)

_aten = torch.ops.aten


class OnDevice(TorchDispatchMode):
    """Sees every operator, so that those that make a tensor on the device out of none can."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # `torch.compile` does nothing here, and keeping it out of every operator costs as much as the operator.
        return False

    def __torch_dispatch__(
        self, operator: Operator, types: Sequence[type], args: Arguments = (), kwargs: Keywords | None = None
    ) -> object:
        return NotImplemented if others_decide(types) else dispatch(operator, args, kwargs or {})


@dataclass(frozen=True, slots=True)
class _Operator:
    """What the schema of an operator says."""

    name: str
    launches: bool
    mutates: bool
    reshapes: bool
    waits: bool
    copies: bool
    special: Callable[..., Any] | None
    composite: bool


def dispatch(operator: Operator, args: Arguments, kwargs: Keywords) -> object:
    """Run an operator on the values, count what it costs the device, and wrap what it returns."""
    known = _operators.get(operator)
    if known is None:
        known = _operators[operator] = _look_up(operator)
    if known.composite and _comes_whole(args):
        return _taken_apart(operator, args, kwargs)
    if known.special is not None:
        return known.special(operator, args, kwargs)
    ours: list[Any] = []
    theirs: list[Any] = []
    values: list[Any] = [_unwrap(argument, ours, theirs) for argument in args]
    device = None
    if kwargs:
        device = kwargs.get("device")
        kwargs = {name: _unwrap(argument, ours, theirs) for name, argument in kwargs.items()}
        if device is not None and device.type != "cpu" and (device.type != "meta" or device.index is not None):
            kwargs["device"] = CPU
        elif not ours:
            return _on_host(operator, values, kwargs)
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
    elif not ours:
        return operator(*values)
    if ours and theirs and known.name not in _MIXED:
        _refuse_host_tensors(theirs, known.name)
    if known.waits:
        number, size = syncs.reads(known.name, args, kwargs)
        if number:
            transfers.read(size, number)
    if known.copies:
        for source in syncs.copies(known.name, args):
            transfers.to_device(source, source.dtype, non_blocking=False)
    result = operator(*values, **kwargs)
    if type(result) is torch.Tensor and result.is_nested:
        _refuse_gradient(ours)
    if device is not None and device.type == "cpu":
        return result
    if known.launches:
        ledger.note("launches", kernels(known.name, args))
    if known.mutates:
        return _rewrap_mutated(result, ours, reshapes=known.reshapes)
    if known.name in _LENGTHS_STAY:
        return SimTensor(result[0]), result[1]
    return _rewrap(result)


def _taken_apart(operator: torch._ops.OpOverload, args: Arguments, kwargs: Keywords) -> object:
    """Run a composite operator by the operators that it consists of."""
    with _everything:
        own = composites.OWN.get(operator._schema.name)
        if own is not None and own[0] == operator._overloadname:
            return own[1](*args, **kwargs)
        return operator._op_dk(_COMPOSITE, *args, **kwargs)


def _on_host(operator: Operator, values: list[Any], kwargs: Keywords) -> object:
    """A factory on the host, whose memory may be asked to be pinned."""
    if kwargs.get("pin_memory"):
        result = operator(*values, **{**kwargs, "pin_memory": False})
        pinned.pin(result.untyped_storage())
        return result
    return operator(*values, **kwargs)


def _unwrap(argument: object, ours: list[Any], theirs: list[Any]) -> object:
    """The argument with values in place of device tensors; these go to `ours`, host tensors to `theirs`."""
    if isinstance(argument, SimTensor):
        ours.append(argument)
        return argument._value  # the values of the class that this module runs
    if isinstance(argument, (list, tuple)):
        return type(argument)([_unwrap(part, ours, theirs) for part in argument])
    if isinstance(argument, torch.Tensor):
        theirs.append(argument)
    elif type(argument) is Device and argument == META:
        return CPU
    return argument


def _rewrap(result: object) -> object:
    if isinstance(result, torch.Tensor):
        return SimTensor(result)
    if isinstance(result, (list, tuple)):
        return type(result)([_rewrap(part) for part in result])
    return result


def _rewrap_mutated(result: object, ours: list[Any], *, reshapes: bool) -> object:
    """What an operator that writes to its arguments returns: the very tensors it was given."""
    for tensor in ours:
        if reshapes or tensor.shape != tensor._value.shape:
            _adopt_shape(tensor)
            memory.hold(tensor._value.untyped_storage())
    return _match(result, ours)


def _match(result: object, ours: list[Any]) -> object:
    if isinstance(result, torch.Tensor):
        for tensor in ours:
            if tensor._value is result:
                return tensor
        return SimTensor(result)
    if isinstance(result, (list, tuple)):
        return type(result)([_match(part, ours) for part in result])
    return result


def _adopt_shape(tensor: torch.Tensor) -> None:
    """Give the wrapper the shape that an in-place operator (`resize_`, `t_`, `out=`) gave the value."""
    with torch.no_grad():
        replace_data(tensor, SimTensor(tensor._value))  # the values of the class that this module runs


def _refuse_host_tensors(theirs: list[Any], name: str) -> None:
    """Operators take host tensors beside device tensors only where they are single numbers."""
    if any(tensor.dim() > 0 and tensor.device.type == "cpu" for tensor in theirs):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
            f"(when checking the arguments of {name})"
        )


def _refuse_gradient(ours: list[Any]) -> None:
    """Autograd ends the process where a nested tensor is of a class of Python's and has a gradient."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in ours):
        raise NotImplementedError("the simulated device has no gradients of nested tensors with layout=torch.strided")


def _device(_: Operator, args: Arguments, kwargs: Keywords) -> object:
    """Where C++ takes a tensor to be that does not know it itself."""
    del kwargs
    return META if type(args[0]) is SimTensor else args[0].device


def _to_copy(operator: Operator, args: Arguments, kwargs: Keywords) -> object:
    """`Tensor.to` where it has to copy."""
    source = args[0]
    kwargs = dict(kwargs)
    device = kwargs.pop("device", None)
    non_blocking = bool(kwargs.pop("non_blocking", False))
    kwargs.pop("pin_memory", None)
    from_device = type(source) is SimTensor
    to_device = from_device if device is None else device.type == "cuda" or device == META
    if not from_device and not to_device:
        return operator(source, **({} if device is None else {"device": device}), **kwargs)
    value = source._value if from_device else source
    result = operator(value, **kwargs)
    if not from_device:
        transfers.to_device(source, result.dtype, non_blocking=non_blocking)
    elif not to_device:
        # A copy that does not block goes to pinned memory (`_to_copy`, aten/src/ATen/native/TensorConversions.cpp).
        transfers.to_host(value, result.dtype, non_blocking=non_blocking, into_pinned=True)
        if non_blocking:
            pinned.pin(result.untyped_storage())
        return result
    else:
        ledger.note("launches")
    return SimTensor(result)


def _copy_(operator: Operator, args: Arguments, kwargs: Keywords) -> object:
    """`Tensor.copy_`."""
    target, source = args[0], args[1]
    non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    to_device, from_device = type(target) is SimTensor, type(source) is SimTensor
    target_value = target._value if to_device else target
    source_value = source._value if from_device else source
    operator(target_value, source_value)
    if to_device and from_device:
        ledger.note("launches")
    elif to_device:
        contiguous = target_value.is_contiguous() and source.shape == target.shape
        transfers.to_device(source, target.dtype, non_blocking=non_blocking, contiguous=contiguous)
        if not target_value.is_contiguous():
            ledger.note("launches")
    elif from_device:
        into_pinned = pinned.holds(target.untyped_storage())
        transfers.to_host(source_value, target.dtype, non_blocking=non_blocking, into_pinned=into_pinned)
    return target


def _index(operator: Operator, args: Arguments, kwargs: Keywords) -> object:
    """Reading by index: every mask costs a `nonzero`."""
    ours: list[Any] = []
    values: list[Any] = [_unwrap(argument, ours, []) for argument in args]
    if not ours:
        return operator(*values, **kwargs)
    _move_host_indices(args)
    number, size = syncs.masks(values[1])
    if number:
        transfers.read(size, number)
    ledger.note("launches")
    return SimTensor(operator(*values, **kwargs))


def _index_put(operator: Operator, args: Arguments, kwargs: Keywords) -> object:
    """Writing by index, `_index_put_impl_` (aten/src/ATen/native/TensorAdvancedIndexing.cpp)."""
    ours: list[Any] = []
    values: list[Any] = [_unwrap(argument, ours, []) for argument in args]
    if not ours:
        return operator(*values, **kwargs)
    _move_host_indices(args)
    given = args[2]
    on_host = type(given) is not SimTensor
    if not syncs.fills_by_mask(args, value_on_host=on_host):
        if on_host and given.dim() > 0:
            _refuse_host_tensors([given], "aten::index_put_")
        if on_host:
            transfers.to_device(given, given.dtype, non_blocking=False)
        number, size = syncs.masks(values[1])
        if number:
            transfers.read(size, number)
    ledger.note("launches")
    result = operator(*values, **kwargs)
    return _match(result, ours) if result is values[0] else SimTensor(result)


def _move_host_indices(args: Arguments) -> None:
    for index in args[1]:
        if index is not None and type(index) is not SimTensor and type(args[0]) is SimTensor:
            transfers.to_device(index, index.dtype, non_blocking=False)


def _zeros(_: Operator, args: Arguments, kwargs: Keywords) -> object:
    """Zeros that have memory: below a mode, kernels would read memory that gradients of zeros need not have."""
    return dispatch(_aten.zeros.default, args, kwargs)


def _look_up(operator: torch._ops.OpOverload) -> _Operator:
    schema = operator._schema
    name = schema.name if not schema.overload_name else f"{schema.name}.{schema.overload_name}"
    mutates = schema.is_mutable
    returns_view = not mutates and any(value.alias_info is not None for value in schema.returns)
    return _Operator(
        name=name,
        launches=not returns_view and schema.name not in _WITHOUT_KERNEL,
        mutates=mutates,
        reshapes=torch.Tag.inplace_view in operator.tags,
        waits=syncs.has_rule(name),
        copies=syncs.copies_itself(name),
        special=_SPECIAL.get(schema.name),
        composite=not name.startswith("prim::") and _is_composite(operator.name()),
    )


def _comes_whole(args: Arguments) -> bool:
    """Whether a composite operator is still to be taken apart, as it is in inference mode and of its tensors.

    For nested tensors some are one operator.
    """
    ours = [part for part in args if type(part) is SimTensor]
    if any(part.is_nested for part in ours):
        return False
    return torch.is_inference_mode_enabled() or any(part.is_inference() for part in ours)


def _is_composite(name: str) -> bool:
    """Whether an operator is composed of others on every device; some, such as `silu_backward`, have a kernel, too."""
    return _has_kernel(name, "CompositeImplicitAutograd") and not _has_kernel(name, "CPU")


# They allocate, rename or read, and launch nothing.
_WITHOUT_KERNEL = frozenset(
    f"aten::{name}"
    for name in (
        "_local_scalar_dense _unsafe_view as_strided_ detach_ empty empty_like empty_permuted empty_strided "
        "is_same_size lift_fresh new_empty new_empty_strided resize_ resize_as_ set_ squeeze_ t_ transpose_ unsqueeze_ "
        "_reshape_alias _linalg_check_errors record_stream"
    ).split()
)

# Sequence lengths are on the host, where these take them and leave them.
_LENGTHS_STAY = frozenset({"aten::_pack_padded_sequence", "aten::_pad_packed_sequence"})

# Operators that take host tensors beside device tensors.
_MIXED = _LENGTHS_STAY | {
    "aten::_ctc_loss.Tensor",
    "aten::_ctc_loss_backward.Tensor",
    "aten::_pack_padded_sequence_backward",
    "aten::_use_cudnn_ctc_loss.Tensor",
    "aten::ctc_loss.Tensor",
    "aten::set_.source_Tensor",
    "aten::tensor_split.tensor_indices_or_sections",
}

_SPECIAL: dict[str, Callable[..., Any]] = {
    "aten::_efficientzerotensor": _zeros,
    "aten::_index_put_impl_": _index_put,
    "aten::_to_copy": _to_copy,
    "aten::_unsafe_index": _index,
    "aten::copy_": _copy_,
    "aten::index": _index,
    "aten::index_put": _index_put,
    "aten::index_put_": _index_put,
    "prim::device": _device,
}

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_has_kernel: Callable[[str, str], bool] = torch._C._dispatch_has_kernel_for_dispatch_key
_everything = OnDevice()
_operators: dict[Any, _Operator] = {}


_BIAS = 2
_OUTPUT_MASK = -1


def kernels(name: str, args: Arguments) -> int:
    """The launches of an operator: one, but for convolutions.

    cuDNN adds no bias: `_convolution` calls `output.add_(bias)` behind it, and `convolution_backward` sums the gradient
    over everything but channels, beside one kernel for each of the other gradients
    (aten/src/ATen/native/Convolution.cpp, the cases of `ConvBackend::Cudnn`).
    """
    if name == "aten::convolution":
        return 1 if args[_BIAS] is None else 2
    if name == "aten::convolution_backward":
        return max(sum(args[_OUTPUT_MASK]), 1)
    return 1
