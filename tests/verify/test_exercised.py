"""Which lines of a program run: in its own process and in those of its loaders, and how long it is looked at."""

from __future__ import annotations

import multiprocessing
import sys
import time
from typing import TYPE_CHECKING

import pytest
from made_up import MadeUp, subject

from torchlint.config import Overrides
from torchlint.finding import Applicability
from torchlint.verify import exercised, timing, units
from torchlint.verify.arms import Subject
from torchlint.verify.exercised import Means, look
from torchlint.verify.process import ArmError
from torchlint.verify.session import session
from torchlint.verify.units import Unit

if TYPE_CHECKING:
    from pathlib import Path

MEANS = Means(timing.Limits())
LOADER = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index))


def never():
    return torch.zeros(1)


def main():
    weight = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for inputs in DataLoader(Squares(), batch_size=8, num_workers=1, multiprocessing_context="fork"):
        (inputs * weight).sum().backward()
        optimizer.step()
    torch.ones(1)


if __name__ == "__main__":
    main()
"""


def unit(root: Path, *lines: int, file: str = "train.py") -> Unit:
    name = f"TL201 {file}:{lines[0]}"
    return Unit(name, "host-factory-then-move", "TL201", file, root / file, lines, "", Applicability.SAFE)


def read(root: Path) -> units.Program:
    return units.program(root, Overrides(), root)


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="loaders fork nowhere here")
def test_lines_that_only_the_processes_of_a_loader_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOADER, encoding="utf-8")
    entry = {"kind": "script", "file": "train.py", "arguments": [], "clock": "auto"}
    loaded, never, behind = unit(tmp_path, 10), unit(tmp_path, 14), unit(tmp_path, 23)
    with session(Subject(tmp_path, entry, "cpu", 1, sys.executable)) as running:
        seen = look(running, read(tmp_path), [loaded, never, behind], MEANS)
    assert seen.units == (loaded, behind)
    assert seen.idle == (never,)
    assert seen.to_end  # what runs behind the first steps is compared too
    assert not seen.later
    assert seen.ended
    assert seen.steps == 7  # the first one is part of the set-up


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").touch()
    return folder


def test_one_line_of_a_unit_is_enough(root: Path) -> None:
    running = MadeUp(root.parent, subject=subject("script", "cuda", root), lines={("train.py", 7): 1})
    chosen = [unit(root, 3, 7), unit(root, 8), unit(root, 7, file="sub/train.py")]
    seen = look(running, read(root), chosen, MEANS)  # type: ignore[arg-type]  # a stand-in
    assert seen.units == (chosen[0],)


def test_a_file_of_the_same_name_in_a_folder_is_another_one(root: Path) -> None:
    running = MadeUp(root.parent, subject=subject("script", "cuda", root), lines={("sub/train.py", 7): 1})
    chosen = [unit(root, 7), unit(root, 7, file="sub/train.py")]
    seen = look(running, read(root), chosen, MEANS)  # type: ignore[arg-type]  # a stand-in
    assert seen.units == (chosen[1],)


@pytest.mark.parametrize(("device", "steps"), [("cpu", 3), ("cuda", 1000)])
def test_a_long_program_is_run_until_its_steps_can_be_counted(root: Path, device: str, steps: int) -> None:
    running = MadeUp(root.parent, subject=subject("script", device, root), lines={("train.py", 7): 1}, length=1000)
    seen = look(running, read(root), [unit(root, 7)], MEANS)  # type: ignore[arg-type]  # a stand-in
    assert (seen.steps, seen.ended) == (steps, steps == 1000)


def test_a_program_that_goes_on_and_on_is_left(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 13))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    running = MadeUp(root.parent, subject=subject("script", "cuda", root), length=10**9)
    chosen = [unit(root, 7)]
    seen = look(running, read(root), chosen, MEANS)  # type: ignore[arg-type]  # a stand-in
    assert not seen.ended
    assert seen.idle == tuple(chosen)
    assert 3 <= seen.steps < 100


def test_a_function_is_called_as_often_as_it_is_counted(root: Path) -> None:
    running = MadeUp(root.parent, subject=subject("function", "cuda", root), length=10**9)
    seen = look(running, read(root), [unit(root, 7)], MEANS)  # type: ignore[arg-type]  # a stand-in
    assert (seen.steps, seen.later) == (exercised.COUNTED, ())


def test_a_program_that_fails(root: Path) -> None:
    fails = {"original": ArmError("timeout", "no answer within 5 s")}
    running = MadeUp(root.parent, subject=subject("script", "cuda", root), fails=fails)
    with pytest.raises(timing.BaselineError, match="no answer"):
        look(running, read(root), [unit(root, 7)], MEANS)  # type: ignore[arg-type]  # a stand-in


def test_patience_ends_with_the_budget() -> None:
    short = Means(timing.Limits(deadline=time.monotonic() + 20))
    assert 5 <= short.patience(300) <= 20
    assert Means(timing.Limits(deadline=0.0)).patience(300) == 5
    assert MEANS.patience(300) == 300
