"""Sampled ids go to the host in each step, by way of NumPy."""

import numpy as np
import torch
from torch import nn


class Engine:
    def __init__(self, model: nn.Module, max_new_tokens: int):
        self.model = model.cuda().eval()
        self.max_new_tokens = max_new_tokens

    @torch.inference_mode()
    def generate(self, prompt_ids: torch.Tensor, eos_token_id: int):
        input_ids = prompt_ids.cuda()
        outputs = []
        for _ in range(self.max_new_tokens):
            logits = self.model(input_ids)
            next_ids = logits[:, -1].argmax(dim=-1, keepdim=True)
            outputs.append(next_ids.cpu().numpy())  # <- bulk-d2h-in-hot-loop?
            input_ids = torch.cat([input_ids, next_ids], dim=1)
        return np.concatenate(outputs, axis=1)
