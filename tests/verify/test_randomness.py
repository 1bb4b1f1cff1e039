"""Random numbers that two runs have in common."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from torchlint.verify.inside.randomness import DrawOnCpu, DrawSingle, drawing_on_cpu, fingerprint, seed_everything
from torchlint.verify.inside.sim import simulated_cuda

Draw = Callable[[str], torch.Tensor]

SHAPE = (33, 17)


def in_place(name: str, *args: float) -> Draw:
    def draw(device: str) -> torch.Tensor:
        tensor = torch.zeros(SHAPE, device=device)
        result = getattr(tensor, name)(*args)
        assert result is tensor
        return tensor

    return draw


def initialised(init: Callable[[torch.Tensor], torch.Tensor]) -> Draw:
    return lambda device: init(torch.empty(SHAPE, device=device))


DRAWS: dict[str, Draw] = {
    "rand": lambda device: torch.rand(SHAPE, device=device),
    "randn": lambda device: torch.randn(*SHAPE, device=device, dtype=torch.float64),
    "randint": lambda device: torch.randint(3, 99, SHAPE, device=device),
    "randperm": lambda device: torch.randperm(100, device=device),
    "rand_like": lambda device: torch.rand_like(torch.empty(SHAPE, device=device)),
    "randn_like": lambda device: torch.randn_like(torch.empty(17, 33, device=device).t()),
    "randint_like": lambda device: torch.randint_like(torch.empty(SHAPE, device=device), 9),
    "normal": lambda device: torch.normal(0.0, 2.0, SHAPE, device=device),
    "normal of tensors": lambda device: torch.normal(
        torch.zeros(SHAPE, device=device), torch.ones(SHAPE, device=device)
    ),
    "bernoulli": lambda device: torch.bernoulli(torch.full(SHAPE, 0.3, device=device)),
    "multinomial": lambda device: torch.multinomial(torch.ones(50, device=device), 20),
    "poisson": lambda device: torch.poisson(torch.full(SHAPE, 3.0, device=device)),
    "out": lambda device: torch.rand(SHAPE, out=torch.empty(SHAPE, device=device)),
    "uniform_": in_place("uniform_", -1, 1),
    "normal_": in_place("normal_", 1, 2),
    "random_": in_place("random_", 100),
    "exponential_": in_place("exponential_"),
    "bernoulli_": in_place("bernoulli_", 0.3),
    "geometric_": in_place("geometric_", 0.3),
    "cauchy_": in_place("cauchy_"),
    "log_normal_": in_place("log_normal_"),
    "kaiming_uniform_": initialised(nn.init.kaiming_uniform_),
    "trunc_normal_": initialised(nn.init.trunc_normal_),
    "orthogonal_": initialised(nn.init.orthogonal_),
    "Linear": lambda device: nn.Linear(7, 5, device=device).weight.detach(),
    "dropout": lambda device: functional.dropout(torch.ones(SHAPE, device=device), 0.3),
    "native_dropout": lambda device: torch.native_dropout(torch.ones(SHAPE, device=device), 0.3, train=True)[0],
    "dropout2d": lambda device: functional.dropout2d(torch.ones(3, 4, 5, 5, device=device), 0.3),
    "alpha_dropout": lambda device: functional.alpha_dropout(torch.ones(SHAPE, device=device), 0.3, training=True),
    "rrelu": lambda device: functional.rrelu(torch.full(SHAPE, -1.0, device=device), training=True),
    "gumbel_softmax": lambda device: functional.gumbel_softmax(torch.zeros(SHAPE, device=device)),
    "attention": lambda device: functional.scaled_dot_product_attention(
        *torch.ones(3, 2, 4, 8, 8, device=device), dropout_p=0.5
    ),
}


SAME_IN_DOUBLE = {name: draw for name, draw in DRAWS.items() if name not in ("randn", "rrelu", "orthogonal_")}
"""All but one that names its type, one that rounds what is more than drawn, and one that computes with what is drawn."""


@pytest.mark.parametrize("draw", SAME_IN_DOUBLE.values(), ids=list(SAME_IN_DOUBLE))
def test_code_in_float64_draws_what_it_draws_in_float32(draw: Draw) -> None:
    seed_everything(3)
    expected = draw("cpu")
    behind = fingerprint()
    torch.set_default_dtype(torch.float64)
    try:
        seed_everything(3)
        with DrawSingle():
            drawn = draw("cpu")
    finally:
        torch.set_default_dtype(torch.float32)
    assert drawn.dtype == (torch.float64 if expected.dtype is torch.float32 else expected.dtype)
    torch.testing.assert_close(drawn.to(expected.dtype), expected, rtol=3e-7, atol=1e-7)
    assert fingerprint() == behind


def test_what_dropout_keeps_in_float64_is_not_rounded() -> None:
    exact = torch.linspace(0.1, 1, 100, dtype=torch.float64) / 3
    for fused in (False, True):
        with DrawSingle():
            dropped = torch.native_dropout(exact, 0.5, train=True)[0] if fused else functional.dropout(exact, 0.5)
        assert torch.equal(dropped[dropped != 0], (2 * exact)[dropped != 0])
        assert 20 < int((dropped == 0).sum()) < 80


def test_code_that_names_float64_itself_is_known_by_its_stream() -> None:
    seed_everything(3)
    torch.randn(64, dtype=torch.float64)
    expected = fingerprint()
    seed_everything(3)
    with DrawSingle():
        assert torch.randn(64, dtype=torch.float64).dtype is torch.float64
    assert fingerprint() != expected


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_numbers_drawn_on_the_cpu_are_those_drawn_without_the_mode(draw: Draw) -> None:
    seed_everything(3)
    expected = draw("cpu")
    behind = torch.rand(2)
    for types in (("cuda",), ("cpu",)):  # with the CPU as the other device, every draw is moved there and back
        seed_everything(3)
        with DrawOnCpu(types) as mode:
            drawn = draw("cpu")
        assert torch.equal(drawn, expected)
        assert drawn.dtype == expected.dtype
        assert torch.equal(torch.rand(2), behind)
        assert mode.escaped == []


@pytest.mark.parametrize("name", ["rand", "randn", "randint", "randperm", "normal"])
def test_numbers_for_another_device_take_their_turn_in_the_stream_of_the_cpu(name: str) -> None:
    seed_everything(3)
    DRAWS[name]("cpu")
    behind = torch.rand(2)
    seed_everything(3)
    with DrawOnCpu(("meta",)):
        drawn = DRAWS[name]("meta")
        assert drawn.device.type == "meta"
        assert torch.equal(torch.rand(2), behind)


@pytest.mark.parametrize("name", ["rand", "randn_like", "normal_", "randperm", "dropout", "attention", "Linear"])
def test_a_simulated_device_draws_on_the_cpu_anyway(name: str) -> None:
    seed_everything(3)
    expected = DRAWS[name]("cpu")
    behind = torch.rand(2)
    seed_everything(3)
    with simulated_cuda(), DrawOnCpu() as mode:
        drawn = DRAWS[name]("cuda").cpu()
    assert torch.equal(drawn, expected)
    assert torch.equal(torch.rand(2), behind)
    assert mode.escaped == []


def test_a_gradient_passes_the_mask_that_was_drawn() -> None:
    seed_everything(3)
    tensor = torch.ones(SHAPE, requires_grad=True)
    with DrawOnCpu(("cpu",)):
        dropped = functional.dropout(tensor, 0.5)
    dropped.sum().backward()
    assert torch.equal(tensor.grad, dropped)
    assert 0 < int((dropped == 0).sum()) < dropped.numel()


def test_a_part_of_a_tensor_is_filled_in_its_place() -> None:
    seed_everything(3)
    tensor = torch.zeros(4, 6)
    with DrawOnCpu(("cpu",)):
        tensor[:, 1::2].normal_()
    assert not tensor[:, ::2].any()
    assert tensor[:, 1::2].all()


def test_a_generator_is_used() -> None:
    expected = torch.rand(4, generator=torch.Generator().manual_seed(5))
    generator = torch.Generator().manual_seed(5)
    with DrawOnCpu(("cpu",)):
        first, second = torch.rand(4, generator=generator), torch.rand(4, generator=generator)
    assert torch.equal(first, expected)
    assert not torch.equal(first, second)


def test_the_mode_in_force_is_known() -> None:
    assert drawing_on_cpu() is None
    with DrawOnCpu() as outer:
        with DrawOnCpu() as inner:
            assert drawing_on_cpu() is inner
        assert drawing_on_cpu() is outer
    assert drawing_on_cpu() is None


def test_seeds_reach_every_stream() -> None:
    drawn = []
    for seed in (1, 1, 2):
        seed_everything(seed)
        drawn.append((random.random(), float(np.random.rand()), float(torch.rand(1))))  # noqa: S311, NPY002
    assert drawn[0] == drawn[1]
    assert not set(drawn[0]) & set(drawn[2])


@pytest.mark.parametrize(
    ("stream", "draw"),
    [
        ("python", random.random),
        ("numpy", np.random.rand),
        ("cpu", lambda: torch.rand(1)),
    ],
)
def test_one_draw_more_shows_in_its_stream_alone(stream: str, draw: Callable[[], object]) -> None:
    seed_everything(1)
    before = fingerprint()
    assert before == fingerprint()
    draw()
    after = fingerprint()
    assert {name for name in before if before[name] != after[name]} == {stream}
