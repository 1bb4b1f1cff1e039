"""What the tool says that a convention changes is what linting without it finds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import ablate_conventions
import pytest
from ablate_conventions import ROOT, Effect, ablate, snippets, tasks

from torchlint.semantics.knowledge.conventions.counts import EPOCH
from torchlint.semantics.knowledge.conventions.functions import FALLBACK, RARE_FUNCTION
from torchlint.semantics.knowledge.conventions.texts import WEIGHT_LOADER
from torchlint.semantics.knowledge.conventions.values import LOADER, TRACKER

if TYPE_CHECKING:
    from torchlint.facts import Facts

READ = """\
import torch


def shown(train_loader):
    for x in train_loader:
        print(x.cuda())


def plot(x: torch.Tensor):
    return torch.diag(x @ x.T)
"""
FOUND = "6:15 implicit-sync-in-logging"
DOUBTED = "10:12 diag-of-matmul"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "read.py").write_text(READ)
    (tmp_path / "quiet.py").write_text("import torch\n\nfallback = torch.ones(3)\n")
    (tmp_path / "broken.py").write_bytes(b"import torch\n\xff\n")
    return tmp_path


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_convention_changes(folder: Path, jobs: int) -> None:
    effects = ablate([tasks(folder)], (LOADER, FALLBACK, RARE_FUNCTION, EPOCH), jobs)
    assert list(effects) == ["loader", "rare-function", "epoch", "fallback"]
    read = str(folder / "read.py")
    assert effects["loader"].files == [read]
    assert effects["loader"].changed == [f"{read}:{FOUND}"]  # it is a note, where nothing says that it recurs
    assert effects["rare-function"].changed == [f"{read}:{DOUBTED}"]
    assert effects["rare-function"].appeared == []
    assert effects["rare-function"].gone == []
    assert effects["epoch"] == Effect()


def test_halves_tell_the_same(folder: Path) -> None:
    asked = (LOADER, FALLBACK, RARE_FUNCTION, EPOCH)
    assert ablate([tasks(folder)], asked, halves=True) == ablate([tasks(folder)], asked)


def test_a_name_that_suggests_nothing(folder: Path) -> None:
    (folder / "read.py").write_text(READ.replace("train_loader", "data"))
    assert ablate([tasks(folder)], (LOADER,)) == {"loader": Effect()}


def test_a_message_that_changes_is_no_other_finding(folder: Path) -> None:
    (folder / "read.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Block(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.conv = nn.Conv2d(3, 8, 3)\n        self.norm = nn.BatchNorm2d(8)\n\n"
        "    def forward(self, x):\n        return self.norm(self.conv(x))\n\n\ndef build():\n"
        "    model = Block()\n    model.load_state_dict(torch.load('a.pt', weights_only=True))\n    return model\n"
    )
    effect = ablate([tasks(folder)], (WEIGHT_LOADER,))["weight-loader"]
    assert (effect.appeared, effect.gone) == ([], [])
    assert effect.changed == [f"{folder / 'read.py'}:8:21 bias-before-batchnorm"]


def test_what_other_files_say_counts(folder: Path) -> None:
    (folder / "total.py").write_text(
        "import torch\n\n\ndef total(outputs: torch.Tensor):\n    return outputs.cuda().sum().item()\n"
    )
    assert not facts_of("total.py", folder)
    (folder / "loop.py").write_text(
        "import torch\nfrom total import total\n\n\ndef run(model, train_loader):\n"
        "    for batch in train_loader:\n        print(total(model(batch)))\n"
    )
    assert facts_of("total.py", folder)


def facts_of(name: str, folder: Path) -> Facts:
    return next(task.facts for task in tasks(folder) if task.name == str(folder / name))


def test_a_sample_is_spread_evenly(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    for number in range(10):
        (folder / f"file{number}.py").write_text("import torch\n")
    (folder / "other.py").write_text("import os\n")
    assert [Path(task.name).stem for task in tasks(folder, 4)] == ["file0", "file2", "file5", "file7"]
    assert len(tasks(folder, 12)) == 10


def test_the_programs_of_this_repository(tmp_path: Path) -> None:
    for name, text in {
        "fixtures/rule/ok.py": "import torch\nx = 1  # <- item-in-loop?\n",
        "rules/group/rule.md": "```python bad\nimport torch\ny = 2\n```\n```sh\ntorch\n```\n",
        "tests/test_rule.py": "CODE = '''\n    import torch\n    z = 3\n'''\nA = 'torch\\nno'\nB = 'import torch\\nx = 1\\n'\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert {task.name: task.source.text for task in snippets(tmp_path)} == {
        "fixtures/rule/ok.py": "import torch\nx = 1\n",
        "rules/group/rule.md#1": "import torch\ny = 2\n",
        "tests/test_rule.py@1": "import torch\nz = 3\n",
    }


def test_look_alikes_are_among_them() -> None:
    names = [task.name for task in snippets(ROOT)]
    assert len(names) > 1000
    assert any(name.endswith("/ok.py") for name in names)
    assert {name.partition("/")[0] for name in names} == {"fixtures", "rules", "tests"}


def test_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    report = folder / "report.json"
    given = ["--convention", "loader", "--convention", "tracker", "--jobs", "1", "--report", str(report)]
    monkeypatch.setattr(sys, "argv", ["ablate_conventions.py", str(folder), *given])
    assert ablate_conventions.main() == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["loader", "+0", "-0", "~1", "suggests", "in", "1", "files"]
    assert printed[1] == f"    ~ {folder / 'read.py'}:{FOUND}"
    assert printed[-2:] == ["0 suggest something and change nothing: -", "1 suggest nothing: tracker"]
    assert set(json.loads(report.read_text())) == {LOADER.id, TRACKER.id}


@pytest.mark.parametrize("given", [["nowhere"], [".", "--convention", "nothing"]])
def test_what_there_is_not(given: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["ablate_conventions.py", *given])
    assert ablate_conventions.main() == 1
