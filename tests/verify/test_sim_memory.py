"""How much memory of the simulated device is in use, and at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torchlint.verify.inside.sim import SimulatedDevice, simulated_cuda


@pytest.fixture(scope="module")
def device() -> Iterator[SimulatedDevice]:
    with simulated_cuda() as simulated:
        yield simulated


def peak(device: SimulatedDevice, run: Callable[[], object]) -> int:
    """The most bytes in use during `run` beyond those in use before."""
    before = device.live()
    device.reset_peak()
    kept = run()
    most = device.peak() - before
    del kept
    return most


def blocks() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()) for _ in range(6))
    ).cuda()


def test_memory_is_counted_in_blocks_of_512_bytes_while_it_lives(device: SimulatedDevice) -> None:
    before = device.live()
    one = torch.ones(1, device="cuda")
    assert device.live() - before == 512
    many = torch.ones(129, device="cuda")
    assert device.live() - before == 512 + 1024
    view = many[3:]
    assert device.live() - before == 512 + 1024
    del many
    assert device.live() - before == 512 + 1024
    del view, one
    assert device.live() == before
    assert torch.cuda.memory_allocated() == before


def test_the_peak_stays_until_it_is_reset(device: SimulatedDevice) -> None:
    before = device.live()
    device.reset_peak()
    assert device.peak() == before
    del (large := [torch.ones(1024, device="cuda")])[:]
    assert not large
    assert device.live() == before
    assert device.peak() - before == 4096
    assert torch.cuda.max_memory_allocated() == device.peak()
    torch.cuda.reset_peak_memory_stats()
    assert device.peak() == before


def test_memory_on_the_host_is_not_counted(device: SimulatedDevice) -> None:
    before = device.live()
    host = torch.ones(1000)
    assert device.live() == before
    host = host.cuda()
    assert device.live() - before == 4096
    host = host.cpu()
    assert device.live() == before


def test_allocations_are_counted(device: SimulatedDevice) -> None:
    x = torch.ones(4, device="cuda")
    device.reset()
    x.view(2, 2).add_(1)
    assert device.counts()["allocations"] == 0
    x = x + 1
    assert device.counts()["allocations"] == 1


def test_a_resized_tensor_is_counted_anew(device: SimulatedDevice) -> None:
    before = device.live()
    x = torch.empty(0, device="cuda")
    torch.add(torch.ones(1024, device="cuda"), 1, out=x)
    assert device.live() - before == 4096
    del x
    assert device.live() == before


def test_without_gradients_less_is_kept(device: SimulatedDevice) -> None:
    model, x = blocks().eval(), torch.randn(4, 8, 16, 16, device="cuda")

    def without() -> torch.Tensor:
        with torch.no_grad():
            return model(x)

    with_gradients = peak(device, lambda: model(x))
    assert peak(device, without) < with_gradients / 2
    with torch.inference_mode():
        assert peak(device, lambda: model(x)) < with_gradients / 2


def test_a_sum_of_losses_keeps_every_graph(device: SimulatedDevice) -> None:
    layer = nn.Linear(64, 64).cuda()

    def total(*, detach: bool) -> torch.Tensor:
        losses = torch.zeros((), device="cuda")
        for _ in range(20):
            loss = layer(torch.randn(128, 64, device="cuda")).square().mean()
            losses = losses + (loss.detach() if detach else loss)
        return losses

    assert peak(device, lambda: total(detach=False)) > 5 * peak(device, lambda: total(detach=True))


def test_checkpoints_pay_by_block_and_not_around_the_whole_model(device: SimulatedDevice) -> None:
    model = blocks().train()
    x = torch.randn(4, 8, 16, 16, device="cuda", requires_grad=True)

    def by_block(value: torch.Tensor) -> torch.Tensor:
        for block in model:
            value = checkpoint(block, value, use_reentrant=False)
        return value

    def step(forward: Callable[[torch.Tensor], torch.Tensor]) -> int:
        model.zero_grad()
        x.grad = None
        return peak(device, lambda: forward(x).sum().backward())

    plain = step(model)
    assert step(by_block) < 0.75 * plain
    assert step(lambda value: checkpoint(model, value, use_reentrant=False)) >= 0.95 * plain
