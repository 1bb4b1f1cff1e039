"""What is found in a document that is open: where it is, what is configured, what other open files say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchlint.config import Overrides
from torchlint.facts import NOTHING
from torchlint.lsp.analysis import Analyst, Inquire, Lint, Place, Repair
from torchlint.source import SourceFile

SLOW = "import torch\n\n\ndef build(n):\n    return torch.zeros(n).cuda()\n"
FAST = 'import torch\n\n\ndef build(n):\n    return torch.zeros(n, device="cuda")\n'
HELPER = """import torch


def accuracy(output: torch.Tensor, target: torch.Tensor) -> float:
    return (output.argmax(1) == target).sum().item() / len(target)
"""
TRAINING = """import torch
from helper import accuracy


def train(model, loader, optimizer, criterion):
    total = 0
    model.cuda()
    for x, y in loader:
        output = model(x.cuda(non_blocking=True))
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
        total += accuracy(output, y)
    return total
"""


def place(root: Path, name: str, **more: object) -> Place:
    return Place(str(root), str(root / name), name, **more)  # type: ignore[arg-type]


def codes(analyst: Analyst, at: Place, text: str = SLOW) -> list[str]:
    return [finding.code for finding in analyst.lint(Lint(at, SourceFile(at.shown, text))).result.findings]


def write(path: Path, text: str) -> None:
    """Write a file whose times tell that it is another one."""
    path.write_text(text)
    stamp = write.stamp = getattr(write, "stamp", 1_000_000_000) + 10  # type: ignore[attr-defined]
    os.utime(path, (stamp, stamp))


def test_a_document_need_not_be_a_file(tmp_path: Path) -> None:
    analyst = Analyst()
    assert codes(analyst, place(tmp_path, "never_saved.py")) == ["TL201"]
    assert codes(analyst, Place(str(tmp_path), None, "Untitled-1", Overrides())) == ["TL201"]
    assert codes(analyst, place(tmp_path, "a.py"), "x = 1\n") == []


def test_the_nearest_configuration_holds_and_is_read_again(tmp_path: Path) -> None:
    analyst = Analyst()
    (tmp_path / "inner").mkdir()
    write(tmp_path / "torchlint.toml", 'ignore = ["TL201"]\n')
    write(tmp_path / "inner" / "torchlint.toml", "")
    assert codes(analyst, place(tmp_path, "a.py")) == []
    assert codes(analyst, place(tmp_path, "inner/a.py")) == ["TL201"]
    write(tmp_path / "torchlint.toml", "")
    assert codes(analyst, place(tmp_path, "a.py")) == ["TL201"]
    write(tmp_path / "inner" / "torchlint.toml", 'ignore = ["TL201"]\n')
    assert codes(analyst, place(tmp_path, "inner/a.py")) == []
    (tmp_path / "inner" / "torchlint.toml").unlink()
    assert codes(analyst, place(tmp_path, "inner/a.py")) == ["TL201"]


def test_a_file_that_is_extended_is_read_again_when_it_is_said_to_have_changed(tmp_path: Path) -> None:
    analyst = Analyst()
    write(tmp_path / "base.toml", 'ignore = ["TL201"]\n')
    write(tmp_path / "torchlint.toml", 'extend = "base.toml"\n')
    assert codes(analyst, place(tmp_path, "a.py")) == []
    write(tmp_path / "base.toml", "")
    assert codes(analyst, place(tmp_path, "a.py", generation=1)) == ["TL201"]


def test_a_configuration_that_is_wrong_leaves_the_last_one_that_was_right(tmp_path: Path) -> None:
    analyst = Analyst()
    at = place(tmp_path, "a.py")
    write(tmp_path / "torchlint.toml", 'ignore = ["TL201"]\n')
    assert codes(analyst, at) == []
    write(tmp_path / "torchlint.toml", 'ignore = ["TL2\n')
    linted = analyst.lint(Lint(at, SourceFile("a.py", SLOW)))
    assert linted.result.findings == ()
    assert linted.problem.startswith("torchlint.toml:1")
    write(tmp_path / "torchlint.toml", "")
    assert codes(analyst, at) == ["TL201"]


def test_a_configuration_that_was_never_right_is_done_without(tmp_path: Path) -> None:
    write(tmp_path / "torchlint.toml", "ignroe = []\n")
    linted = Analyst().lint(Lint(place(tmp_path, "a.py"), SourceFile("a.py", SLOW)))
    assert [finding.code for finding in linted.result.findings] == ["TL201"]
    assert "ignore" in linted.problem


def test_what_the_client_sets_stands_above_files(tmp_path: Path) -> None:
    analyst = Analyst()
    write(tmp_path / "torchlint.toml", 'select = ["TL3"]\n')
    assert codes(analyst, place(tmp_path, "a.py", overrides=Overrides(select=("TL201",)))) == ["TL201"]
    wrong = place(tmp_path, "a.py", overrides=Overrides(select=("TL999",)))
    assert "TL999" in analyst.lint(Lint(wrong, SourceFile("a.py", SLOW))).problem


@pytest.mark.parametrize("name", ["build/a.py", "skipped/a.py", "test_a.py", "tests/a.py"])
def test_what_a_run_leaves_out_is_left_out(tmp_path: Path, name: str) -> None:
    write(tmp_path / "torchlint.toml", 'extend-exclude = ["skipped"]\n')
    (tmp_path / name).parent.mkdir(exist_ok=True)
    at = place(tmp_path, name)
    assert codes(Analyst(), at, SLOW + "\n\ndef test_it():\n    pass\n") == []
    assert Analyst().repair(Repair(at, SourceFile(name, SLOW))).text in (SLOW, FAST)


def test_repairing_makes_what_fix_makes(tmp_path: Path) -> None:
    assert Analyst().repair(Repair(place(tmp_path, "a.py"), SourceFile("a.py", SLOW))).text == FAST


@pytest.mark.parametrize("is_workspace", [True, False])
def test_open_files_are_asked_as_they_are(tmp_path: Path, is_workspace: bool) -> None:  # noqa: FBT001 - a parameter
    if not is_workspace:
        write(tmp_path / "torchlint.toml", "")  # what belongs together is below it
    write(tmp_path / "helper.py", "")
    write(tmp_path / "train.py", "")
    at = place(tmp_path, "helper.py", is_workspace=is_workspace)
    analyst, source = Analyst(), SourceFile("helper.py", HELPER)
    questions = analyst.lint(Lint(at, source)).result.questions
    assert questions.functions == ("accuracy",)
    opened = {str(tmp_path / "train.py"): TRAINING.encode()}
    facts = analyst.inquire(Inquire(at, HELPER.encode(), questions, opened))
    (finding,) = analyst.lint(Lint(at, source, facts)).result.findings
    assert (finding.code, finding.origin) == ("TL301", "train.py:13")
    assert analyst.inquire(Inquire(at, HELPER.encode(), questions, {})) == NOTHING


def test_a_text_that_cannot_be_decoded_again_asks_what_it_asked(tmp_path: Path) -> None:
    write(tmp_path / "torchlint.toml", "")
    write(tmp_path / "train.py", TRAINING)
    at = place(tmp_path, "helper.py")
    analyst, source = Analyst(), SourceFile("helper.py", HELPER)
    questions = analyst.lint(Lint(at, source)).result.questions
    write(tmp_path / "made.py", "import torch\n\n\ndef make():\n    return torch.zeros(3)\n")
    wanted = questions._replace(returns=("made.make",))
    facts = analyst.inquire(Inquire(at, b"# coding: base64\nimport made\n" + HELPER.encode(), wanted, {}))
    assert [name for name, _ in facts.returns] == ["made.make"]
    (finding,) = analyst.lint(Lint(at, source, facts)).result.findings
    assert (finding.code, finding.origin) == ("TL301", "train.py:13")


def test_what_is_no_file_asks_nobody(tmp_path: Path) -> None:
    at = Place(str(tmp_path), None, "Untitled-1")
    questions = Analyst().lint(Lint(at, SourceFile("Untitled-1", HELPER))).result.questions
    assert Analyst().inquire(Inquire(at, HELPER.encode(), questions, {})) == NOTHING
