"""Whole programs on the simulated device: what they cost, on which line, with the losses of the host."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from torchlint.verify.inside.sim import SimulatedDevice, simulated_cuda

STEPS = 4
FORKS = "ignore:.*multi-threaded:DeprecationWarning"  # Python 3.12 warns of what loaders do with torch's threads


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(64, 3),
    )


def train(place: str) -> list[float]:
    torch.manual_seed(0)
    model = network()
    model.to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = TensorDataset(torch.randn(8 * STEPS, 1, 8, 8), torch.randint(0, 3, (8 * STEPS,)))
    losses, total = [], 0.0
    for inputs, labels in DataLoader(data, batch_size=8, shuffle=True, num_workers=0):
        inputs, labels = inputs.to(place), labels.to(place)  # noqa: PLW2901 - as programs write it; MOVE
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()  # BACKWARD
        optimizer.step()
        total += loss.item()  # ITEM
        losses.append(total)
    return losses


def line(marker: str, function: Callable[..., object] = train) -> int:
    lines, first = inspect.getsourcelines(function)
    (offset,) = [number for number, text in enumerate(lines) if text.rstrip().endswith(marker)]
    return first + offset


def at(device: SimulatedDevice, kind: str) -> dict[int, int]:
    assert {site["file"] for site in device.sites()} == {__file__}
    return {int(site["line"]): int(site["count"]) for site in device.sites() if site["kind"] == kind}


def test_a_network_trains_as_on_the_host_and_every_wait_has_its_line() -> None:
    host = train("cpu")
    with simulated_cuda() as device:
        simulated = train("cuda")
        syncs, backward = at(device, "syncs"), at(device, "launches")[line("BACKWARD")]
        counts = device.counts()
    assert simulated == host
    model = line("model.to(place)")
    assert syncs == {line("ITEM"): STEPS, line("MOVE"): 2 * STEPS, model: syncs[model]}
    assert counts["d2h"] == STEPS
    assert counts["d2h_bytes"] == 4 * STEPS
    assert backward >= 8 * STEPS


def test_the_host_is_left_as_it_was() -> None:
    names = [
        (torch.Tensor, "to"),
        (torch.Tensor, "cuda"),
        (torch.Tensor, "data"),
        (torch.cuda, "is_available"),
        (torch.cuda, "Event"),
        (torch, "tensor"),
        (torch, "load"),
        (torch, "compile"),
        (torch, "Generator"),
        (torch.utils, "swap_tensors"),
    ]
    before = [(name, getattr(owner, name), name in vars(owner)) for owner, name in names]
    with simulated_cuda():
        left = torch.ones(2, device="cuda")
        assert getattr(*names[3])()
    assert [(name, getattr(owner, name), name in vars(owner)) for owner, name in names] == before
    assert not torch.cuda.is_available()
    assert not torch.__future__.get_swap_module_params_on_conversion()
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(2).cuda()
    assert left.cpu().tolist() == [1, 1]


def indexed(place: str) -> None:
    table = torch.ones(4, 3, device=place, requires_grad=True)
    rows = torch.arange(2)
    picked = table[rows]  # INDEX
    handed = picked.sin()
    handed.register_hook(lambda slope: print(slope.sum().item()))  # HOOK
    handed.sum().backward()  # BACKWARD


def test_what_a_gradient_waits_for_counts_where_its_operation_stands(capsys: pytest.CaptureFixture[str]) -> None:
    with simulated_cuda() as device:
        indexed("cuda")
        syncs, launches = at(device, "syncs"), at(device, "launches")
        copies = at(device, "h2d_pageable")
    assert syncs == {line("INDEX", indexed): 2, line("HOOK", indexed): 1}
    assert copies == {line("INDEX", indexed): 2}
    assert line("BACKWARD", indexed) in launches
    assert capsys.readouterr().out == "6.0\n"
    assert not torch.is_anomaly_enabled()


def test_an_error_ends_the_simulation() -> None:
    with pytest.raises(ZeroDivisionError), simulated_cuda():
        _ = 1 / 0
    assert not torch.cuda.is_available()
    with simulated_cuda() as device:
        assert device.counts()["launches"] == 0


def test_counts_go_to_the_innermost_line_of_the_user() -> None:
    class Reads(nn.Module):  # type: ignore[misc, unused-ignore]
        def forward(self, value: torch.Tensor) -> torch.Tensor:
            if value.sum().item() > 0:  # INNER
                return value
            return -value

    with simulated_cuda() as device:
        model = nn.Sequential(nn.ReLU(), Reads())
        inputs = torch.ones(2, device="cuda")
        device.reset()
        model(inputs)
        assert at(device, "syncs") == {line("INNER", test_counts_go_to_the_innermost_line_of_the_user): 1}


def test_counts_of_a_library_go_to_the_line_that_calls_it(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "library.py"
    namespace: dict[str, Callable[[torch.Tensor], float]] = {}
    exec(compile("def read(x):\n    return x.item()\n", library, "exec"), namespace)  # noqa: S102 - as a package's file
    with simulated_cuda() as device:
        x = torch.ones(1, device="cuda")
        device.reset()
        namespace["read"](x)  # CALLER
        here = line("CALLER", test_counts_of_a_library_go_to_the_line_that_calls_it)
        assert at(device, "syncs") == {here: 1}


def test_what_runs_in_backward_counts_where_backward_is_called() -> None:
    with simulated_cuda() as device:
        weight = torch.ones(2, device="cuda", requires_grad=True)
        loss = (weight * weight).sum()
        device.reset()
        loss.backward()  # CALL
        here = line("CALL", test_what_runs_in_backward_counts_where_backward_is_called)
        assert set(at(device, "launches")) == {here}


@pytest.mark.filterwarnings(FORKS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_pins_lets_copies_overlap(workers: int) -> None:
    with simulated_cuda() as device:
        data = TensorDataset(torch.arange(32.0).view(8, 4))
        loader = DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers)
        seen = [inputs.to("cuda", non_blocking=True) for (inputs,) in loader]
        counts = device.counts()
        assert torch.cat(seen).tolist() == data.tensors[0].tolist()
    assert counts["h2d_pinned"] == 4
    assert counts["h2d_pageable"] == counts["syncs"] == 0


@pytest.mark.filterwarnings(FORKS)
def test_a_loader_without_pinning_waits_for_each_batch() -> None:
    with simulated_cuda() as device:
        loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2, num_workers=2)
        for (inputs,) in loader:
            inputs.to("cuda", non_blocking=True)
        counts = device.counts()
    assert counts["h2d_pageable"] == counts["syncs"] == 4


def test_an_accumulator_on_the_device_saves_the_waits() -> None:
    def run(*, read: bool) -> int:
        layer, total = nn.Linear(4, 1).cuda(), torch.zeros((), device="cuda")
        number = 0.0
        inputs = torch.randn(8, 4, device="cuda")
        device.reset()
        for _ in range(8):
            loss = layer(inputs).mean()
            if read:
                number += loss.item()
            else:
                total += loss.detach()
        number += total.item()
        return device.counts()["syncs"]

    with simulated_cuda() as device:
        assert run(read=True) == 9
        assert run(read=False) == 1


def test_a_bias_costs_a_convolution_a_kernel_each_way() -> None:
    def launches(*, bias: bool) -> tuple[int, int]:
        layer = nn.Conv2d(3, 4, 3, bias=bias).cuda()
        images = torch.randn(2, 3, 8, 8, device="cuda", requires_grad=True)
        device.reset()
        output = layer(images)
        forward = device.counts()["launches"]
        gradient = torch.ones_like(output)
        device.reset()
        output.backward(gradient)
        return forward, device.counts()["launches"]

    with simulated_cuda() as device:
        with_bias, without = launches(bias=True), launches(bias=False)
    assert (with_bias[0], without[0]) == (2, 1)
    assert with_bias[1] == without[1] + 1
