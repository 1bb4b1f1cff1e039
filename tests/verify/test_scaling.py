"""Numbers that a program holds are moved where they are, once each, and counted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from torchlint.verify.inside.scaling import nudge, scale


def test_parameters_and_buffers_are_scaled_alone_where_there_are_any() -> None:
    layer, x = nn.BatchNorm1d(3), torch.ones(3)
    assert scale({"layer": layer, "x": x}, 2.0) == 4
    assert layer.weight.tolist() == [2.0, 2.0, 2.0]
    assert layer.running_var.tolist() == [2.0, 2.0, 2.0]
    assert int(layer.num_batches_tracked) == 0
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_all_numbers_are_scaled_where_there_are_no_parameters() -> None:
    x, array = torch.ones(3), np.ones(3)
    assert scale([x, (array, torch.ones(3, dtype=torch.int64)), "text", 3.0], 2.0) == 2
    assert x.tolist() == array.tolist() == [2.0, 2.0, 2.0]


def test_everything_is_scaled_where_it_is_asked_for() -> None:
    layer, x = nn.Linear(1, 1), torch.ones(3)
    assert scale((layer, x), 2.0, everything=True) == 3
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_what_an_optimizer_keeps_is_scaled_too() -> None:
    layer = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    layer(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    before = optimizer.state[layer.weight]["momentum_buffer"].clone()
    scale((layer, optimizer), 2.0, everything=True)
    assert optimizer.state[layer.weight]["momentum_buffer"].equal(2 * before)


def test_a_tensor_in_two_places_is_scaled_once() -> None:
    x = torch.ones(3)
    assert scale([x, {"again": x}], 2.0) == 1
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_what_cannot_be_written_to_stays_and_is_not_counted() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    assert scale([torch.ones(1).expand(3), array], 2.0) == 0
    assert array.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("state", [None, [], [0.5] * 100, {"n": 3}, torch.ones(2, dtype=torch.int32)])
def test_a_state_without_such_numbers_has_none_to_scale(state: object) -> None:
    assert scale(state, 2.0) == 0


def test_parameters_that_want_gradients_are_scaled_without() -> None:
    layer = nn.Linear(1, 1)
    scale(layer, 2.0)
    assert layer.weight.grad_fn is None
    assert layer.weight.requires_grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_nudge_is_a_unit_in_the_last_place_of_each_type_up_or_down(dtype: torch.dtype) -> None:
    layer = nn.Linear(8, 8).to(dtype)
    before = layer.weight.detach().clone()
    assert nudge((layer, torch.ones(3)), 1) == 2
    apart = layer.weight.detach().double() / before.double() - 1
    epsilon = torch.finfo(dtype).eps
    assert bool(((apart.abs() > 0.2 * epsilon) & (apart.abs() < 2.1 * epsilon)).all())
    assert 10 < int((apart > 0).sum()) < 54
    other = nn.Linear(8, 8).to(dtype)
    with torch.no_grad():
        other.weight.copy_(before)
    nudge(other, 2)
    assert not torch.equal(other.weight, layer.weight)


def test_an_array_is_nudged_too() -> None:
    array = np.ones(9, dtype=np.float32)
    assert nudge({"x": array}, 1) == 1
    assert array.dtype == np.float32
    assert 0 < float(np.abs(array - 1).min()) <= float(np.abs(array - 1).max()) < 2e-7
