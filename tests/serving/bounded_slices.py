"""Slices and sizes whose bounds are tensors of one element on the device."""

import torch


class ChunkedPrefill:
    def __init__(self, model, max_tokens: int):
        self.model = model
        self.max_tokens = max_tokens
        self.workspace = torch.empty(max_tokens, 576, dtype=torch.bfloat16, device="cuda")
        self.seq_starts = torch.zeros(256, dtype=torch.int64, device="cuda")

    @torch.inference_mode()
    def execute_model(self, hidden_states: torch.Tensor, context_lens: torch.Tensor):
        total = context_lens.sum()
        gathered = self.workspace[:total]  # <- tensor-as-python-int
        longest = context_lens.max()
        steps = torch.arange(longest, device=hidden_states.device)  # <- tensor-as-python-int
        mask = steps[None, :] < context_lens[:, None]
        return self.model(hidden_states, gathered, mask)
