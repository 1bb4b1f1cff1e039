"""Where many files are linted, each is told at once what its imports give: the result is that of asking afterwards."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from torchlint import pool, sweep
from torchlint.cli import run

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.pool import Job, Outcome

Capture = pytest.CaptureFixture[str]
LENGTH = 6
FIRST = """\
import torch


def part0(path):
    return torch.LongTensor(read(path)).view(20, -1)


def show(x):
    print(x.item())
"""
NEXT = """\
from {before} import part{number}
import torch


def part{next}(path):
    return part{number}(path)


def show(x):
    print(x.item())
"""
MAIN = """\
import torch
from part5 import part5

device = torch.device("cuda")
ids = part5("train.txt")
for epoch in range(9):
    for i in range(0, ids.size(1), 30):
        inputs = ids[:, i : i + 30].to(device)
        loss = network(inputs)
        loss.backward()
"""
FILLER = "import torch\n\n\ndef show{number}(x):\n    print(x.item())\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that hangs on a chain of others, among files that have nothing to do with it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "part0.py").write_text(FIRST)
    for number in range(LENGTH - 1):
        text = NEXT.format(before=f"part{number}", number=number, next=number + 1)
        (tmp_path / f"part{number + 1}.py").write_text(text)
    (tmp_path / "main.py").write_text(MAIN)
    for number in range(sweep.FEW):
        (tmp_path / f"filler{number}.py").write_text(FILLER.format(number=number))
    return tmp_path


def found(capsys: Capture, *arguments: str) -> list[tuple[str, int, str, str, tuple[str, ...]]]:
    """Path, row, code, severity and doubts of each finding in the file that hangs on others."""
    assert run(["check", "--output-format", "json", "--select", "TL203,TL301", *arguments]) in (0, 1)
    findings = json.loads(capsys.readouterr().out)
    return [
        (each["filename"], each["location"]["row"], each["code"], each["severity"], tuple(map(str, each["doubts"])))
        for each in findings
        if each["filename"] == "main.py"
    ]


def linted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file is linted from here on."""
    counts: Counter[str] = Counter()
    outcome = pool.outcome

    def counted(job: Job) -> Outcome:
        counts[job.shown] += job.lints
        return outcome(job)

    monkeypatch.setattr(pool, "outcome", counted)
    return counts


def test_a_file_is_linted_once_where_it_hangs_on_what_others_give(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = linted(monkeypatch)
    assert [code for _, _, code, _, _ in found(capsys, ".", "--no-cache", "--jobs", "1")] == ["TL203"]
    assert {name: count for name, count in counts.items() if count != 1} == {}
    assert len(counts) == len(list(project.glob("*.py")))


@pytest.mark.parametrize(
    ("imports", "otherwise"),
    [
        ("from part5 import part5", "from part5 import *"),
        ("from part5 import part5", "from part5 import \\\n    part5"),
    ],
)
def test_it_is_told_what_it_imports_in_another_way(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, imports: str, otherwise: str
) -> None:
    (project / "main.py").write_text(MAIN.replace(imports, otherwise))
    counts = linted(monkeypatch)
    assert [code for _, _, code, _, _ in found(capsys, ".", "--no-cache", "--jobs", "1")] == ["TL203"]
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_what_nobody_calls_is_not_asked(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "\n".join(f"from filler{number} import *" for number in range(sweep.FEW))
    (project / "all.py").write_text(f"import torch\n{names}\n{FILLER.format(number='')}")
    asked: set[str] = set()
    outcome = pool.outcome

    def noted(job: Job) -> Outcome:
        asked.update([job.shown] if job.asked.returns else [])
        return outcome(job)

    monkeypatch.setattr(pool, "outcome", noted)
    assert found(capsys, ".", "--no-cache", "--jobs", "1")
    assert asked == {f"part{number}.py" for number in range(LENGTH)}


def test_it_is_the_same_however_it_is_asked(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = found(capsys, ".", "--no-cache", "--jobs", "1")
    assert at_once
    assert found(capsys, "main.py", "--no-cache") == at_once
    monkeypatch.setattr(pool, "LEAST_LINES", 1)
    assert found(capsys, ".", "--no-cache", "--jobs", "3") == at_once
    monkeypatch.setattr(sweep, "FEW", 1000)
    assert found(capsys, ".", "--no-cache", "--jobs", "1") == at_once
    # Without the first of the chain there is nothing to say of its end.
    (project / "part0.py").write_text(
        FIRST.replace("torch.LongTensor(read(path)).view(20, -1)", "read(path).view(20, -1)")
    )
    assert found(capsys, ".", "--no-cache", "--jobs", "1") != at_once


def test_a_second_run_lints_nothing_and_sees_a_change_at_the_other_end(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = found(capsys, ".", "--jobs", "1")
    counts = linted(monkeypatch)
    assert found(capsys, ".", "--jobs", "1") == first
    assert not counts
    (project / "part0.py").write_text(FIRST.replace("read(path)).view", "read(path)).cuda().view"))
    changed = found(capsys, ".", "--jobs", "1")
    assert changed != first
    assert counts["main.py"] == 1
    assert changed == found(capsys, ".", "--no-cache", "--jobs", "1")


def test_files_in_a_circle_are_asked_as_ever(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "part0.py").write_text(f"from part5 import part5\n{FIRST}\n\ndef both(path):\n    return part5(path)\n")
    at_once = found(capsys, ".", "--no-cache", "--jobs", "1")
    assert at_once == found(capsys, "main.py", "--no-cache")
    monkeypatch.setattr(sweep, "FEW", 1000)
    assert found(capsys, ".", "--no-cache", "--jobs", "1") == at_once


def test_what_is_fixed_does_not_hang_on_what_nobody_asked(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {}
    for few in (sweep.FEW, 1000):
        monkeypatch.setattr(sweep, "FEW", few)
        (project / "main.py").write_text(MAIN)
        run(["check", ".", "--no-cache", "--fix", "--unsafe-fixes", "--jobs", "1", "-q"])
        texts[few] = (project / "main.py").read_text()
    capsys.readouterr()
    assert len(set(texts.values())) == 1
