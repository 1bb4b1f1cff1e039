"""The case study: what is found in it, that fixed.py is what the fixer makes, and that all three compute the same."""

from __future__ import annotations

import copy
import multiprocessing
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import case_study
import laws
import pytest
import torch
from case_study import PAGE, STUDY

from torchlint.finding import Applicability
from torchlint.registry import choose
from torchlint.verify.workload import declaration

FILES = ("slow", "fixed", "fast")
EPOCHS = 3

# What is flagged in slow.py, by the code of its line.
EXPECTED = [
    ("for i in range(features.size(0)):", "python-loop-over-tensor?"),
    ("order = torch.randperm(self.codes.numel()).to(self.codes.device)", "host-factory-then-move"),
    ("labels = torch.zeros(logits.shape[0], dtype=torch.long).to(logits.device)", "host-factory-then-move"),
    ("if torch.isnan(loss):", "per-step-nan-check"),
    ("total += loss.item()", "item-in-train-loop"),
    ("similarity += nearness.item()", "item-in-train-loop"),
    ("history.append(loss.item())", "repeated-item"),
    (
        'loader = DataLoader(panels, batch_size=sizes["batch"], sampler=sampler, generator=torch.Generator())',
        "dataloader-no-workers",
    ),
]
LEFT_TO_THE_HAND = [EXPECTED[0], EXPECTED[3]]

pytestmark = [
    # A machine may have fewer cores than the loader asks for, and threads by the time that it forks.
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def text(name: str) -> str:
    return Path(STUDY, f"{name}.py").read_text(encoding="utf-8")


def flagged(name: str) -> list[tuple[str, str]]:
    """The line and the rule of each finding."""
    rows = text(name).splitlines()
    settings = laws.active(*(rule.name for rule in choose(None)))
    return [(rows[row - 1].strip(), rule) for row, rule in laws.places(text(name), settings)]


# What is found and fixed


def test_check_finds_every_slow_line() -> None:
    assert flagged("slow") == EXPECTED


def test_all_but_the_loader_is_said_to_run_per_batch() -> None:
    settings = laws.active(*(rule.name for rule in choose(None)))
    rare = [found.rule for found in laws.lint(text("slow"), settings).findings if str(found.frequency) != "per batch"]
    assert rare == ["dataloader-no-workers"]


def test_fixed_is_what_the_fix_makes_of_slow() -> None:
    settings = laws.active(*(rule.name for rule in choose(None)))
    made = laws.fix(text("slow"), settings, Applicability.UNSAFE).text
    assert made == text("fixed")
    assert flagged("fixed") == LEFT_TO_THE_HAND


def test_nothing_is_found_in_fast() -> None:
    assert flagged("fast") == []


def test_fast_says_what_was_done_by_hand() -> None:
    assert "\nSuggestion, in part written by hand: " in text("fast").partition('"""')[2].partition('"""')[0]


# What it computes


@dataclass(frozen=True, slots=True)
class Trained:
    """What some epochs of one file return and leave behind."""

    returned: list[tuple[float, float, list[float]]]
    student: list[torch.Tensor]
    bank: torch.Tensor
    stream: torch.Tensor


@pytest.fixture(scope="module")
def trained() -> Iterator[dict[str, Trained]]:
    """Each file with the same seed; on a CPU all of them draw the same numbers."""
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)  # a module that was run by its path cannot be imported
    stream = torch.get_rng_state()
    yield {name: train(program(name), seed=7) for name in FILES}
    torch.set_rng_state(stream)
    multiprocessing.set_start_method(before, force=True)


def program(name: str) -> dict[str, Any]:
    return runpy.run_path(str(STUDY / f"{name}.py"))


def train(names: dict[str, Any], seed: int) -> Trained:
    torch.manual_seed(seed)
    state = names["setup"]("cpu", "smoke")
    _, student, _, bank, *_ = state
    returned = [copy.deepcopy(names["run"](state)[0]) for _ in range(EPOCHS)]
    return Trained(returned, [p.detach().clone() for p in student.parameters()], bank.codes, torch.get_rng_state())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fixed", "fast"])
def test_the_same_draws_give_the_same(trained: dict[str, Trained], name: str) -> None:
    slow, other = trained["slow"], trained[name]
    assert torch.equal(slow.stream, other.stream)
    assert torch.equal(slow.bank, other.bank)
    torch.testing.assert_close(slow.student, other.student)
    for expected, now in zip(slow.returned, other.returned, strict=True):
        assert [type(value) for value in now] == [float, float, list]
        for one, another in zip(expected, now, strict=True):  # single precision, about zero
            assert another == pytest.approx(one, rel=2e-6, abs=1e-7)


@pytest.mark.slow
def test_another_seed_gives_something_else(trained: dict[str, Trained]) -> None:
    """The comparison above can fail."""
    other = train(program("slow"), seed=8)
    assert not torch.equal(trained["slow"].bank, other.bank)
    assert other.returned[0][0] != pytest.approx(trained["slow"].returned[0][0], rel=2e-6)


@pytest.mark.slow
def test_other_draws_of_the_same_distribution_train_alike(trained: dict[str, Trained]) -> None:
    """As on a GPU, which draws other permutations: the loss differs, and by little."""
    names = program("fast")
    torch.manual_seed(7)
    state = names["setup"]("cpu", "smoke")
    torch.manual_seed(99)
    losses = [names["run"](state)[0][0] for _ in range(EPOCHS)]
    expected = [loss for loss, *_ in trained["slow"].returned]
    assert losses != pytest.approx(expected, rel=1e-4)
    assert losses == pytest.approx(expected, rel=0.05)


@pytest.mark.slow
def test_it_learns() -> None:
    names = program("fast")
    torch.manual_seed(7)
    state = names["setup"]("cpu", "smoke")
    losses = [names["run"](state)[0][0] for _ in range(20)]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_loss_that_is_not_a_number_is_an_error(name: str) -> None:
    names = program(name)
    state = names["setup"]("cpu", "smoke")
    with torch.no_grad():
        next(state[1].parameters()).fill_(float("nan"))
    with pytest.raises(RuntimeError, match="not a number"):
        names["run"](state)


@pytest.mark.slow
def test_quantising_at_once_chooses_the_same_codes() -> None:
    features, codebook = torch.randn(2000, 64), torch.randn(128, 64)
    slow, fast = (program(name)["quantise"](features, codebook) for name in ("slow", "fast"))
    assert torch.equal(slow, fast)
    assert len(slow.unique()) > 100


# What is declared and said


def test_all_three_declare_the_same_workload_at_the_scale_of_the_article() -> None:
    slow, fixed, fast = (declaration(text(name).encode(), name) for name in FILES)
    assert slow == fixed == fast
    assert slow["numerics"] == "rng"
    gpu = slow["sizes"]["gpu"]
    permuted = gpu["images"] * (gpu["crop"] // program("slow")["STRIDE"]) ** 2
    assert permuted == pytest.approx(1e8, rel=1e-3)


def test_the_page_says_what_check_and_fix_say_today() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert case_study.generated(page) == page, "run `python tools/case_study.py`"
    table = "\n".join(row for row in page.splitlines() if row.startswith("| "))
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", table)) == {rule.rstrip("?") for _, rule in EXPECTED}


def test_a_stale_page_is_noticed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for stale in (page.replace("slow.py:69", "slow.py:70", 1), page.replace("+    total = float(total)\n", "", 1)):
        assert stale != page
        assert case_study.generated(stale) == page


def test_the_page_states_no_figure_that_was_not_measured() -> None:
    """Speed-ups of ours stand in the generated part; what is said of the article stands above the first heading."""
    page = PAGE.read_text(encoding="utf-8")
    body = re.sub(r"<!-- begin: (\w+) -->.*?<!-- end: \1 -->", "", page, flags=re.DOTALL).partition("\n## ")[2]
    assert not re.findall(r"\d\s*(?:x\b|times|%|ms\b|s\b)", body)
    measured = case_study.generated(page).partition("<!-- begin: measured -->")[2]
    assert ("Not measured on a GPU yet" in measured) == (not list(STUDY.glob("evidence/*/*.json")))


@pytest.mark.slow
def test_measuring_without_a_gpu_says_what_can_be_done_instead() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = subprocess.run(
        (sys.executable, case_study.__file__, "--check", "--measure"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "no CUDA device" in done.stdout
