"""The truth harness: a program of a mirror is counted, compared with what `check` says, and kept for the next run."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).parents[1]

TRAIN = """\
import torch
from torch import nn

numbers = torch.load("numbers.pt")
model = nn.Linear(8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for inputs in torch.utils.data.DataLoader(numbers, batch_size=8):
    loss = model(inputs.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    if LIMIT.le(0):
        break
torch.save(model.state_dict(), "model.pt")
"""

RECIPE = """\
[repositories]
"someone/something" = "COMMIT"

[[programs]]
name = "one"
kind = "vision"
repository = "someone/something"
folder = "sub"
start = "train.py"
replace = { "LIMIT" = "loss.detach().exp()" }
data = '''
import torch
torch.save(torch.randn(80, 8), "numbers.pt")
'''

[[programs]]
name = "two"
kind = "vision"
repository = "someone/something"
folder = "sub"
start = "missing.py"
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of two programs of a repository, whose git directory lies where mirrors do."""
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "train.py").write_text(TRAIN, encoding="utf-8")
    mirror = tmp_path / "mirrors" / "someone+something" / "repo"
    mirror.parent.mkdir(parents=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", f"--git-dir={mirror}", f"--work-tree={tree}"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    file = tmp_path / "programs.toml"
    file.write_text(RECIPE.replace("COMMIT", commit), encoding="utf-8")
    return file


def run(recipe: Path, *options: str) -> subprocess.CompletedProcess[str]:
    folder = recipe.parent
    command = [sys.executable, "-m", "tools.ground_truth", str(recipe), str(folder / "mirrors")]
    command += ["--results", str(folder / "results"), "--silent", str(folder / "silent.md")]
    command += ["--held-out", str(folder / "held.md"), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
def test_a_program_is_counted_and_compared_and_kept(recipe: Path) -> None:
    first = run(recipe)
    assert "| one " in first.stdout, first.stdout + first.stderr
    (row,) = (line for line in first.stdout.splitlines() if line.startswith("| one "))
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells[:3] == ["one", "vision", "10"]
    # The copy, the read and the branch wait in each step; checkpoints do not count.
    assert cells[3] == "3"
    assert cells[5] == "30"
    assert cells[7] == "0"
    assert "not counted: two: " in first.stdout
    page = (recipe.parent / "silent.md").read_text(encoding="utf-8")
    held = (recipe.parent / "held.md").read_text(encoding="utf-8")
    assert ("| one " in page) != ("| one " in held)
    assert "train.py:" not in held
    again = run(recipe, "--known")
    assert row in again.stdout
    assert row.rsplit("|", 7)[0] in run(recipe, "--recheck", "--only", "one").stdout


def test_what_is_seldom_is_what_check_says_and_the_run_bears_out() -> None:
    tool = importlib.import_module("tools.ground_truth")
    program = tool.Program("a", "vision", "a/b", "0" * 40, "a.py")
    rare = "TL301 item-in-train-loop: this runs only now and then (rare) | TL303 repeated-item: it stands alone (of)"
    other = "TL303 repeated-item: it stands alone (of) | TL301 item-in-train-loop: this runs only once (runs-once)"
    lines = tuple(
        tool.Line("a.py", row, waits, "", "", "", silence, checkpoint=False)
        for row, (waits, silence) in enumerate([(2, rare), (10, rare), (2, other), (2, "")], 1)
    )
    result = tool.Result(program, steps=10, lines=lines)
    assert [line.line for line in result.seldom] == [1]
    assert [line.line for line in result.counted if line.named] == [4]


def test_the_recipe_names_programs_of_many_kinds() -> None:
    import tomli

    said = tomli.loads((ROOT / "tools" / "ground_truth.toml").read_text(encoding="utf-8"))
    names = [program["name"] for program in said["programs"]]
    assert len(names) == len(set(names)) >= 60
    assert len({program["kind"] for program in said["programs"]}) >= 8
    assert {program["repository"] for program in said["programs"]} == set(said["repositories"])
    assert all(len(commit) == 40 for commit in said["repositories"].values())
