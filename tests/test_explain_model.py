"""`check --explain-model FILE:LINE`."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.cli import run

TRAIN = """\
import torch
from utils import accuracy


def train(model, loader, optimizer, criterion, meter):
    for step, (inputs, targets) in enumerate(loader):
        outputs = model(inputs.cuda())
        loss = criterion(outputs, targets.cuda())
        if step % 100 == 0:
            print(loss.item())
        loss.backward()
        optimizer.step()
        meter.update(accuracy(outputs, targets))


def main():
    for epoch in range(9):
        train(a, b, c, d, e)


if __name__ == "__main__":
    main()
"""
UTILS = """\
import torch


def accuracy(outputs, targets):
    with torch.no_grad():
        while outputs.any():
            outputs = outputs - 1
        return outputs.eq(targets).float().mean().item()
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "utils.py").write_text(UTILS)
    return tmp_path


def told(capsys: Capture, place: str) -> list[str]:
    assert run(["check", "--no-cache", "--color", "never", "--explain-model", place]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_line_of_a_training_loop(capsys: Capture) -> None:
    assert told(capsys, "train.py:8") == [
        "train.py:8: loss = criterion(outputs, targets.cuda())",
        "  runs per batch",
        "    in the loop on line 6, `for step, (inputs, targets) in enumerate(loader)`: each iteration is a batch",
        "    `train` is entered per epoch",
        "    it is called on line 18, per epoch",
        "  autograd is on",
        "  loss                                probably tensor, a single value, device unknown (bound on line 8)",
        "  criterion(outputs, targets.cuda())  probably tensor, a single value, device unknown",
        "  outputs                             probably tensor, device unknown (bound on line 7)",
        "  targets.cuda()                      probably tensor, of a loader, on an accelerator",
    ]


def test_what_a_name_is_used_for_is_said(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "used.py").write_text("import torch\ndef f(thing):\n    thing.backward()\n    print(thing)\n")
    said = "  thing         tensor by its use, a single value, device unknown (parameter on line 2)"
    assert said in told(capsys, "used.py:4")


def test_a_rate_limit(capsys: Capture) -> None:
    assert told(capsys, "train.py:10")[1:4] == [
        "  runs per epoch",
        "    only now and then: `if step % 100 == 0`",
        "    in the loop on line 6, `for step, (inputs, targets) in enumerate(loader)`: each iteration is a batch",
    ]


def test_callers_in_other_files_and_the_grad_mode(capsys: Capture) -> None:
    lines = told(capsys, "utils.py:8")
    assert "  runs per batch" in lines
    assert "    it is called from train.py:13, per batch" in lines
    assert "  autograd is off" in lines


def test_what_a_process_is_started_with(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "spawned.py").write_text(
        "import torch.multiprocessing as mp\ndef main(rank):\n    print(rank)\nmp.spawn(main, nprocs=4)\n"
    )
    assert told(capsys, "spawned.py:3")[1:4] == [
        "  runs once",
        "    `main` is entered once",
        "    a process is started with it on line 4, once",
    ]


def test_who_calls_a_method_of_that_name(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "pairs.py").write_text(
        "import torch\nclass Pairs:\n    def pick_pairs(self, x):\n        return x.cpu()\n"
    )
    (tmp_path / "loss.py").write_text(
        "import torch\nclass Loss(torch.nn.Module):\n    def forward(self, x):\n        return self.pairs.pick_pairs(x)\n"
    )
    assert "    a method of that name is called from loss.py:4, per batch" in told(capsys, "pairs.py:4")


def test_what_has_gone_by(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "step.py").write_text(
        "import torch\nfor x in torch.utils.data.DataLoader(data):\n    if t - last > 9:\n        last = t\n"
    )
    assert "    only now and then: `if t - last > 9`" in told(capsys, "step.py:4")


def test_a_loop_of_something_else(capsys: Capture) -> None:
    assert "    in the loop on line 6, `while outputs.any()`: neither batches nor epochs" in told(capsys, "utils.py:7")


def test_what_runs_once(capsys: Capture) -> None:
    assert told(capsys, "train.py:1") == ["train.py:1: import torch", "  runs once", "  autograd is on"]


def test_nobody_calls(folder: Path, capsys: Capture) -> None:
    (folder / "alone.py").write_text("def f(x):\n    return x\n")
    assert told(capsys, "alone.py:2")[1:3] == ["  runs how often is unknown", "    how often `f` is called is unknown"]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            "train.py",
            "--explain-model train.py: expected FILE:LINE, as in `train.py:41`, or of a notebook `train.ipynb:cell 3:4`",
        ),
        (
            "train.py:x",
            "--explain-model train.py:x: expected FILE:LINE, as in `train.py:41`, or of a notebook `train.ipynb:cell 3:4`",
        ),
        ("none.py:1", "none.py: no such file or directory"),
        ("train.py:3", "train.py:3: no code that can be read begins on this line"),
        ("train.py:999", "train.py:999: no code that can be read begins on this line"),
        ("train.py:0", "train.py:0: no code that can be read begins on this line"),
        ("broken.py:1", "broken.py:1: no code that can be read begins on this line"),
    ],
)
def test_what_cannot_be_told(folder: Path, capsys: Capture, place: str, message: str) -> None:
    (folder / "broken.py").write_text("def (\n")
    assert run(["check", "--explain-model", place]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_a_path_that_leads_up(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    (folder / "torchlint.toml").touch()
    assert f"    it is called from {(folder / 'train.py').as_posix()}:13, per batch" in told(capsys, "../utils.py:8")


def test_the_cache_is_used_and_harmless(capsys: Capture) -> None:
    for _ in range(2):
        assert run(["check", "--explain-model", "utils.py:8"]) == 0
        assert "it is called from train.py:13, per batch" in capsys.readouterr().out


def test_what_is_declared_and_what_is_called_unseen_is_said(tmp_path: Path, capsys: Capture) -> None:
    head = "import torch\nclass Engine:\n"
    run_ = "    def run(self, x):  # torchlint: hot[per-batch]\n        return x.sum()\n"
    generate = "    def generate(self, x):\n        return x.sum()\n    def other(self, x):\n        return x.sum()\n"
    (tmp_path / "engine.py").write_text(head + run_ + generate)
    (tmp_path / "torchlint.toml").write_text("hot = ['engine:Engine.other']\n")
    assert told(capsys, "engine.py:4")[1:3] == [
        "  runs per batch",
        "    `run` is declared to run per batch, by `# torchlint: hot[per-batch]`",
    ]
    assert told(capsys, "engine.py:6")[1:3] == [
        "  runs per call",
        "    `generate` is called by code that is not in sight",
    ]
    assert told(capsys, "engine.py:8")[1:3] == [
        "  runs per batch",
        "    `other` is declared to run per batch, by `hot`",
    ]
