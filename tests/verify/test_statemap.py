"""A fixed program that starts from the state of the slow one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchlint.verify.inside.capture import Capture
from torchlint.verify.inside.compare import compare
from torchlint.verify.inside.randomness import seed_everything
from torchlint.verify.inside.statemap import StateMapError, adopt, keep, matches

State = tuple[nn.Module, torch.optim.Optimizer, torch.Tensor, torch.Tensor]
Runs = tuple[Capture, Capture, Capture]

DROPPED = ["0.bias", "3.bias"]
FREE = ["*.running_mean"]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine the threads of small operations wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def network(*, bias: bool) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=bias),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, bias=bias),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
    )


def setup(*, bias: bool) -> State:
    images, labels = torch.randn(4, 3, 16, 16), torch.arange(4)
    model = network(bias=bias)
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), images, labels


def trained(state: State, steps: int = 20) -> Capture:
    """Captures of `steps` steps: losses, the model and the optimizer."""
    model, optimizer, images, labels = state
    capture = Capture()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        capture.add({"loss": loss.detach(), "model": model, "optimizer": optimizer}, inputs=state)
    return capture


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The slow program, the fixed one as its seed starts it, and the fixed one from the slow one's state."""
    file = tmp_path_factory.mktemp("state") / "state.pt"
    seed_everything(0)
    slow = setup(bias=True)
    keep(slow, file)
    seed_everything(1)
    before = trained(slow)
    seed_everything(0)
    shifted = setup(bias=False)
    seed_everything(1)
    from_seed = trained(shifted)
    seed_everything(0)
    mapped = setup(bias=False)
    assert adopt(mapped, file, DROPPED, FREE) == 1
    seed_everything(1)
    return before, from_seed, trained(mapped)


def test_from_the_seed_alone_the_same_program_looks_wrong(runs: Runs) -> None:
    before, from_seed, _ = runs
    result = compare(before, from_seed, "mapped-state", dropped=DROPPED, free=FREE)
    assert result["verdict"] == "wrong"
    assert "step0['loss']" in result["reason"]


def test_through_the_map_twenty_steps_agree(runs: Runs) -> None:
    before, _, mapped = runs
    result = compare(before, mapped, "mapped-state", dropped=DROPPED, free=FREE)
    assert result["verdict"] == "same-within-class", result["reason"]
    for path in (
        "step19['loss']",
        "step19['model'].3.weight",
        "step19['optimizer'].state[3.weight]['momentum_buffer']",
    ):
        old, new = before.values[path], mapped.values[path]
        assert float((old - new).norm() / old.norm()) < 1e-6
    assert "dropped" in result["reason"]


def test_what_is_not_declared_is_wrong(runs: Runs) -> None:
    before, _, mapped = runs
    undeclared = compare(before, mapped, "mapped-state", dropped=["0.bias"], free=FREE)
    assert undeclared["verdict"] == "wrong"
    assert "3.bias is missing" in undeclared["reason"]
    means = compare(before, mapped, "mapped-state", dropped=DROPPED)
    assert means["verdict"] == "wrong"
    assert "running_mean" in means["reason"]


@pytest.mark.parametrize(("eps", "verdict"), [(1e-5, "same-within-class"), (1e-3, "wrong")])
def test_a_mistake_in_the_fix_shows_through_the_map(eps: float, verdict: str, runs: Runs, tmp_path: Path) -> None:
    seed_everything(0)
    keep(setup(bias=True), tmp_path / "state.pt")
    seed_everything(0)
    fixed = setup(bias=False)
    adopt(fixed, tmp_path / "state.pt", DROPPED, FREE)
    fixed[0][1].eps = eps
    seed_everything(1)
    assert compare(runs[0], trained(fixed), "mapped-state", dropped=DROPPED, free=FREE)["verdict"] == verdict


@pytest.mark.parametrize(
    ("start", "other", "words"),
    [
        (nn.Linear(2, 3), nn.Linear(2, 3, bias=False), "state.bias is missing, and not declared as dropped"),
        (nn.Linear(2, 3, bias=False), nn.Linear(2, 3), "state.bias is new, and not declared as free"),
        (nn.Linear(2, 3), nn.Linear(2, 4), "state.weight is torch.float32 (4, 2), was torch.float32 (3, 2)"),
        (nn.Linear(2, 3), nn.Linear(2, 3).double(), "state.weight is torch.float64 (3, 2), was torch.float32 (3, 2)"),
        ([nn.Linear(2, 3)], [1], "state[0] is a module in only one of the two programs"),
        ([1], [nn.Linear(2, 3)], "state[0] is a module in only one of the two programs"),
    ],
)
def test_any_other_difference_is_refused_by_name(start: object, other: object, words: str, tmp_path: Path) -> None:
    keep(start, tmp_path / "state.pt")
    with pytest.raises(StateMapError) as error:
        adopt(other, tmp_path / "state.pt")
    assert words in str(error.value)


def test_nothing_is_loaded_where_something_is_refused(tmp_path: Path) -> None:
    keep([nn.Linear(2, 2), nn.Linear(2, 2)], tmp_path / "state.pt")
    others = [nn.Linear(2, 2), nn.Linear(2, 3)]
    weight = others[0].weight.clone()
    with pytest.raises(StateMapError):
        adopt(others, tmp_path / "state.pt")
    assert torch.equal(others[0].weight, weight)


def test_an_optimizer_goes_on_with_the_parameters_it_has(tmp_path: Path) -> None:
    keep(nn.Linear(2, 2), tmp_path / "state.pt")
    model = nn.Linear(2, 2)
    kept = model.weight
    adopt(model, tmp_path / "state.pt")
    assert model.weight is kept


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("conv.bias", "*.bias", True),
        ("bias", "*.bias", True),
        ("bias", "bias", True),
        ("conv_bias", "bias", False),
        ("step0['model'].body.0.bias", "body.*.bias", True),
        ("step0[1].conv.bias", "conv.bias", True),
        ("step0[1].conv.bias", "v.bias", False),
        ("step0['state']['conv.bias']", "conv.bias", True),
        ("step0['o'].state[conv.bias]['momentum_buffer']", "*.bias", True),
        ("step0['o'].state[conv.weight]['momentum_buffer']", "*.bias", False),
        ("conv.bias", "conv.weight", False),
    ],
)
def test_a_pattern_means_the_end_of_a_name(name: str, pattern: str, *, expected: bool) -> None:
    assert matches(name, ["never", pattern]) is expected
    assert not matches(name, [])
