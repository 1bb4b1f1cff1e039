"""Steps of a program are told by its optimizer, or by its model where it trains nothing; nothing of it stays behind."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

from torchlint.verify.inside.stepclock import clock

if TYPE_CHECKING:
    from torchlint.verify.inside.pace import Pace


class Ticks:
    """Stands for a pace: notes the outputs of each tick."""

    def __init__(self) -> None:
        self.began = False
        self.outputs: list[dict[str, Any]] = []

    def begin(self) -> None:
        self.began = True

    def tick(self, outputs: dict[str, Any]) -> None:
        self.outputs.append(outputs)


def ticked(ticks: Ticks) -> Pace:
    return cast("Pace", ticks)


def state_of_torch() -> list[Any]:
    return [
        optimizers.Optimizer.__init__,
        torch.Tensor.backward,
        *(dict(getattr(optimizers, f"_global_optimizer_{when}_hooks")) for when in ("pre", "post")),
        *(dict(getattr(modules, f"_global_{name}_hooks")) for name in ("forward", "forward_pre")),
    ]


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, backwards: int = 1) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(backwards):
            model(torch.ones(2, 3)).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("kind", ["auto", "optimizer"])
def test_an_optimizers_steps_are_ticks_but_the_first_which_ends_the_set_up(kind: str) -> None:
    ticks = Ticks()
    with clock(ticked(ticks), kind):
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, optimizer, 4, backwards=2)
    assert len(ticks.outputs) == 3
    for outputs in ticks.outputs:
        assert [loss.requires_grad for loss in outputs["losses"]] == [False, False]
        assert outputs["parameters"][0] is model.weight


def test_of_two_optimizers_one_is_the_clock() -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "auto"):
        first, second = nn.Linear(3, 1), nn.Linear(3, 1)
        mine = torch.optim.SGD(first.parameters(), lr=0.1)
        other = torch.optim.Adam(second.parameters(), lr=0.1)
        for _ in range(3):
            train(first, mine, 1)
            train(second, other, 2)
    assert len(ticks.outputs) == 2
    assert all(len(outputs["losses"]) == 3 for outputs in ticks.outputs)
    assert all(outputs["parameters"][0] is first.weight for outputs in ticks.outputs)


def test_when_the_clock_is_gone_the_next_optimizer_is() -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "auto"):
        model = nn.Linear(3, 1)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)
    assert len(ticks.outputs) == 3


def test_a_step_with_a_closure_is_one_tick() -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "auto"):
        model = nn.Linear(3, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss: torch.Tensor = (model(torch.ones(2, 3)) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
    assert len(ticks.outputs) == 2
    assert all(outputs["losses"] for outputs in ticks.outputs)


def test_a_subclass_that_wraps_step_is_seen() -> None:
    class Wrapped(torch.optim.SGD):  # type: ignore[misc]  # torch is untyped here
        def step(self, closure: None = None) -> None:
            super().step(closure)

    ticks = Ticks()
    with clock(ticked(ticks), "auto"):
        model = nn.Linear(3, 1)
        torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, Wrapped(model.parameters(), lr=0.1), 4)
    assert len(ticks.outputs) == 3


class Net(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        twice: torch.Tensor = self.inner(self.inner(x))
        return twice


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_an_optimizer_the_models_calls_are_ticks(mode: Callable[[], AbstractContextManager[None]]) -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "auto"):
        model = Net()
        with mode():
            results = [model(torch.ones(1, 3)) for _ in range(5)]
    assert len(ticks.outputs) == 3  # the first shows that it is called again, the second ends the set-up
    assert ticks.outputs[-1]["outputs"] is results[-1]


def test_of_two_models_one_is_the_clock() -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "auto"), torch.no_grad():
        encoder, decoder = Net(), Net()
        for _ in range(4):
            decoder(encoder(torch.ones(1, 3)))
    assert len(ticks.outputs) == 2


def test_calls_with_gradients_may_be_training_that_has_not_begun() -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "auto"):
        model = Net()
        for _ in range(3):
            model(torch.ones(1, 3))
        assert not ticks.began
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    assert [set(outputs) for outputs in ticks.outputs] == [{"losses", "parameters"}] * 2


def test_without_an_optimizer_losses_that_go_backward_are_ticks() -> None:
    ticks, weight = Ticks(), torch.ones(3, requires_grad=True)
    with clock(ticked(ticks), "auto"):
        for scale in range(4):
            (weight * scale).sum().backward()
            assert ticks.began == (scale > 0), "one alone may be a trial before the optimizer is made"
    assert [float(each["losses"][0]) for each in ticks.outputs] == [6, 9]
    assert not ticks.outputs[0]["losses"][0].requires_grad


def test_a_clock_of_calls_can_be_asked_for() -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "forward"):
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    assert [set(outputs) for outputs in ticks.outputs] == [{"outputs"}] * 2


def test_a_call_that_fails_leaves_the_next_one_outermost() -> None:
    ticks = Ticks()
    with clock(ticked(ticks), "forward"):
        model = Net()
        with pytest.raises(RuntimeError):
            model(torch.ones(1, 99))
        before = len(ticks.outputs)
        model(torch.ones(1, 3))
        model(torch.ones(1, 3))
    assert len(ticks.outputs) - before >= 1


@pytest.mark.parametrize("kind", ["auto", "optimizer", "forward"])
@pytest.mark.parametrize("fails", [False, True])
def test_torch_is_as_it_was_before(kind: str, *, fails: bool) -> None:
    before = state_of_torch()
    with suppress(RuntimeError), clock(ticked(Ticks()), kind):
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)
        if fails:
            model(torch.ones(1, 99))
    assert state_of_torch() == before


def test_the_hooks_on_calls_go_once_an_optimizer_is_made() -> None:
    with clock(ticked(Ticks()), "auto"):
        during = state_of_torch()
        torch.optim.SGD(Net().parameters(), lr=0.1)
        assert [len(hooks) for hooks in state_of_torch()[-2:]] == [len(hooks) - 1 for hooks in during[-2:]]


def test_what_it_stands_for_keeps_name_and_signature() -> None:
    expected = inspect.signature(optimizers.Optimizer.__init__), inspect.signature(torch.Tensor.backward)
    with clock(ticked(Ticks()), "auto"):
        assert (inspect.signature(optimizers.Optimizer.__init__), inspect.signature(torch.Tensor.backward)) == expected
