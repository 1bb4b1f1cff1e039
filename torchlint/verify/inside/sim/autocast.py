"""`torch.autocast("cuda")` for tensors that C++ does not take for CUDA tensors.

The lists are ATen's (aten/src/ATen/autocast_mode.h): what runs in lower precision, what in float32, and what in the
widest dtype among its arguments. They are registered for the key of ATen's own kernels, which would cast nothing here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeGuard

import torch
from torch.utils._pytree import tree_leaves

from torchlint.verify.inside.sim.tensor import Operator, SimTensor

LOWER = """
_convolution _convolution.deprecated conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm
chain_matmul linalg_multi_dot lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention
""".split()

FLOAT32 = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim
cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss
smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
_upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d _upsample_nearest_exact3d
upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d
_upsample_bicubic2d_aa prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm
linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList norm.Scalar norm.ScalarOpt_dim
""".split()

WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add".split()

_LOW = (torch.float16, torch.bfloat16)
_KEY = "AutocastCUDA"
_keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
_excluded: Callable[..., Any] = torch._C._ExcludeDispatchKeyGuard


class Casts:
    """The registrations, and the parameters that were cast since the outermost `autocast` began."""

    __slots__ = ("_cast", "_library")

    def __init__(self) -> None:
        # The parameter stays beside its cast: its id must not be used again while it is a key.
        self._cast: dict[tuple[int, torch.dtype], tuple[SimTensor, torch.Tensor]] = {}
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel of ATen's is overridden is the purpose
            for names, choose in ((LOWER, _lower), (FLOAT32, _float32), (WIDEST, _widest)):
                for name in names:
                    operator = _operator(name)
                    if operator is not None:
                        self._library.impl(name, self._kernel(operator, choose), _KEY)

    def forget(self) -> None:
        """Drop the casts of parameters, as `torch.clear_autocast_cache` does."""
        self._cast.clear()

    def remove(self) -> None:
        """Give the operators back to ATen's kernels."""
        self.forget()
        self._library._destroy()

    def _kernel(self, operator: Operator, choose: Callable[[object], torch.dtype]) -> Operator:
        def kernel(*args: object, **kwargs: object) -> object:
            with _excluded(_keys):
                dtype = choose((args, kwargs))
                named = {name: self._to(part, dtype) for name, part in kwargs.items()}
                return operator(*(self._to(part, dtype) for part in args), **named)

        return kernel

    def _to(self, part: object, dtype: torch.dtype) -> object:
        if isinstance(part, (list, tuple)):
            return type(part)([self._to(inner, dtype) for inner in part])
        if not _eligible(part) or part.dtype in {dtype, torch.float64}:
            return part
        kept = part.is_leaf and part.requires_grad and part.dtype == torch.float32 and dtype in _LOW
        if not kept or not torch.is_autocast_cache_enabled():
            return part.to(dtype)
        key = (id(part), dtype)
        if key not in self._cast:
            self._cast[key] = (part, part.to(dtype))
        return self._cast[key][1]


def _lower(_: object) -> torch.dtype:
    return torch.get_autocast_dtype("cuda")


def _float32(_: object) -> torch.dtype:
    return torch.float32


def _widest(arguments: object) -> torch.dtype:
    wide = any(_eligible(part) and part.dtype == torch.float32 for part in tree_leaves(arguments))
    return torch.float32 if wide else torch.get_autocast_dtype("cuda")


def _operator(name: str) -> Operator | None:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)


def _eligible(part: object) -> TypeGuard[SimTensor]:
    return type(part) is SimTensor and part.dtype.is_floating_point
