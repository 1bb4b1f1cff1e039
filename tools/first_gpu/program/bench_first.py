"""A training step that reads its loss each time: the first program that is measured on a GPU."""

from collections.abc import Callable, Iterator

import torch


def bench_step() -> Iterator[tuple[Callable[[], float], torch.nn.Module]]:
    """Twenty batches, whose losses are read one by one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = [torch.randn(1024, 1024, device=device) for _ in range(20)]

    def step() -> float:
        total = 0.0
        for batch in batches:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    yield step, model
