"""Runs a workload on the CPU with the numerics of CUDA: TF32 where cuDNN or cuBLAS use it, noise where kernels race.

`tools/before_gpu.py` puts it beside the files that it compares. It needs nothing but torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_KEPT = 13  # bits of a float32's 23 that TF32 drops
_NOISE = 1e-7  # of the root mean square: what sums in another order differ by
_BY_CUDNN = frozenset(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d lstm gru rnn_tanh".split()
)
_BY_CUBLAS = frozenset("matmul mm bmm addmm baddbmm linear einsum __matmul__ __rmatmul__".split())
# https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html: what raises on CUDA.
_RACING = frozenset(
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward avg_pool3d_backward "
    "max_pool3d_with_indices_backward upsample_linear1d_backward upsample_bicubic2d_backward cumsum histc kthvalue "
    "upsample_trilinear3d_backward grid_sampler_2d_backward grid_sampler_3d_backward reflection_pad1d_backward "
    "reflection_pad3d_backward replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward "
    "nll_loss2d_forward _ctc_loss_backward put_ scatter_reduce".split()
)

Setup = Callable[[str, str], Any]
Run = Callable[[Any], Any]


def as_cuda(setup: Setup, run: Run) -> tuple[Setup, Run]:
    """Both functions of a workload, run so."""
    racing = Racing()

    def set_up(device: str, size: str) -> Any:  # noqa: ANN401 - the workload's state
        with Tf32(), racing:
            return setup(device, size)

    def run_once(state: Any) -> Any:  # noqa: ANN401 - whatever it returns
        with Tf32(), racing:
            return run(state)

    return set_up, run_once


class Tf32(TorchFunctionMode):  # type: ignore[misc]  # torch is untyped here
    """Rounds what goes into a product to TF32, where the switches of torch allow it; gradients are not rounded."""

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401 - torch is untyped here
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - as above
        del types
        name, kwargs = getattr(func, "__name__", ""), dict(kwargs or {})
        if (name in _BY_CUDNN and _cudnn_rounds(name)) or (name in _BY_CUBLAS and _cublas_rounds()):
            args, kwargs = tree_map(rounded, args), tree_map(rounded, kwargs)
        return func(*args, **kwargs)


class Racing(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """What has no deterministic kernel on CUDA raises, where torch is told to, and else is off in its last bits."""

    def __init__(self) -> None:
        super().__init__()
        self._noise = torch.Generator().manual_seed(os.getpid())  # another one in each process, as races are

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch is untyped here
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - as above
        del types
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.partition("::")[2]  # noqa: SLF001 - the only name it has
        if name not in _RACING:
            return result
        if torch.get_deterministic_debug_mode() == 2:
            words = "does not have a deterministic implementation, but you set"
            raise RuntimeError(f"{name} {words} 'torch.use_deterministic_algorithms(True)'")
        return tree_map(self._off, result)

    def _off(self, value: Any) -> Any:  # noqa: ANN401 - a tensor, or anything
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
            return value
        scale = float(value.detach().double().square().mean().sqrt())
        noise = torch.randn(value.shape, generator=self._noise, dtype=torch.float64)
        return value.copy_((value.double() + _NOISE * scale * noise).to(value.dtype))


def rounded(value: Any) -> Any:  # noqa: ANN401 - a tensor, or anything
    """A float32 tensor with the mantissa of TF32, through which gradients pass as they are."""
    if not isinstance(value, torch.Tensor) or value.dtype is not torch.float32:
        return value
    bits = value.detach().contiguous().view(torch.int32)
    nearest = ((bits + (1 << (_KEPT - 1))) & -(1 << _KEPT)).view(torch.float32)
    return value + (nearest - value.detach())


def _cudnn_rounds(name: str) -> bool:
    cudnn = torch.backends.cudnn
    if not cudnn.enabled:
        return False
    try:
        return bool(cudnn.allow_tf32)
    except RuntimeError:
        return str((cudnn.conv if name.startswith("conv") else cudnn.rnn).fp32_precision) == "tf32"


def _cublas_rounds() -> bool:
    try:
        return str(torch.get_float32_matmul_precision()) != "highest"
    except RuntimeError:
        return str(torch.backends.cuda.matmul.fp32_precision) == "tf32"
