"""Requests in the order of their lengths, which Python compares one by one."""

import torch


class BeamRunner:
    def __init__(self, model, beam_width: int):
        self.model = model.to("cuda")
        self.beam_width = beam_width

    @torch.inference_mode()
    def execute_model(self, input_ids: torch.Tensor, scores: torch.Tensor):
        while True:
            log_probs = self.model(input_ids).log_softmax(dim=-1)
            totals = (scores[:, None] + log_probs[:, -1].amax(dim=-1)).flatten()
            best = sorted(range(totals.shape[0]), key=lambda i: totals[i])  # <- tensor-truthiness-branch?
            ordered = sorted(totals)  # <- builtin-reduction-on-tensor
            if len(best) < self.beam_width:
                return ordered
            scores = totals[: self.beam_width]
