"""Experts run one by one, those that were chosen alone: the device has to tell which."""

import torch
from torch import nn


class MoELayer(nn.Module):
    def __init__(self, hidden_size: int, num_experts: int, top_k: int):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(hidden_size, num_experts, bias=False)
        self.experts = nn.ModuleList(nn.Linear(hidden_size, hidden_size) for _ in range(num_experts))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        weights, selected = self.gate(hidden_states).softmax(dim=-1).topk(self.top_k, dim=-1)
        output = torch.zeros_like(hidden_states)
        for expert_id in selected.unique():  # <- data-dependent-size?
            rows, slots = torch.where(selected == expert_id)  # <- data-dependent-size?
            states = self.experts[expert_id](hidden_states[rows])  # <- tensor-as-python-int
            output.index_add_(0, rows, states * weights[rows, slots, None])
        return output
