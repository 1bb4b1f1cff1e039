"""Copies that are asked not to block, from memory that is not pinned, and so block all the same."""

import numpy as np
import torch


class InputBatch:
    def __init__(self, max_num_reqs: int, device: torch.device):
        self.device = device
        self.num_computed_tokens_cpu = np.zeros(max_num_reqs, dtype=np.int32)
        self.token_ids_cpu = np.zeros((max_num_reqs, 4096), dtype=np.int32)


class GPUModelRunner:
    def __init__(self, model, config):
        self.model = model
        self.device = torch.device("cuda")
        self.input_batch = InputBatch(config.max_num_reqs, self.device)
        self.positions = torch.zeros(config.max_num_tokens, dtype=torch.int64, device=self.device)
        self.positions_np = np.zeros(config.max_num_tokens, dtype=np.int64)

    def _prepare_inputs(self, num_tokens: int):
        positions = torch.from_numpy(self.positions_np[:num_tokens])
        self.positions[:num_tokens].copy_(positions, non_blocking=True)  # <- copy-through-pageable-memory
        token_ids = torch.from_numpy(self.input_batch.token_ids_cpu.ravel()[:num_tokens])
        return token_ids.to(self.device, non_blocking=True)  # <- copy-through-pageable-memory

    @torch.inference_mode()
    def execute_model(self, scheduler_output):
        input_ids = self._prepare_inputs(scheduler_output.total_num_scheduled_tokens)
        return self.model(input_ids, self.positions)
