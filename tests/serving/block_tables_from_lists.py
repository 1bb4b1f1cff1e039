"""Block tables that are padded in Python and copied from pageable memory in each step."""

import torch


class BlockTableRunner:
    def __init__(self, model, max_num_seqs: int, max_blocks: int, device: str = "cuda"):
        self.model = model
        self.device = device
        self.max_num_seqs = max_num_seqs
        self.max_blocks = max_blocks
        self.requests = {}

    def _prepare_block_tables(self, req_ids):
        padded = []
        for req_id in req_ids:
            blocks = self.requests[req_id].block_ids
            padded.append(blocks + [0] * (self.max_blocks - len(blocks)))
        return torch.tensor(padded, dtype=torch.int32, device=self.device)  # <- list-to-device-in-hot-path?

    @torch.inference_mode()
    def execute_model(self, scheduler_output):
        block_tables = self._prepare_block_tables(scheduler_output.req_ids)
        return self.model(scheduler_output.input_ids, block_tables)
