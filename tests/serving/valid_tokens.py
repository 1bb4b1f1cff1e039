"""Sampled tokens of which a mask picks those that are valid."""

import torch
from torch import nn


class RejectionSampler(nn.Module):
    def __init__(self, vocab_size: int, placeholder: int = -1):
        super().__init__()
        self.vocab_size = vocab_size
        self.placeholder = placeholder

    @torch.inference_mode()
    def forward(self, draft_token_ids: torch.Tensor, target_logits: torch.Tensor):
        target_ids = target_logits.argmax(dim=-1)
        accepted = draft_token_ids == target_ids
        output_ids = torch.full_like(target_ids, self.placeholder)
        output_ids[accepted] = target_ids[accepted]  # <- boolean-mask-select
        valid = (output_ids != self.placeholder) & (output_ids < self.vocab_size)
        return output_ids[valid]  # <- boolean-mask-select?
