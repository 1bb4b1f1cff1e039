"""`explain FILE:LINE`: what rules said of a line, and why others were silent."""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import laws
import pytest

from torchlint import engine, linter, reasons
from torchlint.cli import run
from torchlint.facts import NOTHING
from torchlint.reasons import Outcome
from torchlint.source import SourceFile

TRAIN = """\
import torch

device = torch.device("cuda")


def train(model, loader, optimizer, criterion):
    model.to(device)
    total = 0.0
    for step, (inputs, targets) in enumerate(loader):
        loss = criterion(model(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        total += loss.item()  # torchlint: ignore[repeated-item, item-in-train-loop]
        if step % 100 == 0:
            print(loss.item())
    size = torch.zeros(3).max().item()
    return total, size


def read(x: torch.Tensor):
    return x.item()


for epoch in range(9):
    train(torch.nn.Linear(3, 3), loader, optimizer, torch.nn.MSELoss())
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def explained(capsys: Capture, place: str, *options: str) -> dict[str, Any]:
    """What is said of each rule, by its name."""
    assert run(["explain", place, "--output-format", "json", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    return {rule["name"]: rule for rule in told["rules"]}


def test_a_warning_and_who_was_silent(capsys: Capture) -> None:
    assert run(["explain", "train.py:14", "--select", "TL301,TL302,TL303,TL314"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("train.py:14: total += loss.item()\n  runs per batch\n")
    assert "  autograd is on\n" in out
    assert "item-in-train-loop  warning     `loss.item()` synchronizes with the GPU every batch\n" in out
    assert "item-in-eval-loop   silent      not so: the node runs in code that takes no step" in out
    words = " ".join(out.split())
    assert "after `eval()` (is_evaluating) since " in words
    assert "since a backward pass or an optimizer's step is taken in the loop, directly or one call away" in words
    assert max(map(len, out.partition("\n\n")[2].splitlines())) <= 100


def test_a_note_says_its_doubts(capsys: Capture) -> None:
    found = explained(capsys, "train.py:23")["item-in-train-loop"]
    assert found["outcome"] == "note"
    assert {reason["id"] for reason in found["reasons"]} == {"uncalled", "use-unknown", "device-unknown"}


def test_a_doubt_that_makes_a_claim_worthless_has_its_reason(capsys: Capture) -> None:
    found = explained(capsys, "train.py:17")["item-in-train-loop"]
    assert found["outcome"] == "silent"
    assert {"id": "rare", "words": "To read a value now and then is what the rule advises."}.items() <= found[
        "reasons"
    ][0].items()


def test_what_a_comment_suppresses(capsys: Capture) -> None:
    assert explained(capsys, "train.py:15")["repeated-item"]["outcome"] == "suppressed"


def test_a_rule_yields_to_another(folder: Path, capsys: Capture) -> None:
    (folder / "train.py").write_text(TRAIN.replace("  # torchlint: ignore[repeated-item, item-in-train-loop]", ""))
    found = explained(capsys, "train.py:15")
    assert found["repeated-item"]["outcome"] == "warning"
    assert found["item-in-train-loop"]["words"] == "repeated-item says the same more precisely"
    assert run(["explain", "train.py:15"]) == 0
    assert "silent      repeated-item says the same more precisely" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "step", "why"),
    [
        ("import queue", "loss.back()", "the file is passed over: there is no torch in it"),
        ("import tensorflow", "loss.backward()", "the file is passed over: it is for another framework"),
    ],
)
def test_a_file_that_is_not_for_pytorch(folder: Path, capsys: Capture, head: str, step: str, why: str) -> None:
    body = f"for x in loader:\n    loss = model(x).sum()\n    {step}\n    optimizer.step()\n    total += loss.item()\n"
    (folder / "one.py").write_text(f"{head}\n{body}")
    found = explained(capsys, "one.py:6")["item-in-train-loop"]
    assert (found["outcome"], found["words"]) == ("silent", why)


def test_what_is_none_for_a_reason(folder: Path, capsys: Capture) -> None:
    (folder / "one.py").write_text("import torch\ndef f(x: torch.Tensor):\n    return x.item()\n")
    found = explained(capsys, "one.py:3", "--select", "TL303")["repeated-item"]
    assert found["outcome"] == "silent"
    assert found["words"] == "it stands alone"
    assert found["reasons"][0]["id"].endswith("of")


def test_a_compiled_function(folder: Path, capsys: Capture) -> None:
    code = """\
import torch
@torch.compile
def f(x: torch.Tensor):
    return x * torch.sigmoid(x)
def g(x: torch.Tensor):
    return x * torch.sigmoid(x)
for batch in torch.utils.data.DataLoader(dataset):
    f(g(batch))
"""
    (folder / "compiled.py").write_text(code)
    assert explained(capsys, "compiled.py:6", "--preview")["unfused-activation"]["outcome"] in ("warning", "note")
    found = explained(capsys, "compiled.py:4", "--preview")["unfused-activation"]
    assert found["words"] == "this function is compiled, and `torch.compile` sees to it"


def test_other_files_are_asked(folder: Path, capsys: Capture) -> None:
    (folder / "used.py").write_text("import torch\ndef read(x: torch.Tensor):\n    return float(x)\n")
    (folder / "main.py").write_text(
        "import torch\nfrom used import read\n"
        "for x, y in torch.utils.data.DataLoader(d):\n"
        "    loss = net(x.cuda())\n    loss.backward()\n    opt.step()\n    print(read(loss))\n"
    )
    reasons = explained(capsys, "used.py:3")["item-in-train-loop"]["reasons"]
    assert "uncalled" not in {reason["id"] for reason in reasons}


def test_lines_of_nothing(folder: Path, capsys: Capture) -> None:
    assert run(["explain", "train.py:6"]) == 0
    assert capsys.readouterr().out.endswith("\n  no rule looks at anything that begins on this line\n")
    (folder / "test_train.py").write_text(f"{TRAIN}\ndef test_train():\n    pass\n")
    assert run(["explain", "test_train.py:14"]) == 0
    assert "the file holds tests, which are not checked" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["test_net.py", "plot_curves.py", "export.py"])
def test_what_is_called_like_something_else_is_checked_all_the_same(folder: Path, capsys: Capture, name: str) -> None:
    (folder / name).write_text(TRAIN)
    assert explained(capsys, f"{name}:14")["item-in-train-loop"]["outcome"] == "warning"
    assert run(["explain", f"{name}:14"]) == 0
    assert "tests, which are not checked" not in capsys.readouterr().out


def test_rules_that_look_for_something_else_are_named_in_one_line(folder: Path, capsys: Capture) -> None:
    (folder / "one.py").write_text("import torch\ndef f(x: torch.Tensor):\n    return x[0].item()\n")
    assert run(["explain", "one.py:3"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("  not what these look for: TL")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("train.py:99", "train.py:99: no code that can be read begins on this line"),
        ("train.py:2", "train.py:2: no code that can be read begins on this line"),
        ("gone.py:1", "gone.py: no such file or directory"),
        ("Gone.py:1", "Gone.py: no such file or directory"),
        (r"C:\gone\Train.py:1", r"C:\gone\Train.py: no such file or directory"),
        ("train.py:0", "train.py:0: no code that can be read begins on this line"),
    ],
)
def test_what_cannot_be_explained(capsys: Capture, place: str, message: str) -> None:
    assert run(["explain", place]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_no_read_in_the_fixtures_is_silent_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).parent.parent / "fixtures" / "item_in_train_loop" / "ok.py"
    source = SourceFile.from_bytes(path.name, path.read_bytes())
    settings = laws.active("item-in-train-loop")
    # One file, asked of each row: it is read and linted once.
    for module, name in ((linter, "lint"), (engine, "examine")):
        monkeypatch.setattr(module, name, cache(getattr(module, name)))
    reads = [
        row
        for row, line in enumerate(source.text.splitlines(), 1)
        if ".item()" in line and not line.lstrip().startswith("#")
    ]
    assert len(reads) > 5
    with engine.reading(source, settings, NOTHING) as context:
        monkeypatch.setattr(engine, "reading", lambda *_: nullcontext(context))
        verdicts = [(row, each) for row in reads for each in reasons.verdicts(source, settings, NOTHING, row)]
    assert len(verdicts) > 5
    for row, verdict in verdicts:
        assert verdict.words, (row, verdict)
        assert verdict.outcome is not Outcome.SILENT or verdict.reasons, (row, verdict)
