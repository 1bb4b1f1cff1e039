"""A mask of the tokens that a grammar allows, built from lists and applied where a row has one."""

import numpy as np
import torch
from torch import nn


class GrammarMasker(nn.Module):
    def __init__(self, vocab_size: int, device: torch.device):
        super().__init__()
        self.vocab_size = vocab_size
        self.device = device

    @torch.inference_mode()
    def forward(self, logits: torch.Tensor, grammars) -> torch.Tensor:
        bitmask = np.full((logits.shape[0], self.vocab_size), False)
        for row, grammar in enumerate(grammars):
            bitmask[row, grammar.allowed()] = True
        mask = torch.from_numpy(bitmask).to(logits.device, non_blocking=True)  # <- copy-through-pageable-memory?
        rows = mask.any(dim=1).nonzero().squeeze(1)  # <- data-dependent-size?
        logits[rows] = logits[rows].masked_fill(~mask[rows], -float("inf"))
        if torch.isinf(logits).all():  # <- per-step-nan-check
            raise RuntimeError("the grammar allows nothing")
        return logits
