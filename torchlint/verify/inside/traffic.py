"""Counts the bytes that code has to fetch from the memory of the device: a bound that no implementation gets below.

A tensor that was there before, and that an operator reads whole, comes from the memory each time, but for what the
cache may have kept of it. What is made meanwhile may never reach the memory, in a fused kernel say, and is not counted;
neither is what may be read in part, such as a table of which rows are taken.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_WHOLE = frozenset(
    "mm addmm bmm baddbmm mv addmv dot native_layer_norm native_layer_norm_backward native_batch_norm cudnn_batch_norm "
    "_native_batch_norm_legit native_group_norm _softmax _log_softmax _softmax_backward_data "
    "_log_softmax_backward_data sum mean prod amax amin max min argmax argmin norm linalg_vector_norm var std var_mean "
    "std_mean cumsum cumprod logsumexp cat stack clone _to_copy _fused_adam_ _fused_adamw_ _fused_sgd_ _foreach_add_ "
    "_foreach_mul_ _foreach_div_ _foreach_addcmul_ _foreach_addcdiv_ _foreach_lerp_ _foreach_sqrt _foreach_norm".split()
)
"""No convolution and no attention: with strides, or a mask, they leave out a part of what they are given."""
_IN_PART = frozenset("where masked_fill masked_fill_ fill_ zero_ copy_".split())
"""Pointwise by their tag, though one of their tensors is not read, or not all of it."""


class Traffic(TorchDispatchMode):
    """Counts on one type of device; `fetched` are the bytes so far, each tensor's once."""

    def __init__(self, device: str = "cuda") -> None:
        super().__init__()
        self._device = device
        self._sizes: dict[int, int] = {}
        self._kept: dict[int, StorageWeakRef] = {}  # as long as one is kept, no other storage gets its number
        self._made: set[int] = set()

    @property
    def fetched(self) -> int:
        """Bytes of what was there before and was read whole.

        0 of a process with compiled code: under this it runs as it is written, and else without what is of no use.
        """
        return 0 if _has_compiled() else sum(self._sizes.values())

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        given = [each for each in tree_leaves((args, kwargs)) if self._is_there(each)]
        numbers = [self._number(each) for each in given]
        result = func(*args, **dict(kwargs or {}))
        if _reads_whole(func, kwargs or {}):
            for tensor, number in zip(given, numbers, strict=True):
                if number not in self._made:
                    self._sizes[number] = max(self._sizes.get(number, 0), _extent(tensor))
        for tensor in tree_leaves(result):
            if self._is_there(tensor) and (number := self._number(tensor)) not in numbers and number not in self._sizes:
                self._made.add(number)
        return result

    def _is_there(self, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == self._device and value.layout is torch.strided

    def _number(self, tensor: torch.Tensor) -> int:
        """That of its storage."""
        weak = StorageWeakRef(tensor.untyped_storage())
        return int(self._kept.setdefault(weak.cdata, weak).cdata)


def _has_compiled() -> bool:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return bool(counters.get("frames", {}).get("ok"))


def _reads_whole(func: Any, options: Mapping[str, Any]) -> bool:
    if options.get("beta", 1) == 0 or options.get("found_inf") is not None:  # then one of them may not be read at all
        return False
    name = func._schema.name.removeprefix("aten::")  # the only name it has
    return name in _WHOLE or (torch.Tag.pointwise in func.tags and name not in _IN_PART)


def _extent(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements, those that share memory once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride else min(size, 1)
    return min(count * tensor.element_size(), tensor.untyped_storage().nbytes())
