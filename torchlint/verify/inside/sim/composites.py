"""Composite operators that C++ would compose in another way for a CUDA tensor than for these."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchlint.verify.inside.sim.tensor import SimTensor

_aten = torch.ops.aten
_FLASH = 1  # SDPBackend::flash_attention (aten/src/ATen/native/transformers/sdp_utils_cpp.h)


def register() -> torch.library.Library:
    """Run them as on a device until `_destroy` of what is returned is called."""
    library = torch.library.Library("aten", "IMPL")
    for name, (overload, kernel) in OWN.items():
        library.impl(f"{name.removeprefix('aten::')}.{overload}".removesuffix("."), kernel, "AutogradMeta")
    return library


def _ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    *options: object,
) -> torch.Tensor:
    """Lengths become lists on the host, whichever tensors they were in (LossCTC.cpp)."""
    return _aten.ctc_loss.IntList(log_probs, targets, input_lengths.tolist(), target_lengths.tolist(), *options)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Attention by one kernel where the host has one, as CUDA does in more cases (sdp_utils.cpp)."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(attn_mask.logical_not(), -torch.inf)
    one_kernel = type(query) is SimTensor and not enable_gqa and not dropout_p
    if one_kernel and _fused(query, key, value, attn_mask, is_causal=is_causal):
        return _aten._scaled_dot_product_flash_attention_for_cpu(  # an operator, by its name
            query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
        )[0]
    keywords = {"enable_gqa": True} if enable_gqa else {}
    return _aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, **keywords
    )[0]


def _fused(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, *, is_causal: bool
) -> bool:
    """Whether the host would use its fused kernel for these values."""
    inner = [part._value if type(part) is SimTensor else part for part in (query, key, value, mask)]
    if mask is not None and mask.requires_grad:
        return False
    choice = getattr(torch, "_fused_sdp_choice", None)
    return choice is not None and choice(*inner, 0.0, is_causal) == _FLASH


OWN: dict[str, tuple[str, Callable[..., object]]] = {
    "aten::scaled_dot_product_attention": ("", _attention),
    "aten::ctc_loss": ("Tensor", _ctc_loss),
}
"""By name and overload what runs in the place of ATen's composition."""
