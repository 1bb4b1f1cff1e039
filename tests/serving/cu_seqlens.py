"""Cumulative lengths of a packed prefill, of which the total is read back."""

import torch
import torch.nn.functional as F
from torch import nn


class PackedAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)
        self.out = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: torch.Tensor, query_lens: torch.Tensor) -> torch.Tensor:
        cu_seqlens = F.pad(query_lens.cumsum(0), (1, 0))
        num_tokens = cu_seqlens[-1].item()  # <- item-in-train-loop?
        q, k, v = self.qkv(hidden_states[:num_tokens]).chunk(3, dim=-1)
        out = torch.empty_like(q)
        for start, end in zip(cu_seqlens[:-1], cu_seqlens[1:]):  # <- python-loop-over-tensor
            shape = (-1, self.num_heads, self.head_dim)
            part = F.scaled_dot_product_attention(
                q[start:end].view(shape).transpose(0, 1),
                k[start:end].view(shape).transpose(0, 1),
                v[start:end].view(shape).transpose(0, 1),
            )
            out[start:end] = part.transpose(0, 1).flatten(1)
        return self.out(out)
