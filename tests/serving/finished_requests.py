"""The places of requests that have ended, which the device has to count first."""

import torch


class Scheduler:
    def __init__(self, model, eos_token_id: int):
        self.model = model.cuda()
        self.eos_token_id = eos_token_id
        self.running = []

    @torch.inference_mode()
    def step(self, input_ids: torch.Tensor):
        while self.running:
            logits = self.model(input_ids)
            next_ids = logits[:, -1].argmax(dim=-1)
            finished = torch.nonzero(next_ids == self.eos_token_id).squeeze(1)  # <- data-dependent-size?
            for index in finished.tolist():
                self.running[index].finish()
            input_ids = next_ids[:, None]
