"""A branch that spares a fill, and waits for the device to learn whether there is anything to fill."""

import torch
from torch import nn


class VocabParallelEmbedding(nn.Module):
    def __init__(self, vocab_size: int, hidden_size: int, start: int, end: int):
        super().__init__()
        self.start = start
        self.end = end
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        outside = (input_ids < self.start) | (input_ids >= self.end)
        if outside.any():  # <- tensor-truthiness-branch
            input_ids = input_ids.masked_fill(outside, self.start)
        output = nn.functional.embedding(input_ids - self.start, self.weight)
        return output.masked_fill(outside[:, None], 0.0)
