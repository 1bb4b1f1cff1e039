"""Attention metadata that is built from lengths which live on the device."""

from dataclasses import dataclass

import torch


@dataclass
class AttentionMetadata:
    seq_lens: list[int]
    max_seq_len: int
    block_tables: torch.Tensor


class ModelRunner:
    def __init__(self, model, config, device):
        self.model = model
        self.config = config
        self.device = torch.device(device)
        self.max_num_seqs = config.max_num_seqs
        self.seq_lens = torch.zeros(self.max_num_seqs, dtype=torch.int32, device=self.device)
        self.block_tables = torch.zeros(self.max_num_seqs, config.max_blocks, dtype=torch.int32, device=self.device)
        self.input_ids = torch.zeros(config.max_num_tokens, dtype=torch.int64, device=self.device)

    def _build_attention_metadata(self, num_reqs: int) -> AttentionMetadata:
        seq_lens = self.seq_lens[:num_reqs].tolist()  # <- bulk-d2h-in-hot-loop?
        return AttentionMetadata(
            seq_lens=seq_lens,
            max_seq_len=max(seq_lens),
            block_tables=self.block_tables[:num_reqs],
        )

    @torch.inference_mode()
    def execute_model(self, scheduler_output):
        num_reqs = len(scheduler_output.num_scheduled_tokens)
        metadata = self._build_attention_metadata(num_reqs)
        return self.model(self.input_ids[: scheduler_output.total_num_scheduled_tokens], metadata)
