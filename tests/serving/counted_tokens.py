"""Token counts that Python adds up over a tensor."""

import torch


class TokenBudget:
    def __init__(self, max_num_seqs: int, max_tokens: int):
        self.max_tokens = max_tokens
        self.query_lens = torch.zeros(max_num_seqs, dtype=torch.int32, device="cuda")

    def add_up(self, num_reqs: int):
        return sum(self.query_lens[:num_reqs])  # <- builtin-reduction-on-tensor


class Runner:
    def __init__(self, model, config):
        self.model = model
        self.budget = TokenBudget(config.max_num_seqs, config.max_tokens)

    @torch.inference_mode()
    def execute_model(self, scheduler_output):
        num_tokens = self.budget.add_up(scheduler_output.num_reqs)
        return self.model(scheduler_output.input_ids, num_tokens)
