"""Speculative decoding reads how many drafted tokens were accepted, for each request."""

import torch


class SpeculativeWorker:
    def __init__(self, draft_model, target_model, num_speculative_tokens: int):
        self.draft_model = draft_model.to("cuda")
        self.target_model = target_model.to("cuda")
        self.num_speculative_tokens = num_speculative_tokens
        self.num_accepted = 0

    @torch.no_grad()
    def execute_model(self, input_ids: torch.Tensor, draft_ids: torch.Tensor):
        logits = self.target_model(torch.cat([input_ids, draft_ids], dim=1))
        target_ids = logits[:, -self.num_speculative_tokens - 1 : -1].argmax(dim=-1)
        matches = (target_ids == draft_ids).int().cumprod(dim=1)
        num_accepted = matches.sum(dim=1)
        self.num_accepted += num_accepted.sum().item()  # <- item-in-eval-loop
        outputs = []
        for row in range(draft_ids.shape[0]):  # <- python-loop-over-tensor
            keep = num_accepted[row].item()  # <- item-in-eval-loop
            outputs.append(draft_ids[row, :keep])
        return outputs
