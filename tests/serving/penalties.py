"""Penalties for tokens that have been generated, applied one by one from Python's dictionaries."""

from collections import Counter

import torch
from torch import nn


class Penalizer(nn.Module):
    def __init__(self, presence_penalty: float, frequency_penalty: float, device: str = "cuda"):
        super().__init__()
        self.presence_penalty = presence_penalty
        self.frequency_penalty = frequency_penalty
        self.device = device

    @torch.inference_mode()
    def forward(self, logits: torch.Tensor, output_token_ids: list[list[int]]) -> torch.Tensor:
        for row, tokens in enumerate(output_token_ids):
            counts = Counter(tokens)
            ids = torch.tensor(list(counts.keys()), device=self.device)  # <- list-to-device-in-hot-path?
            values = torch.tensor(list(counts.values()), device=self.device)  # <- list-to-device-in-hot-path?
            logits[row, ids] -= self.frequency_penalty * values + self.presence_penalty
        return logits
