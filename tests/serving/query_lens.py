"""Rows of requests are repeated for their tokens, and the device has to add up how many that makes."""

import torch


class MetadataBuilder:
    def __init__(self, block_size: int, max_blocks: int, device: torch.device):
        self.block_size = block_size
        self.max_blocks = max_blocks
        self.device = device

    def build(self, query_lens: torch.Tensor, positions: torch.Tensor, block_table: torch.Tensor) -> torch.Tensor:
        req_indices = torch.repeat_interleave(  # <- data-dependent-size?
            torch.arange(query_lens.shape[0], device=self.device), query_lens
        )
        block_ids = block_table[req_indices, positions // self.block_size]
        return block_ids * self.block_size + positions % self.block_size


class Runner:
    def __init__(self, model, config):
        self.model = model
        self.device = torch.device("cuda")
        self.builder = MetadataBuilder(config.block_size, config.max_blocks, self.device)

    @torch.inference_mode()
    def execute_model(self, input_ids, query_lens, positions, block_table):
        slot_mapping = self.builder.build(query_lens, positions, block_table)
        return self.model(input_ids, slot_mapping)
