"""Hidden states are indexed by a Python list, which is copied to the device in each step."""

import torch


class SamplingRunner:
    def __init__(self, model, sampler, device: torch.device):
        self.model = model
        self.sampler = sampler
        self.device = device

    @torch.inference_mode()
    def execute_model(self, scheduler_output):
        logits_indices = []
        offset = -1
        for num_tokens in scheduler_output.num_scheduled_tokens.values():
            offset += num_tokens
            logits_indices.append(offset)
        input_ids = scheduler_output.input_ids.to(self.device, non_blocking=True)
        hidden_states = self.model(input_ids)
        sample_hidden_states = hidden_states[logits_indices]  # <- host-index-for-device-tensor?
        logits = self.model.compute_logits(sample_hidden_states)
        return self.sampler(logits)
