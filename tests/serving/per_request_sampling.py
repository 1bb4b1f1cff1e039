"""Each request samples by itself, with one row of the logits."""

import torch
from torch import nn


class Sampler(nn.Module):
    def __init__(self, vocab_size: int):
        super().__init__()
        self.vocab_size = vocab_size

    @torch.inference_mode()
    def forward(self, logits: torch.Tensor, temperatures: torch.Tensor) -> torch.Tensor:
        sampled = []
        for row in range(logits.shape[0]):  # <- python-loop-over-tensor?
            scaled = logits[row] / temperatures[row]
            probs = torch.softmax(scaled, dim=-1)
            sampled.append(torch.argmax(probs))
        return torch.stack(sampled)
