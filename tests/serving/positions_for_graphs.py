"""A captured graph's buffers are filled with values that are on the host, and with numbers read from the device."""

import torch


class CudaGraphRunner:
    def __init__(self, model, max_batch_size: int, device: str = "cuda"):
        self.model = model
        self.device = device
        self.input_ids = torch.zeros(max_batch_size, dtype=torch.int64, device=device)
        self.positions = torch.zeros(max_batch_size, dtype=torch.int64, device=device)
        self.seq_lens = torch.ones(max_batch_size, dtype=torch.int32, device=device)
        self.graphs = {}

    @torch.inference_mode()
    def replay(self, input_ids: torch.Tensor, positions: list[int], seq_lens: torch.Tensor):
        batch_size = input_ids.shape[0]
        self.input_ids[:batch_size].copy_(input_ids)
        self.positions[:batch_size].copy_(torch.tensor(positions))  # <- list-to-device-in-hot-path?
        self.seq_lens[:batch_size].copy_(seq_lens)
        max_seq_len = int(self.seq_lens[:batch_size].max())  # <- item-in-eval-loop?
        self.graphs[batch_size, max_seq_len // 256].replay()
        return self.output[:batch_size]


class ModelRunner:
    def __init__(self, model, config):
        self.model = model.to("cuda")
        self.graph_runner = CudaGraphRunner(self.model, config.max_batch_size)

    def forward_decode(self, batch):
        return self.graph_runner.replay(batch.input_ids, batch.positions, batch.seq_lens)
