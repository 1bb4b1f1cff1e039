"""The longest sequence of a batch, which Python's `max` looks for element by element."""

import torch


class DecodeRunner:
    def __init__(self, model, max_num_seqs, device):
        self.model = model
        self.device = device
        self.seq_lens = torch.zeros(max_num_seqs, dtype=torch.int32, device="cuda")
        self.graphs = {}

    @torch.inference_mode()
    def execute_model(self, scheduler_output):
        num_reqs = scheduler_output.num_reqs
        seq_lens = self.seq_lens[:num_reqs]
        max_seq_len = max(seq_lens)  # <- builtin-reduction-on-tensor
        hidden_states = self.model(scheduler_output.input_ids, seq_lens, max_seq_len)
        seq_lens += 1
        return hidden_states
