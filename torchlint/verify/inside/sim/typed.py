"""`torch.cuda.FloatTensor` and its like, with which older programs make tensors and name types."""

from __future__ import annotations

from typing import Any

import torch

from torchlint.verify.inside.sim import transfers
from torchlint.verify.inside.sim.tensor import SimTensor

NAMES = tuple(f"{kind}Tensor" for kind in "BFloat16 Bool Byte Char Double Float Half Int Long Short".split())


class Typed(type):
    """The type of such a class: tensors on the device, of its `dtype`, are its instances."""

    dtype: torch.dtype
    is_cuda = True

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is SimTensor and instance.dtype == cls.dtype

    def __call__(cls, *arguments: Any, **_: object) -> torch.Tensor:  # sizes, or numbers
        """As `torch.FloatTensor`, on the device: of a size its memory, of numbers a copy of them."""
        if arguments and isinstance(arguments[0], SimTensor):
            return arguments[0].to(cls.dtype)
        value = getattr(torch, cls.__name__)(*arguments)
        if arguments and not isinstance(arguments[0], (int, torch.Size)):
            transfers.to_device(value, value.dtype, non_blocking=False)
        return SimTensor(value)


def typed(name: str) -> Typed:
    """What `torch.cuda` has under that name, which is one of `NAMES`."""
    return Typed(name, (), {"__module__": "torch.cuda", "dtype": getattr(torch, name).dtype})
