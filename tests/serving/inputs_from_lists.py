"""Token ids and positions are collected in Python's lists and become tensors in each step."""

import torch


class PrefillRunner:
    def __init__(self, model, device: torch.device):
        self.model = model
        self.device = device

    def _prepare_prompt(self, seq_groups):
        input_tokens: list[int] = []
        input_positions: list[int] = []
        slot_mapping: list[int] = []
        for group in seq_groups:
            tokens = group.get_token_ids()
            input_tokens.extend(tokens)
            input_positions.extend(range(len(tokens)))
            slot_mapping.extend(group.get_slots())
        tokens = torch.tensor(input_tokens, dtype=torch.long).to(self.device)  # <- list-to-device-in-hot-path?
        positions = torch.tensor(input_positions, dtype=torch.long).to(self.device)  # <- list-to-device-in-hot-path?
        slots = torch.tensor(slot_mapping, dtype=torch.long).to(self.device)  # <- list-to-device-in-hot-path?
        return tokens, positions, slots

    @torch.inference_mode()
    def execute_model(self, seq_groups):
        tokens, positions, slots = self._prepare_prompt(seq_groups)
        return self.model(tokens, positions, slots)
